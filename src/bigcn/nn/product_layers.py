r"""PyG's layers with message passing as a sparse product, for models that train on all of one graph in every step.

What depends on the graph alone (its normalisation, its compressed form) is kept, and layers multiply by a sparse
matrix instead of gathering and scattering messages: the same numbers, faster. What is kept belongs to the very tensors
it was computed from; unlike PyG's :obj:`cached=True`, another graph is never mistaken for it. Where nothing can be
kept (while compiling, or with weights of edges that need gradients) the layers are PyG's to the letter.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.typing import Adj, OptTensor
from torch_geometric.utils import add_self_loops, remove_self_loops

from bigcn.nn.cache import TensorCache, may_keep
from bigcn.node_graphs import edges_of
from bigcn.sparse import SparseMatrix, sparse_from_edges
from bigcn.sparse_diagonal import joined_pattern, make_room
from bigcn.sparse_ops import multiply, sampled_product


def _by_product(name: str, conv: type[MessagePassing]) -> Any:
    """Returns a layer that also takes a :class:`SparseMatrix` for its graph."""

    def propagate(self: MessagePassing, edge_index: Any, size: Any = None, **kwargs: Any) -> Tensor:
        if not isinstance(edge_index, SparseMatrix):
            out: Tensor = conv.propagate(self, edge_index, size=size, **kwargs)
            return out
        x = kwargs["x"]
        x = x[0] if isinstance(x, tuple) else x
        if self.products is None or not (self.products.given or may_keep(x)):
            return edge_index.matmul(x)
        product: Tensor = self.products.get((x, edge_index.value), None, lambda: edge_index.matmul(x))
        return product

    # In the class itself, where PyG looks before it puts generated code in the place of `propagate`.
    # `products` keeps what a first layer makes of the input before any weight has a part in it.
    body = {"propagate": propagate, "products": None, "__doc__": conv.__doc__, "__module__": __name__}
    return type(name, (conv,), body)


GCNConv = _by_product("GCNConv", pyg.GCNConv)
SAGEConv = _by_product("SAGEConv", pyg.SAGEConv)
GINConv = _by_product("GINConv", pyg.GINConv)
APPNPConv = _by_product("APPNPConv", pyg.APPNP)
SGConv = _by_product("SGConv", pyg.SGConv)


class KeptGCNConv(GCNConv):  # type: ignore[misc, valid-type]
    """PyG's GCN layer, keeping the normalised graph for as long as it is given the very same one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._graphs = TensorCache()

    def forward(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor = None) -> Tensor:
        if self._graphs.given or may_keep(edge_index, edge_weight):
            num_nodes, dtype = x.size(-2), x.dtype

            def compute() -> SparseMatrix:
                edges, weight = gcn_norm(*edges_of(edge_index, edge_weight), num_nodes, dtype=dtype)
                return sparse_from_edges(edges[1], edges[0], weight, (num_nodes, num_nodes))

            edge_index, edge_weight = self._graphs.get((edge_index, edge_weight), (num_nodes, dtype), compute), None
        out: Tensor = super().forward(x, edge_index, edge_weight)
        return out


class AttentionGraph(NamedTuple):
    """Edges sorted by target, self-loops among them, and the same pattern once per head down a diagonal."""

    source: Tensor
    target: Tensor
    pointers: Tensor
    pattern: SparseMatrix  # its values say where each entry stands among the edges of all heads
    counts: Tensor | None = None  # one for an edge, zero for one that only fills the graph up to the size of others


def attend(conv: pyg.GATConv, x: Tensor, graph: AttentionGraph) -> Tensor:
    r"""Returns what a :class:`torch_geometric.nn.GATConv` does, its heads adding up their messages in one product.

    Args:
        conv (torch_geometric.nn.GATConv): The layer.
        x (torch.Tensor): The node features.
        graph (AttentionGraph): The graph, made for the number of heads of the layer.
    """
    heads, nodes = conv.heads, x.size(0)
    x = conv.lin(x).view(nodes, heads, -1)
    of_source = (x * conv.att_src).sum(dim=-1).index_select(0, graph.source)
    of_target = (x * conv.att_dst).sum(dim=-1).index_select(0, graph.target)
    score = F.leaky_relu(of_source + of_target, conv.negative_slope)
    share = (score - _highest(score.detach(), graph, nodes).index_select(0, graph.target)).exp()
    if graph.counts is not None:
        share = share * graph.counts.unsqueeze(1)
    total = share.new_zeros(nodes, heads).index_add(0, graph.target, share)
    # The total divides the sum over neighbours instead of every share; dropout comes between, as in PyG.
    share = drop(share, conv.dropout, conv.training).t().reshape(-1)
    block = x.transpose(0, 1).reshape(heads * nodes, -1)
    pattern = graph.pattern
    summed: Tensor = _WeightedSum.apply(share, block, *pattern[:2], *pattern[3:6])
    out = summed.view(heads, nodes, -1).transpose(0, 1) / (total.unsqueeze(-1) + 1e-16)
    out = out.reshape(nodes, -1) if conv.concat else out.mean(dim=1)
    return out if conv.bias is None else out + conv.bias


def _highest(score: Tensor, graph: AttentionGraph, nodes: int) -> Tensor:
    """Returns the highest score among the edges of each target."""
    if not torch._C._functorch.is_functorch_wrapped_tensor(score):
        return torch.segment_reduce(score, "max", offsets=graph.pointers, axis=0)
    target = graph.target.unsqueeze(1).expand(-1, score.size(1))  # slower, but it maps
    return score.new_zeros(nodes, score.size(1)).scatter_reduce(0, target, score, "amax", include_self=False)


class _WeightedSum(torch.autograd.Function):
    """The product of a sparse matrix and a block, where both have gradients."""

    @staticmethod
    def forward(value: Tensor, block: Tensor, *pattern: Tensor) -> Tensor:
        return multiply(pattern[0], pattern[1], value, block)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        value, block, crow, col, crow_t, col_t, order = ctx.saved_tensors
        grad = grads[0].contiguous()
        grad_block = multiply(crow_t, col_t, value.index_select(0, order), grad)
        return sampled_product(crow, col, grad, block), grad_block, None, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
        members = info.batch_size
        value, block, crow, col, crow_t, col_t, order = args
        value, block = (
            tensor.expand(members, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            for tensor, dim in zip((value, block), in_dims[:2], strict=True)
        )
        rows, entries = block.size(1), value.size(1)
        joined = joined_pattern(crow, col, in_dims[2], in_dims[3], members, rows)
        joined_t = joined_pattern(crow_t, col_t, in_dims[4], in_dims[5], members, rows)
        # The same arithmetic as for columns: the entries of each member follow those of the one before.
        order = joined_pattern(crow_t, order, in_dims[4], in_dims[6], members, entries)[1]
        out = _WeightedSum.apply(value.reshape(-1), block.reshape(members * rows, -1), *joined, *joined_t, order)
        return out.view(members, rows, -1), 0


def drop(x: Tensor, p: float, training: bool) -> Tensor:
    """Drops entries as :func:`torch.nn.functional.dropout` does, several times faster on a CPU."""
    if x.is_cuda or not training or not 0 < p < 1 or x.dtype.itemsize < 4:
        return F.dropout(x, p, training)
    # PyTorch's Bernoulli generator takes several times as long as its uniform one.
    return x * ((torch.rand_like(x) >= p).to(x.dtype) / (1 - p))


class Dropout(torch.nn.Dropout):
    """Dropout by :func:`drop`."""

    def forward(self, input: Tensor) -> Tensor:
        return drop(input, self.p, self.training)


def attention_graph(edges: Tensor, num_nodes: int, heads: int) -> AttentionGraph:
    """Returns a graph for :func:`attend`.

    Args:
        edges (torch.Tensor): The edge indices.
        num_nodes (int): The number of nodes.
        heads (int): The number of heads of the layer.
    """
    edges, _ = add_self_loops(remove_self_loops(edges)[0], num_nodes=num_nodes)
    edges = edges[:, edges[0].argsort(stable=True)]
    source, target = edges[:, edges[1].argsort(stable=True)]
    return _with_pattern(source, target, num_nodes, heads)


def _with_pattern(
    source: Tensor, target: Tensor, num_nodes: int, heads: int, counts: Tensor | None = None
) -> AttentionGraph:
    pointers = F.pad(torch.bincount(target, minlength=num_nodes).cumsum(0), (1, 0))
    shift = num_nodes * torch.arange(heads, device=source.device).unsqueeze(1)
    rows, cols = (target + shift).view(-1), (source + shift).view(-1)
    size = heads * num_nodes
    order = cols.argsort(stable=True)
    crow = F.pad(torch.bincount(rows, minlength=size).cumsum(0), (1, 0))
    crow_t = F.pad(torch.bincount(cols, minlength=size).cumsum(0), (1, 0))
    pattern = SparseMatrix(
        crow, cols, torch.arange(rows.numel(), device=rows.device), crow_t, rows[order], order, size, size
    )
    return AttentionGraph(source, target, pointers, pattern, counts)


def fill_up(graph: AttentionGraph, entries: int) -> AttentionGraph:
    """Returns the graph with loops at all nodes that count nothing, up to a number of edges."""
    num_nodes = graph.pointers.numel() - 1
    _, target, old = make_room(graph.pointers, entries - graph.source.numel())
    source = target.index_copy(0, old, graph.source)
    counts = torch.zeros(entries, device=target.device).index_fill_(0, old, 1)
    return _with_pattern(source, target, num_nodes, graph.pattern.num_rows // num_nodes, counts)


def _few_entries(x: Tensor) -> Tensor | None:
    """Returns where the entries that are not zero stand, unless these are many."""
    if int(torch.count_nonzero(x)) > x.numel() // 4:
        return None
    return x.reshape(-1).nonzero().view(-1)


class KeepsGraph:
    """Keeps what was computed from the graph, or from graph and features, for as long as both are the same."""

    def keep(self, name: str, tensors: tuple[Any, ...], extra: Any, compute: Callable[[], Any]) -> Any:
        caches: dict[str, TensorCache] = self.__dict__.setdefault("_caches", {})
        return caches.setdefault(name, TensorCache()).get(tensors, extra, compute)

    def is_given(self, name: str) -> bool:
        """Tells whether what is kept under a name was given, see :meth:`TensorCache.giving`."""
        caches: dict[str, TensorCache] = self.__dict__.setdefault("_caches", {})
        return name in caches and caches[name].given

    def drop_input(self, x: Tensor, p: float, training: bool) -> Tensor:
        """Drops entries of the features; where most are zero, it draws for the others alone."""
        if not training or p == 0 or x.is_cuda or not may_keep(x):
            return drop(x, p, training)
        positions = self.keep("entries", (x,), None, lambda: _few_entries(x))
        if positions is None:
            return drop(x, p, training)
        kept = drop(x.reshape(-1).index_select(0, positions), p, training)
        return torch.zeros(x.numel(), dtype=x.dtype).index_copy(0, positions, kept).view(x.shape)

    def graph_matrix(
        self, x: Tensor, edge_index: Adj, edge_weight: OptTensor, entries: Callable[..., tuple[Tensor, OptTensor]]
    ) -> tuple[Any, OptTensor]:
        """Returns the graph for a layer: a matrix with the given entries, or edges where nothing can be kept."""
        if not self.is_given("graph") and not may_keep(edge_index, edge_weight):
            return edges_of(edge_index, edge_weight)
        num_nodes, dtype = x.size(0), x.dtype

        def compute() -> SparseMatrix:
            edges, weight = entries(*edges_of(edge_index, edge_weight), num_nodes, dtype)
            assert weight is not None
            return sparse_from_edges(edges[1], edges[0], weight, (num_nodes, num_nodes))

        return self.keep("graph", (edge_index, edge_weight), (num_nodes, dtype), compute), None
