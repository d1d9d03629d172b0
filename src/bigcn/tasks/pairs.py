r"""Unordered pairs of nodes as numbers, and drawing pairs that are not edges.

The :math:`n(n-1)/2` pairs are numbered by their distance around a ring of :math:`n` nodes, then by where they begin:
every number is one pair, both ways take whole-number arithmetic only, and nothing of size :math:`n^2` is ever formed.
"""

import numpy as np


def num_pairs(num_nodes: int) -> int:
    """Returns how many unordered pairs of distinct nodes there are."""
    return num_nodes * (num_nodes - 1) // 2


def pair_numbers(one: np.ndarray, other: np.ndarray, num_nodes: int) -> np.ndarray:
    """Returns the number of each pair; its two nodes may stand in either order.

    Args:
        one, other (numpy.ndarray): The two nodes of each pair, distinct.
        num_nodes (int): The number of nodes.
    """
    n, one, other = num_nodes, one.astype(np.int64), other.astype(np.int64)
    ahead = (other - one) % n
    distance = np.minimum(ahead, n - ahead)
    begin = np.where(ahead == distance, one, other)
    # Opposite nodes of an even ring are equally far both ways.
    begin = np.where(2 * distance == n, np.minimum(one, other), begin)
    return (distance - 1) * n + begin


def pairs_of(numbers: np.ndarray, num_nodes: int) -> np.ndarray:
    """Returns the pairs with the given numbers, of shape :obj:`[2, num_pairs]`; undoes :func:`pair_numbers`."""
    begin = numbers % num_nodes
    return np.stack([begin, (begin + numbers // num_nodes + 1) % num_nodes])


class PairSampler:
    """Draws distinct pairs uniformly from those that are not excluded, without ever rejecting one.

    Time and memory grow with the pairs drawn and excluded, not with the square of the number of nodes.

    Args:
        num_nodes (int): The number of nodes.
        excluded (numpy.ndarray): The numbers of the pairs never to draw, see :func:`pair_numbers`.
    """

    def __init__(self, num_nodes: int, excluded: np.ndarray) -> None:
        excluded = np.unique(excluded)
        self.available = num_pairs(num_nodes) - len(excluded)
        # How many pairs may be drawn below each excluded one: the r-th of them has the number r plus however many
        # excluded ones precede it.
        self._below = excluded - np.arange(len(excluded))

    def draw(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Returns the numbers of :obj:`count` distinct pairs.

        Args:
            count (int): How many; at most :obj:`available`.
            generator (numpy.random.Generator): What draws them.
        """
        if count > self.available:
            raise ValueError(f"{count} pairs that are not edges are needed, and the graph has {self.available} left")
        rank = generator.choice(self.available, count, replace=False)
        return rank + np.searchsorted(self._below, rank, side="right")
