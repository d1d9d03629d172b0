r"""The models that BiGCN is judged against, from PyG's own layers.

They train on one graph at a time, all of it in every step, and keep what depends on the graph alone; see
:mod:`bigcn.nn.product_layers`. All take :obj:`(x, edge_index, edge_weight=None)`; as in PyG, GraphSAGE, GIN and GAT
have no place for weights of edges.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.models.basic_gnn import BasicGNN
from torch_geometric.typing import Adj, OptTensor
from torch_geometric.utils import add_remaining_self_loops

from bigcn.nn.attention import AttentionGraph, attend, attention_graph
from bigcn.nn.cache import TensorCache
from bigcn.nn.decoupled import APPNP, MLP, SGC
from bigcn.nn.product_layers import GCNConv, GINConv, KeepsGraph, SAGEConv, drop, symmetric_entries
from bigcn.node_graphs import edges_of
from bigcn.sparse import SparseMatrix

__all__ = ["APPNP", "GAT", "GCN", "GDC", "GIN", "MLP", "SGC", "GraphSAGE", "takes_filled"]


def _sum(edges: Tensor, weight: OptTensor, num_nodes: int, dtype: torch.dtype) -> tuple[Tensor, OptTensor]:
    return edges, torch.ones(edges.size(1), dtype=dtype, device=edges.device)


def _mean(edges: Tensor, weight: OptTensor, num_nodes: int, dtype: torch.dtype) -> tuple[Tensor, OptTensor]:
    degree = torch.bincount(edges[1], minlength=num_nodes).to(dtype)
    return edges, degree.reciprocal()[edges[1]]


def _as_given(edges: Tensor, weight: OptTensor, num_nodes: int, dtype: torch.dtype) -> tuple[Tensor, OptTensor]:
    if weight is None:
        raise ValueError("'edge_weight' is missing: GDC works on the graph that 'diffuse' returns")
    return edges, weight.to(dtype)


#: What PyG's :obj:`BasicGNN` has a use for itself, and a bias, which changes no message.
_OF_MODELS = {*signature(BasicGNN.__init__).parameters, "bias"}


def _of_layers(kwargs: Mapping[str, Any]) -> list[str]:
    """Returns the arguments that say how layers pass messages."""
    return [name for name in kwargs if name not in _OF_MODELS]


class _Baseline(KeepsGraph, BasicGNN):
    r"""A stack of PyG's layers with ReLU and dropout between them.

    Args:
        *args, **kwargs: See :class:`torch_geometric.nn.models.basic_gnn.BasicGNN`.
        drops_input (bool, optional): Whether dropout also comes before the first layer.
            (default: as in the model's paper)
        scales_rows (bool, optional): Whether the features of each node are divided by their sum first, see
            :meth:`~bigcn.nn.product_layers.KeepsGraph.scaled`. (default: :obj:`False`)
    """

    supports_edge_weight = False
    supports_edge_attr = False
    supports_norm_batch: bool
    #: How the graph becomes a matrix.
    entries: Callable[..., tuple[Tensor, OptTensor]]
    drops_input = False

    def __init__(self, *args: Any, drops_input: bool | None = None, scales_rows: bool = False, **kwargs: Any) -> None:
        if drops_input is not None:
            self.drops_input = drops_input
        self.scales_rows = scales_rows
        self.by_product = not _of_layers(kwargs)
        super().__init__(*args, **kwargs)

    def forward(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor = None) -> Tensor:
        """Runs the forward pass.

        Args:
            x (torch.Tensor): The node features.
            edge_index (torch.Tensor or EdgeIndex): The edge indices, or a sparse (transposed) adjacency matrix.
            edge_weight (torch.Tensor, optional): The edge weights, for layers that have a place for them.
                (default: :obj:`None`)
        """
        graph, weight = self.graph_matrix(x, edge_index, edge_weight, self.entries)
        if not isinstance(graph, SparseMatrix):
            graph = self.messages(graph, x.size(0))
        x = self.scaled(x)
        if self.drops_input:
            x = self.drop_input(x, self.dropout.p, self.training)
        out: Tensor = super().forward(x, graph, weight)
        return out

    def messages(self, edges: Tensor, num_nodes: int) -> Tensor:
        """Returns the edges that messages pass along where no matrix of the graph can be kept."""
        return edges

    def _products(self) -> TensorCache | None:
        """Returns where the layer that is being made keeps its products with the input, if that stays the same."""
        return None if len(self.convs) or self.drops_input else TensorCache(1)


class GCN(_Baseline):
    r"""The graph convolutional network (`Kipf and Welling, 2017 <https://arxiv.org/abs/1609.02907>`_), with dropout on
    the input of every layer as in its paper; see :class:`_Baseline` for the arguments.
    """

    supports_edge_weight = True
    drops_input = True
    entries = staticmethod(symmetric_entries)

    def init_conv(self, in_channels: int, out_channels: int, **kwargs: Any) -> MessagePassing:
        return GCNConv(in_channels, out_channels, **kwargs)


class GDC(_Baseline):
    r"""A GCN on a diffused graph (`Gasteiger et al., 2019 <https://arxiv.org/abs/1911.05485>`_): it takes edges and
    weights from :func:`diffuse`, whose weights it leaves as they are.
    """

    supports_edge_weight = True
    entries = staticmethod(_as_given)

    def init_conv(self, in_channels: int, out_channels: int, **kwargs: Any) -> MessagePassing:
        conv = GCNConv(in_channels, out_channels, normalize=False, **kwargs)
        conv.products = self._products()
        return conv


class GraphSAGE(_Baseline):
    r"""GraphSAGE with the mean of all neighbours (`Hamilton et al., 2017 <https://arxiv.org/abs/1706.02216>`_).

    Args:
        *args, **kwargs: See :class:`_Baseline`.
        with_self (bool, optional): If set to :obj:`True`, the mean is over a node and its neighbours, with one matrix
            of weights for both: the variant of its paper that is closest to a GCN, and what PyG's layer was until
            version 1.4. By default a node has weights of its own. (default: :obj:`False`)
    """

    def __init__(self, *args: Any, with_self: bool = False, **kwargs: Any) -> None:
        self.with_self = with_self
        super().__init__(*args, **kwargs)

    def entries(self, edges: Tensor, weight: OptTensor, *sizes: Any) -> tuple[Tensor, OptTensor]:
        return _mean(self.messages(edges, sizes[0]), weight, *sizes)

    def messages(self, edges: Tensor, num_nodes: int) -> Tensor:
        return add_remaining_self_loops(edges, num_nodes=num_nodes)[0] if self.with_self else edges

    def init_conv(self, in_channels: int, out_channels: int, **kwargs: Any) -> MessagePassing:
        root = {"root_weight": False} if self.with_self else {}
        conv = SAGEConv(in_channels, out_channels, **{**kwargs, **root})
        conv.products = self._products()
        return conv


class GIN(_Baseline):
    r"""The graph isomorphism network (`Xu et al., 2019 <https://arxiv.org/abs/1810.00826>`_): a perceptron in each
    layer, without batch normalisation, and no read-out.

    Args:
        *args, **kwargs: See :class:`_Baseline`.
        perceptron_layers (int, optional): How many layers the perceptrons have; with one they are linear, as P-GNN has
            them. (default: :obj:`2`)
    """

    entries = staticmethod(_sum)

    def __init__(self, *args: Any, perceptron_layers: int = 2, **kwargs: Any) -> None:
        if perceptron_layers < 1:
            raise ValueError(f"'perceptron_layers' must be positive (got {perceptron_layers})")
        self.perceptron_layers = perceptron_layers
        super().__init__(*args, **kwargs)

    def init_conv(self, in_channels: int, out_channels: int, **kwargs: Any) -> MessagePassing:
        channels = [in_channels, *[out_channels] * self.perceptron_layers]
        conv = GINConv(pyg.MLP(channels, norm=None), **kwargs)
        conv.products = self._products()
        return conv


class GAT(KeepsGraph, BasicGNN):
    r"""The graph attention network (`Veličković et al., 2018 <https://arxiv.org/abs/1710.10903>`_) as in its paper:
    heads of :obj:`hidden_channels / heads` channels side by side, a single head at the output, ELU, and dropout on the
    input of each layer and on the attention.

    Args:
        in_channels, hidden_channels, num_layers, out_channels, dropout: See
            :class:`torch_geometric.nn.models.basic_gnn.BasicGNN`.
        heads (int, optional): The number of heads. (default: :obj:`8`)
        scales_rows (bool, optional): See :class:`_Baseline`. (default: :obj:`False`)
        **kwargs (optional): Additional arguments of :class:`torch_geometric.nn.GATConv`.
    """

    supports_edge_weight = False
    supports_edge_attr = False
    supports_norm_batch: bool

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        dropout: float = 0.0,
        heads: int = 8,
        scales_rows: bool = False,
        **kwargs: Any,
    ) -> None:
        self.scales_rows = scales_rows
        if hidden_channels % heads != 0:
            raise ValueError(f"'hidden_channels' must be a multiple of the {heads} heads (got {hidden_channels})")
        self.by_product = not _of_layers(kwargs)
        super().__init__(
            in_channels, hidden_channels, num_layers, out_channels, dropout, act="elu", heads=heads, **kwargs
        )

    def init_conv(self, in_channels: int, out_channels: int, heads: int, **kwargs: Any) -> MessagePassing:
        heads = heads if len(self.convs) < self.num_layers - 1 else 1
        return pyg.GATConv(in_channels, out_channels // heads, heads=heads, dropout=self.dropout.p, **kwargs)

    def forward(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor = None) -> Tensor:
        """Runs the forward pass; weights of edges have no place in it."""
        kept = self.is_given("attention") or self.may_keep_graph(edge_index)
        x = self.scaled(x)
        for layer, conv in enumerate(self.convs):
            x = (drop if layer else self.drop_input)(x, self.dropout.p, self.training)
            x = attend(conv, x, self._graph(edge_index, x.size(0))) if kept else conv(x, edges_of(edge_index)[0])
            if layer < self.num_layers - 1:
                x = self.act(x)
        return x

    def _graph(self, edge_index: Adj, num_nodes: int) -> AttentionGraph:
        graph: AttentionGraph = self.keep(
            "attention", (edge_index,), num_nodes, lambda: attention_graph(edges_of(edge_index)[0], num_nodes)
        )
        return graph


def takes_filled(model: torch.nn.Module) -> bool:
    """Tells whether a model asks for features in products alone, so that columns of zeros may be added to them.

    Args:
        model (torch.nn.Module): Any model; of others than these nothing is known.
    """
    known = type(model) in (GCN, GDC, GraphSAGE, GIN, GAT, APPNP, SGC, MLP)
    return known and getattr(model, "by_product", True)
