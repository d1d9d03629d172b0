"""Sparse matrices for products with narrow dense blocks: CSR with its transpose."""

from typing import NamedTuple

import torch
from torch import Tensor

from bigcn.filters import Hop, chebyshev_sum
from bigcn.sparse_chebyshev import chebyshev
from bigcn.sparse_diagonal import row_numbers
from bigcn.sparse_ops import damped, product


class SparseMatrix(NamedTuple):
    """A sparse matrix in CSR form together with its transpose; a symmetric one shares the arrays.

    Args:
        crow, col, value (torch.Tensor): The CSR arrays.
        crow_t, col_t, value_t (torch.Tensor): The CSR arrays of the transpose.
        num_rows, num_cols (int): The shape.
    """

    crow: Tensor
    col: Tensor
    value: Tensor
    crow_t: Tensor
    col_t: Tensor
    value_t: Tensor
    num_rows: int
    num_cols: int

    def matmul(self, block: Tensor) -> Tensor:
        """Multiplies a dense block, :obj:`[num_cols, h]` or :obj:`[batch, num_cols, h]`."""
        if block.dim() == 2:
            return product(*self[:6], block)
        batch, _, width = block.shape
        wide = block.permute(1, 0, 2).reshape(self.num_cols, batch * width)
        return product(*self[:6], wide).view(self.num_rows, batch, width).permute(1, 0, 2)

    def __call__(self, block: Tensor) -> Tensor:
        """A matrix of a normalised graph is itself the hop that filters take."""
        return self.matmul(block)

    def transposed(self) -> "SparseMatrix":
        """Returns the transpose; nothing is copied."""
        return SparseMatrix(*self[3:6], *self[:3], self.num_cols, self.num_rows)

    def transpose_matmul(self, block: Tensor) -> Tensor:
        """Multiplies a dense block by the transpose."""
        return product(self.crow_t, self.col_t, self.value_t, self.crow, self.col, self.value, block)


def sparse_from_edges(row: Tensor, col: Tensor, value: Tensor, shape: tuple[int, int]) -> SparseMatrix:
    """Builds a matrix from coordinates in any order; repeated coordinates are kept and so add up.

    Args:
        row, col (torch.Tensor): The coordinates.
        value (torch.Tensor): The entries.
        shape (tuple[int, int]): Rows and columns.
    """
    crow, out_col, order = _compress(row, col, shape[0])
    crow_t, out_col_t, order_t = _compress(col, row, shape[1])
    out, out_t = value[order], value[order_t]
    if torch.equal(crow, crow_t) and torch.equal(out_col, out_col_t):
        if not torch.equal(out, out_t):  # entries of repeated coordinates may only stand in another order
            by_value = torch.argsort(value.detach(), stable=True)
            row, col, value = row[by_value], col[by_value], value[by_value]
            out, out_t = value[_compress(row, col, shape[0])[2]], value[_compress(col, row, shape[1])[2]]
        # Exact equality, so that sharing the arrays never changes a gradient.
        if torch.equal(out, out_t):
            crow_t, out_col_t, out_t = crow, out_col, out
    return SparseMatrix(crow, out_col, out, crow_t, out_col_t, out_t, *shape)


def sparse_from_tensor(matrix: Tensor) -> SparseMatrix:
    """Builds a matrix from a :class:`torch.Tensor` of any sparse layout."""
    row, col, value = coordinates(matrix)
    return sparse_from_edges(row, col, value, (matrix.size(0), matrix.size(1)))


def coordinates(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns rows, columns and values of a two-dimensional sparse tensor of layout COO, CSR or CSC."""
    if matrix.layout == torch.sparse_coo:
        matrix = matrix.coalesce()
        row, col = matrix.indices()
    elif matrix.layout == torch.sparse_csr:
        row, col = row_numbers(matrix.crow_indices()), matrix.col_indices()
    elif matrix.layout == torch.sparse_csc:
        row, col = matrix.row_indices(), row_numbers(matrix.ccol_indices())
    else:
        raise ValueError(f"a sparse matrix must have layout COO, CSR or CSC (got {matrix.layout})")
    return row, col, matrix.values()


def unit_columns(places: Tensor, like: Tensor, num_rows: int) -> Tensor:
    """Returns a dense block with a one in each column and zeros elsewhere.

    Args:
        places (torch.Tensor): The row of the one of each column.
        like (torch.Tensor): A tensor of the precision and on the device of the block.
        num_rows (int): How many rows there are.
    """
    block = like.new_zeros(num_rows, places.numel())
    return block.index_put_((places, torch.arange(places.numel(), device=like.device)), block.new_ones(()))


def is_sparse(tensor: Tensor) -> bool:
    """Tells whether a tensor has one of the sparse layouts."""
    return tensor.layout != torch.strided


def _compress(row: Tensor, col: Tensor, num_rows: int) -> tuple[Tensor, Tensor, Tensor]:
    # Sorted by row, then by column, in two stable passes: row * n + col could overflow.
    order = torch.argsort(col, stable=True)
    order = order[torch.argsort(row[order], stable=True)]
    crow = torch.zeros(num_rows + 1, dtype=row.dtype, device=row.device)
    crow[1:] = torch.bincount(row, minlength=num_rows).cumsum(0)
    return crow, col[order], order


def chebyshev_filter(hop: Hop, coefficients: Tensor, parts: list[Tensor]) -> Tensor:
    r"""Returns :math:`\sum_j T_j(\mathbf{N}) \sum_m c_{jm} \mathbf{P}_m`, in one operator where the graph allows it.

    Args:
        hop (Hop): Multiplies by :math:`\mathbf{N}`; a :class:`SparseMatrix` is fastest.
        coefficients (torch.Tensor): Shape :obj:`[degree + 1, num_parts]`, or with a third dimension for coefficients
            that differ between columns.
        parts (list[torch.Tensor]): The blocks, :obj:`[n, h]` or :obj:`[batch, n, h]`.
    """
    # The one operator knows gradients of the blocks alone.
    learns = coefficients.requires_grad or (isinstance(hop, SparseMatrix) and hop.value.requires_grad)
    own_operator = getattr(hop, "chebyshev", None)
    if own_operator is not None and coefficients.dim() == 2 and not learns:
        filtered: Tensor = own_operator(coefficients, parts)
        return filtered
    if isinstance(hop, SparseMatrix) and parts[0].dim() == 2 and not learns:
        scales = coefficients.unsqueeze(-1) if coefficients.dim() == 2 else coefficients
        return chebyshev(
            *hop[:6], scales.unsqueeze(2), parts[0].unsqueeze(0) if len(parts) == 1 else torch.stack(parts)
        )

    return chebyshev_sum(hop, lambda j: weighted_sum(coefficients[j], parts), coefficients.size(0) - 1)


def damped_hop(hop: Hop, block: Tensor, rest: Tensor, strength: Tensor) -> Tensor:
    """Returns a block moved towards its hop, as :func:`torch.lerp` does, plus another, in one call where the graph
    allows it.

    Args:
        hop (Hop): The hop; a :class:`SparseMatrix` is fastest.
        block, rest (torch.Tensor): The block, and what is added.
        strength (torch.Tensor): How far.
    """
    if isinstance(hop, SparseMatrix) and (out := damped(hop[:6], block, rest, strength)) is not None:
        return out
    return rest + torch.lerp(block, hop(block), strength)


def weighted_sum(weights: Tensor, parts: list[Tensor]) -> Tensor:
    """Returns the sum of blocks, each times its weight."""
    total = weights[0] * parts[0]
    for m in range(1, len(parts)):
        total = torch.addcmul(total, weights[m], parts[m])
    return total
