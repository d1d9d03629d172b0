"""Checkpoints: a trained model as a folder that another machine can load, without pickling.

A folder holds :obj:`model.safetensors` (the parameters), :obj:`config.json` (what they mean: the arguments of the
model, how tables are read, how it was trained and scored) and :obj:`README.md` (the same for people), and further
tensors where there are any: the split, and what an interrupted training needs to go on. The configuration knows the
SHA-256 of every file of tensors and of itself, so that a folder that was altered is refused and not believed.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bigcn.checks import as_python
from bigcn.datasets.own.graph import Encoding
from bigcn.files import PathLike, replace_folder
from bigcn.nn.bigcn import BiGCN
from bigcn.nn.rebuild import build_bigcn, describe_bigcn

FORMAT = "bigcn checkpoint"
#: Raise it when a folder comes to mean something else.
FORMAT_VERSION = 1
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"


class CheckpointError(ValueError):
    """A checkpoint that cannot be read or written, in one sentence."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained model and what is known about it.

    Args:
        model (BiGCN): The model.
        task (str, optional): What it was trained for: :obj:`"node"` or :obj:`"link"`. (default: :obj:`None`)
        encoding (Encoding, optional): How tables become its input, and the names of its classes.
            (default: :obj:`None`)
        details (dict, optional): Whatever else JSON can hold: split, training, scores, data.
        arrays (dict, optional): Further tensors, by the name of their file (without suffix) and their own.
        card (str, optional): The model card, in Markdown.
    """

    model: BiGCN
    task: str | None = None
    encoding: Encoding | None = None
    details: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    card: str = "A model of the `bigcn` library: `BiGCN.from_pretrained(folder)` loads it.\n"

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, none if it was not trained on tables."""
        return self.encoding.classes if self.encoding is not None else ()


def save_checkpoint(folder: PathLike, checkpoint: Checkpoint, overwrite: bool = False) -> Path:
    """Writes a checkpoint, whole or not at all; what stood there before stays until then.

    Args:
        folder (str or path): The folder. It may be empty or hold a checkpoint, and nothing else.
        checkpoint (Checkpoint): What to write.
        overwrite (bool, optional): If set to :obj:`True`, replaces an older checkpoint. (default: :obj:`False`)
    """
    target = check_target(folder, overwrite)
    arguments = describe_bigcn(checkpoint.model)
    tensors = {WEIGHTS: checkpoint.model.state_dict()}
    tensors |= {f"{name}.safetensors": arrays for name, arrays in checkpoint.arrays.items() if arrays}
    files = {name: _packed(arrays) for name, arrays in tensors.items()}
    from bigcn import __version__

    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "bigcn": __version__,
        "torch": str(torch.__version__),
        "model": {"class": "BiGCN", "arguments": arguments},
        "task": checkpoint.task,
        "encoding": None if checkpoint.encoding is None else checkpoint.encoding.to_dict(),
        "details": checkpoint.details,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    try:
        text = json.dumps(config | {"checksum": _checksum(config)}, indent=1, allow_nan=False, default=_plain) + "\n"
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{folder} cannot be saved: its configuration does not fit into JSON ({error})") from None
    files[CONFIG] = text.encode("utf-8")
    files[CARD] = checkpoint.card.encode("utf-8", "backslashreplace")
    with _one_sentence(folder):
        replace_folder(target, files)
    return Path(folder)


def load_checkpoint(folder: PathLike, device: torch.device | str = "cpu") -> Checkpoint:
    """Reads a checkpoint; one that is not whole, was altered, or is newer than this library is refused.

    Args:
        folder (str or path): The folder.
        device (torch.device, optional): Where to put the model; further tensors stay on the CPU.
            (default: :obj:`"cpu"`)
    """
    place = Path(folder)
    config = read_config(place)
    tensors = {name: _unpacked(place, name, digest) for name, digest in config["files"].items()}
    weights = tensors.pop(WEIGHTS, None)
    if weights is None:
        raise CheckpointError(f"{place / CONFIG} does not name {WEIGHTS}")
    try:
        if config["model"]["class"] != "BiGCN":
            raise CheckpointError(f"{place} holds a {config['model']['class']!r}, which this version does not know")
        model = build_bigcn(config["model"]["arguments"], weights)
        encoding = None if config["encoding"] is None else Encoding.from_dict(config["encoding"])
        task, details, card = config["task"], config["details"], _card(place)
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{place / CONFIG} is not complete ({error})") from None
    except ValueError as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{place} does not fit this library: {error}") from None
    arrays = {name.removesuffix(".safetensors"): content for name, content in tensors.items()}
    return Checkpoint(model.to(device).eval(), task, encoding, details, arrays, card)


def read_config(folder: PathLike) -> dict[str, Any]:
    """Returns the configuration of a checkpoint, verified, without touching its tensors.

    Args:
        folder (str or path): The folder.
    """
    place = Path(folder)
    if not place.is_dir():
        what = "is a file, not the folder of a checkpoint" if place.exists() else "does not exist"
        raise CheckpointError(f"the checkpoint {place} {what}")
    path = place / CONFIG
    try:
        config = json.loads(_read(path).decode("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise CheckpointError(f"{path} is not JSON, so {place} is no checkpoint") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not the configuration of a bigcn checkpoint")
    version = config.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise CheckpointError(f"{path} has the unknown format version {version!r}")
    if version > FORMAT_VERSION:
        raise CheckpointError(
            f"{place} was written by bigcn {config.get('bigcn')} in format {version}, and this version reads "
            f"{FORMAT_VERSION} at most: upgrade bigcn"
        )
    if config.pop("checksum", None) != _checksum(config):
        raise CheckpointError(f"{path} was changed after it was written")
    return config


def check_target(folder: PathLike, overwrite: bool = False) -> Path:
    """Refuses a place where no checkpoint can be saved, and returns it with links followed.

    Args:
        folder (str or path): The folder.
        overwrite (bool, optional): If set to :obj:`True`, a checkpoint may stand there. (default: :obj:`False`)
    """
    target = Path(folder).resolve()
    if target.is_file() or (target.exists() and not target.is_dir()):
        raise CheckpointError(f"{folder} is a file, and a checkpoint is a folder")
    if not target.parent.is_dir():
        raise CheckpointError(f"{folder} cannot be made: there is no folder {target.parent}")
    if not target.exists() or not (found := {path.name for path in target.iterdir()}):
        return target
    if not _is_checkpoint(target):
        raise CheckpointError(f"{folder} holds something that is not a checkpoint, and was left as it is")
    strangers = sorted(name for name in found - {CONFIG, CARD} if not name.endswith(".safetensors"))
    if strangers:
        raise CheckpointError(f"{folder} holds more than a checkpoint ({strangers[0]}), and was left as it is")
    if not overwrite:
        raise CheckpointError(f"{folder} already holds a checkpoint, and was left as it is")
    return target


def _is_checkpoint(folder: Path) -> bool:
    """Whether a folder is a checkpoint of any version, also a damaged one."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("format") == FORMAT


def _checksum(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Returns what JSON can hold of a value that it cannot."""
    if (plain := as_python(value)) is value:
        raise TypeError(f"{type(value).__name__} is not JSON serializable")
    return plain


def _packed(tensors: dict[str, Tensor]) -> bytes:
    from safetensors.torch import save

    packed: bytes = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    return packed


def _unpacked(folder: Path, name: str, digest: str) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    if Path(name).name != name:
        raise CheckpointError(f"{folder / CONFIG} names {name!r}, which is not a file in the folder")
    content = _read(folder / name)
    # What is read is what was verified: the file is opened once.
    if hashlib.sha256(content).hexdigest() != digest:
        raise CheckpointError(f"{folder / name} was changed after it was written (its SHA-256 is another)")
    try:
        tensors: dict[str, Tensor] = load(content)
    except SafetensorError as error:
        raise CheckpointError(f"{folder / name} is not a safetensors file ({error})") from None
    return tensors


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{path.parent} is not a whole checkpoint: {path.name} is missing") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from None


def _card(folder: Path) -> str:
    # For people alone; a checkpoint without one still works.
    path = folder / CARD
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


@contextmanager
def _one_sentence(folder: PathLike) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CheckpointError(f"{folder} could not be saved: {reason}; what stood there is untouched") from None
