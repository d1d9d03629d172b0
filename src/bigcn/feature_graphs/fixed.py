r"""Feature graphs that need nothing learned: given, uniform, identity, none."""

import torch
from torch import Tensor

from bigcn.feature_graphs.base import FeatureFilter, FeatureGraph, Operand, Powers
from bigcn.feature_graphs.stored import normalize_dense, normalize_sparse, stored_diagonal, stored_product
from bigcn.filters import FeatureOperator
from bigcn.sparse import coordinates, is_sparse


class GivenGraph(FeatureGraph):
    r"""A feature graph from prior knowledge, normalised as it is: no self-loop is added.

    Args:
        adjacency (torch.Tensor): A symmetric :math:`d \times d` matrix of non-negative weights, dense or sparse.
        called (str, optional): What the matrix is called where it is refused. (default: :obj:`"adjacency"`)
    """

    matrix: Tensor
    crow: Tensor
    col: Tensor
    value: Tensor

    def __init__(self, adjacency: Tensor, called: str = "adjacency") -> None:
        _check(adjacency, called)
        super().__init__(adjacency.size(0))
        adjacency = adjacency.detach()
        if not adjacency.is_floating_point():
            adjacency = adjacency.to(torch.get_default_dtype())
        self.sparse = is_sparse(adjacency)
        if self.sparse:
            value, crow, col = normalize_sparse(*coordinates(adjacency), self.num_features)
            self.register_buffer("crow", crow)
            self.register_buffer("col", col)
            self.register_buffer("value", value)
        else:
            self.register_buffer("matrix", normalize_dense(adjacency)[0])

    def operand(self, x: Tensor | None = None, hop: object = None) -> Operand:
        return (self.value, self.crow, self.col) if self.sparse else (self.matrix,)

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        return stored_product(operand, block)

    def diagonal(self, operand: Operand) -> Tensor:
        return stored_diagonal(operand)

    def product_cost(self) -> float:
        return float(self.value.numel() if self.sparse else self.num_features**2)


class UniformGraph(FeatureGraph):
    r"""Every feature linked to every other and to itself: :math:`\mathbf{N}_2 = \mathbf{1}\mathbf{1}^{\top} / d`.

    In the released code's form, filtering along it removes part of each node's mean feature; it is the ablation that
    tells how much of a learned graph is just that.
    """

    highest_frequency = 1.0

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        return block.mean(dim=-2, keepdim=True).expand_as(block)

    def diagonal(self, operand: Operand) -> Tensor:
        return torch.full((self.num_features,), 1 / self.num_features)

    def product_cost(self) -> float:
        return float(self.num_features)

    def num_blocks(self, iterations: int) -> int:
        return 2

    def powers(self, operand: Operand, block: Tensor, filter: FeatureFilter) -> Powers:
        # A projector has one non-trivial power: B^b = f(0)^b (I - N) + f(1)^b N.
        return projector_powers(block, self.product(operand, block), filter)


class IdentityGraph(FeatureGraph):
    r"""The paper's fallback: the operator is the identity, so :math:`\mathbf{B}` scales and the filter has one
    direction, whichever :obj:`feature_operator` is chosen.
    """

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        return torch.zeros_like(block)

    def diagonal(self, operand: Operand) -> Tensor:
        return torch.zeros(self.num_features)

    def product_cost(self) -> float:
        return 0.0

    def num_blocks(self, iterations: int) -> int:
        return 1

    def powers(self, operand: Operand, block: Tensor, filter: FeatureFilter) -> Powers:
        as_laplacian = filter._replace(operator="laplacian")
        return Powers([block], as_laplacian.response_powers(block.new_zeros(1)))

    def l1_norm(self, operator: FeatureOperator = "laplacian", operand: Operand | None = None) -> Tensor:
        return torch.tensor(float(self.num_features))


class NoGraph(FeatureGraph):
    r"""The feature direction left out: :math:`\mathbf{L}_2 = \mathbf{0}` and :math:`\mathbf{B} = \mathbf{I}`."""

    filters = False

    def product(self, operand: Operand, block: Tensor) -> Tensor:
        return block

    def diagonal(self, operand: Operand) -> Tensor:
        return torch.ones(self.num_features)

    def product_cost(self) -> float:
        return 0.0

    def num_blocks(self, iterations: int) -> int:
        return 1

    def powers(self, operand: Operand, block: Tensor, filter: FeatureFilter) -> Powers:
        return Powers([block], block.new_ones(filter.iterations + 1, 1))

    def l1_norm(self, operator: FeatureOperator = "laplacian", operand: Operand | None = None) -> Tensor:
        return torch.zeros(())


def projector_powers(block: Tensor, projected: Tensor, filter: FeatureFilter) -> Powers:
    r"""Returns the powers of a filter whose graph is a projector, from the block and its projection."""
    # Made on the device: copying two numbers from the host would make a GPU wait.
    ends = torch.stack([block.new_zeros(()), block.new_ones(())])
    off, on = filter.response_powers(ends).unbind(dim=1)
    return Powers([block, projected], torch.stack([off, on - off], dim=1))


def _check(adjacency: Tensor, name: str) -> None:
    """Refuses what cannot be a feature graph."""
    if not isinstance(adjacency, Tensor) or adjacency.dim() != 2 or adjacency.size(0) != adjacency.size(1):
        shape = list(adjacency.shape) if isinstance(adjacency, Tensor) else type(adjacency).__name__
        raise ValueError(f"'{name}' must be a square matrix (got {shape})")
    if is_sparse(adjacency):
        row, col, values = coordinates(adjacency)
        values = values.double()
        matrix = torch.sparse_coo_tensor(torch.stack([row, col]), values, adjacency.shape, check_invariants=False)
        gap = (matrix - matrix.t()).coalesce().values()
    else:
        values = adjacency.double()
        gap = values - values.t()
    if not bool(torch.isfinite(values).all()):
        raise ValueError(f"'{name}' must be finite (it has NaN or infinite entries)")
    if bool((values < 0).any()):
        raise ValueError(f"'{name}' must not have negative weights: a Laplacian needs them non-negative")
    if gap.numel() and float(gap.abs().max()) > 1e-6 * float(values.abs().max()):
        raise ValueError(f"'{name}' must be symmetric")
