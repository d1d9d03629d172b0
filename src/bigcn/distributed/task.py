"""What the training loop asks of a task whose rows are spread over processes."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from bigcn.distributed.graph import DistributedGraph
from bigcn.distributed.processes import Processes
from bigcn.tasks.base import Scores


class DistributedTask(ABC):
    """The rows of one process, what to learn on them, and how that is judged; see :class:`bigcn.tasks.Task`."""

    name: ClassVar[str]
    monitor: ClassVar[str]
    num_outputs: int
    processes: Processes
    #: The features of the own nodes, their places in the node table, and the graph.
    x: Tensor
    rows: Tensor
    graph: DistributedGraph

    def outputs(self, model: torch.nn.Module) -> Tensor:
        """Runs the model on the rows of this process, in whatever mode it is in; all processes must do so."""
        out: Tensor = model(self.x, self.graph)
        return out

    @abstractmethod
    def loss(self, model: torch.nn.Module, epoch: int = 0) -> Tensor:
        """Returns what this process adds to the training loss: those of all add up to that of a single one."""

    @abstractmethod
    def evaluate(self, model: torch.nn.Module) -> Scores:
        """Returns validation and test scores over all processes, the same on each."""
