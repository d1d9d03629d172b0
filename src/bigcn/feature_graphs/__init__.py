r"""Graphs over feature columns: what stands in for :math:`\mathbf{L}_2`."""

from typing import Any

from torch import Tensor

from bigcn.feature_graphs.base import FeatureFilter, FeatureGraph, Powers
from bigcn.feature_graphs.correlation import CorrelationGraph
from bigcn.feature_graphs.fixed import GivenGraph, IdentityGraph, NoGraph, UniformGraph
from bigcn.feature_graphs.learnable import LearnableGraph
from bigcn.feature_graphs.spectral import SpectralGraph

#: The feature graphs known by name. A new one is one class and one line here.
FEATURE_GRAPHS: dict[str, type[FeatureGraph]] = {
    "learnable": LearnableGraph,
    "correlation": CorrelationGraph,
    "spectral": SpectralGraph,
    "uniform": UniformGraph,
    "identity": IdentityGraph,
    "none": NoGraph,
}


def make_feature_graph(spec: "str | FeatureGraph | Tensor", num_features: int, **kwargs: Any) -> FeatureGraph:
    r"""Returns a feature graph for a layer.

    Args:
        spec (str, FeatureGraph or torch.Tensor): A name from :obj:`FEATURE_GRAPHS`, a graph that is used as it is, or
            a :math:`d \times d` adjacency.
        num_features (int): The number of features of the layer, or :obj:`-1` if not yet known.
        **kwargs (optional): Arguments of the graph's class, if it is given by name.
    """
    if isinstance(spec, str):
        if spec not in FEATURE_GRAPHS:
            raise ValueError(f"'feature_graph' must be one of {', '.join(FEATURE_GRAPHS)} (got {spec!r})")
        try:
            return FEATURE_GRAPHS[spec](num_features, **kwargs)
        except TypeError as error:
            raise ValueError(f"'feature_graph_kwargs' do not fit the feature graph {spec!r}: {error}") from None
    if kwargs:
        raise ValueError("'feature_graph_kwargs' go with the name of a feature graph, not with a finished one")
    if isinstance(spec, Tensor):
        spec = GivenGraph(spec, called="feature_graph")
    if not isinstance(spec, FeatureGraph):
        raise ValueError(f"'feature_graph' must be a name, a FeatureGraph or a tensor (got {type(spec).__name__})")
    if num_features != -1:
        spec.initialize(num_features)
    return spec


__all__ = [
    "FEATURE_GRAPHS",
    "CorrelationGraph",
    "FeatureFilter",
    "FeatureGraph",
    "GivenGraph",
    "IdentityGraph",
    "LearnableGraph",
    "NoGraph",
    "Powers",
    "SpectralGraph",
    "UniformGraph",
    "make_feature_graph",
]
