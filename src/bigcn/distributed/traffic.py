"""What hops will send, counted from the lists of rows before anything is sent."""

from torch import Tensor

from bigcn.distributed.graph import DistributedGraph
from bigcn.feature_graphs import LearnableGraph, SpectralGraph
from bigcn.feature_graphs.spectral import FULL_DECOMPOSITION
from bigcn.filters import resolvent_coefficients
from bigcn.nn import BiGCN, BiGCNConv
from bigcn.nn.cost import weights_first
from bigcn.sparse import is_sparse


def hop_bytes(model: BiGCN, graph: DistributedGraph, x: Tensor, backward: bool = False) -> int:
    """Returns the bytes that this process sends to others for the hops of one pass through a model.

    Feature graphs that the first layer computes from its input are left out, see :func:`feature_graph_bytes`.

    Args:
        model (BiGCN): The model.
        graph (DistributedGraph): The graph.
        x (torch.Tensor): The features of the own nodes.
        backward (bool, optional): If set to :obj:`True`, the gradients of the pass too. (default: :obj:`False`)
    """
    columns = 0
    for layer, conv in enumerate(model.convs):
        narrow = _filters_weights(conv, graph, x if layer == 0 else None)
        # The features themselves have no gradient, nor has what a fixed feature graph makes of them.
        returns = narrow or layer > 0 or isinstance(conv.feature_graph, LearnableGraph)
        passes = 2 if backward and returns else 1
        columns += passes * conv.num_hops * (conv.out_channels if narrow else conv.in_channels)
        if layer > 0:
            columns += _spectral_columns(conv, sparse=False)
    return graph.exchange.rows_sent * columns * x.element_size()


def feature_graph_bytes(model: BiGCN, graph: DistributedGraph, x: Tensor) -> int:
    """Returns the bytes that this process sends for hops in computing the feature graph of the first layer.

    A model made with :obj:`cached=True` computes it once, another one in each pass.

    Args:
        model, graph, x: See :func:`hop_bytes`.
    """
    return graph.exchange.rows_sent * _spectral_columns(model.convs[0], is_sparse(x)) * x.element_size()


def _filters_weights(conv: BiGCNConv, graph: DistributedGraph, x: Tensor | None) -> bool:
    if x is not None and is_sparse(x):
        return True
    like = conv.lin.weight.new_empty(0, conv.in_channels)
    return weights_first(conv.feature_graph, conv.filter, like, graph.num_edges, conv.out_channels, graph.num_nodes)


def _spectral_columns(conv: BiGCNConv, sparse: bool) -> int:
    """Returns how many columns the smoothing of a spectral graph sends, each hop counted."""
    feature_graph = conv.feature_graph
    if not isinstance(feature_graph, SpectralGraph) or not feature_graph.from_input or feature_graph.trivial:
        return 0
    if feature_graph.smoothing == 0:
        return 0
    hops = resolvent_coefficients(feature_graph.smoothing, tolerance=1e-4).size(0) - 1
    features = conv.in_channels
    if features <= FULL_DECOMPOSITION:
        return hops * features * (2 if sparse else 1)
    return 6 * 2 * hops * min(feature_graph.rank + 16, features)
