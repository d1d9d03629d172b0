r"""Products of sparse matrices and narrow blocks as Triton kernels.

An exact filter takes some thirty hops, and on a small graph the time of a hop is the time to start it: here a hop, with
what the filter adds to it, is one kernel instead of four. A product with a narrow block, as every member of a
population with a graph of its own has, is several times faster than cuSPARSE's. Rows are added up in order, so that the
result is always the same.
"""

# Kernels are no Python, and Triton is where GPUs are.
# mypy: disable-error-code="no-untyped-def, import-not-found, untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Columns that one program works on: few variants, since each is compiled once.
NARROW, WIDE = 16, 128
#: Neighbours that are fetched at once, and the warps that do it: the node with the most neighbours sets the time.
NEIGHBOURS, WARPS = {NARROW: 16, WIDE: 8}, {NARROW: 1, WIDE: 1}


@triton.jit
def _row_times(
    crow, col, value, x, row, columns, inside, width, BLOCK: tl.constexpr, NEIGHBOURS: tl.constexpr
):  # fmt: skip
    """Returns some columns of the product of one row of the matrix and the block."""
    start, end = tl.load(crow + row), tl.load(crow + row + 1)
    total = tl.zeros([BLOCK], dtype=x.dtype.element_ty)
    for first in range(start, end, NEIGHBOURS):
        entries = first + tl.arange(0, NEIGHBOURS)
        valid = entries < end
        neighbours = tl.load(col + entries, mask=valid, other=0)
        weights = tl.load(value + entries, mask=valid, other=0.0)
        places = neighbours[:, None] * width + columns[None, :]
        found = tl.load(x + places, mask=valid[:, None] & inside[None, :], other=0.0)
        total += tl.sum(weights[:, None] * found, axis=0)
    return total


@triton.jit(do_not_specialize=["rows_per_group", "part_stride", "coefficient_part", "coefficient_group", "alpha"])
def _hop_kernel(
    crow, col, value, x, older, parts, coefficients, out, width, rows_per_group, part_stride, coefficient_part,
    coefficient_group, coefficient_col, alpha,
    COUNT: tl.constexpr, ADJOINT: tl.constexpr, BLOCK: tl.constexpr, NEIGHBOURS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    total = _row_times(crow, col, value, x, row, columns, inside, width, BLOCK, NEIGHBOURS)
    place = row * width + columns
    result = alpha * total - tl.load(older + place, mask=inside, other=0.0)
    group = row // rows_per_group
    for m in tl.static_range(COUNT):
        at = coefficients + m * coefficient_part + group * coefficient_group + columns * coefficient_col
        scale = tl.load(at, mask=inside, other=0.0)
        part = parts + m * part_stride + place
        if ADJOINT:
            tl.store(part, tl.load(part, mask=inside, other=0.0) + scale * result, mask=inside)
        else:
            result += scale * tl.load(part, mask=inside, other=0.0)
    tl.store(out + place, result.to(x.dtype.element_ty), mask=inside)


def _hop(
    matrix: tuple[Tensor, Tensor, Tensor], x: Tensor, older: Tensor, parts: Tensor, scales: Tensor, alpha: float,
    adjoint: bool,
) -> Tensor:  # fmt: skip
    """Returns :obj:`alpha N x - older`, written over :obj:`older`: plus the scaled parts, or added to these, scaled."""
    crow, col, value = matrix
    rows, width = x.shape
    block = NARROW if width <= NARROW else WIDE
    per_group = rows // scales.size(1)
    col_stride = scales.stride(2) if scales.size(2) > 1 else 0
    _hop_kernel[(rows, triton.cdiv(width, block))](
        crow, col, value, x, older, parts, scales, older, width, per_group, rows * width, scales.stride(0),
        scales.stride(1) if scales.size(1) > 1 else 0, col_stride, float(alpha),
        COUNT=len(parts), ADJOINT=adjoint, BLOCK=block, NEIGHBOURS=NEIGHBOURS[block],
        num_warps=WARPS[block],
    )  # fmt: skip
    return older


def clenshaw(crow: Tensor, col: Tensor, value: Tensor, scales: Tensor, parts: Tensor) -> Tensor:
    """The same as :func:`bigcn.sparse_chebyshev.chebyshev`, for contiguous tensors of one precision.

    Args:
        crow, col, value (torch.Tensor): The matrix.
        scales (torch.Tensor): The coefficients, shape :obj:`[degree + 1, num_parts, groups, h]`.
        parts (torch.Tensor): The parts, shape :obj:`[num_parts, n, h]`.
    """
    count, rows, width = parts.shape
    grouped = parts.view(count, scales.size(2), -1, width)
    newer = (grouped * scales[-1].unsqueeze(2)).sum(dim=0).view(rows, width)
    older = torch.zeros_like(newer)
    for j in range(len(scales) - 2, -1, -1):
        older, newer = newer, _hop((crow, col, value), newer, older, parts, scales[j], 2 if j else 1, False)
    return newer


def clenshaw_adjoint(crow: Tensor, col: Tensor, value: Tensor, scales: Tensor, grad: Tensor) -> Tensor:
    """The same as :func:`bigcn.sparse_chebyshev.chebyshev_adjoint`, for contiguous tensors of one precision."""
    rows, width = grad.shape
    totals = (scales[0].unsqueeze(2) * grad.view(scales.size(2), -1, width)).reshape(-1, rows, width).contiguous()
    # The second polynomial is one hop of the first, and so comes without one before it.
    older, newer = grad, torch.zeros_like(grad)
    for j in range(1, len(scales)):
        if j == 1:
            older, newer = grad, _hop((crow, col, value), grad, newer, totals, scales[j], 1, True)
        else:
            base = older.clone() if j == 2 else older  # the gradient itself stays as it is
            older, newer = newer, _hop((crow, col, value), newer, base, totals, scales[j], 2, True)
    return totals


#: Neighbours that a plain product fetches at once, by the columns that one program works on.
AT_ONCE = {8: 32, 16: 32, 32: 16, 64: 16}


def _columns_at_once(width: int) -> int:
    return min(max(min(AT_ONCE), triton.next_power_of_2(width)), max(AT_ONCE))


@triton.jit(do_not_specialize=["alpha", "beta"])
def _product_kernel(
    crow, col, value, x, rest, out, width, alpha, beta, REST: tl.constexpr, BLOCK: tl.constexpr,
    NEIGHBOURS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    total = _row_times(crow, col, value, x, row, columns, inside, width, BLOCK, NEIGHBOURS)
    place = row * width + columns
    if REST:
        total = alpha * total + beta * tl.load(rest + place, mask=inside, other=0.0)
    tl.store(out + place, total.to(x.dtype.element_ty), mask=inside)


def multiply(
    crow: Tensor, col: Tensor, value: Tensor, x: Tensor, rest: Tensor | None = None, beta: float = 1, alpha: float = 1
) -> Tensor:
    """Returns :obj:`beta * rest + alpha * matrix @ x`, or without :obj:`rest` just the product."""
    x, rows, width = x.contiguous(), crow.numel() - 1, x.size(1)
    out = x.new_empty(rows, width)
    block = _columns_at_once(width)
    _product_kernel[(rows, triton.cdiv(width, block))](
        crow, col, value, x, x if rest is None else rest.contiguous(), out, width, float(alpha), float(beta),
        REST=rest is not None, BLOCK=block, NEIGHBOURS=AT_ONCE[block], num_warps=1,
    )  # fmt: skip
    return out


@triton.jit
def _sampled_kernel(crow, col, left, right, out, width, BLOCK: tl.constexpr, NEIGHBOURS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start, end = tl.load(crow + row), tl.load(crow + row + 1)
    for first in range(start, end, NEIGHBOURS):
        entries = first + tl.arange(0, NEIGHBOURS)
        valid = entries < end
        neighbours = tl.load(col + entries, mask=valid, other=0)
        total = tl.zeros([NEIGHBOURS], dtype=left.dtype.element_ty)
        for begin in range(0, width, BLOCK):
            columns = begin + tl.arange(0, BLOCK)
            inside = columns < width
            own = tl.load(left + row * width + columns, mask=inside, other=0.0)
            places = neighbours[:, None] * width + columns[None, :]
            found = tl.load(right + places, mask=valid[:, None] & inside[None, :], other=0.0)
            total += tl.sum(own[None, :] * found, axis=1)
        tl.store(out + entries, total, mask=valid)


def sampled(crow: Tensor, col: Tensor, left: Tensor, right: Tensor) -> Tensor:
    r"""Returns the entries of :math:`\mathbf{L} \mathbf{R}^{\top}` at those of a CSR pattern.

    Args:
        crow, col (torch.Tensor): The pattern.
        left, right (torch.Tensor): The two narrow matrices.
    """
    left, right, width = left.contiguous(), right.contiguous(), left.size(1)
    out = left.new_empty(col.numel())
    block = _columns_at_once(width)
    _sampled_kernel[(crow.numel() - 1,)](
        crow, col, left, right, out, width, BLOCK=block, NEIGHBOURS=AT_ONCE[block], num_warps=1
    )
    return out
