r"""The filter of a layer: strengths, forms and rounds as tensors that follow the layer to its device."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bigcn.dense_filter import constant_product
from bigcn.feature_graphs.base import FeatureFilter
from bigcn.filters import (
    FeatureOperator,
    FilterForm,
    Hop,
    NotLowPassWarning,
    admm_coefficients,
    check_forms,
    check_strength,
    is_low_pass,
    resolvent_coefficients,
)
from bigcn.sparse import SparseMatrix, chebyshev_filter, damped_hop, unit_columns, weighted_sum
from bigcn.user_warnings import warn_user

#: Beyond this, single precision loses more than three digits in the sum over powers.
MAX_CANCELLATION = 1e4


class TwoWayFilter(torch.nn.Module):
    r"""Holds :math:`c_{ab}`, :math:`\mathbf{A}` and :math:`\mathbf{B}` for a layer; it has no parameters.

    The numbers are buffers, so that they move with the layer, need no copy from the host in a forward pass, and can
    differ between the members of a population trained together.

    Args:
        p, node_strength, feature_strength, iterations, node_filter, feature_filter, feature_operator, tolerance: See
            :class:`~bigcn.nn.BiGCNConv`.
    """

    coefficients: Tensor
    node_scale: Tensor
    feature_scale: Tensor
    node_chebyshev: Tensor | None
    feature_chebyshev: Tensor | None

    def __init__(
        self,
        p: float,
        node_strength: float,
        feature_strength: float,
        iterations: int,
        node_filter: FilterForm,
        feature_filter: FilterForm,
        feature_operator: FeatureOperator,
        tolerance: float,
    ) -> None:
        super().__init__()
        check_strength("node_strength", node_strength)
        check_strength("feature_strength", feature_strength)
        check_forms(node_filter, feature_filter, feature_operator)
        cancellation = float(admm_coefficients(p, iterations).abs().sum())
        if cancellation > MAX_CANCELLATION:
            raise ValueError(
                f"'iterations' of {iterations} at p={p:g} make coefficients of size {cancellation:.0e} that cancel: "
                f"a layer takes few rounds, and 'bigcn.smooth' with 'method=\"admm\"' runs to convergence"
            )
        self.p = float(p)
        self.node_strength = float(node_strength)
        self.feature_strength = float(feature_strength)
        self.iterations = int(iterations)
        self.node_filter = node_filter
        self.feature_filter = feature_filter
        self.feature_operator = feature_operator
        self.tolerance = tolerance
        self._make_buffers(torch.empty(()))

    def _make_buffers(self, like: Tensor) -> None:
        def buffer(name: str, value: Tensor | float | None) -> None:
            if value is not None:
                value = torch.as_tensor(value, dtype=torch.float64, device="cpu").to(like.device, like.dtype)
            self.register_buffer(name, value, persistent=False)

        def chebyshev(form: FilterForm, strength: float) -> Tensor | None:
            return resolvent_coefficients(strength, self.iterations, self.tolerance) if form == "exact" else None

        buffer("coefficients", admm_coefficients(self.p, self.iterations))
        buffer("node_scale", self.node_strength)
        buffer("feature_scale", self.feature_strength)
        buffer("node_chebyshev", chebyshev(self.node_filter, self.node_strength))
        buffer("feature_chebyshev", chebyshev(self.feature_filter, self.feature_strength))

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> "TwoWayFilter":
        # Made anew from the numbers rather than cast, so that `.double()` does not keep single-precision coefficients.
        super()._apply(fn, recurse)
        self._make_buffers(self.coefficients)
        return self

    @property
    def num_hops(self) -> int:
        """How many hops on the node graph the filter takes."""
        if self.node_strength == 0:
            return 0
        return self.iterations if self.node_chebyshev is None else self.node_chebyshev.size(-2) - 1

    @property
    def num_feature_hops(self) -> int:
        """How many products with a general feature graph the filter takes."""
        return self.iterations if self.feature_chebyshev is None else self.feature_chebyshev.size(-2) - 1

    def along_features(self) -> FeatureFilter:
        r"""Returns what a feature graph needs to know of :math:`\mathbf{B}`."""
        return FeatureFilter(
            self.iterations, self.feature_filter, self.feature_operator, self.feature_scale, self.feature_chebyshev
        )

    def along_nodes(
        self, parts: list[Tensor], mixing: Tensor | None, hop: Hop, resolvent: Tensor | SparseMatrix | None = None
    ) -> Tensor:
        r"""Returns :math:`\sum_a \mathbf{A}^a \mathbf{U}_a` with :math:`\mathbf{U}_a = \sum_m` :obj:`mixing[a, m] *
        parts[m]`.

        Args:
            parts (list[torch.Tensor]): Blocks with one row per node.
            mixing (torch.Tensor, optional): If :obj:`None`, the parts are the :math:`\mathbf{U}_a` themselves, or
                their sum if the node direction is off.
            hop (Callable): Multiplies by the normalised node adjacency.
            resolvent (torch.Tensor or SparseMatrix, optional): An exact :math:`\mathbf{A}` as a matrix.
                (default: :obj:`None`)
        """
        if self.node_strength == 0:
            return parts[0] if mixing is None else weighted_sum(mixing.sum(dim=0), parts)
        if self.node_chebyshev is not None:
            assert mixing is not None
            if resolvent is not None:
                total = weighted_sum(mixing[-1], parts)
                for a in range(self.iterations - 1, -1, -1):
                    total = weighted_sum(mixing[a], parts) + _product(resolvent, total)
                return total
            return chebyshev_filter(hop, self.node_chebyshev @ mixing, parts)
        total = parts[-1] if mixing is None else weighted_sum(mixing[-1], parts)
        for a in range(self.iterations - 1, -1, -1):
            part = parts[a] if mixing is None else weighted_sum(mixing[a], parts)
            total = damped_hop(hop, total, part, self.node_scale)
        return total

    @torch.no_grad()
    def rows_along_nodes(
        self, rows: Tensor, mixing: Tensor, graph: SparseMatrix, resolvent: Tensor | None = None
    ) -> Tensor:
        r"""Returns some rows of what :meth:`along_nodes` multiplies each part by, :math:`\sum_a` :obj:`mixing[a, m]`
        :math:`\mathbf{A}^a`, as dense matrices side by side; the filter is exact.

        Args:
            rows (torch.Tensor): The nodes.
            mixing (torch.Tensor): See :meth:`along_nodes`.
            graph (SparseMatrix): The normalised node graph.
            resolvent (torch.Tensor, optional): See :meth:`along_nodes`; the graph is symmetric then.
                (default: :obj:`None`)
        """
        units = unit_columns(rows, graph.value, graph.num_rows)
        # A row of a filter is a column of that of the transposed graph.
        hop = graph.transposed()
        of_parts = [self.along_nodes([units], part, hop, resolvent).t() for part in mixing.split(1, dim=1)]
        return of_parts[0] if len(of_parts) == 1 else torch.cat(of_parts, dim=1)

    def mix_before_product(self, blocks: list[Tensor], mixing: Tensor) -> tuple[list[Tensor], Tensor | None]:
        r"""Mixes blocks of the weights where that saves mixing the larger blocks of the nodes later.

        Args:
            blocks (list[torch.Tensor]): Blocks that span the powers :math:`\mathbf{B}^b \mathbf{W}`.
            mixing (torch.Tensor): How they mix into the :math:`\mathbf{U}_a`.
        """
        if self.node_strength == 0:
            mixing = mixing.sum(dim=0, keepdim=True)
        elif self.node_chebyshev is not None or len(blocks) < mixing.size(0):
            return blocks, mixing
        return list(torch.tensordot(mixing, torch.stack(blocks), dims=1).unbind(0)), None

    def warn_if_not_low_pass(self, highest_feature: float) -> None:
        """Warns about strengths with which the filter passes high frequencies or flips signs.

        Args:
            highest_feature (float): The highest frequency of the feature graph; zero if there is none.
        """
        has_feature_graph = highest_feature > 0
        feature_strength = self.feature_strength if has_feature_graph else 0.0
        strengths = (self.p, self.node_strength, feature_strength, self.iterations)
        forms = (self.node_filter, self.feature_filter, self.feature_operator)
        if not is_low_pass(*strengths, *forms, highest_feature=highest_feature):
            features = f"feature_strength={feature_strength:g} ({self.feature_filter}, {self.feature_operator}), "
            warn_user(
                f"p={self.p:g}, node_strength={self.node_strength:g} ({self.node_filter}), "
                f"{features if has_feature_graph else ''}"
                f"iterations={self.iterations} do not make a low-pass filter; "
                f"'check_low_pass=False' silences this",
                NotLowPassWarning,
            )

    def extra_repr(self) -> str:
        return (
            f"p={self.p:g}, node={self.node_filter}({self.node_strength:g}), "
            f"feature={self.feature_filter}({self.feature_strength:g}, {self.feature_operator}), "
            f"iterations={self.iterations}"
        )


def _product(matrix: Tensor | SparseMatrix, block: Tensor) -> Tensor:
    return matrix.matmul(block) if isinstance(matrix, SparseMatrix) else constant_product(matrix, block)
