"""Two-way smoothing as a scikit-learn estimator."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from bigcn.feature_graphs import FeatureGraph
from bigcn.node_graphs import adjacency_of
from bigcn.smoothing.functional import checked_hop, resolve_feature_graph, smooth
from bigcn.sparse import is_sparse


class BiSmoother(BaseEstimator):
    r"""Denoises a table whose rows are the nodes of a graph, along the nodes and along the features.

    Smoothing is transductive, all rows are smoothed together, so there is :meth:`fit_transform` but no
    :obj:`transform`.

    Args:
        lambda1 (float, optional): The strength along the node graph. (default: :obj:`1.0`)
        lambda2 (float, optional): The strength along the feature graph. (default: :obj:`1.0`)
        feature_graph (str, array_like or FeatureGraph, optional): :obj:`"spectral"`, :obj:`"correlation"`,
            :obj:`"uniform"`, :obj:`"none"`, or a symmetric :math:`d \times d` matrix. (default: :obj:`"spectral"`)
        rank (int, optional): The rank of a spectral feature graph. (default: see
            :class:`~bigcn.feature_graphs.SpectralGraph`)
        method (str, optional): :obj:`"exact"` or :obj:`"admm"`. (default: :obj:`"exact"`)
        missing (str, optional): :obj:`"error"` refuses NaN, :obj:`"fill"` fills it. (default: :obj:`"error"`)
        center (bool, optional): If set to :obj:`True`, smooths deviations from the column means, so that the level of
            a column is left alone. (default: :obj:`True`)

    Attributes:
        smoothed_ (numpy.ndarray): The smoothed table.
        feature_graph_ (FeatureGraph): The feature graph that was used; its :meth:`top_edges` tells which features
            informed each other.
        n_features_in_ (int): The number of columns.

    Example:
        >>> edge_index = [[0, 1], [1, 0]]
        >>> BiSmoother(lambda1=1.0, feature_graph="none").fit_transform([[0.0], [3.0]], graph=edge_index)
        array([[1.],
               [2.]])
    """

    def __init__(
        self,
        lambda1: float = 1.0,
        lambda2: float = 1.0,
        feature_graph: Any = "spectral",
        rank: int | None = None,
        method: Literal["exact", "admm"] = "exact",
        missing: Literal["error", "fill"] = "error",
        center: bool = True,
    ) -> None:
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.feature_graph = feature_graph
        self.rank = rank
        self.method = method
        self.missing = missing
        self.center = center

    def fit(self, X: ArrayLike, y: None = None, *, graph: Any = None) -> "BiSmoother":
        """Smooths the table and keeps the result in :obj:`smoothed_`; see :meth:`fit_transform`."""
        table = validate_data(
            self, X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan" if self.missing == "fill" else True
        )
        x = torch.from_numpy(np.array(table))
        edge_index, edge_weight = as_edges(graph, x)
        spec = self.feature_graph
        if not isinstance(spec, (str, FeatureGraph)):
            spec = torch.as_tensor(np.asarray(spec.todense() if sp.issparse(spec) else spec), dtype=x.dtype)
        mean = torch.nanmean(x, dim=0).nan_to_num()
        filled = torch.where(torch.isnan(x), mean, x)
        mean = mean if self.center else torch.zeros_like(mean)
        hop = checked_hop(edge_index, edge_weight, x)
        # The graph is read off the table as it is; only what is smoothed is centred.
        self.feature_graph_ = resolve_feature_graph(spec, filled, hop, self.rank)
        result = smooth(
            x - mean,
            edge_index,
            self.feature_graph_,
            self.lambda1,
            self.lambda2 if self.feature_graph_.filters else 0.0,
            self.method,
            edge_weight=edge_weight,
            missing=self.missing,
        )
        self.smoothed_: NDArray[Any] = (result + mean).numpy()
        return self

    def fit_transform(self, X: ArrayLike, y: None = None, *, graph: Any = None) -> NDArray[Any]:
        """Smooths a table and returns it.

        Args:
            X (array_like): The table, one row per node.
            y (None): Ignored; there for scikit-learn's conventions.
            graph (array_like, Data or OwnGraph, optional): The undirected node graph: edge indices of shape
                :obj:`[2, num_edges]`, a SciPy or torch sparse adjacency, a PyG :obj:`Data`, or what
                :func:`bigcn.read_graph` returns. Without it, only the feature direction smooths.
                (default: :obj:`None`)
        """
        return self.fit(X, y, graph=graph).smoothed_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "fill"
        return tags


def as_edges(graph: Any, x: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Returns edge indices and weights of whatever stands for a graph."""
    if graph is None:
        return None, None
    if isinstance(getattr(graph, "data", None), Data):  # a graph that was read from files; this room knows no files
        graph = graph.data
    if isinstance(graph, BaseData):
        if not isinstance(graph, Data) or (adjacency := adjacency_of(graph)) is None:
            raise ValueError(f"'graph' must have edge_index or adj_t (got {graph})")
        count = graph.get("num_nodes") if graph.x is None else graph.x.size(0)
        if count is not None and count != x.size(0):
            raise ValueError(f"'graph' must have {x.size(0)} nodes, as many as 'X' has rows (got {count})")
        return adjacency, graph.edge_weight
    sparse_tensor = isinstance(graph, Tensor) and is_sparse(graph)
    if (sp.issparse(graph) or sparse_tensor) and (shape := tuple(graph.shape)) != (x.size(0), x.size(0)):
        raise ValueError(f"'graph' must have shape {(x.size(0), x.size(0))} to match 'X' (got {shape})")
    if sp.issparse(graph):
        coo = graph.tocoo()
        return torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64)), torch.from_numpy(coo.data).to(x.dtype)
    if isinstance(graph, Tensor):
        return graph, None
    edges = np.asarray(graph)
    if edges.ndim != 2 or edges.shape[0] != 2 or (edges.size and not np.issubdtype(edges.dtype, np.integer)):
        got = f"{edges.dtype} of shape {list(edges.shape)}" if edges.ndim else type(graph).__name__
        raise ValueError(
            "'graph' must be integer edge indices of shape [2, num_edges], a SciPy or torch sparse adjacency, a PyG "
            f"Data or what read_graph returns (got {got})"
        )
    return torch.from_numpy(edges.astype(np.int64)), None
