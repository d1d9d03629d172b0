"""What a BiGCN layer keeps of the very tensors that it was called with, so that further calls need not compute it."""

from collections.abc import Hashable

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.typing import Adj, OptTensor

from bigcn.dense_filter import dense_pays, dense_resolvent
from bigcn.feature_graphs import FeatureGraph
from bigcn.feature_graphs.base import Operand
from bigcn.filters import Hop
from bigcn.local_filter import is_symmetric, local_resolvent
from bigcn.nn.cache import TensorCache, Unchanged, may_keep
from bigcn.nn.cost import WIDE_FEATURES, filter_once, sparse_or_none
from bigcn.nn.feature_product import filled, filling_pays
from bigcn.nn.product_layers import Dropout, drop_features
from bigcn.nn.two_way_filter import TwoWayFilter
from bigcn.node_graphs import SpreadGraph, normalized_graph
from bigcn.sparse import SparseMatrix, is_sparse, sparse_from_tensor

#: The largest error in a local filter: its weights are small, and there is but one matrix to make.
LOCAL_TOLERANCE = 1e-4
#: The last local filters, so that the next model on the same graph need not make its own.
_LOCAL = TensorCache()


class KeepsInput:
    """The caches of a layer: its node graph, its exact node filter if that is a matrix, its feature graph if that is
    computed from the input, features as a sparse matrix or with full lines, and features that are filtered once; and
    in a population the rows of its node filter that are asked for.
    """

    cached: bool
    normalize: bool
    training: bool
    dropout: Module | None
    explain: bool | None
    feature_graph: FeatureGraph
    filter: TwoWayFilter
    top: int | None

    def _make_caches(self) -> None:
        self._graphs, self._operands, self._features = TensorCache(), TensorCache(), TensorCache()
        self._filtered, self._resolvents, self._filled = TensorCache(), TensorCache(), TensorCache()
        self._entries, self._asked = TensorCache(1), TensorCache(1)

    def _forget(self) -> None:
        kept = (self._graphs, self._operands, self._features, self._filtered, self._resolvents, self._filled)
        for cache in (*kept, self._entries):
            cache.clear()

    def _filter_versions(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor) -> Hashable | None:
        """Returns what the filter is made of if filtered features are kept, or :obj:`None` if not.

        They are in training, where they are asked for in every step, if there is nothing to learn about the filter and
        the one product that is left takes less than filtering the weights, or some of them are dropped in every step.
        """
        if x.dim() != 2 or self.explain or not self._may_cache(x, edge_index, edge_weight):
            return None
        if is_sparse(x) and not self._drops:
            return None
        if any(True for _ in self.feature_graph.parameters()):
            return None
        numbers = (*self.filter.buffers(), *self.feature_graph.buffers())
        known = self.training or self._filtered.knows((x, edge_index, edge_weight))
        if not known or not self._may_cache(*numbers):
            return None
        if not self._drops:
            sparse = self._sparse_features(x)
            entries = None if sparse is None else sparse.col.numel()
            if not filter_once(self.feature_graph, self.filter, x, count_edges(edge_index), entries):
                return None
        return self.feature_graph, self.normalize, self.top, Unchanged(*numbers)

    @property
    def _drops(self) -> bool:
        """Whether a part of the filtered features is dropped, so that these come before the weights."""
        # In evaluation too, if dropout alone is in training, as for predictions with a spread.
        return self.dropout is not None and (self.training or self.dropout.training)

    def _dropped(self, filtered: Tensor) -> Tensor:
        """Drops a part of filtered features that are kept; where most are zero, it draws for the others alone."""
        if isinstance(self.dropout, Dropout):
            return drop_features(filtered, self.dropout.p, self.dropout.training, self._entries)
        return filtered if self.dropout is None else self.dropout(filtered)  # of several processes

    def _feature_operand(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor, hop: Hop) -> Operand:
        """Returns the tensors of the feature graph, computed from the input where it asks for that."""
        graph = self.feature_graph
        spread = isinstance(edge_index, SpreadGraph)
        tensors = (x, None if spread else edge_index, edge_weight)
        may_cache = self._operands.given or (self._may_cache(*tensors) and not self.explain)
        if graph.from_input and may_cache:
            # A spread graph never changes, and is the same one only if it is itself.
            key = (graph, self.normalize, edge_index if spread else None)
            operand: Operand = self._operands.get(tensors, key, lambda: graph.operand(x, hop))
        else:
            operand = graph.operand(x, hop)
        return in_precision(operand, x.dtype)

    def _resolvent(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor, hop: Hop) -> Tensor | SparseMatrix | None:
        """Returns the node filter as a matrix: a sparse one if it is local, a dense one where products with that take
        less time than its hops.
        """
        if self._resolvents.given:
            given: Tensor | SparseMatrix = self._resolvents.result
            return given
        if self.filter.node_filter != "exact" or self.filter.num_hops == 0:
            return None
        if self.top is not None:
            return self._local(x, edge_index, edge_weight, hop)
        if self.explain or self._graphs.given:
            return None
        if not isinstance(hop, SparseMatrix) or not self._may_cache(edge_index, edge_weight):
            return None
        if not self._is_dense(hop):
            return None
        strength = self.filter.node_strength
        key = (hop.num_rows, hop.value.dtype, strength, self.normalize)
        found: Tensor = self._resolvents.get((edge_index, edge_weight), key, lambda: dense_resolvent(hop, strength))
        return found

    def _is_dense(self, graph: SparseMatrix) -> bool:
        """Tells whether products with an exact filter as a dense matrix take less time than its hops."""
        return graph.crow is graph.crow_t and dense_pays(graph, self.filter.num_hops)

    def dense_resolvent_of(self, graph: SparseMatrix) -> Tensor | None:
        """Returns an exact node filter as a dense matrix, where the layer would make one.

        Args:
            graph (SparseMatrix): The normalised node graph.
        """
        return dense_resolvent(graph, self.filter.node_strength) if self._is_dense(graph) else None

    def _local(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor, hop: Hop) -> SparseMatrix:
        """Returns the local node filter, kept if anything is."""
        if isinstance(edge_index, SpreadGraph):
            raise ValueError("'top' needs the whole graph in one process")
        if self.explain:
            raise ValueError("'top' leaves no messages along edges that an explainer could mask")
        if any(isinstance(t, Tensor) and t.requires_grad for t in (edge_index, edge_weight)):
            raise ValueError("'top' keeps no gradient of 'edge_weight': detach it, or leave 'top' out")
        strength, top, nodes = self.filter.node_strength, self.top, x.size(-2)
        assert top is not None

        def compute() -> SparseMatrix:
            if isinstance(hop, SparseMatrix):
                graph = hop
            else:
                graph = normalized_graph(edge_index, edge_weight, nodes, x.dtype, self.normalize)
            if not is_symmetric(graph):
                raise ValueError("'top' needs an undirected graph: see torch_geometric.utils.to_undirected")
            return local_resolvent(graph, strength, top, min(self.filter.tolerance, LOCAL_TOLERANCE))

        # Made outside of inference mode, whose tensors could not be kept: there are too many solves to repeat them.
        with torch.inference_mode(False):
            if not self._may_cache(edge_index, edge_weight):
                return compute()
            tensors = (edge_index, edge_weight)
            key = (nodes, x.dtype, strength, top, self.filter.tolerance, self.normalize)
            found: SparseMatrix = self._resolvents.get(tensors, key, lambda: _LOCAL.get(tensors, key, compute))
            return found

    def _sparse_features(self, x: Tensor) -> SparseMatrix | None:
        """Returns the features as a sparse matrix where that is how they came or, decided once, where it is faster."""
        if not self._features.given and not self._may_cache(x):
            return sparse_from_tensor(x) if is_sparse(x) else None
        if not is_sparse(x) and (x.dim() > 2 or x.size(1) < WIDE_FEATURES or x.device.type != "cpu"):
            return None
        matrix: SparseMatrix | None = self._features.get((x,), None, lambda: sparse_or_none(x))
        return matrix

    def _dense_features(self, x: Tensor) -> Tensor:
        """Returns dense features for a product, with full lines where that is faster."""
        if self._filled.given or (self._may_cache(x) and filling_pays(x)):
            full: Tensor = self._filled.get((x,), None, lambda: filled(x))
            return full
        return x

    def _may_cache(self, *tensors: object) -> bool:
        """Caches only what a later call can be compared with: tensors, and nothing where there are none."""
        return self.cached and all(t is None or isinstance(t, Tensor) for t in tensors) and may_keep(*tensors)


def in_precision(operand: Operand, dtype: torch.dtype) -> Operand:
    """Returns the tensors of a feature graph in the precision of a layer: a finished graph may be more precise, as
    NumPy's double is.
    """
    return tuple(t.to(dtype) if t.is_floating_point() else t for t in operand)


def count_edges(edge_index: Adj) -> int:
    """Returns the number of edges, as indices or as a matrix."""
    # Not made an int: a number that an exported program leaves open would be settled by it.
    return edge_index._nnz() if is_sparse(edge_index) else edge_index.size(1)
