"""A graph in an order that does not depend on how its tables were sorted, and splits of its labelled nodes."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets.own import InputError, OwnGraph
from bigcn.datasets.own.classes import check_classes, check_divisible
from bigcn.datasets.splits import Split
from bigcn.node_graphs import edges_of

#: The shares of a class that validate and test, where a split is made.
VAL_SHARE, TEST_SHARE = 0.2, 0.2


@dataclass(frozen=True, eq=False)
class Ordered:
    """A graph with its nodes sorted by id and its edges by node.

    Dropout and sums of rounded numbers go by the order of rows, so the same table in another order would train to
    another model; sorted first, it does not.

    Args:
        data (Data): The graph.
        order (torch.Tensor): Where each node stood before.
    """

    data: Data
    order: Tensor

    def back(self, rows: Tensor) -> Tensor:
        """Returns one row per node, in the order in which the nodes came."""
        out = torch.empty_like(rows)
        out[self.order] = rows
        return out

    def forth(self, split: Split) -> Split:
        """Returns a split of the nodes as they came, in terms of the sorted ones."""
        place = torch.empty_like(self.order)
        place[self.order] = torch.arange(len(self.order))
        return Split(split.protocol, *(place[part].sort().values for part in (split.train, split.val, split.test)))


def ordered(graph: OwnGraph) -> Ordered:
    """Sorts a graph by the ids of its nodes.

    Args:
        graph (OwnGraph): The graph.
    """
    order = torch.from_numpy(_sorted_places(graph.ids))
    edges, weight = edges_of(graph.data.edge_index, graph.data.edge_weight)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    number = place[edges[0]] * len(order) + place[edges[1]]
    number, along = number.sort()
    data = Data(
        x=graph.data.x[order],
        edge_index=torch.stack([number // max(len(order), 1), number % max(len(order), 1)]),
        edge_weight=None if weight is None else weight[along],
        y=None if graph.data.y is None else graph.data.y[order],
    )
    return Ordered(data, order)


def _sorted_places(ids: NDArray[np.generic]) -> NDArray[np.int64]:
    try:
        return np.argsort(ids, kind="stable").astype(np.int64)
    except TypeError:  # numbers and text side by side
        return np.argsort(np.array([str(name) for name in ids]), kind="stable").astype(np.int64)


def stratified_split(
    label: Tensor,
    classes: tuple[str, ...],
    seed: int,
    val_share: float = VAL_SHARE,
    test_share: float = TEST_SHARE,
) -> Split:
    """Splits labelled nodes class by class, the same for the same seed on every machine.

    Of each class at least one node trains; of three or more at least one validates and one tests.

    Args:
        label (torch.Tensor): The class of each node, negative for none.
        classes (tuple[str, ...]): The names of the classes.
        seed (int): Any non-negative integer.
        val_share, test_share (float, optional): The shares that validate and test. (default: :obj:`0.2`)
    """
    for name, share in (("val_share", val_share), ("test_share", test_share)):
        if not 0 < share < 1:
            raise ValueError(f"'{name}' must be between 0 and 1 (got {share})")
    if val_share + test_share >= 1:
        raise ValueError("'val_share' and 'test_share' must leave nodes to train on")
    known = label.numpy()
    check_divisible(np.bincount(known[known >= 0]).tolist(), classes)
    # Sorting raw words of the bit generator shuffles in a way that no version of numpy changes.
    shuffled = np.argsort(np.random.PCG64(seed).random_raw(len(known)), kind="stable")
    parts: tuple[list[NDArray[np.int64]], ...] = ([], [], [])
    for kind in np.unique(known[known >= 0]):
        members = shuffled[known[shuffled] == kind]
        num_val, num_test = (max(1, round(share * len(members))) for share in (val_share, test_share))
        if len(members) == 2:
            num_val = 0
        val, test, train = np.split(members, [num_val, num_val + num_test])
        for part, chosen in zip(parts, (train, val, test), strict=True):
            part.append(chosen)
    train, val, test = (np.sort(np.concatenate(part)) for part in parts)
    name = f"stratified-{round(100 * (1 - val_share - test_share))}-{round(100 * val_share)}-{round(100 * test_share)}"
    return Split(name, *(torch.from_numpy(part) for part in (train, val, test)))


def check_labels(graph: OwnGraph) -> None:
    """Refuses a graph that no classifier can learn from."""
    label = graph.data.y
    if label is None:
        raise InputError(f"{graph.name} has no labels: name the label column with 'label' ('--label')")
    check_classes(torch.bincount(label[label >= 0]).tolist(), graph.classes, graph.name)
