"""What every task offers to the training loop."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

#: Scores by part (:obj:`"val"`, :obj:`"test"`) and by name.
Scores = dict[str, dict[str, float]]


class Task(ABC):
    """A graph, what to learn on it, and how that is judged.

    A task holds no state of training: the same model gets the same loss and scores from it, whenever it is asked.

    Args:
        data (Data): The graph with features :obj:`x`, and :obj:`edge_weight` where edges have one.
        prepare (Callable, optional): Applied to the graph that messages pass on; nothing that is predicted or scored
            depends on it. See :class:`bigcn.nn.registry.ModelSpec`. (default: :obj:`None`)
    """

    #: :obj:`"node"` or :obj:`"link"`.
    name: ClassVar[str]
    #: The validation metric that decides which epoch is the best; higher is better.
    monitor: ClassVar[str]
    #: Whether loss and answers look at some rows of the output alone, each for itself: those that the first tensor of
    #: :meth:`questions` and of :meth:`scored` names, in every epoch the same.
    by_rows: ClassVar[bool] = False
    #: The size of the model's output.
    num_outputs: int

    def __init__(self, data: Data, prepare: Callable[[Data], Data] | None = None) -> None:
        graph = Data(x=features_of(data), edge_index=data.edge_index, edge_weight=data.edge_weight)
        if prepare is not None:
            graph = prepare(graph)
        # Always the same tensors, so that models can cache what depends on them alone.
        self.x: Tensor = graph.x
        self.edge_index: Tensor = graph.edge_index
        self.edge_weight: Tensor | None = graph.edge_weight

    @property
    def num_features(self) -> int:
        """The number of features of a node."""
        return self.x.size(1)

    def outputs(self, model: torch.nn.Module) -> Tensor:
        """Runs the model on the whole graph, in whatever mode it is in."""
        out: Tensor = model(self.x, self.edge_index, self.edge_weight)
        return out

    @abstractmethod
    def questions(self, epoch: int = 0) -> tuple[Tensor, ...]:
        """Returns the tensors that the training loss of an epoch needs besides the outputs.

        Args:
            epoch (int, optional): The epoch, for what is drawn anew in each. (default: :obj:`0`)
        """

    @abstractmethod
    def loss_of(self, out: Tensor, *questions: Tensor) -> Tensor:
        """Returns the training loss of outputs; it can be mapped over members of a population."""

    @abstractmethod
    def scored(self) -> tuple[Tensor, ...]:
        """Returns the tensors that :meth:`answers` needs besides the outputs."""

    @abstractmethod
    def answers(self, out: Tensor, *scored: Tensor) -> Tensor:
        """Returns the answers to all that is validated or tested, in one dimension; it can be mapped likewise."""

    @property
    def num_validated(self) -> int | None:
        """How many of the answers, from the first on, are those of validation, if that can differ between tasks."""
        return None

    def right_answers(self) -> Tensor | None:
        """Returns what answers are compared with when they are judged, if that can differ between tasks of a graph."""
        return None

    @abstractmethod
    def judge(self, answers: Tensor, right: Tensor | None = None) -> Tensor:
        """Returns the score that is monitored, in double precision.

        Args:
            answers (torch.Tensor): What :meth:`answers` returned; leading dimensions are kept.
            right (torch.Tensor, optional): What to compare with. (default: the task's own)
        """

    @abstractmethod
    def scores(self, answers: Tensor) -> Scores:
        """Returns validation and test scores of answers, on the host."""

    def loss(self, model: torch.nn.Module, epoch: int = 0) -> Tensor:
        """Returns the training loss, differentiable.

        Args:
            model (torch.nn.Module): The model, in training mode.
            epoch (int, optional): The epoch, for what is drawn anew in each. (default: :obj:`0`)
        """
        return self.loss_of(self.outputs(model), *self.questions(epoch))

    def evaluate(self, model: torch.nn.Module) -> Scores:
        """Returns validation and test scores from one forward pass in evaluation mode."""
        with evaluating(model):
            # One transfer, and the counting on the host: a dozen tiny kernels would each have to be waited for.
            answers = self.answers(self.outputs(model), *self.scored()).cpu()
        return self.scores(answers)

    def with_features(self, x: Tensor) -> "Task":
        """Returns the same task on the same graph with other features.

        Args:
            x (torch.Tensor): The features, one row per node.
        """
        if x.dim() != 2 or x.size(0) != self.x.size(0):
            raise ValueError(f"'x' must have one row for each of the {self.x.size(0)} nodes (got {list(x.shape)})")
        other = copy.copy(self)
        other.x = x
        return other

    def to(self, device: torch.device | str) -> "Task":
        """Moves the tensors of the task, in place, and returns it."""
        for key, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, key, value.to(device))
        return self


def features_of(data: Data) -> Tensor:
    """Returns the features of a graph as floating-point numbers, refusing a graph without."""
    x = data.x
    if not isinstance(x, Tensor) or x.dim() != 2:
        raise ValueError("'data' must have features in data.x, one row per node")
    if not isinstance(data.edge_index, Tensor):
        raise ValueError("'data' must have edges in data.edge_index")
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Switches a model to evaluation for a while, without gradients."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)
