r"""Two-way smoothing of a feature matrix, as one function."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.typing import Adj, OptTensor

from bigcn.checks import check_edges
from bigcn.feature_graphs import CorrelationGraph, FeatureGraph, GivenGraph, NoGraph, SpectralGraph, UniformGraph
from bigcn.filters import Hop, check_rounds, check_strength, check_tolerance
from bigcn.node_graphs import check_adjacency, edges_of, normalized_graph
from bigcn.smoothing.solvers import solve_admm, solve_complete, solve_observed
from bigcn.sparse import is_sparse, sparse_from_edges
from bigcn.sparse_ops import product_dtype

Method = Literal["exact", "admm"]
#: Feature graphs that smoothing knows by name: those that need no labels.
SMOOTHING_GRAPHS = ("correlation", "spectral", "uniform", "none")


def smooth(
    x: Tensor,
    edge_index: Adj | None,
    feature_adjacency: Tensor | FeatureGraph | str | None = None,
    lambda1: float = 1.0,
    lambda2: float | None = None,
    method: Method = "exact",
    *,
    edge_weight: OptTensor = None,
    p: float = 1.0,
    iterations: int | None = None,
    missing: Literal["error", "fill"] = "error",
    rank: int | None = None,
    tolerance: float | None = None,
) -> Tensor:
    r"""Smooths features along the node graph and along a feature graph, without labels and without learning.

    .. math::
        \min_{\mathbf{Y}} {\Vert \mathbf{Y} - \mathbf{F} \Vert}^2_F
        + \lambda_1 \, \mathrm{tr}(\mathbf{Y}^{\top} \mathbf{L}_1 \mathbf{Y})
        + \lambda_2 \, \mathrm{tr}(\mathbf{Y} \mathbf{L}_2 \mathbf{Y}^{\top})

    Args:
        x (torch.Tensor): The features :math:`\mathbf{F}`, dense.
        edge_index (torch.Tensor or EdgeIndex): The undirected node graph, or :obj:`None` to smooth along the features
            alone.
        feature_adjacency (torch.Tensor, FeatureGraph or str, optional): A symmetric :math:`d \times d` matrix, a
            graph, :obj:`"correlation"`, :obj:`"spectral"` or :obj:`"uniform"`, or :obj:`None` to smooth along the
            nodes alone. (default: :obj:`None`)
        lambda1 (float, optional): :math:`\lambda_1`; zero switches the node direction off. (default: :obj:`1.0`)
        lambda2 (float, optional): :math:`\lambda_2`; zero switches the feature direction off. (default: :obj:`1.0`
            with a feature graph, else :obj:`0.0`)
        method (str, optional): :obj:`"exact"` solves Sylvester's equation, :obj:`"admm"` runs the recursion of the
            paper with exact one-sided filters. (default: :obj:`"exact"`)
        edge_weight (torch.Tensor, optional): The edge weights, not negative. (default: :obj:`None`)
        p (float, optional): The penalty of ADMM. (default: :obj:`1.0`)
        iterations (int, optional): The rounds of ADMM; by default it runs until it converges. (default: :obj:`None`)
        missing (str, optional): :obj:`"error"` refuses NaN, :obj:`"fill"` takes it for a missing value and fills it.
            (default: :obj:`"error"`)
        rank (int, optional): The rank of a spectral feature graph. (default: see
            :class:`~bigcn.feature_graphs.SpectralGraph`)
        tolerance (float, optional): The relative error allowed. (default: :obj:`1e-6`, or :obj:`1e-10` in double
            precision)

    Example:
        >>> x, edge_index = torch.tensor([[0.0], [3.0]]), torch.tensor([[0, 1], [1, 0]])
        >>> smooth(x, edge_index, lambda1=1.0).round(decimals=4)
        tensor([[1.],
                [2.]])
    """
    observed = check_features(x, missing)
    dtype = x.dtype
    x = x.to(product_dtype(x))  # half precision has neither eigenvectors nor a tolerance
    for name, value in (("lambda1", lambda1), ("lambda2", 0.0 if lambda2 is None else lambda2)):
        check_strength(name, value)
    if method not in ("exact", "admm"):
        raise ValueError(f"'method' must be 'exact' or 'admm' (got {method!r})")
    check_rounds(p, 1 if iterations is None else iterations)
    if tolerance is None:
        tolerance = 1e-10 if x.dtype == torch.float64 else 1e-6
    check_tolerance(tolerance)

    hop = checked_hop(edge_index, edge_weight, x)
    known = x
    if observed is not None:
        if method == "admm":
            raise ValueError("'method=\"admm\"' does not fill missing values: use 'method=\"exact\"'")
        known = torch.where(observed, x, torch.nanmean(x, dim=0).nan_to_num())
    graph = resolve_feature_graph(feature_adjacency, known, hop, rank)
    if lambda2 is None:
        lambda2 = 1.0 if graph.filters else 0.0
    elif lambda2 > 0 and not graph.filters:
        raise ValueError("'lambda2' needs a feature graph: give 'feature_adjacency'")
    return solve_along(x, observed, hop, graph, lambda1, lambda2, tolerance, method, p, iterations).to(dtype)


def solve_along(
    x: Tensor,
    observed: Tensor | None,
    hop: Hop | None,
    graph: FeatureGraph,
    lambda1: float,
    lambda2: float,
    tolerance: float,
    method: Method = "exact",
    p: float = 1.0,
    iterations: int | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """Does what :func:`smooth` does, with graphs that are ready and arguments that were checked.

    Args:
        x (torch.Tensor): The features.
        observed (torch.Tensor, optional): True where an entry is known, or :obj:`None` if all are.
        hop (Hop, optional): The normalised node graph, or :obj:`None`.
        graph (FeatureGraph): The feature graph.
        lambda1, lambda2, tolerance, method, p, iterations: See :func:`smooth`.
        start (torch.Tensor, optional): Where filling begins. (default: zero)
    """
    node_hop: Hop = _stay if hop is None else hop
    lambda1 = 0.0 if hop is None else lambda1
    operand = tuple(t.detach().to(x.dtype) if t.is_floating_point() else t for t in graph.operand())

    def feature_hop(block: Tensor) -> Tensor:
        return graph.product(operand, block)

    if observed is not None:
        return solve_observed(x, observed, node_hop, feature_hop, lambda1, lambda2, tolerance, start=start)
    if method == "admm":
        return solve_admm(x, node_hop, feature_hop, lambda1, lambda2, p, iterations, tolerance)
    return solve_complete(x, node_hop, feature_hop, lambda1, lambda2, tolerance)


def resolve_feature_graph(
    spec: Tensor | FeatureGraph | str | None, x: Tensor, hop: Hop | None, rank: int | None
) -> FeatureGraph:
    """Returns the feature graph to smooth along, computed from the features if it is named."""
    d = x.size(1)
    if spec is None or (isinstance(spec, str) and spec == "none"):
        return NoGraph(d)
    if isinstance(spec, Tensor):
        spec = GivenGraph(spec.to(x.device), called="feature_adjacency")
    if isinstance(spec, str):
        if spec == "correlation":
            return CorrelationGraph.from_features(x)
        if spec == "uniform":
            return UniformGraph(d)
        if spec == "spectral":
            graph = SpectralGraph(d, rank=rank)
            graph.vectors, graph.weights = graph.operand(x, hop)
            return graph
        raise ValueError(f"'feature_adjacency' must be one of {', '.join(SMOOTHING_GRAPHS)} (got {spec!r})")
    if not isinstance(spec, FeatureGraph):
        raise ValueError(f"'feature_adjacency' must be a matrix, a FeatureGraph or a name (got {type(spec).__name__})")
    spec.initialize(d)
    return spec


def check_features(x: Tensor, missing: str) -> Tensor | None:
    """Refuses features that cannot be smoothed; returns which are known, or :obj:`None` if all are."""
    if not isinstance(x, Tensor) or is_sparse(x) or x.dim() != 2 or not x.is_floating_point():
        shape = f"{x.dtype}, {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"'x' must be a dense floating-point matrix [num_nodes, num_features] (got {shape})")
    if missing not in ("error", "fill"):
        raise ValueError(f"'missing' must be 'error' or 'fill' (got {missing!r})")
    if bool(torch.isinf(x).any()):
        raise ValueError("'x' must not have infinite entries")
    gaps = torch.isnan(x)
    if not bool(gaps.any()):
        return None
    if missing == "error":
        raise ValueError("'x' has missing values (NaN): 'missing=\"fill\"' fills them")
    return ~gaps


def check_precision(x: Tensor) -> None:
    """Refuses numbers that directions cannot be computed from."""
    if x.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"'x' must be of single or double precision (got {x.dtype})")


def check_grids(lambda1: Sequence[float], lambda2: Sequence[float]) -> None:
    """Refuses strengths to choose from that are none."""
    for name, strengths in (("lambda1", lambda1), ("lambda2", lambda2)):
        if len(strengths) == 0:
            raise ValueError(f"'{name}' must name a strength at least")
        for strength in strengths:
            check_strength(name, strength)


def checked_hop(edge_index: Adj | None, edge_weight: OptTensor, x: Tensor) -> Hop | None:
    """Returns the normalised node graph of a table, or :obj:`None` if there is none; refuses what is not one."""
    if edge_index is None:
        return None
    check_graph(edge_index, edge_weight, x.size(0))
    return normalized_graph(edge_index, edge_weight, x.size(0), x.dtype)


def check_graph(edge_index: Adj, edge_weight: OptTensor, num_nodes: int) -> None:
    """Refuses a node graph that is not an undirected one over these nodes."""
    check_adjacency(edge_index, num_nodes)
    edges, weight = edges_of(edge_index, edge_weight)
    check_edges(edges, weight, num_nodes)
    if edges.numel() == 0:
        return
    weight = torch.ones(edges.size(1), device=edges.device) if weight is None else weight
    matrix = sparse_from_edges(edges[0], edges[1], weight.double(), (num_nodes, num_nodes))
    if matrix.crow is not matrix.crow_t:
        raise ValueError("'edge_index' must be undirected: see torch_geometric.utils.to_undirected")


def _stay(block: Tensor) -> Tensor:
    return block
