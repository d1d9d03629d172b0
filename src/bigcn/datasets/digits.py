"""The embedded graph: real digit images, linked by a simulated graph of friendships."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch_geometric.data import Data

AVERAGE_DEGREE = 6
WITHIN_CLASS = 0.8

FEATURE_NAMES = tuple(f"pixel {row},{column}" for row in range(8) for column in range(8))


def digits(seed: int = 0) -> Data:
    r"""Scikit-learn's 1,797 images of handwritten digits, joined by a *simulated* graph.

    The features are real: the 64 pixels of each image, scaled to :math:`[0, 1]`. The graph is not: it plays
    the friendships of 1,797 people, each of whom wrote one digit, with an average degree of 6 and exactly 80 %
    of the links between people who wrote the same digit. It is drawn from the labels alone, so noise on the
    pixels says nothing about the graph and noise on the graph says nothing about the pixels. A handful of
    nodes have no link.

    The graph has no self-loops and no duplicates, holds every link in both directions, and is the same on
    every machine for the same seed.

    Args:
        seed (int, optional): Determines the graph; images and labels are always the same. (default: :obj:`0`)

    Example:
        >>> digits()
        Data(x=[1797, 64], edge_index=[2, 10782], y=[1797])

    """
    images = load_digits()
    label = images.target.astype(np.int64)
    return Data(
        x=torch.from_numpy((images.data / 16).astype(np.float32)),
        edge_index=torch.from_numpy(_friendships(label, seed)),
        y=torch.from_numpy(label),
    )


def _friendships(label: np.ndarray, seed: int) -> np.ndarray:
    if seed < 0:
        raise ValueError(f"seed must not be negative, and it is {seed}")
    nodes = len(label)
    links = round(nodes * AVERAGE_DEGREE / 2)
    within = round(links * WITHIN_CLASS)
    # The raw words of a bit generator are fixed for ever; numpy may change what its distributions make of them.
    bits = np.random.PCG64(seed)
    by_class = np.argsort(label, kind="stable")
    size = np.bincount(label)
    start = np.cumsum(size) - size

    def pick(limit: Any, count: int) -> np.ndarray:
        share = (bits.random_raw(count) >> np.uint64(11)) * 2.0**-53
        return np.floor(share * limit).astype(np.int64)

    def same_class(count: int) -> np.ndarray:
        one = pick(nodes, count)
        kind = label[one]
        other = by_class[start[kind] + pick(size[kind], count)]
        return _codes(one, other, one != other, nodes)

    def other_class(count: int) -> np.ndarray:
        one, other = pick(nodes, count), pick(nodes, count)
        return _codes(one, other, label[one] != label[other], nodes)

    codes = np.concatenate([_distinct(same_class, within), _distinct(other_class, links - within)])
    low, high = codes // nodes, codes % nodes
    source, target = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((target, source))
    return np.stack([source[order], target[order]])


def _codes(one: np.ndarray, other: np.ndarray, keep: np.ndarray, nodes: int) -> np.ndarray:
    return (np.minimum(one, other) * nodes + np.maximum(one, other))[keep]


def _distinct(draw: Callable[[int], np.ndarray], count: int) -> np.ndarray:
    """The first ``count`` different links that ``draw`` comes up with."""
    drawn = draw(2 * count)
    while True:
        _, first = np.unique(drawn, return_index=True)
        if len(first) >= count:
            return drawn[np.sort(first)[:count]]
        drawn = np.concatenate([drawn, draw(count)])
