"""Splits of the nodes into training, validation and test parts, as objects that know their protocol."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from bigcn.datasets.registry import DatasetSpec, get_spec

AUTHORS_VAL, AUTHORS_TEST = 500, 1000
RANDOM_TRAIN, RANDOM_VAL = 20, 30


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint, non-empty sets of nodes.

    Args:
        protocol (str): The name of the rule that made the split.
        train (Tensor): Indices of the training nodes (int64, one dimension).
        val (Tensor): Indices of the validation nodes.
        test (Tensor): Indices of the test nodes.

    """

    protocol: str
    train: Tensor
    val: Tensor
    test: Tensor

    def __post_init__(self) -> None:
        for part in ("train", "val", "test"):
            index = getattr(self, part)
            if index.dtype != torch.int64 or index.dim() != 1:
                raise ValueError(
                    f"{part} must be int64 indices in one dimension, and is {index.dtype} in {index.dim()}"
                )
            if index.numel() == 0:
                raise ValueError(f"{part} must not be empty")
            if int(index.min()) < 0:
                raise ValueError(f"{part} must not hold negative indices")
        index = torch.cat([self.train, self.val, self.test])
        if index.unique().numel() < index.numel():
            raise ValueError("train, val and test must be disjoint and free of duplicates")

    @classmethod
    def from_masks(cls, protocol: str, train: Tensor, val: Tensor, test: Tensor) -> "Split":
        """The split given by three boolean masks over the nodes."""
        return cls(protocol, *(mask.nonzero().flatten() for mask in (train, val, test)))

    def masks(self, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
        """The split as boolean masks (train, val, test) over ``num_nodes`` nodes."""
        self.check(num_nodes)
        return self._mask(self.train, num_nodes), self._mask(self.val, num_nodes), self._mask(self.test, num_nodes)

    def check(self, num_nodes: int) -> None:
        """Raises a :class:`ValueError` if the split names a node that a graph of ``num_nodes`` nodes does not have."""
        for part in ("train", "val", "test"):
            if (highest := int(getattr(self, part).max())) >= num_nodes:
                raise ValueError(f"{part} names node {highest}, and the graph has {num_nodes} nodes")

    @staticmethod
    def _mask(index: Tensor, num_nodes: int) -> Tensor:
        mask = torch.zeros(num_nodes, dtype=torch.bool, device=index.device)
        mask[index] = True
        return mask


def default_protocol(name: str) -> str:
    """The protocol that a dataset is judged under unless another is named."""
    return get_spec(name).protocols[0]


def make_split(data: Data, name: str | None = None, protocol: str | None = None, seed: int = 0) -> Split:
    """Splits the nodes of a graph.

    ``authors`` is the split of the paper's released code: the first nodes in file order train, the next 500 validate,
    the next 1,000 test (Cora, Computers, Photo), or Planetoid's public split (CiteSeer, PubMed). ``public`` is
    Planetoid's public split. ``random`` draws 20 training and 30 validation nodes of each class and tests on the
    rest, the same for the same seed on every machine; nodes with a negative label are in no part.

    Args:
        data (Data): The graph.
        name (str, optional): Its name in the registry; without one, only ``random`` exists.
        protocol (str, optional): ``"authors"``, ``"public"`` or ``"random"``. (default: the dataset's own default)
        seed (int, optional): Determines the ``random`` split, the others have nothing to draw. (default: :obj:`0`)

    """
    spec = None if name is None else get_spec(name)
    available = spec.protocols if spec else ("random",)
    protocol = available[0] if protocol is None else protocol
    if protocol not in available:
        owner = spec.title if spec else "a graph without a name in the registry"
        raise ValueError(f"protocol {protocol!r} does not exist for {owner}; it has: {', '.join(available)}")
    if protocol == "random":
        return _random(data, seed)
    assert spec is not None
    if data.num_nodes != spec.nodes:
        raise ValueError(
            f"protocol {protocol!r} needs all {spec.nodes} nodes of {spec.title}, data has {data.num_nodes}"
        )
    if protocol == "authors" and spec.author_train is not None:
        return _in_file_order(spec, spec.author_train)
    return _public(data, protocol)


def _in_file_order(spec: DatasetSpec, train: int) -> Split:
    bounds = (train, AUTHORS_VAL, AUTHORS_TEST, spec.nodes - train - AUTHORS_VAL - AUTHORS_TEST)
    first, second, third, _ = torch.arange(spec.nodes).split(bounds)
    return Split("authors", first, second, third)


def _public(data: Data, protocol: str) -> Split:
    masks = [data.get(key) for key in ("train_mask", "val_mask", "test_mask")]
    if any(mask is None for mask in masks):
        raise ValueError(f"protocol {protocol!r} needs train_mask, val_mask and test_mask in data")
    return Split.from_masks(protocol, *masks)


def _random(data: Data, seed: int) -> Split:
    if data.y is None or data.y.dim() != 1:
        raise ValueError("protocol 'random' needs labels in data.y, one for each node")
    if seed < 0:
        raise ValueError(f"seed must not be negative, and it is {seed}")
    label = data.y.cpu().numpy()
    # Sorting raw words of the bit generator shuffles in a way that no version of numpy changes.
    shuffled = np.argsort(np.random.PCG64(seed).random_raw(len(label)), kind="stable")
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    for kind in np.unique(label[label >= 0]):
        members = shuffled[label[shuffled] == kind]
        if len(members) <= RANDOM_TRAIN + RANDOM_VAL:
            raise ValueError(
                f"protocol 'random' needs more than {RANDOM_TRAIN + RANDOM_VAL} nodes of each class "
                f"({RANDOM_TRAIN} to train, {RANDOM_VAL} to validate, the rest to test), and class {kind} has "
                f"{len(members)}"
            )
        for part, chosen in zip(parts, np.split(members, [RANDOM_TRAIN, RANDOM_TRAIN + RANDOM_VAL]), strict=True):
            part.append(chosen)
    if not parts[0]:
        raise ValueError("protocol 'random' needs at least one label that is not negative in data.y")
    return Split("random", *(torch.from_numpy(np.sort(np.concatenate(part))) for part in parts))
