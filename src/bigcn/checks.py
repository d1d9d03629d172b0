"""What arguments must be, for the rooms that refuse the same things."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.typing import OptTensor


def is_whole(value: Any) -> bool:
    """Tells whether a value is a whole number, of Python or NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Tells whether a value is a finite number, of Python or NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def as_python(value: Any) -> Any:
    """Returns a number of NumPy as one of Python, which JSON can hold, and anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def check_finite(x: Tensor) -> None:
    """Refuses features with missing or infinite entries, and says where the first one is."""
    dense = x.layout == torch.strided
    finite = torch.isfinite(x if dense else x.to_sparse_coo().coalesce().values())
    if not bool(finite.all()):
        first = (~finite).nonzero()[0]
        row, column = (first if dense else x.to_sparse_coo().coalesce().indices()[:, first].view(-1)).tolist()
        raise ValueError(
            f"'x' has missing or infinite values, the first in row {row}, column {column}: 'bigcn.smoothing.impute' "
            "fills missing ones"
        )


def check_edges(edges: Tensor, weight: OptTensor, num_nodes: int) -> None:
    """Refuses edges of nodes that do not exist, and weights that no graph has."""
    if edges.numel() == 0:
        return
    low, high = int(edges.min()), int(edges.max())
    if low < 0 or high >= num_nodes:
        raise ValueError(f"'edge_index' names node {low if low < 0 else high}, but 'x' has {num_nodes} rows")
    if weight is None:
        return
    if not bool(torch.isfinite(weight).all()):
        raise ValueError("'edge_weight' must be finite")
    if bool((weight < 0).any()):
        raise ValueError("'edge_weight' must not be negative")
