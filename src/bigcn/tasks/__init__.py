"""What is learned on a graph, and how it is judged."""

from bigcn.tasks.base import Scores, Task
from bigcn.tasks.links import LinkPrediction
from bigcn.tasks.nodes import NodeClassification

__all__ = ["LinkPrediction", "NodeClassification", "Scores", "Task"]
