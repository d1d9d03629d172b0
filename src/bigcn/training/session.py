"""Training that can be put down and taken up again, as if it had never stopped."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from bigcn.training.loop import Best, Curves


class TrainSession:
    """What :func:`~bigcn.training.train` leaves behind when its callback ends it, and goes on from.

    It holds the parameters of the last epoch and of the best one, the moments of Adam and the state of the random
    generators, so that on a CPU a run that was interrupted ends with the same parameters as one that was not, bit for
    bit. All of it is tensors and plain numbers, which a file can hold without pickling.

    Args:
        tensors (dict, optional): What :attr:`tensors` of an earlier session was. (default: :obj:`None`)
        numbers (dict, optional): What :attr:`numbers` of an earlier session was. (default: :obj:`None`)
    """

    def __init__(self, tensors: dict[str, Tensor] | None = None, numbers: dict[str, Any] | None = None) -> None:
        if (tensors is None) != (numbers is None):
            raise ValueError("'tensors' and 'numbers' of a session belong together")
        #: The state by name: ``model.*``, ``best.*``, ``adam.*`` and ``random.*``.
        self.tensors: dict[str, Tensor] = dict(tensors or {})
        #: Epochs, scores and curves; plain values that JSON can hold.
        self.numbers: dict[str, Any] = dict(numbers or {})

    @property
    def epoch(self) -> int:
        """How many epochs lie behind."""
        return int(self.numbers.get("epoch", 0))

    @property
    def best_state(self) -> dict[str, Tensor]:
        """The parameters of the best epoch so far; empty before the first evaluation."""
        return self._part("best.")

    @property
    def model_state(self) -> dict[str, Tensor]:
        """The parameters of the last epoch."""
        return self._part("model.")

    def begin(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, best: "Best", curves: "Curves") -> int:
        """Puts everything back as it was and returns how many epochs lie behind."""
        if not self.numbers:
            return 0
        model.load_state_dict(self.model_state)
        # Copies: moments and best states are edited in place, and must not change what the session holds.
        state = optimizer.state_dict()
        moments = self._part("adam.")
        state["state"] = {
            place: {name: moments[f"{place}.{name}"].clone() for name in ("step", "exp_avg", "exp_avg_sq")}
            for place in range(sum(len(group["params"]) for group in state["param_groups"]))
            if f"{place}.step" in moments  # a parameter that never had a gradient has none
        }
        optimizer.load_state_dict(state)
        if self.numbers["scores"] is not None:
            best.epoch, best.score = self.numbers["best_epoch"], self.numbers["score"]
            best.scores = self.numbers["scores"]
        best.state = {name: tensor.clone() for name, tensor in self.best_state.items()}
        if curves.values:
            curves.values = {name: list(values) for name, values in self.numbers["curves"].items()}
        device = next(model.parameters()).device
        torch.set_rng_state(self.tensors["random.cpu"].cpu())
        if device.type == "cuda" and "random.cuda" in self.tensors:
            torch.cuda.set_rng_state(self.tensors["random.cuda"].cpu(), device)
        return self.epoch

    def end(
        self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, best: "Best", curves: "Curves", epoch: int
    ) -> None:
        """Takes down where training stands."""
        device = next(model.parameters()).device
        tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in best.state.items()}
        for place, moments in optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{place}.{name}": value for name, value in moments.items()}
        tensors["random.cpu"] = torch.get_rng_state()
        if device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(device)
        self.tensors = {name: tensor.detach().clone().cpu() for name, tensor in tensors.items()}
        self.numbers = {
            "epoch": epoch,
            "best_epoch": best.epoch,
            "score": best.score if best.scores is not None else None,
            "scores": best.scores,
            "curves": curves.values,
        }

    def _part(self, prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): t for name, t in self.tensors.items() if name.startswith(prefix)}
