r"""The node graph of a filter: every format PyG knows, normalised to :math:`\mathbf{N} = \mathbf{I} - \mathbf{L}_1`.

The graph is taken as it is: no self-loop is added, and an isolated node has a zero row in its Laplacian, so that a
filter leaves it alone.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.typing import Adj, OptTensor

from bigcn.sparse import SparseMatrix, coordinates, is_sparse, sparse_from_edges


class SpreadGraph(ABC):
    """A normalised node graph whose rows are spread over processes, each of which runs its layers on its own rows.

    It stands where a layer takes :obj:`edge_index`, and is itself the hop that filters take. Whatever adds up over
    nodes is added up over the processes by it. See :mod:`bigcn.distributed`.
    """

    #: The nodes of this process, those of all, and the directed edges of all.
    num_rows: int
    num_nodes: int
    num_edges: int

    @abstractmethod
    def __call__(self, block: Tensor) -> Tensor:
        """Multiplies the rows of this process by the normalised adjacency, differentiable."""

    @abstractmethod
    def total(self, partial: Tensor) -> Tensor:
        """Adds up what each process has computed from its rows; not differentiable."""


def total_over_nodes(partial: Tensor, hop: object) -> Tensor:
    """Returns a sum over nodes, completed by the other processes' parts where the node graph is spread over them."""
    return hop.total(partial) if isinstance(hop, SpreadGraph) else partial


def count_nodes(rows: int, hop: object) -> int:
    """Returns how many nodes there are on all processes, of which this one holds so many rows."""
    return hop.num_nodes if isinstance(hop, SpreadGraph) else rows


def adjacency_of(data: Data) -> Adj | None:
    """Returns the edges of a PyG graph: its :obj:`edge_index`, or :obj:`adj_t` where they were moved there.

    Args:
        data (Data): The graph.
    """
    return data.edge_index if data.edge_index is not None else data.get("adj_t")


def check_adjacency(edge_index: Adj, num_nodes: int) -> None:
    """Refuses a graph given as a sparse matrix that is not one over these nodes."""
    if isinstance(edge_index, Tensor) and is_sparse(edge_index) and edge_index.shape != (num_nodes, num_nodes):
        raise ValueError(
            f"'edge_index' must have shape [{num_nodes}, {num_nodes}] to match 'x' (got {list(edge_index.shape)})"
        )


def edges_of(edge_index: Adj, edge_weight: OptTensor = None) -> tuple[Tensor, OptTensor]:
    """Returns the graph as plain :obj:`edge_index` and :obj:`edge_weight` tensors.

    Args:
        edge_index (torch.Tensor or EdgeIndex): Edge indices, or a sparse tensor holding the transposed adjacency
            matrix (rows are targets), as everywhere in PyG.
        edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
    """
    if not isinstance(edge_index, Tensor):
        raise ValueError(
            f"'edge_index' must be a [2, num_edges] tensor, an EdgeIndex or a torch sparse tensor "
            f"(got {type(edge_index).__name__})"
        )
    if is_sparse(edge_index):
        if edge_weight is not None:
            raise ValueError("'edge_weight' must not be given beside a sparse 'edge_index', which has its own values")
        target, source, value = coordinates(edge_index)
        return torch.stack([source, target]), value
    if isinstance(edge_index, EdgeIndex):
        edge_index = edge_index.as_tensor()
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"'edge_index' must have shape [2, num_edges] (got {list(edge_index.shape)})")
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise ValueError(f"'edge_index' must hold integers (got {edge_index.dtype})")
    if edge_weight is not None:
        if not isinstance(edge_weight, Tensor):
            raise ValueError(f"'edge_weight' must be a tensor (got {type(edge_weight).__name__})")
        # One column, as edge attributes come, is one entry per edge too.
        if edge_weight.shape not in ((edge_index.size(1),), (edge_index.size(1), 1)):
            raise ValueError(
                f"'edge_weight' must have one entry per edge ({edge_index.size(1)}, got {list(edge_weight.shape)})"
            )
        if edge_weight.is_complex():
            raise ValueError(f"'edge_weight' must be real (got {edge_weight.dtype})")
        edge_weight = edge_weight.view(-1)
    return edge_index, edge_weight


def symmetric_normalization(
    edge_index: Tensor, edge_weight: OptTensor, num_nodes: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    r"""Returns the entries of :math:`\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}` per edge, and the isolated nodes.

    Written without data-dependent shapes or control flow, so that it compiles and can be captured.
    """
    source, target = edge_index
    if edge_weight is None:
        edge_weight = torch.ones(edge_index.size(1), dtype=dtype, device=edge_index.device)
    weight = edge_weight.to(dtype)
    degree = weight.new_zeros(num_nodes).scatter_add(0, target, weight)
    connected = degree > 0
    scale = torch.where(connected, torch.where(connected, degree, 1).rsqrt(), 0)
    # In this order the two directions of an edge round alike, and the matrix is its own transpose.
    return weight * (scale[source] * scale[target]), (~connected).to(dtype).unsqueeze(-1)


def normalized_graph(
    edge_index: Adj,
    edge_weight: OptTensor = None,
    num_nodes: int | None = None,
    dtype: torch.dtype = torch.float32,
    normalize: bool = True,
) -> SparseMatrix:
    r"""Returns :math:`\mathbf{N} = \mathbf{I} - \mathbf{L}_1`, compressed for fast products.

    Args:
        edge_index (torch.Tensor or EdgeIndex): The graph, in any format of :func:`edges_of`.
        edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
        num_nodes (int, optional): The number of nodes; taken from the edges if missing. (default: :obj:`None`)
        dtype (torch.dtype, optional): The precision of the entries. (default: :obj:`torch.float32`)
        normalize (bool, optional): If set to :obj:`False`, takes the edge weights as the entries.
            (default: :obj:`True`)
    """
    if num_nodes is None and isinstance(edge_index, Tensor) and is_sparse(edge_index):
        num_nodes = edge_index.size(0)
    edges, weight = edges_of(edge_index, edge_weight)
    if num_nodes is None:
        num_nodes = int(edges.max()) + 1 if edges.numel() > 0 else 0
    if normalize:
        weight, isolated = symmetric_normalization(edges, weight, num_nodes, dtype)
        # A one on the diagonal, so that the Laplacian of an isolated node is zero.
        alone = isolated.view(-1).nonzero().view(1, -1).expand(2, -1)
        edges = torch.cat([edges, alone], dim=1)
        weight = torch.cat([weight, weight.new_ones(alone.size(1))])
    elif weight is None:
        weight = torch.ones(edges.size(1), device=edges.device)
    return sparse_from_edges(edges[1], edges[0], weight.to(dtype), (num_nodes, num_nodes))
