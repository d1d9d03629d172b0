"""Pairs of nodes that may be missing links, without looking at every pair of a large graph."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
import torch

from bigcn.links.evidence import BLOCK, thinned
from bigcn.smoothing.neighbours import nearest_neighbours
from bigcn.tasks.pairs import num_pairs

#: Up to this many nodes every pair is a candidate.
EXACT_NODES = 1_000
#: Of larger graphs: how many nearest nodes, how many friends of friends (those most often so), and through how many
#: friends they are reached.
NEAREST, REACHED, FRIENDS = 20, 50, 16
#: How many nodes' friends of friends are looked up together.
ROWS = 4_096


def all_pairs(num_nodes: int) -> Iterator[np.ndarray]:
    """Yields every pair :math:`i < j`, a block at a time."""
    rows = max(1, BLOCK // max(num_nodes, 1))
    for start in range(0, num_nodes, rows):
        one, other = np.meshgrid(np.arange(start, min(start + rows, num_nodes)), np.arange(num_nodes), indexing="ij")
        kept = one < other
        yield np.stack([one[kept], other[kept]])


def likely_pairs(adjacency: sp.csr_array, tables: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Yields friends of friends and nodes that lie near each other, each pair :math:`i < j` once in each of the two.

    Args:
        adjacency (scipy.sparse.csr_array): The graph.
        tables (list[numpy.ndarray]): Tables in which nodes that may be linked are near each other.
    """
    num_nodes = adjacency.shape[0]
    few = thinned(adjacency, FRIENDS)
    few = sp.csr_array(few + few.T)
    for start in range(0, num_nodes, ROWS):
        reached = sp.coo_array(thinned(sp.csr_array(few[start : start + ROWS] @ few), REACHED))
        one, other = reached.coords[0].astype(np.int64) + start, reached.coords[1].astype(np.int64)
        kept = one < other
        yield np.stack([one[kept], other[kept]])
    numbers = [np.empty(0, dtype=np.int64)]
    for table in tables:
        index = nearest_neighbours(torch.from_numpy(np.ascontiguousarray(table)), NEAREST)[0].numpy()
        one, other = np.repeat(np.arange(num_nodes), index.shape[1]), index.reshape(-1)
        numbers.append(np.minimum(one, other) * num_nodes + np.maximum(one, other))
    near = np.unique(np.concatenate(numbers))
    yield np.stack([near // num_nodes, near % num_nodes])


def candidates(adjacency: sp.csr_array, tables: list[np.ndarray], exact_nodes: int) -> Iterator[np.ndarray]:
    """Yields all pairs of a small graph and likely ones of a large one."""
    num_nodes = adjacency.shape[0]
    exact = num_pairs(num_nodes) <= num_pairs(exact_nodes)
    yield from all_pairs(num_nodes) if exact else likely_pairs(adjacency, tables)
