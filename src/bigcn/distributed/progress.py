"""How far a run has come, in a file that a restarted run goes on from."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bigcn.distributed.processes import Processes
from bigcn.files import PathLike, write_bytes
from bigcn.training.session import TrainSession

if TYPE_CHECKING:
    from bigcn.training.loop import Best, Curves


class RunState:
    """Writes down parameters, optimiser, epoch and best epoch every so often, and starts from them.

    The first process reads and writes; the others get what it read from it. Nothing random needs to be kept: whatever
    is drawn is a function of the epoch.

    Args:
        path (str or path): The file.
        fingerprint (str): What the run is told; a file of a run that was told something else is refused.
        every (int, optional): After how many epochs it is written. (default: :obj:`20`)
    """

    def __init__(self, path: PathLike, fingerprint: str, every: int = 20) -> None:
        if every < 1:
            raise ValueError(f"'checkpoint_every' must be at least 1 (got {every})")
        self.path, self.fingerprint, self.every = Path(path), fingerprint, every
        #: The epoch that the run went on from, zero if it began anew.
        self.resumed = 0

    def due(self, epoch: int) -> bool:
        """Tells whether to write after an epoch."""
        return epoch % self.every == 0

    def begin(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        best: "Best",
        curves: "Curves",
        processes: Processes,
    ) -> int:
        """Puts back what was written, if there is anything, and returns how many epochs lie behind."""
        found = processes.from_first(processes.together(self._read if processes.leads else lambda: None))
        if found is None:
            return 0
        device = next(model.parameters()).device
        tensors = {name: tensor.to(device) for name, tensor in found[0].items()}
        self.resumed = TrainSession(tensors | _random(), found[1]).begin(model, optimizer, best, curves)
        return self.resumed

    def save(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        best: "Best",
        curves: "Curves",
        epoch: int,
        processes: Processes,
    ) -> None:
        """Writes where training stands, whole or not at all."""
        if not processes.leads:
            return
        from safetensors.torch import save

        session = TrainSession()
        session.end(model, optimizer, best, curves, epoch)
        tensors = {name: tensor for name, tensor in session.tensors.items() if not name.startswith("random.")}
        about = {"fingerprint": self.fingerprint, "numbers": json.dumps(session.numbers)}
        write_bytes(self.path, save({name: tensor.contiguous() for name, tensor in tensors.items()}, about))

    def remove(self, processes: Processes) -> None:
        """Removes the file of a run that has ended."""
        if processes.leads:
            self.path.unlink(missing_ok=True)

    def _read(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            numbers = json.loads(about["numbers"])
        except (SafetensorError, KeyError, ValueError, OSError):
            raise ValueError(f"{self.path}: not the state of a run, or damaged: remove it to begin anew") from None
        if about.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"{self.path}: the state of a run with other options or shards: remove it to begin anew, or repeat "
                f"those options"
            )
        return tensors, numbers


def fingerprint(options: dict[str, Any]) -> str:
    """Returns a digest of whatever a run is told."""
    text = json.dumps(options, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def check_same(options: dict[str, Any], processes: Processes) -> str:
    """Refuses processes that were told different things, naming one, and returns the digest of what they were told."""
    plain = json.loads(json.dumps(options, sort_keys=True, default=_plain))
    told = processes.gather(plain)
    for rank, other in enumerate(told):
        if other != told[0]:
            names = sorted(name for name in told[0] | other if told[0].get(name) != other.get(name))
            raise ValueError(
                f"process {rank + 1} of {processes.size} was started with another '{names[0]}' than the first "
                f"({_short(other.get(names[0]))} and {_short(told[0].get(names[0]))}): start all with the same options"
            )
    return fingerprint(plain)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return hashlib.sha256(value.detach().cpu().contiguous().numpy().tobytes()).hexdigest()
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)
    return str(value)


def _random() -> dict[str, Tensor]:
    # A session puts the generators back as well; here nothing is drawn from them.
    return {"random.cpu": torch.get_rng_state()}
