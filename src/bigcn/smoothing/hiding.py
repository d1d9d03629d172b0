"""Hiding known entries of a table, to see which way of smoothing restores them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

#: How many rows strengths are chosen on; of larger tables, a connected part.
CHOOSE_ON = 5_000


def column_groups(groups: Sequence[int] | None, num_features: int) -> np.ndarray:
    """Returns a number for each column, counted from zero; columns of one number are hidden together.

    Args:
        groups (Sequence[int], optional): Any numbers, one for each column, or :obj:`None` for columns on their own.
        num_features (int): The number of columns.
    """
    if groups is None:
        return np.arange(num_features)
    if len(groups) != num_features:
        raise ValueError(f"'groups' must have one number per column ({num_features}, got {len(groups)})")
    return np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)


def hidden_mask(num_rows: int, groups: np.ndarray, share: float, generator: np.random.Generator) -> Tensor:
    """Draws the entries to hide, as a mask.

    Args:
        num_rows (int): The number of rows.
        groups (numpy.ndarray): See :func:`column_groups`.
        share (float): The share of the entries to hide.
        generator (numpy.random.Generator): What draws them.
    """
    num_groups = int(groups.max()) + 1 if len(groups) else 0
    return torch.from_numpy((generator.random((num_rows, num_groups)) < share)[:, groups])


def connected_rows(edges: Tensor | None, num_rows: int, count: int, generator: np.random.Generator) -> Tensor:
    """Returns some of the rows of a graph, neighbours together: a sample in which links survive.

    Args:
        edges (torch.Tensor, optional): The edges, or :obj:`None` for any rows.
        num_rows (int): The number of rows.
        count (int): How many to return.
        generator (numpy.random.Generator): What decides where to begin.
    """
    order = torch.from_numpy(generator.permutation(num_rows))
    if edges is None:
        return order[:count].sort().values
    order = order.to(edges.device)
    inside = torch.zeros(num_rows, dtype=torch.bool, device=edges.device)
    begun, size = 0, 0
    while size < count:
        grown = inside.clone()
        grown[edges[1][inside[edges[0]]]] = True
        new = (grown & ~inside).nonzero().view(-1)
        if new.numel() == 0:  # a component is exhausted: begin in another place
            new = order[begun : begun + max(1, count // 20)]
            begun += new.numel()
            new = new[~inside[new]]
        inside[new[: count - size]] = True
        size = int(inside.sum())
    return inside.nonzero().view(-1)
