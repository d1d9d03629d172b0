"""Sparse matrices for products with narrow dense blocks: CSR with its transpose, as one compilable operator.

PyTorch's CSR product is an order of magnitude faster on a CPU than gathering and scattering messages, but its backward
pass converts the matrix anew each time, and neither :func:`torch.compile` nor :func:`torch.func.vmap` take sparse
tensors. The operator here works on the plain arrays, keeps the transpose, and does both.
"""

import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bigcn.filters import Hop, chebyshev_sum

# PyTorch calls its CSR layout a prototype once per process; users of this library did not choose the layout.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
warnings.filterwarnings("ignore", message="Sparse CSC tensor support is in beta state")


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
            return spmm(*self[:6], block)
        batch, _, width = block.shape
        wide = block.permute(1, 0, 2).reshape(self.num_cols, batch * width)
        return spmm(*self[:6], wide).view(self.num_rows, batch, width).permute(1, 0, 2)

    def __call__(self, block: Tensor) -> Tensor:
        """A matrix of a normalised graph is itself the hop that filters take."""
        return self.matmul(block)

    def transpose_matmul(self, block: Tensor) -> Tensor:
        """Multiplies a dense block by the transpose."""
        return spmm(self.crow_t, self.col_t, self.value_t, self.crow, self.col, self.value, block)


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
    # Exact equality, so that sharing the arrays never changes a gradient.
    if all(torch.equal(a, b) for a, b in ((crow, crow_t), (out_col, out_col_t), (out, out_t))):
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
        row, col = _expand(matrix.crow_indices()), matrix.col_indices()
    elif matrix.layout == torch.sparse_csc:
        row, col = matrix.row_indices(), _expand(matrix.ccol_indices())
    else:
        raise ValueError(f"a sparse matrix must have layout COO, CSR or CSC (got {matrix.layout})")
    return row, col, matrix.values()


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


def _expand(pointers: Tensor) -> Tensor:
    counts = pointers[1:] - pointers[:-1]
    return torch.repeat_interleave(torch.arange(counts.numel(), device=pointers.device), counts)


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
    if isinstance(hop, SparseMatrix) and parts[0].dim() == 2 and not learns:
        scales = coefficients.unsqueeze(-1) if coefficients.dim() == 2 else coefficients
        return chebyshev(*hop[:6], scales, parts[0].unsqueeze(0) if len(parts) == 1 else torch.stack(parts))

    def term(j: int) -> Tensor:
        total = coefficients[j, 0] * parts[0]
        for m in range(1, len(parts)):
            total = torch.addcmul(total, coefficients[j, m], parts[m])
        return total

    return chebyshev_sum(hop, term, coefficients.size(0) - 1)


@torch.library.custom_op("bigcn::spmm", mutates_args=())
def spmm(
    crow: Tensor, col: Tensor, value: Tensor, crow_t: Tensor, col_t: Tensor, value_t: Tensor, block: Tensor
) -> Tensor:
    """Multiplies a CSR matrix with a dense block; the transposed arrays serve the backward pass."""
    dtype = _product_dtype(block)
    matrix = _csr(crow, col, value, block.size(0), dtype)
    with _own_precision(block):
        return (matrix @ block.to(dtype)).to(block.dtype)


@spmm.register_fake
def _(
    crow: Tensor, col: Tensor, value: Tensor, crow_t: Tensor, col_t: Tensor, value_t: Tensor, block: Tensor
) -> Tensor:
    return block.new_empty(crow.numel() - 1, block.size(1))


def _setup_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    *arrays, block = inputs
    ctx.save_for_backward(*arrays, *([block] if inputs[2].requires_grad else []))


def _backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
    crow, col, value, crow_t, col_t, value_t, *block = ctx.saved_tensors  # type: ignore[attr-defined]
    grad = grad.contiguous()
    grad_value = (grad[_expand(crow)] * block[0][col]).sum(-1) if block else None
    grad_block = None
    if ctx.needs_input_grad[6]:  # type: ignore[attr-defined]
        grad_block = spmm(crow_t, col_t, value_t, crow, col, value, grad)
    return None, None, grad_value, None, None, None, grad_block


spmm.register_autograd(_backward, setup_context=_setup_context)


@spmm.register_vmap
def _(info: object, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
    *arrays, block = args
    _refuse_mapped_matrices(in_dims[:6])
    assert in_dims[6] is not None
    block = block.movedim(in_dims[6], 1)
    rows, members, width = block.shape
    out = spmm(*arrays, block.reshape(rows, members * width))
    return out.view(-1, members, width), 1


@torch.library.custom_op("bigcn::chebyshev", mutates_args=())
def chebyshev(
    crow: Tensor,
    col: Tensor,
    value: Tensor,
    crow_t: Tensor,
    col_t: Tensor,
    value_t: Tensor,
    coefficients: Tensor,
    parts: Tensor,
) -> Tensor:
    r"""Returns :math:`\sum_j T_j(\mathbf{N}) \sum_m c_{jm} \mathbf{P}_m` for a square CSR matrix, in one operator.

    The recursion is Clenshaw's, as in :func:`bigcn.filters.chebyshev_sum`; on small graphs the cost of calling two
    dozen operators one by one would be many times that of the arithmetic. The backward pass is the same filter of the
    transposed matrix.

    Args:
        crow, col, value, crow_t, col_t, value_t (torch.Tensor): The matrix, see :class:`SparseMatrix`.
        coefficients (torch.Tensor): Shape :obj:`[degree + 1, num_parts, h]`, or one for :obj:`h`.
        parts (torch.Tensor): Shape :obj:`[num_parts, n, h]`.
    """
    dtype = _product_dtype(parts)
    matrix = _csr(crow, col, value, parts.size(1), dtype)
    blocks, scales = parts.to(dtype).contiguous(), coefficients.to(dtype).unsqueeze(2)

    def term(j: int) -> Tensor:
        return blocks[0] * scales[j, 0] if len(blocks) == 1 else (blocks * scales[j]).sum(dim=0)

    degree = coefficients.size(0) - 1
    older, newer = None, term(degree)
    with _own_precision(parts):
        for j in range(degree - 1, -1, -1):
            rest = term(j) if older is None else term(j).sub_(older)
            older, newer = newer, torch.addmm(rest, matrix, newer, alpha=2 if j else 1)
    return newer.to(parts.dtype)


@torch.library.custom_op("bigcn::chebyshev_adjoint", mutates_args=())
def chebyshev_adjoint(crow: Tensor, col: Tensor, value: Tensor, coefficients: Tensor, grad: Tensor) -> Tensor:
    r"""Returns :math:`\sum_j c_{jm} T_j(\mathbf{N}) \mathbf{G}` for every part :math:`m`, the transpose of
    :func:`chebyshev`.
    """
    dtype = _product_dtype(grad)
    matrix = _csr(crow, col, value, grad.size(0), dtype)
    scales = coefficients.to(dtype).unsqueeze(2)
    older, newer = grad.to(dtype), None
    total = scales[0] * older
    with _own_precision(grad):
        for j in range(1, coefficients.size(0)):
            if newer is None:
                newer = matrix @ older
            else:
                older, newer = newer, torch.addmm(older, matrix, newer, beta=-1, alpha=2)
            total.addcmul_(scales[j], newer)
    return total.to(grad.dtype)


@chebyshev.register_fake
def _(*args: Tensor) -> Tensor:
    return torch.empty_like(args[-1][0])


@chebyshev_adjoint.register_fake
def _(crow: Tensor, col: Tensor, value: Tensor, coefficients: Tensor, grad: Tensor) -> Tensor:
    return grad.new_empty(coefficients.size(1), *grad.shape)


def _chebyshev_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[3:7])


def _chebyshev_backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
    arrays = ctx.saved_tensors  # type: ignore[attr-defined]
    return (None,) * 7 + (chebyshev_adjoint(*arrays, grad.contiguous()),)


chebyshev.register_autograd(_chebyshev_backward, setup_context=_chebyshev_context)


def _members_as_columns(coefficients: Tensor, dim: int | None, members: int, width: int) -> Tensor:
    """Lays the coefficients of each member beside each other, as wide as the members' blocks are."""
    if dim is None:
        return coefficients if coefficients.size(2) == 1 else coefficients.repeat(1, 1, members)
    stacked = coefficients.movedim(dim, 2)
    return stacked.expand(-1, -1, -1, width).reshape(*stacked.shape[:2], members * width)


@chebyshev.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
    *arrays, coefficients, parts = args
    _refuse_mapped_matrices(in_dims[:6])
    members = info.batch_size
    parts = parts.movedim(in_dims[7], 2) if in_dims[7] is not None else parts.unsqueeze(2).expand(-1, -1, members, -1)
    count, rows, _, width = parts.shape
    wide = _members_as_columns(coefficients, in_dims[6], members, width)
    return chebyshev(*arrays, wide, parts.reshape(count, rows, -1)).view(rows, members, width), 1


@chebyshev_adjoint.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
    crow, col, value, coefficients, grad = args
    _refuse_mapped_matrices(in_dims[:3])
    members = info.batch_size
    grad = grad.movedim(in_dims[4], 1) if in_dims[4] is not None else grad.unsqueeze(1).expand(-1, members, -1)
    rows, _, width = grad.shape
    wide = _members_as_columns(coefficients, in_dims[3], members, width)
    out = chebyshev_adjoint(crow, col, value, wide, grad.reshape(rows, -1))
    return out.view(-1, rows, members, width), 2


def _refuse_mapped_matrices(in_dims: tuple[int | None, ...]) -> None:
    if any(dim is not None for dim in in_dims):
        raise NotImplementedError("products map over blocks, not over matrices: join these block-diagonally instead")


def _product_dtype(block: Tensor) -> torch.dtype:
    # Neither MKL nor cuSPARSE multiplies half-precision CSR matrices everywhere, so these take a detour.
    return torch.float32 if block.dtype in (torch.float16, torch.bfloat16) else block.dtype


def _own_precision(block: Tensor) -> torch.autocast:
    """Keeps autocast out, which would ask for a half-precision product."""
    return torch.autocast(block.device.type, enabled=False)


def _csr(crow: Tensor, col: Tensor, value: Tensor, num_cols: int, dtype: torch.dtype) -> Tensor:
    shape = (crow.numel() - 1, num_cols)
    return torch.sparse_csr_tensor(crow, col, value.to(dtype), shape, check_invariants=False)
