"""Models of which some rows can be had without the others.

Who asks about a few nodes alone, as the loss of node classification does, needs no more of a last filter along the
nodes than the rows of these, and no more of features that nothing but weights comes after.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeGuard

import torch
from torch import Tensor
from torch_geometric.typing import OptTensor

from bigcn.nn.bigcn import BiGCN
from bigcn.nn.bigcn_conv import BiGCNConv
from bigcn.nn.cache import TensorCache, caches_of
from bigcn.nn.decoupled import APPNP, SGC
from bigcn.nn.kept_input import in_precision
from bigcn.nn.product_layers import symmetric_entries
from bigcn.sparse import SparseMatrix, unit_columns


class LastFilter(NamedTuple):
    """The filter along the nodes that a model ends with.

    Args:
        cache (TensorCache): Given some rows of the filter, the model answers for these alone.
        hops (int): How many hops on the graph the filter takes.
        parts (int): How many blocks of the nodes are filtered, each by rows of its own.
        graph (Callable): Returns the graph of the filter for features, edges and weights of edges.
        rows (Callable): Returns rows of the filter for some nodes and its graph.
    """

    cache: TensorCache
    hops: int
    parts: int
    graph: Callable[[Tensor, Tensor, OptTensor], object]
    rows: Callable[[Tensor, SparseMatrix], Tensor]


def last_filter(model: torch.nn.Module) -> LastFilter | None:
    """Returns the filter that a model ends with, if it is one of which rows can be had.

    Args:
        model (torch.nn.Module): Any model; of others than ours nothing is known.
    """
    if type(model) is APPNP and isinstance(model.propagation.alpha, int | float):
        return _last_of_appnp(model)
    if not _ends_with_a_layer(model) or model.num_layers == 1:
        return None  # a single layer filters its features once
    conv = model.convs[-1]
    if not isinstance(conv, BiGCNConv) or not conv.cached or conv.explain or conv.feature_graph.from_input:
        return None
    if conv.filter.node_filter != "exact" or conv.filter.num_hops == 0 or conv.top is not None:
        return None

    def rows(asked: Tensor, graph: SparseMatrix) -> Tensor:
        weight = conv.lin.weight.detach()
        # How parts mix depends on the numbers of the filter alone, whatever is learned of the feature graph.
        _, mixing = conv._along_features(weight.t(), in_precision(conv.feature_graph.operand(), weight.dtype))
        return conv.filter.rows_along_nodes(asked, mixing, graph, conv.dense_resolvent_of(graph))

    parts = conv.feature_graph.num_blocks(conv.filter.iterations)
    return LastFilter(conv._asked, conv.filter.num_hops, parts, conv._node_hop, rows)


def _last_of_appnp(model: APPNP) -> LastFilter:
    propagation = model.propagation

    def graph(x: Tensor, edge_index: Tensor, edge_weight: OptTensor) -> object:
        return model.graph_matrix(x, edge_index, edge_weight, symmetric_entries)[0]

    @torch.no_grad()
    def rows(asked: Tensor, matrix: SparseMatrix) -> Tensor:
        units = unit_columns(asked, matrix.value, matrix.num_rows)
        out: Tensor = propagation(units, matrix.transposed())  # a row is a column of the transposed
        return out.t()

    return LastFilter(propagation.asked, propagation.K, 1, graph, rows)


def kept_rows(model: torch.nn.Module) -> str | None:
    """Returns the name of what a model keeps of graph and features and then multiplies by weights alone, if that is all
    it does: given some rows of it, the model answers for these alone.

    Args:
        model (torch.nn.Module): Any model, see :func:`last_filter`.
    """
    if type(model) is SGC:
        return "._caches.features"
    return "convs.0._filtered" if _ends_with_a_layer(model) and model.num_layers == 1 else None


def _ends_with_a_layer(model: torch.nn.Module) -> TypeGuard[BiGCN]:
    """Tells whether nothing comes after the last layer of a BiGCN; a normalisation might look at all nodes."""
    return type(model) is BiGCN and model.jk_mode is None


def name_of(model: torch.nn.Module, cache: TensorCache) -> str:
    """Returns the name of a cache of a model, see :func:`~bigcn.nn.cache.caches_of`."""
    return next(name for name, other in caches_of(model).items() if other is cache)
