r"""A feature graph from the covariance of smoothed features, filtered by its leading eigenvectors."""

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.typing import Adj, OptTensor

from bigcn.checks import is_whole
from bigcn.feature_graphs.base import FeatureFilter, FeatureGraph, Operand, Powers
from bigcn.feature_graphs.fixed import projector_powers
from bigcn.filters import FeatureOperator, Hop, check_strength, resolvent_coefficients
from bigcn.node_graphs import count_nodes, normalized_graph, total_over_nodes
from bigcn.sparse import chebyshev_filter, is_sparse, sparse_from_tensor

#: Up to this many features the covariance is decomposed in full, beyond it by subspace iteration.
FULL_DECOMPOSITION = 512
#: Of fewer features all directions are kept, unless the rank is given.
ALL_DIRECTIONS = 32


class SpectralGraph(FeatureGraph):
    r"""Keeps the feature directions that survive smoothing along the node graph.

    The features are smoothed along the node graph by the exact filter, no labels needed; the leading eigenvectors
    :math:`\mathbf{Q}` of the second moment of the result give
    :math:`\mathbf{N}_2 = \mathbf{Q} \, \mathrm{diag}(w) \, \mathbf{Q}^{\top}`. With a Taylor filter of strength one
    (or an exact filter of a large strength) and :obj:`weighting="rank"` the filter :math:`\mathbf{B}` is the ideal
    low-pass on that graph, the projector :math:`\mathbf{Q}\mathbf{Q}^{\top}`. There are no :math:`d^2` parameters, and
    a product takes :math:`\mathcal{O}(d \cdot r)`.

    A graph made by name is computed from the input of its layer in each forward pass, without gradient; one made by
    :meth:`from_data` is fixed and part of the :obj:`state_dict`.

    Args:
        num_features (int): The number of features, or :obj:`-1` to take it from the first input.
        rank (int, optional): The number of eigenvectors kept; with as many as there are features nothing is filtered.
            With soft weights, all of up to 512 features are kept.
            (default: a quarter of the features, 64 at most; all of fewer than 32 features, as in hidden layers)
        weighting (str, optional): :obj:`"rank"` weighs all kept eigenvectors alike, :obj:`"soft"` by
            :math:`\max(0, 1 - \sigma^2 / \theta_i)`, Wiener's rule, with the noise floor :math:`\sigma^2` read off the
            lower half of the eigenvalues :math:`\theta`. (default: :obj:`"rank"`)
        smoothing (float, optional): The strength of the node smoothing that the graph is computed from.
            (default: :obj:`10.0`)
    """

    highest_frequency = 1.0
    vectors: Tensor | None
    weights: Tensor | None

    def __init__(
        self,
        num_features: int,
        rank: int | None = None,
        weighting: Literal["rank", "soft"] = "rank",
        smoothing: float = 10.0,
    ) -> None:
        super().__init__(num_features)
        if rank is not None and (not is_whole(rank) or rank < 1):
            raise ValueError(f"'rank' must be a whole number of at least 1 (got {rank})")
        if weighting not in ("rank", "soft"):
            raise ValueError(f"'weighting' must be 'rank' or 'soft' (got {weighting!r})")
        check_strength("smoothing", smoothing)
        self._rank = rank
        self.weighting = weighting
        self.smoothing = float(smoothing)
        # Made once: a forward pass that is compiled cannot ask how many there are.
        self._smoother = resolvent_coefficients(smoothing, tolerance=1e-4)[:, 1:]
        self.register_buffer("vectors", None)
        self.register_buffer("weights", None)

    @classmethod
    def from_data(
        cls,
        x: Tensor,
        edge_index: Adj | None,
        edge_weight: OptTensor = None,
        rank: int | None = None,
        weighting: Literal["rank", "soft"] = "rank",
        smoothing: float = 10.0,
    ) -> "SpectralGraph":
        """Computes the graph once and keeps it.

        Args:
            x (torch.Tensor): The features, dense or sparse.
            edge_index (torch.Tensor): The node graph, or :obj:`None` to leave the features as they are.
            edge_weight (torch.Tensor, optional): Its edge weights. (default: :obj:`None`)
            rank, weighting, smoothing: See :class:`SpectralGraph`.
        """
        graph = cls(x.size(-1), rank, weighting, smoothing)
        hop: Hop | None = None
        if edge_index is not None:
            hop = normalized_graph(edge_index, edge_weight, x.size(-2), x.dtype)
        graph.vectors, graph.weights = graph.operand(x, hop)
        return graph

    @property
    def from_input(self) -> bool:  # type: ignore[override]
        return self.vectors is None

    @property
    def rank(self) -> int:
        """The number of eigenvectors kept."""
        if self._rank is not None:
            return self._rank
        return self.num_features if self.num_features < ALL_DIRECTIONS else min(64, self.num_features // 4)

    @property
    def trivial(self) -> bool:
        """Whether all directions are kept alike, as in hidden layers narrower than the rank: nothing to compute."""
        return self.weighting == "rank" and self.rank >= self.num_features

    @property
    def capturable(self) -> bool:  # type: ignore[override]
        return self.trivial or not self.from_input

    @torch.no_grad()
    def operand(self, x: Tensor | None = None, hop: Hop | None = None) -> Operand:
        if self.vectors is not None and self.weights is not None:
            return self.vectors, self.weights
        if x is None:
            raise ValueError("a spectral graph made by name is computed from features: give 'x' and 'hop'")
        if self.trivial:
            eye = torch.eye(x.size(-1), dtype=x.dtype, device=x.device)
            return eye, eye.new_ones(x.size(-1))
        values, vectors = _leading_eigenvectors(x.detach(), hop, self.rank, self._smoother, self.weighting == "soft")
        if self.weighting == "rank":
            return vectors, torch.ones_like(values)
        return vectors, _wiener_weights(values)

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        vectors, weights = operand
        return vectors @ (weights.unsqueeze(-1) * (vectors.t() @ block))

    def diagonal(self, operand: Operand) -> Tensor:
        vectors, weights = operand
        return (vectors**2) @ weights

    def product_cost(self) -> float:
        return 2.0 * self.num_features * min(self.rank, self.num_features)

    def num_blocks(self, iterations: int) -> int:
        return 1 if self.trivial else 2 if self.weighting == "rank" else iterations + 1

    def powers(self, operand: Operand, block: Tensor, filter: FeatureFilter) -> Powers:
        vectors, weights = operand
        if self.trivial:
            return Powers([block], filter.response_powers(block.new_ones(1)))
        if self.weighting == "rank":
            return projector_powers(block, self.product(operand, block), filter)
        # In the eigenbasis a filter of any form is a rescaling: f(N) = f(0) I + Q (f(w) - f(0)) Q^T.
        inside = vectors.t() @ block
        off = filter.response_powers(block.new_zeros(()))
        on = filter.response_powers(weights)
        blocks = [off[b] * block + vectors @ ((on[b] - off[b]).unsqueeze(-1) * inside) for b in range(1, len(off))]
        return Powers([block, *blocks])

    def l1_norm(self, operator: FeatureOperator = "laplacian", operand: Operand | None = None) -> Tensor:
        # The entries are signed, so the sum of their sizes has no shortcut; rows are taken a few at a time.
        vectors, weights = self.operand() if operand is None else operand
        total = vectors.new_zeros(())
        for start in range(0, vectors.size(0), 1024):
            rows = vectors[start : start + 1024] * weights @ vectors.t()
            if operator == "laplacian":
                rows = torch.eye(vectors.size(0), dtype=rows.dtype, device=rows.device)[start : start + 1024] - rows
            total = total + rows.abs().sum()
        return total

    def extra_repr(self) -> str:
        return f"{self.num_features}, rank={self.rank}, weighting={self.weighting}, smoothing={self.smoothing:g}"


def _wiener_weights(values: Tensor) -> Tensor:
    """Returns what Wiener's rule leaves of directions by their eigenvalues, largest first: from zero to one."""
    # Directions that the features do not have are rounding, of either sign, and no noise to measure others by.
    least = values[0].clamp(min=0) * values.numel() * torch.finfo(values.dtype).eps
    values = torch.where(values > least, values, 0)
    # Eigenvalues that were not computed are below the computed ones; the lower half of these bounds the floor.
    floor = values[values.numel() // 2 :].mean()
    return torch.where(values > floor, 1 - floor / torch.where(values > 0, values, 1), 0)


def _leading_eigenvectors(
    x: Tensor, hop: Hop | None, rank: int, smoothing: Tensor, with_floor: bool
) -> tuple[Tensor, Tensor]:
    """Returns the leading eigenpairs of the second moment of the smoothed features, largest first."""
    num_features = x.size(-1)
    if num_features <= FULL_DECOMPOSITION:
        values, vectors = torch.linalg.eigh(_at_least_single(_second_moment(x, hop, smoothing)))
        keep = num_features if with_floor else min(rank, num_features)
        values, vectors = values.flip(0)[:keep], vectors.flip(1)[:, :keep]
    else:
        values, vectors = _subspace_iteration(x, hop, rank, smoothing)
    return values.to(x.dtype), vectors.to(x.dtype).contiguous()


def _second_moment(x: Tensor, hop: Hop | None, smoothing: Tensor) -> Tensor:
    """Returns the second moment of the smoothed features; sparse ones are smoothed a few columns at a time."""
    num_features = x.size(-1)
    if not is_sparse(x):
        smoothed = _smooth(x, hop, smoothing).reshape(-1, num_features)
        return total_over_nodes(smoothed.t() @ smoothed, hop) / max(count_nodes(smoothed.size(0), hop), 1)
    matrix = sparse_from_tensor(x)
    columns = []
    for block in torch.eye(num_features, dtype=x.dtype, device=x.device).split(64, dim=1):
        smoothed = _smooth(_smooth(matrix.matmul(block.contiguous()), hop, smoothing), hop, smoothing)
        columns.append(matrix.transpose_matmul(smoothed))
    moment = total_over_nodes(torch.cat(columns, dim=1), hop) / max(count_nodes(x.size(0), hop), 1)
    return (moment + moment.t()) / 2


def _subspace_iteration(
    x: Tensor, hop: Hop | None, rank: int, smoothing: Tensor, oversampling: int = 16, rounds: int = 6
) -> tuple[Tensor, Tensor]:
    """Finds leading eigenvectors by products with the features alone: nothing of size n×d or d×d is formed."""
    num_features, num_rows = x.size(-1), x.numel() // x.size(-1)
    width = min(rank + oversampling, num_features)
    if is_sparse(x):
        matrix = sparse_from_tensor(x)
        multiply, multiply_t = matrix.matmul, matrix.transpose_matmul
    else:
        multiply = lambda block: x @ block  # noqa: E731
        multiply_t = lambda block: x.reshape(num_rows, num_features).t() @ block.reshape(num_rows, block.size(-1))  # noqa: E731
    # Drawn on the CPU so that the graph does not depend on the device.
    start = torch.randn(num_features, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    basis = torch.linalg.qr(_at_least_single(start.to(x.device, x.dtype))).Q
    for _ in range(rounds):
        smoothed = _smooth(_smooth(multiply(basis.to(x.dtype)), hop, smoothing), hop, smoothing)
        moved = total_over_nodes(multiply_t(smoothed), hop) / max(count_nodes(num_rows, hop), 1)
        image = _at_least_single(moved)
        core = basis.t() @ image
        basis, previous = torch.linalg.qr(image).Q, basis
    # Rayleigh-Ritz on the last subspace whose image is known.
    values, rotation = torch.linalg.eigh((core + core.t()) / 2)
    return values.flip(0)[:rank], (previous @ rotation).flip(1)[:, :rank]


def _smooth(block: Tensor, hop: Hop | None, coefficients: Tensor) -> Tensor:
    if hop is None or len(coefficients) == 1:  # of strength zero
        return block
    return chebyshev_filter(hop, coefficients.to(block.device, block.dtype), [block])


def _at_least_single(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()
