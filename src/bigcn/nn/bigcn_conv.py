r"""The BiGCN layer."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.dense.linear import Linear, is_uninitialized_parameter
from torch_geometric.nn.inits import zeros
from torch_geometric.typing import Adj, OptTensor

from bigcn.checks import is_whole
from bigcn.dense_filter import constant_product
from bigcn.feature_graphs import FeatureGraph, make_feature_graph
from bigcn.feature_graphs.base import Operand
from bigcn.filters import FeatureOperator, FilterForm, Hop
from bigcn.nn.cost import weights_first
from bigcn.nn.feature_product import feature_product, filled, filling_pays
from bigcn.nn.kept_input import KeepsInput, count_edges, in_precision
from bigcn.nn.product_layers import Dropout
from bigcn.nn.two_way_filter import TwoWayFilter
from bigcn.node_graphs import SpreadGraph, check_adjacency, edges_of, normalized_graph, symmetric_normalization
from bigcn.sparse import SparseMatrix, is_sparse
from bigcn.user_warnings import warn_user


class BiGCNConv(KeepsInput, MessagePassing):
    r"""The bi-directional low-pass filtering operator from the `"BiGCN: A Bi-directional Low-Pass Filtering Graph
    Neural Network" <https://arxiv.org/abs/2101.05519>`_ paper.

    .. math::
        \mathbf{X}^{\prime} = \mathrm{ADMM}(\mathbf{X}, \mathbf{L}_1, \mathbf{L}_2) \, \mathbf{W}
        = \sum_{a=0}^{k} \mathbf{A}^a \Big( \mathbf{X} \sum_{b=0}^{k} c_{ab} \mathbf{B}^b \mathbf{W} \Big)

    where :math:`\mathbf{A}` is a low-pass filter on the node graph, :math:`\mathbf{B}` one on the feature graph, and
    :math:`c_{ab}` the coefficients of :math:`k` rounds of ADMM (:func:`bigcn.filters.admm_coefficients`). The narrow
    side is multiplied first, unless the other order is cheaper.

    The node graph is taken as it is: no self-loop is added, isolated nodes are left alone. It must be undirected, with
    weights that are not negative: of any other, an exact filter may amplify instead of smooth.

    Args:
        in_channels (int): Size of each input sample, or :obj:`-1` to derive the size from the first input(s) to the
            forward method.
        out_channels (int): Size of each output sample.
        p (float, optional): The penalty of ADMM, greater than :math:`-1`. (default: :obj:`1.0`)
        node_strength (float, optional): :math:`2\lambda_1/(1+p)`; zero switches the node direction off.
            (default: :obj:`5.0`)
        feature_strength (float, optional): :math:`2\lambda_2/(1+p)`; zero switches the feature direction off.
            (default: :obj:`1.0`)
        iterations (int, optional): The rounds :math:`k` of ADMM. (default: :obj:`2`)
        node_filter (str, optional): :obj:`"exact"` for :math:`(\mathbf{I} + s\mathbf{L}_1)^{-1}`, :obj:`"taylor"` for
            :math:`\mathbf{I} - s\mathbf{L}_1`. (default: :obj:`"exact"`)
        feature_filter (str, optional): Likewise for :math:`\mathbf{L}_2`. (default: :obj:`"exact"`)
        top (int, optional): If given, makes the exact node filter local: of each node it keeps so many of the largest
            weights, scaled to add up to one, and leaves out the long tail of far nodes and hubs. It is a sparse matrix
            then, which takes :math:`|\mathcal{V}|` solves to make: meant for layers that are :obj:`cached`.
            (default: :obj:`None`)
        feature_graph (str, FeatureGraph or torch.Tensor, optional): :obj:`"learnable"`, :obj:`"correlation"`,
            :obj:`"spectral"`, :obj:`"uniform"`, :obj:`"identity"`, :obj:`"none"`, a graph, or its adjacency. Named
            correlation and spectral graphs are computed from the layer's input, without gradient.
            (default: :obj:`"none"`)
        feature_operator (str, optional): :obj:`"laplacian"` filters with :math:`\mathbf{L}_2` as the text of the paper
            says, :obj:`"adjacency"` puts :math:`\mathbf{N}_2 = \mathbf{I} - \mathbf{L}_2` in its place as the released
            code does. (default: :obj:`"laplacian"`)
        cached (bool, optional): If set to :obj:`True`, keeps the normalised and compressed graph (and whatever else
            depends on the input alone) between calls with the very same tensors. Another graph, or one edited in
            place, is never mistaken for the cached one; edits behind PyTorch's back, through :obj:`.data` or the NumPy
            array that a tensor was made from, are not seen. (default: :obj:`False`)
        bias (bool, optional): If set to :obj:`False`, the layer will not learn an additive bias.
            (default: :obj:`True`)
        dropout (float, optional): The share of the filtered features that is dropped in training, before the weights.
            Features are then filtered first, and kept so if :obj:`cached` and there is nothing to learn about the
            filter. (default: :obj:`0.0`)
        feature_graph_kwargs (dict, optional): Arguments of the feature graph named. (default: :obj:`None`)
        normalize (bool, optional): If set to :obj:`False`, takes the edge weights as the entries of
            :math:`\mathbf{N}_1 = \mathbf{I} - \mathbf{L}_1`. (default: :obj:`True`)
        tolerance (float, optional): The error allowed in exact filters, which fixes the degree of their Chebyshev
            polynomials. (default: :obj:`1e-5`)
        init (str, optional): :obj:`"glorot"`, or :obj:`"released"` for the uniform :math:`\pm 1/\sqrt{F_{out}}` of
            weights and bias in the released code. (default: :obj:`"glorot"`)
        check_low_pass (bool, optional): If set to :obj:`False`, does not warn about strengths that make no low-pass
            filter. (default: :obj:`True`)
        **kwargs (optional): Additional arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F_{in})` or :math:`(B, |\mathcal{V}|, F_{in})`, dense or
          (without batch dimension) sparse,
          edge indices :math:`(2, |\mathcal{E}|)` or sparse matrix :math:`(|\mathcal{V}|, |\mathcal{V}|)`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        p: float = 1.0,
        node_strength: float = 5.0,
        feature_strength: float = 1.0,
        iterations: int = 2,
        node_filter: FilterForm = "exact",
        feature_filter: FilterForm = "exact",
        feature_graph: str | FeatureGraph | Tensor = "none",
        feature_operator: FeatureOperator = "laplacian",
        cached: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
        feature_graph_kwargs: dict[str, Any] | None = None,
        normalize: bool = True,
        tolerance: float = 1e-5,
        init: Literal["glorot", "released"] = "glorot",
        check_low_pass: bool = True,
        top: int | None = None,
        **kwargs: Any,
    ) -> None:
        if top is not None and (not is_whole(top) or top < 1 or node_filter != "exact"):
            raise ValueError(f"'top' must be a positive number beside 'node_filter=\"exact\"' (got {top!r})")
        if not isinstance(feature_graph_kwargs or {}, dict):
            raise ValueError(f"'feature_graph_kwargs' must be a dict (got {type(feature_graph_kwargs).__name__})")
        if of_gcn := [name for name in ("improved", "add_self_loops") if name in kwargs]:
            raise ValueError(
                f"'{of_gcn[0]}' is an option of GCNConv: this layer takes the graph as it is, without self-loops (see "
                f"torch_geometric.utils.add_self_loops)"
            )
        kwargs.setdefault("aggr", "add")
        super().__init__(**kwargs)
        if kwargs["aggr"] not in ("add", "sum") or self.flow != "source_to_target":
            raise ValueError("'aggr' and 'flow' are part of the filter: only 'add' and 'source_to_target' make sense")
        for name, value in (("in_channels", in_channels), ("out_channels", out_channels)):
            lazy = name == "in_channels" and value == -1
            if not is_whole(value) or not (value >= 1 or lazy):
                raise ValueError(f"'{name}' must be a positive number (got {value!r})")
        if init not in ("glorot", "released"):
            raise ValueError(f"'init' must be 'glorot' or 'released' (got {init!r})")

        self.in_channels = int(in_channels)
        self.out_channels = int(out_channels)
        self.cached = cached
        self.normalize = normalize
        self.top = None if top is None else int(top)
        self.init = init
        self.filter = TwoWayFilter(
            p, node_strength, feature_strength, iterations, node_filter, feature_filter, feature_operator, tolerance
        )

        off = feature_strength == 0
        self.feature_graph = make_feature_graph(
            "none" if off else feature_graph, in_channels, **({} if off else feature_graph_kwargs or {})
        )
        self.lin = Linear(in_channels, out_channels, bias=False, weight_initializer="glorot")
        self.bias = Parameter(torch.empty(out_channels)) if bias else None
        self.dropout: torch.nn.Module | None = Dropout(dropout) if dropout else None
        self._make_caches()

        if check_low_pass:
            highest = self.feature_graph.highest_frequency if self.feature_graph.filters else 0.0
            self.filter.warn_if_not_low_pass(highest)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resets all learnable parameters of the module and forgets what was cached."""
        super().reset_parameters()
        self.lin.reset_parameters()
        self.feature_graph.reset_parameters()
        zeros(self.bias)
        if self.init == "released":
            bound = self.out_channels**-0.5
            for parameter in (self.lin.weight, self.bias):
                if parameter is not None and not is_uninitialized_parameter(parameter):
                    torch.nn.init.uniform_(parameter, -bound, bound)
        self._forget()

    @property
    def num_hops(self) -> int:
        """How many hops the layer reaches, which samplers of neighbourhoods must know."""
        return self.filter.num_hops

    def penalty(self) -> Tensor:
        """Returns the L1 norm of the feature operator, differentiable; zero for a graph computed from the input."""
        if self.feature_graph.from_input:
            return self.lin.weight.new_zeros(())
        norm = self.feature_graph.l1_norm(self.filter.feature_operator)
        if norm.device == self.lin.weight.device:
            return norm.to(self.lin.weight.dtype)
        return self.lin.weight.new_full((), float(norm))  # a known number, written without making a GPU wait

    def top_edges(
        self,
        k: int = 10,
        names: Sequence[str] | None = None,
        x: Tensor | None = None,
        edge_index: Adj | None = None,
        edge_weight: OptTensor = None,
    ) -> list[tuple[str, str, float]]:
        """Returns the strongest feature-feature edges of the layer, strongest first.

        Args:
            k (int, optional): How many. (default: :obj:`10`)
            names (Sequence[str], optional): The names of the features. (default: their numbers)
            x, edge_index, edge_weight (optional): The input of the layer, for a graph that is computed from it.
        """
        hop = None
        if x is not None and edge_index is not None:
            hop = self._node_hop(x, edge_index, edge_weight)
        return self.feature_graph.top_edges(k, names, x, hop)

    def forward(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor = None) -> Tensor:
        """Runs the forward pass.

        Args:
            x (torch.Tensor): The node features, dense or sparse.
            edge_index (torch.Tensor or EdgeIndex): The edge indices, or a sparse (transposed) adjacency matrix.
            edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
        """
        self._check_features(x)
        x = x.to(self.lin.weight.dtype)  # they differ under autocast alone
        out = self._filter_and_multiply(x, edge_index, edge_weight, self.lin.weight.t())
        return out if self.bias is None else out + self.bias

    def _filter_and_multiply(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor, weight: Tensor) -> Tensor:
        if self._asked.given:
            operand = in_precision(self.feature_graph.operand(), x.dtype)
            parts = self._multiply(x, self._along_features(weight, operand)[0])
            return constant_product(self._asked.result, torch.cat(parts, dim=-2))
        if self._filtered.given:
            return feature_product(self._dropped(self._filtered.result), weight.mT)
        hop = self._node_hop(x, edge_index, edge_weight)
        operand = self._feature_operand(x, edge_index, edge_weight, hop)
        if (versions := self._filter_versions(x, edge_index, edge_weight)) is not None:
            filtered: Tensor = self._filtered.get(
                (x, edge_index, edge_weight),
                versions,
                lambda: self._filtered_once(
                    x, operand, hop, None if self.top is None else self._resolvent(x, edge_index, edge_weight, hop)
                ),
            )
            return feature_product(self._dropped(filtered), weight.mT)
        resolvent = self._resolvent(x, edge_index, edge_weight, hop)
        if not self._drops and self._weights_first(x, edge_index):
            blocks, mixing = self._along_features(weight, operand)
            blocks, premixed = self.filter.mix_before_product(blocks, mixing)
            return self.filter.along_nodes(self._multiply(x, blocks), premixed, hop, resolvent)
        filtered = self._filter(x, operand, hop, resolvent)
        return (filtered if self.dropout is None else self.dropout(filtered)) @ weight

    def _filtered_once(self, x: Tensor, operand: Operand, hop: Hop, resolvent: Tensor | SparseMatrix | None) -> Tensor:
        out = self._filter(x, operand, hop, resolvent).detach()
        return filled(out) if filling_pays(out) else out

    def _filter(self, x: Tensor, operand: Operand, hop: Hop, resolvent: Tensor | SparseMatrix | None = None) -> Tensor:
        """Returns the features, filtered in both directions."""
        x = x.to_dense() if is_sparse(x) else x
        blocks, mixing = self._along_features(x.transpose(-1, -2), operand)
        return self.filter.along_nodes([block.transpose(-1, -2) for block in blocks], mixing, hop, resolvent)

    def _along_features(self, block: Tensor, operand: Operand) -> tuple[list[Tensor], Tensor]:
        """Returns a block filtered along the feature graph: parts, and how they mix along the node graph."""
        blocks, weights = self.feature_graph.powers(operand, block, self.filter.along_features())
        return blocks, self.filter.coefficients if weights is None else self.filter.coefficients @ weights

    def _multiply(self, x: Tensor, blocks: list[Tensor]) -> list[Tensor]:
        """Multiplies the features with all blocks in one product."""
        wide = torch.cat(blocks, dim=-1) if len(blocks) > 1 else blocks[0]
        matrix = self._sparse_features(x)
        product = feature_product(self._dense_features(x), wide.mT) if matrix is None else matrix.matmul(wide)
        product = product.to(x.dtype)  # autocast may have lowered it
        return list(product.split(self.out_channels, dim=-1))

    def message(self, x_j: Tensor, edge_weight: Tensor) -> Tensor:
        return edge_weight.view(-1, 1) * x_j

    def _node_hop(self, x: Tensor, edge_index: Adj, edge_weight: OptTensor) -> Hop:
        """Returns the product with the normalised adjacency of the node graph."""
        num_nodes = x.size(-2)
        if isinstance(edge_index, SpreadGraph):
            if x.shape[:-1] != (edge_index.num_rows,) or edge_weight is not None:
                raise ValueError(f"'x' must have {edge_index.num_rows} rows and no 'edge_weight' beside a spread graph")
            return edge_index
        check_adjacency(edge_index, num_nodes)
        if self._graphs.given or (self._may_cache(edge_index, edge_weight) and not self.explain):
            graph: SparseMatrix = self._graphs.get(
                (edge_index, edge_weight),
                (num_nodes, x.dtype, self.normalize),
                lambda: self._compressed_graph(edge_index, edge_weight, num_nodes, x.dtype),
            )
            return graph
        edges, weight = edges_of(edge_index, edge_weight)
        if not self.normalize:
            ones = torch.ones(edges.size(1), dtype=x.dtype, device=x.device)
            weight = ones if weight is None else weight.to(x.dtype)
            return lambda block: self.propagate(edges, x=block, edge_weight=weight)
        weight, isolated = symmetric_normalization(edges, weight, num_nodes, x.dtype)
        return lambda block: self.propagate(edges, x=block, edge_weight=weight) + isolated * block

    def _compressed_graph(
        self, edge_index: Adj, edge_weight: OptTensor, num_nodes: int, dtype: torch.dtype
    ) -> SparseMatrix:
        graph = normalized_graph(edge_index, edge_weight, num_nodes, dtype, self.normalize)
        if self.filter.node_filter == "exact" and graph.crow is not graph.crow_t:
            warn_user(
                "the node graph is directed, and an exact filter of it may amplify instead of smooth: see "
                "torch_geometric.utils.to_undirected",
            )
        return graph

    def _weights_first(self, x: Tensor, edge_index: Adj) -> bool:
        if is_sparse(x):
            return True
        if isinstance(edge_index, SpreadGraph):
            sizes = edge_index.num_edges, self.out_channels, edge_index.num_nodes
            return weights_first(self.feature_graph, self.filter, x, *sizes)
        return weights_first(self.feature_graph, self.filter, x, count_edges(edge_index), self.out_channels)

    def _check_features(self, x: Tensor) -> None:
        if not isinstance(x, Tensor):
            raise ValueError(f"'x' must be a tensor of node features (got {type(x).__name__})")
        if x.dim() not in (2, 3) or not x.is_floating_point():
            raise ValueError(
                f"'x' must be a floating-point tensor of shape [num_nodes, {self.in_channels}] or "
                f"[batch, num_nodes, {self.in_channels}] (got {x.dtype}, {list(x.shape)})"
            )
        if is_sparse(x) and (x.dim() == 3 or x.dense_dim() > 0):
            raise ValueError("'x' must be dense to have a batch dimension, and sparse in both others or in none")
        if self.in_channels == -1:
            self._initialize(x.size(-1))
        if x.size(-1) != self.in_channels:
            raise ValueError(f"'x' must have {self.in_channels} features (got {x.size(-1)})")
        if x.dtype != self.lin.weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise ValueError(f"'x' must have the precision of the layer, {self.lin.weight.dtype} (got {x.dtype})")

    def _initialize(self, in_channels: int) -> None:
        self.in_channels = in_channels
        self.lin.initialize_parameters(self.lin, (torch.empty(0, in_channels),))
        self.feature_graph.initialize(in_channels)
        self.reset_parameters()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        saved = state_dict.get(prefix + "lin.weight")
        if self.in_channels == -1 and saved is not None and not is_uninitialized_parameter(saved):
            self._initialize(saved.size(1))
        super()._load_from_state_dict(state_dict, prefix, *args)
