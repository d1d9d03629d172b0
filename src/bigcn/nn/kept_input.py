"""What a BiGCN layer keeps of the very tensors that it was called with, so that further calls need not compute it."""

import torch
from torch import Tensor
from torch_geometric.typing import Adj, OptTensor

from bigcn.feature_graphs import FeatureGraph
from bigcn.feature_graphs.base import Operand
from bigcn.filters import Hop
from bigcn.nn.cache import TensorCache
from bigcn.nn.cost import WIDE_FEATURES, filter_once, sparse_or_none
from bigcn.nn.two_way_filter import TwoWayFilter
from bigcn.node_graphs import SpreadGraph
from bigcn.sparse import SparseMatrix, is_sparse, sparse_from_tensor


class KeepsInput:
    """The caches of a layer: its node graph, its feature graph if that is computed from the input, sparse features,
    and features that are filtered once.
    """

    cached: bool
    training: bool
    explain: bool | None
    feature_graph: FeatureGraph
    filter: TwoWayFilter

    def _make_caches(self) -> None:
        self._graphs, self._operands, self._features = TensorCache(), TensorCache(), TensorCache()
        self._filtered = TensorCache()

    def _forget(self) -> None:
        for cache in (self._graphs, self._operands, self._features, self._filtered):
            cache.clear()

    def _filters_once(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor, numbers: tuple[Tensor, ...]) -> bool:
        """Tells whether the filtered features are kept: in training, where they are asked for in every step, if there
        is nothing to learn about the filter and the one product that is left takes less than filtering the weights.
        """
        if any(True for _ in self.feature_graph.parameters()) or self.explain or x.dim() != 2 or is_sparse(x):
            return False
        if not self._may_cache(x, edge_index, edge_weight, *numbers):
            return False
        if not (self.training or self._filtered.knows((x, edge_index, edge_weight))):
            return False
        sparse = self._sparse_features(x)
        entries = None if sparse is None else sparse.col.numel()
        return filter_once(self.feature_graph, self.filter, x, count_edges(edge_index), entries)

    def _feature_operand(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor, hop: Hop) -> Operand:
        """Returns the tensors of the feature graph, computed from the input where it asks for that."""
        graph = self.feature_graph
        spread = isinstance(edge_index, SpreadGraph)
        tensors = (x, None if spread else edge_index, edge_weight)
        may_cache = self._operands.given or (self._may_cache(*tensors) and not self.explain)
        if graph.from_input and may_cache:
            # A spread graph never changes, and is the same one only if it is itself.
            key = edge_index if spread else None
            operand: Operand = self._operands.get(tensors, key, lambda: graph.operand(x, hop))
        else:
            operand = graph.operand(x, hop)
        # A finished graph may be more precise than the layer, NumPy's double for instance.
        return tuple(t.to(x.dtype) if t.is_floating_point() else t for t in operand)

    def _sparse_features(self, x: Tensor) -> SparseMatrix | None:
        """Returns the features as a sparse matrix where that is how they came or, decided once, where it is faster."""
        if not self._features.given and not self._may_cache(x):
            return sparse_from_tensor(x) if is_sparse(x) else None
        if not is_sparse(x) and (x.dim() > 2 or x.size(1) < WIDE_FEATURES or x.device.type != "cpu"):
            return None
        matrix: SparseMatrix | None = self._features.get((x,), None, lambda: sparse_or_none(x))
        return matrix

    def _may_cache(self, *tensors: object) -> bool:
        """Caches only what stays valid: no gradients to keep, no tracing, no batched stand-ins of vmap."""
        if not self.cached or torch.compiler.is_compiling() or torch.is_inference_mode_enabled():
            return False  # what is made in inference mode cannot be trained with later
        wrapped = torch._C._functorch.is_functorch_wrapped_tensor
        return all(t is None or (isinstance(t, Tensor) and not (t.requires_grad or wrapped(t))) for t in tensors)


def count_edges(edge_index: Adj) -> int:
    """Returns the number of edges, as indices or as a matrix."""
    return int(edge_index._nnz() if is_sparse(edge_index) else edge_index.size(1))
