r"""PyG's layers with message passing as a sparse product, for models that train on all of one graph in every step.

What depends on the graph alone (its normalisation, its compressed form) is kept, and layers multiply by a sparse
matrix instead of gathering and scattering messages: the same numbers, faster. What is kept belongs to the very tensors
it was computed from; unlike PyG's :obj:`cached=True`, another graph is never mistaken for it. Where nothing can be
kept (while compiling, or with weights of edges that need gradients) the layers are PyG's to the letter.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.typing import Adj, OptTensor

from bigcn.dense_filter import constant_product
from bigcn.nn.cache import TensorCache, Unchanged, may_keep
from bigcn.node_graphs import edges_of
from bigcn.sparse import SparseMatrix, is_sparse, sparse_from_edges


def _by_product(name: str, conv: type[MessagePassing], **methods: Any) -> Any:
    """Returns a layer that also takes a :class:`SparseMatrix` for its graph, with some methods of its own."""

    def propagate(self: MessagePassing, edge_index: Any, size: Any = None, **kwargs: Any) -> Tensor:
        if not isinstance(edge_index, SparseMatrix):
            # The code that PyG generates for a class of layers knows nothing of explainers.
            out: Tensor = (MessagePassing if self.explain else conv).propagate(self, edge_index, size=size, **kwargs)
            return out
        x = kwargs["x"]
        x = x[0] if isinstance(x, tuple) else x
        return _before_weights(self, x, edge_index, lambda: edge_index.matmul(x))

    # In the class itself, where PyG looks before it puts generated code in the place of `propagate`.
    # `products` keeps what a first layer makes of the input before any weight has a part in it.
    body = {"propagate": propagate, "products": None, "__doc__": conv.__doc__, "__module__": __name__}
    return type(name, (conv,), body | methods)


def _before_weights(conv: Any, x: Tensor, graph: SparseMatrix, compute: Callable[[], Tensor]) -> Tensor:
    """Returns what a layer makes of features before any weight has a part in it; of the input, it is kept."""
    if conv.products is None:
        return compute()
    if conv.products.given:
        found: Tensor = conv.products.result
        return found
    numbers = tuple(conv.buffers())
    if not may_keep(x, *numbers):
        return compute()
    found = conv.products.get((x, graph.value), Unchanged(*numbers), compute)
    return found


def _is_kept(conv: Any, x: Tensor, graph: SparseMatrix) -> bool:
    """Tells whether the product of a graph with the input is there, or will be for all steps of a training."""
    if conv.products.given:
        return True
    if is_sparse(x) or not may_keep(x):
        return False
    return bool(conv.training) or conv.products.knows((x, graph.value))


def _narrows(conv: Any, graph: Any, weights: Any) -> bool:
    """Tells whether weights that come after a product had better come before it: nothing is kept, and they make
    features fewer.
    """
    return isinstance(graph, SparseMatrix) and conv.products is None and weights.in_channels > weights.out_channels


def _gcn(self: Any, x: Any, edge_index: Any, edge_weight: OptTensor = None) -> Tensor:
    # The features are wider than what weights make of them: their product is worth while if it is kept.
    kept = self.products is not None and isinstance(edge_index, SparseMatrix) and _is_kept(self, x, edge_index)
    if not kept:
        out: Tensor = pyg.GCNConv.forward(self, x, edge_index, edge_weight)
        return out
    out = self.lin(_before_weights(self, x, edge_index, lambda: edge_index.matmul(x)))
    return out if self.bias is None else out + self.bias


def _sage(self: Any, x: Any, edge_index: Any, size: Any = None) -> Tensor:
    if self.project or self.normalize or not _narrows(self, edge_index, self.lin_l):
        out: Tensor = pyg.SAGEConv.forward(self, x, edge_index, size)
        return out
    out = edge_index.matmul(F.linear(x, self.lin_l.weight))
    if self.lin_l.bias is not None:
        out = out + self.lin_l.bias
    return out + self.lin_r(x) if self.root_weight else out


def _gin(self: Any, x: Any, edge_index: Any, size: Any = None) -> Tensor:
    if not isinstance(edge_index, SparseMatrix):
        out: Tensor = pyg.GINConv.forward(self, x, edge_index, size)
        return out
    # Of a perceptron, as baselines have it, the first layer goes first.
    first, *more = self.nn.lins
    if not _narrows(self, edge_index, first):
        out = self.nn(_before_weights(self, x, edge_index, lambda: edge_index.matmul(x) + (1 + self.eps) * x))
        return out
    x = F.linear(x, first.weight)
    out = edge_index.matmul(x) + (1 + self.eps) * x + first.bias
    for linear in more:
        out = linear(self.nn.act(out))
    return out


def _appnp(self: Any, x: Tensor, edge_index: Any, edge_weight: OptTensor = None) -> Tensor:
    if not isinstance(edge_index, SparseMatrix) or not isinstance(self.alpha, int | float):
        out: Tensor = pyg.APPNP.forward(self, x, edge_index, edge_weight)
        return out
    if self.asked is not None and self.asked.given:
        return constant_product(self.asked.result, x)
    start = self.alpha * x
    for _ in range(self.K):
        x = torch.add(start, edge_index.matmul(x), alpha=1 - self.alpha)
    return x


GCNConv = _by_product("GCNConv", pyg.GCNConv, forward=_gcn)
SAGEConv = _by_product("SAGEConv", pyg.SAGEConv, forward=_sage)
GINConv = _by_product("GINConv", pyg.GINConv, forward=_gin)
APPNPConv = _by_product("APPNPConv", pyg.APPNP, forward=_appnp, asked=None)
SGConv = _by_product("SGConv", pyg.SGConv)


class KeptGCNConv(GCNConv):  # type: ignore[misc, valid-type]
    """PyG's GCN layer, keeping the normalised graph for as long as it is given the very same one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._graphs = TensorCache()

    def forward(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor = None) -> Tensor:
        if self._graphs.given or (may_keep(edge_index, edge_weight) and not self.explain):
            num_nodes, dtype = x.size(-2), x.dtype

            def compute() -> SparseMatrix:
                edges, weight = gcn_norm(*edges_of(edge_index, edge_weight), num_nodes, dtype=dtype)
                return sparse_from_edges(edges[1], edges[0], weight, (num_nodes, num_nodes))

            edge_index, edge_weight = self._graphs.get((edge_index, edge_weight), (num_nodes, dtype), compute), None
        out: Tensor = super().forward(x, edge_index, edge_weight)
        return out


def symmetric_entries(edges: Tensor, weight: OptTensor, num_nodes: int, dtype: torch.dtype) -> tuple[Tensor, OptTensor]:
    """Returns a graph with self-loops as a GCN normalises it."""
    out: tuple[Tensor, OptTensor] = gcn_norm(edges, weight, num_nodes, dtype=dtype)
    return out


def drop(x: Tensor, p: float, training: bool) -> Tensor:
    """Drops entries as :func:`torch.nn.functional.dropout` does, several times faster on a CPU."""
    if x.is_cuda or not training or not 0 < p < 1 or x.dtype.itemsize < 4:
        return F.dropout(x, p, training)
    # PyTorch's Bernoulli generator takes several times as long as its uniform one.
    noise = torch.rand_like(x)
    # In place, but for a population, for which PyTorch knows no such comparison, and a compiler, which fuses it.
    in_place = not torch.compiler.is_compiling() and not torch._C._functorch.is_functorch_wrapped_tensor(noise)
    return x * (noise.ge_(p) if in_place else (noise >= p).to(x.dtype)).div_(1 - p)


class Dropout(torch.nn.Dropout):
    """Dropout by :func:`drop`."""

    def forward(self, input: Tensor) -> Tensor:
        return drop(input, self.p, self.training)


def drop_features(x: Tensor, p: float, training: bool, entries: TensorCache) -> Tensor:
    """Drops entries of features that are the same in every step; where most are zero, it draws for the others alone.

    Args:
        x (torch.Tensor): The features.
        p (float): The share that is dropped.
        training (bool): Whether anything is.
        entries (TensorCache): Where it is kept which are not zero.
    """
    if not training or p == 0 or x.is_cuda or not may_keep(x):
        return drop(x, p, training)
    positions = entries.get((x,), None, lambda: _few_entries(x))
    if positions is None:
        return drop(x, p, training)
    kept = drop(x.reshape(-1).index_select(0, positions), p, training)
    return x.new_zeros(x.numel()).index_copy(0, positions, kept).view(x.shape)


def _few_entries(x: Tensor) -> Tensor | None:
    """Returns where the entries that are not zero stand, unless these are many."""
    if int(torch.count_nonzero(x)) > x.numel() // 4:
        return None
    return x.reshape(-1).nonzero().view(-1)


class KeepsGraph:
    """Keeps what was computed from the graph, or from graph and features, for as long as both are the same."""

    #: Whether messages are passed as the model's class says, so that sparse products can stand for them.
    by_product = True
    #: Whether features are scaled node by node before anything else.
    scales_rows = False

    def keep(self, name: str, tensors: tuple[Any, ...], extra: Any, compute: Callable[[], Any]) -> Any:
        caches: dict[str, TensorCache] = self.__dict__.setdefault("_caches", {})
        return caches.setdefault(name, TensorCache()).get(tensors, extra, compute)

    def is_given(self, name: str) -> bool:
        """Tells whether what is kept under a name was given, see :meth:`TensorCache.giving`."""
        caches: dict[str, TensorCache] = self.__dict__.setdefault("_caches", {})
        return name in caches and caches[name].given

    def scaled(self, x: Tensor) -> Tensor:
        """Divides the features of each node by their sum, where that is at least one, if the model asks for it: what
        the papers of GCN, GAT and APPNP say, and :class:`torch_geometric.transforms.NormalizeFeatures` does where the
        least feature is zero. They are dense then.
        """
        if not self.scales_rows:
            return x

        def compute() -> Tensor:
            dense = x.to_dense() if is_sparse(x) else x
            return dense / dense.sum(dim=-1, keepdim=True).clamp(min=1.0)

        may = self.is_given("rows") or may_keep(x)
        out: Tensor = self.keep("rows", (x,), None, compute) if may else compute()
        return out

    def drop_input(self, x: Tensor, p: float, training: bool) -> Tensor:
        """Drops entries of the features, see :func:`drop_features`."""
        caches: dict[str, TensorCache] = self.__dict__.setdefault("_caches", {})
        return drop_features(x, p, training, caches.setdefault("entries", TensorCache()))

    def may_keep_graph(self, *tensors: Any) -> bool:
        """Tells whether layers may work with what is kept of a graph: not where arguments of their own say how they
        pass messages, and not while an explainer masks these.
        """
        layers = (layer for layer in self.modules() if isinstance(layer, MessagePassing))  # type: ignore[attr-defined]
        return self.by_product and may_keep(*tensors) and not any(layer.explain for layer in layers)

    def graph_matrix(
        self, x: Tensor, edge_index: Adj, edge_weight: OptTensor, entries: Callable[..., tuple[Tensor, OptTensor]]
    ) -> tuple[Any, OptTensor]:
        """Returns the graph for a layer: a matrix with the given entries, or edges where nothing can be kept."""
        if not self.is_given("graph") and not self.may_keep_graph(edge_index, edge_weight):
            return edges_of(edge_index, edge_weight)
        num_nodes, dtype = x.size(0), x.dtype

        def compute() -> SparseMatrix:
            edges, weight = entries(*edges_of(edge_index, edge_weight), num_nodes, dtype)
            assert weight is not None
            return sparse_from_edges(edges[1], edges[0], weight, (num_nodes, num_nodes))

        return self.keep("graph", (edge_index, edge_weight), (num_nodes, dtype), compute), None
