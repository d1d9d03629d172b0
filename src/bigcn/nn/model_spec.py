"""What a model in the registry is: how it is built, what its graph needs, how it is trained."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.data import Data


@dataclass(frozen=True)
class ModelContext:
    """What a model is built for.

    Args:
        dataset (str): The name of the graph, for settings that depend on it.
        case (str): The kind of noise, likewise.
        task (str): :obj:`"node"` or :obj:`"link"`.
        in_channels (int): The number of features.
        out_channels (int): The number of classes, or the size of the embeddings.
        hidden_channels (int, optional): The size of hidden layers. (default: 16 for nodes, 32 for links; 64 for GAT)
        num_layers (int, optional): The number of layers. (default: :obj:`2`)
        dropout (float, optional): The dropout probability. (default: :obj:`0.5`)
    """

    dataset: str
    case: str
    task: str
    in_channels: int
    out_channels: int
    hidden_channels: int | None = None
    num_layers: int = 2
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if self.task not in ("node", "link"):
            raise ValueError(f"'task' must be 'node' or 'link' (got {self.task!r})")
        for name in ("in_channels", "out_channels", "num_layers", "hidden_channels"):
            value = getattr(self, name)
            if not (value is None and name == "hidden_channels") and value < 1:
                raise ValueError(f"'{name}' must be positive (got {value})")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"'dropout' must be at least 0 and below 1 (got {self.dropout})")

    def common(self) -> dict[str, Any]:
        """The arguments that every model shares."""
        hidden = self.hidden_channels or (32 if self.task == "link" else 16)
        return {"hidden_channels": hidden, "num_layers": self.num_layers, "dropout": self.dropout}


@dataclass(frozen=True)
class TrainingDefaults:
    """How a model is trained unless told otherwise.

    Args:
        learning_rate (float, optional): The step size of Adam. (default: :obj:`0.01`)
        weight_decay (float, optional): The weight decay of all parameters. (default: :obj:`5e-4`)
        penalty (float, optional): The weight of :meth:`penalty` in the loss. (default: :obj:`0.0`)
    """

    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    penalty: float = 0.0


def _common(context: ModelContext) -> dict[str, Any]:
    return context.common()


def _as_it_is(data: Data) -> Data:
    return data


def _defaults(context: ModelContext) -> TrainingDefaults:
    return TrainingDefaults()


@dataclass(frozen=True)
class ModelSpec:
    """A model that can be built by name.

    Args:
        name (str): The name.
        title (str): The name for people.
        model (Callable): Its class, called with :obj:`in_channels`, :obj:`out_channels` and the settings.
        settings (Callable, optional): The other arguments of the class for a :class:`ModelContext`: plain numbers and
            text, so that a run can store them.
        prepare (Callable, optional): What is done to the graph that messages pass on before training.
        training (Callable, optional): The :class:`TrainingDefaults` for a :class:`ModelContext`.
        variant (Callable, optional): For a family: makes the member with the given full name and words.
    """

    name: str
    title: str
    model: Callable[..., torch.nn.Module]
    settings: Callable[[ModelContext], dict[str, Any]] = _common
    prepare: Callable[[Data], Data] = _as_it_is
    training: Callable[[ModelContext], TrainingDefaults] = _defaults
    variant: "Callable[[str, tuple[str, ...]], ModelSpec] | None" = None

    def build(self, context: ModelContext) -> torch.nn.Module:
        """Returns a new model, its parameters drawn from PyTorch's global generator."""
        return self.model(context.in_channels, out_channels=context.out_channels, **self.settings(context))


def suggest(word: str, known: list[str]) -> str:
    """Returns what to append to a complaint about an unknown word."""
    close = difflib.get_close_matches(word, known, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"{meant} (known: {', '.join(known)})"
