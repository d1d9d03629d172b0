r"""What speaks for a link between two nodes, with the link itself left out.

A link makes its two ends alike in everything that is computed along the graph, so a wrong one would vouch for itself.
All evidence is therefore what it would be on the graph without the pair in question: the contribution of the pair is
taken off again, exactly, pair by pair.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bigcn.feature_graphs import SpectralGraph

#: In how many leading directions wide features are averaged over neighbourhoods.
DIRECTIONS = 128
#: How many neighbours of a node are looked through for common ones; of a hub, the heaviest and then any.
NEIGHBOURS = 256
#: How many pairs are looked at together.
BLOCK = 65_536
#: Below this share of entries that are not zero, features are compared as a sparse table.
SPARSE = 0.1


class FeatureEvidence:
    """How alike the features of two nodes are: the cosine of their rows.

    Args:
        x (torch.Tensor): The features, dense or sparse.
    """

    def __init__(self, x: Tensor) -> None:
        dense = (x.to_dense() if x.layout != torch.strided else x).detach().cpu().float()
        used = (dense != 0).sum(dim=0)
        sparse = int(used.sum()) < SPARSE * dense.numel()
        if sparse:  # words and the like: what few nodes have says more
            dense = dense * (dense.size(0) / (1 + used)).clamp(min=1).log()
        rows = unit_rows(dense.numpy())
        self.rows = sp.csr_array(rows) if sparse else rows
        self.directions = leading_directions(torch.from_numpy(rows))

    def __call__(self, pairs: np.ndarray) -> np.ndarray:
        """Returns one column of evidence for pairs of shape :obj:`[2, num_pairs]`."""
        one, other = self.rows[pairs[0]], self.rows[pairs[1]]
        product = one.multiply(other) if sp.issparse(one) else one * other
        return np.asarray(product.sum(axis=1), dtype=np.float32).reshape(-1, 1)


class GraphEvidence:
    """What the graph says about pairs: features averaged over neighbourhoods, and common neighbours.

    Args:
        adjacency (scipy.sparse.csr_array): The weights of the edges, symmetric.
        directions (numpy.ndarray): The features of the nodes, narrow.
    """

    def __init__(self, adjacency: sp.csr_array, directions: np.ndarray) -> None:
        self.adjacency, self.directions = adjacency, directions
        self.degree = np.asarray(adjacency.sum(axis=1)).reshape(-1)
        self.once = np.asarray(adjacency @ directions)
        self.twice = np.asarray(adjacency @ self.once)
        self.unit = unit_rows(directions)
        near = thinned(adjacency, NEIGHBOURS)
        self.near, weight = near, np.asarray(near.sum(axis=1)).reshape(-1)
        self.shared = sp.csr_array(near @ sp.diags_array(1 / np.maximum(weight, 1e-6)))

    def __call__(self, pairs: np.ndarray) -> np.ndarray:
        """Returns the columns of evidence for pairs of shape :obj:`[2, num_pairs]`."""
        one, other = pairs
        own = np.asarray(self.adjacency[one, other], dtype=np.float32).reshape(-1, 1)
        around_one, around_other = (self.once[a] - own * self.directions[b] for a, b in ((one, other), (other, one)))
        near_one, near_other = unit_rows(around_one), unit_rows(around_other)
        mixed_one, mixed_other = (
            unit_rows(self.directions[a] + around / np.maximum(self.degree[a, None] - own, 0.5))
            for a, around in ((one, around_one), (other, around_other))
        )
        far_one, far_other = (unit_rows(self.twice[a] - own * self.once[b]) for a, b in ((one, other), (other, one)))
        common = np.asarray(self.near[one].multiply(self.near[other]).sum(axis=1)).reshape(-1)
        allocation = np.asarray(self.shared[one].multiply(self.near[other]).sum(axis=1)).reshape(-1)
        return np.stack(
            [
                dots(near_one, self.unit[other]) + dots(near_other, self.unit[one]),
                dots(near_one, near_other),
                dots(mixed_one, mixed_other),
                dots(far_one, far_other),
                np.log1p(common),
                np.log1p(allocation),
            ],
            axis=1,
        ).astype(np.float32)

    def mixed(self) -> np.ndarray:
        """Returns each node's features averaged with those of its neighbours, of unit length, to find alike nodes."""
        return unit_rows(self.directions + self.once / np.maximum(self.degree[:, None], 0.5))


def leading_directions(x: Tensor) -> np.ndarray:
    """Returns centred features, those of a wide table in the directions in which they vary most."""
    x = x - x.mean(dim=0)
    if x.size(1) > DIRECTIONS:
        x = x @ SpectralGraph(x.size(1), rank=DIRECTIONS, smoothing=0.0).operand(x)[0]
    return np.ascontiguousarray(x.numpy())


def thinned(adjacency: sp.csr_array, most: int) -> sp.csr_array:
    """Returns the graph with at most so many neighbours kept in each row, the heaviest first."""
    count = np.diff(adjacency.indptr)
    if not len(count) or count.max() <= most:
        return adjacency
    row = np.repeat(np.arange(len(count)), count)
    # Ties are broken by a fixed shuffle, so that a hub keeps any of its neighbours and not those numbered first.
    order = np.lexsort((np.random.default_rng(0).permutation(len(row)), -adjacency.data, row))
    place = np.arange(len(row)) - np.repeat(adjacency.indptr[:-1], count)
    kept = order[place < most]
    return sp.csr_array((adjacency.data[kept], (row[kept], adjacency.indices[kept])), shape=adjacency.shape)


def unit_rows(table: np.ndarray) -> np.ndarray:
    """Returns the rows of a table brought to unit length; zero rows stay zero."""
    return table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)


def dots(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Returns the dot product of each row of one table with the same row of the other."""
    return np.einsum("ij,ij->i", one, other)


def blocks(pairs: np.ndarray) -> Iterator[np.ndarray]:
    """Yields pairs a block at a time."""
    for start in range(0, pairs.shape[1], BLOCK):
        yield pairs[:, start : start + BLOCK]
