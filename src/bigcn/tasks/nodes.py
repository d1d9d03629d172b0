"""Node classification."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets.splits import Split
from bigcn.node_graphs import edges_of
from bigcn.tasks.base import Scores, Task

#: Nodes of at most this degree count as nodes of low degree.
LOW_DEGREE = 2


class NodeClassification(Task):
    """Predicts the class of each node from the labels of a few, judged by accuracy.

    Scores are :obj:`accuracy`, :obj:`macro_f1` (over the classes that occur among the labels or predictions of the
    part), and on the test nodes also :obj:`accuracy_isolated` (degree 0) and :obj:`accuracy_low_degree` (degree at
    most :obj:`low_degree`, isolated nodes among them), absent where there are no such nodes. Degrees are counted
    without self-loops in the graph as it is given, before :obj:`prepare`.

    Args:
        data (Data): The graph with labels :obj:`y`.
        split (Split): The training, validation and test nodes.
        low_degree (int, optional): The bound of low degrees. (default: :obj:`2`)
        num_classes (int, optional): The number of classes. (default: as many as the labels name)
        prepare (Callable, optional): See :class:`~bigcn.tasks.Task`. (default: :obj:`None`)

    Example:
        >>> from bigcn.datasets import digits, make_split
        >>> data = digits()
        >>> task = NodeClassification(data, make_split(data))
        >>> task.num_features, task.num_outputs, task.monitor
        (64, 10, 'accuracy')
    """

    name = "node"
    monitor = "accuracy"
    by_rows = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A subclass that asks or judges in a way of its own has to say so if it looks at rows alone."""
        super().__init_subclass__(**kwargs)
        own = {"questions", "loss_of", "scored", "answers", "outputs", "loss"} & vars(cls).keys()
        if own and "by_rows" not in vars(cls):
            cls.by_rows = False

    def __init__(
        self,
        data: Data,
        split: Split,
        low_degree: int = LOW_DEGREE,
        num_classes: int | None = None,
        prepare: Callable[[Data], Data] | None = None,
    ) -> None:
        super().__init__(data, prepare)
        if low_degree < 0:
            raise ValueError(f"'low_degree' must not be negative (got {low_degree})")
        split.check(self.x.size(0))
        label = _labels(data, self.x.size(0))
        train, val, test = (part.cpu() for part in (split.train, split.val, split.test))
        for part, nodes in (("train", train), ("val", val), ("test", test)):
            if bool((label[nodes] < 0).any()):
                raise ValueError(f"'split' names nodes without a label among its {part} nodes")
        found = int(label.max()) + 1
        if num_classes is not None and num_classes < found:
            raise ValueError(f"'num_classes' must be at least {found}, which the labels name (got {num_classes})")
        self.num_outputs = found if num_classes is None else num_classes
        self.low_degree = low_degree
        self.split = split

        self._train, self._train_labels, self._scored = train, label[train], torch.cat([val, test])
        self._val_labels, self._test_labels = label[val].numpy(), label[test].numpy()
        self._val_answers = label[val]
        degree = degrees(data)[test].numpy()
        groups = {"accuracy_isolated": degree == 0, "accuracy_low_degree": degree <= low_degree}
        self._groups = {name: members for name, members in groups.items() if members.any()}
        self.to(self.x.device)

    def questions(self, epoch: int = 0) -> tuple[Tensor, ...]:
        return self._train, self._train_labels

    def loss_of(self, out: Tensor, *questions: Tensor) -> Tensor:
        nodes, labels = questions
        return F.cross_entropy(out.index_select(0, nodes), labels)

    def scored(self) -> tuple[Tensor, ...]:
        return (self._scored,)

    def answers(self, out: Tensor, *scored: Tensor) -> Tensor:
        return out.index_select(0, scored[0]).argmax(dim=-1)

    @property
    def num_validated(self) -> int | None:
        return self._val_answers.numel()

    def right_answers(self) -> Tensor | None:
        return self._val_answers

    def judge(self, answers: Tensor, right: Tensor | None = None) -> Tensor:
        right = self._val_answers if right is None else right
        return (answers[..., : right.size(-1)] == right).sum(dim=-1).double() / right.size(-1)

    def scores(self, answers: Tensor) -> Scores:
        val, test = np.split(answers.cpu().numpy(), [len(self._val_labels)])
        scores = {
            "val": classification_scores(self._val_labels, val, self.num_outputs),
            "test": classification_scores(self._test_labels, test, self.num_outputs),
        }
        hit = test == self._test_labels
        scores["test"] |= {name: float(hit[members].mean()) for name, members in self._groups.items()}
        return scores


def classification_scores(label: np.ndarray, predicted: np.ndarray, num_classes: int) -> dict[str, float]:
    """Returns accuracy and macro-averaged F1 over the classes that occur in either, as scikit-learn counts them.

    Args:
        label (numpy.ndarray): The classes.
        predicted (numpy.ndarray): The predicted classes.
        num_classes (int): The number of classes.
    """
    hits = label[label == predicted]
    found = np.bincount(hits, minlength=num_classes)
    total = np.bincount(label, minlength=num_classes) + np.bincount(predicted, minlength=num_classes)
    occurs = total > 0
    f1 = 2 * found[occurs] / total[occurs]
    return {"accuracy": len(hits) / len(label), "macro_f1": float(f1.mean())}


def degrees(data: Data) -> Tensor:
    """Returns the number of edges that end at each node, self-loops left out, on the CPU."""
    source, target = edges_of(data.edge_index)[0].cpu()
    return torch.bincount(target[source != target], minlength=data.num_nodes)


def _labels(data: Data, num_nodes: int) -> Tensor:
    label = data.y
    if not isinstance(label, Tensor) or label.shape != (num_nodes,) or label.is_floating_point():
        raise ValueError("'data' must have whole numbers as labels in data.y, one per node")
    return label.cpu().long()
