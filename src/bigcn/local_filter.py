r"""The exact node filter with the largest weights of each node alone, as a sparse matrix.

A row of :math:`(\mathbf{I} + \lambda \mathbf{L}_1)^{-1}` says how much of every other node reaches a node: personalised
PageRank. Most of it is a long tail of far nodes and hubs, which a local filter leaves out.
"""

import torch
from torch import Tensor
from torch_geometric.typing import Adj, OptTensor

from bigcn.filters import resolvent_coefficients
from bigcn.node_graphs import normalized_graph
from bigcn.sparse import SparseMatrix, chebyshev_filter, sparse_from_edges, unit_columns
from bigcn.sparse_diagonal import row_numbers

#: How many entries of the filter are held at a time.
BLOCK_ENTRIES = 2**24


@torch.no_grad()
def local_weights(
    graph: SparseMatrix, strength: float, top: int, tolerance: float = 1e-4
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns targets, sources and weights of the local filter: of each row of the exact one the :obj:`top` largest
    entries, scaled to add up to one.

    It is solved for a few nodes at a time by Chebyshev polynomials, without ever holding an :math:`n \times n` matrix.

    Args:
        graph (SparseMatrix): The normalised node graph, symmetric.
        strength (float): :math:`\lambda`.
        top (int): How many weights each node keeps.
        tolerance (float, optional): The error allowed in the filter. (default: :obj:`1e-4`)
    """
    nodes, device = graph.num_rows, graph.value.device
    series = resolvent_coefficients(strength, 1, tolerance)[:, 1:].to(graph.value)
    chunk = max(1, BLOCK_ENTRIES // max(nodes, 1))
    found = []
    for start in range(0, nodes, chunk):
        targets = torch.arange(start, min(start + chunk, nodes), device=device)
        solved = chebyshev_filter(graph, series, [unit_columns(targets, graph.value, nodes)])
        weight, source = solved.t().topk(min(top, nodes), dim=1)
        weight = weight.clamp(min=0)
        weight = weight / weight.sum(dim=1, keepdim=True)
        keep = weight > 0
        found.append((targets.unsqueeze(1).expand_as(source)[keep], source[keep], weight[keep]))
    if not found:
        none = torch.empty(0, dtype=torch.long, device=device)
        return none, none, graph.value.new_empty(0)
    target, source, weight = (torch.cat(parts) for parts in zip(*found, strict=True))
    return target, source, weight


def local_resolvent(graph: SparseMatrix, strength: float, top: int, tolerance: float = 1e-4) -> SparseMatrix:
    """Returns the local filter as a matrix, see :func:`local_weights`."""
    return sparse_from_edges(*local_weights(graph, strength, top, tolerance), (graph.num_rows, graph.num_rows))


def is_undirected(edge_index: Adj, edge_weight: OptTensor, num_nodes: int) -> bool:
    """Tells whether a graph is undirected, weights and repeated edges included, as a local filter needs it."""
    return is_symmetric(normalized_graph(edge_index, edge_weight, num_nodes))


def is_symmetric(graph: SparseMatrix) -> bool:
    """Tells whether a matrix is its own transpose, up to rounding; repeated entries add up."""
    if graph.crow is graph.crow_t:
        return True
    (places, values), (others, values_t) = _entries(*graph[:3], graph), _entries(*graph[3:6], graph)
    # Scaling the two directions of an edge rounds differently, so that their entries may differ in the last digit.
    return torch.equal(places, others) and torch.allclose(values, values_t)


def _entries(crow: Tensor, col: Tensor, value: Tensor, graph: SparseMatrix) -> tuple[Tensor, Tensor]:
    size = (graph.num_rows, graph.num_cols)
    matrix = torch.sparse_coo_tensor(
        torch.stack([row_numbers(crow), col]), value.detach(), size, check_invariants=False
    )
    return matrix.coalesce().indices(), matrix.coalesce().values()
