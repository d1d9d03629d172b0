r"""Personalised PageRank as a graph: the preprocessing of GDC."""

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.typing import Adj, OptTensor
from torch_geometric.utils import add_self_loops

from bigcn.local_filter import is_symmetric, local_weights
from bigcn.nn.cache import TensorCache
from bigcn.node_graphs import edges_of, normalized_graph

_DIFFUSED = TensorCache()


@torch.no_grad()
def diffuse(data: Data, alpha: float = 0.15, k: int = 64, tolerance: float = 1e-4) -> Data:
    r"""Replaces the edges of a graph by those of its personalised PageRank, as GDC does.

    With :math:`\mathbf{T}` the symmetrically normalised adjacency with self-loops, the diffused graph is
    :math:`\alpha (\mathbf{I} - (1 - \alpha) \mathbf{T})^{-1}`, of which each node keeps the :obj:`k` largest entries,
    scaled to add up to one. It is solved for a few columns at a time by Chebyshev polynomials, without ever holding
    an :math:`n \times n` matrix. The paper uses the largest connected component alone; here every node stays, so that
    all models are judged on the same nodes, and each component diffuses within itself.

    The last graphs are remembered, so that further runs on the same one need not wait.

    Args:
        data (Data): The graph, undirected.
        alpha (float, optional): The teleport probability. (default: :obj:`0.15`)
        k (int, optional): How many neighbours each node keeps, itself included. (default: :obj:`64`)
        tolerance (float, optional): The error allowed in the diffusion. (default: :obj:`1e-4`)
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"'alpha' must be above 0 and at most 1 (got {alpha})")
    if k < 1:
        raise ValueError(f"'k' must be positive (got {k})")
    edge_index, edge_weight, num_nodes = data.edge_index, data.edge_weight, int(data.num_nodes or 0)
    edges, weight = _DIFFUSED.get(
        (edge_index, edge_weight),
        (num_nodes, alpha, k, tolerance),
        lambda: _diffused_edges(edge_index, edge_weight, num_nodes, alpha, k, tolerance),
    )
    out = copy.copy(data)
    out.edge_index, out.edge_weight = edges, weight
    return out


def _diffused_edges(
    edge_index: Adj, edge_weight: OptTensor, num_nodes: int, alpha: float, k: int, tolerance: float
) -> tuple[Tensor, Tensor]:
    edges, weight = edges_of(edge_index, edge_weight)
    weight = torch.ones(edges.size(1), device=edges.device) if weight is None else weight
    edges, weight = add_self_loops(edges, weight, fill_value=1.0, num_nodes=num_nodes)
    matrix = normalized_graph(edges, weight, num_nodes)
    if not is_symmetric(matrix):
        raise ValueError("'data' must be undirected, with every edge in both directions; apply ToUndirected first")
    # Personalised PageRank is the exact low-pass filter of this strength.
    target, source, found = local_weights(matrix, (1 - alpha) / alpha, k, tolerance)
    return torch.stack([source, target]), found
