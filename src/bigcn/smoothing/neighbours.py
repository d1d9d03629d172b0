"""The nearest rows of a table: exactly for small ones, by random trees for large ones."""

import numpy as np
import torch
from torch import Tensor

#: Up to this many rows every pair is looked at; beyond it the pairs within the leaves of random trees.
EXACT_ROWS = 20_000
#: Wider tables are looked at in this many of their leading directions.
WIDEST = 64
#: How many trees, and how many rows a leaf has at most.
TREES, LEAF = 8, 1024


def nearest_neighbours(x: Tensor, k: int, *, exact_rows: int = EXACT_ROWS, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Returns the nearest other rows of each row by Euclidean distance, nearest first, and the squared distances.

    Tables of more than :obj:`exact_rows` rows are divided by random hyperplanes, several times over, and a row is
    compared with those that share a leaf with it: time and memory grow linearly, and a few neighbours may be missed.

    Args:
        x (torch.Tensor): The table, dense.
        k (int): How many neighbours; at most the number of other rows are returned.
        exact_rows (int, optional): Up to how many rows every pair is looked at. (default: :obj:`20000`)
        seed (int, optional): What decides where the trees divide. (default: :obj:`0`)

    :rtype: two tensors of shape :obj:`[num_rows, k]`

    Example:
        >>> nearest_neighbours(torch.tensor([[0.0], [1.0], [3.0]]), k=1)[0]
        tensor([[1],
                [0],
                [1]])
    """
    x = _narrow(x.detach())
    num_rows = x.size(0)
    k = max(0, min(k, num_rows - 1))
    if k == 0:
        return torch.empty(num_rows, 0, dtype=torch.int64), x.new_empty(num_rows, 0)
    index = torch.zeros(num_rows, k, dtype=torch.int64)
    distance = x.new_full((num_rows, k), torch.inf)
    everyone = torch.arange(num_rows)
    if num_rows <= exact_rows:
        _offer(x, everyone, everyone, index, distance)
        return index, distance
    generator = np.random.default_rng(seed)
    for _ in range(TREES):
        for leaf in _leaves(x, everyone, generator):
            _offer(x, leaf, leaf, index, distance)
    return index, distance


def nearest_edges(x: Tensor, k: int) -> Tensor:
    """Returns the undirected graph that links each row with its nearest ones, every edge in both directions."""
    index, _ = nearest_neighbours(x, k)
    row = torch.arange(x.size(0)).repeat_interleave(index.size(1))
    col = index.reshape(-1)
    numbers = torch.cat([row * x.size(0) + col, col * x.size(0) + row]).unique()
    return torch.stack([numbers // x.size(0), numbers % x.size(0)])


def _narrow(x: Tensor) -> Tensor:
    if x.size(1) <= WIDEST:
        return x
    # Two rounds of subspace iteration: distances need the leading directions roughly, not exactly.
    generator = torch.Generator().manual_seed(0)
    basis = torch.randn(x.size(1), WIDEST, generator=generator, dtype=torch.float64).to(x.dtype)
    for _ in range(2):
        basis = torch.linalg.qr(x.t() @ (x @ basis)).Q
    return x @ basis


def _offer(x: Tensor, rows: Tensor, others: Tensor, index: Tensor, distance: Tensor, block: int = 1024) -> None:
    """Keeps for each of the rows the nearest of those it has and of the others."""
    k = index.size(1)
    squares = x[others].square().sum(dim=1)
    for part in rows.split(block):
        gap = (x[part].square().sum(dim=1, keepdim=True) + squares - 2 * x[part] @ x[others].t()).clamp(min=0)
        gap[part.unsqueeze(1) == others] = torch.inf
        near, position = gap.topk(min(k, len(others)), dim=1, largest=False)
        found = others[position]
        # A neighbour met in an earlier tree must not count twice.
        known = (found.unsqueeze(2) == index[part].unsqueeze(1)) & torch.isfinite(distance[part]).unsqueeze(1)
        near = near.masked_fill(known.any(dim=2), torch.inf)
        both = torch.cat([distance[part], near], dim=1)
        distance[part], order = both.topk(k, dim=1, largest=False)
        index[part] = torch.cat([index[part], found], dim=1).gather(1, order)


def _leaves(x: Tensor, rows: Tensor, generator: np.random.Generator) -> list[Tensor]:
    """Divides rows at the median along random directions until the parts are small."""
    parts, leaves = [rows], []
    while parts:
        part = parts.pop()
        if len(part) <= LEAF:
            leaves.append(part)
            continue
        direction = torch.from_numpy(generator.standard_normal(x.size(1))).to(x.dtype)
        order = part[torch.argsort(x[part] @ direction, stable=True)]
        parts.extend([order[: len(order) // 2], order[len(order) // 2 :]])
    return leaves
