"""Filters of sparse graphs, a polynomial of many hops, as operators that compile, map and differentiate."""

from typing import Any

import torch
from torch import Tensor

from bigcn.sparse_diagonal import diagonal_blocks, mapped
from bigcn.sparse_ops import LONGEST_ROW, fused_kernels, multiplier, own_precision, product_dtype


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
        coefficients (torch.Tensor): Shape :obj:`[degree + 1, num_parts, groups, h]`, for as many groups of rows of
            equal size, or one for :obj:`h`.
        parts (torch.Tensor): Shape :obj:`[num_parts, n, h]`.
    """
    dtype = product_dtype(parts)
    rows, width = parts.shape[1:]
    scales = coefficients.to(dtype).unsqueeze(3)
    blocks = parts.to(dtype).contiguous().view(len(parts), scales.size(2), -1, width)
    if (kernels := fused_kernels(blocks, crow, LONGEST_ROW)) is not None:
        arrays = crow, col, value.to(dtype).contiguous()
        out: Tensor = kernels.clenshaw(*arrays, scales.squeeze(3).contiguous(), blocks.view(len(parts), rows, width))
        return out.to(parts.dtype)
    multiply = multiplier(crow, col, value, blocks[0].view(rows, width))

    def minus_term(total: Tensor, j: int) -> Tensor:
        """Subtracts the j-th term from a total, part by part, in as few passes over memory as it takes."""
        total = torch.addcmul(total.reshape(blocks.shape[1:]), blocks[0], scales[j, 0], value=-1)
        for m in range(1, len(blocks)):
            total.addcmul_(blocks[m], scales[j, m], value=-1)
        return total.view(rows, width)

    degree = coefficients.size(0) - 1
    older, newer = None, minus_term(torch.zeros_like(blocks[0]), degree).neg_()
    with own_precision(parts):
        for j in range(degree - 1, -1, -1):
            rest = minus_term(torch.zeros_like(blocks[0]) if older is None else older, j)
            older, newer = newer, multiply(newer, rest, -1, 2 if j else 1)
    return newer.to(parts.dtype)


@torch.library.custom_op("bigcn::chebyshev_adjoint", mutates_args=())
def chebyshev_adjoint(crow: Tensor, col: Tensor, value: Tensor, coefficients: Tensor, grad: Tensor) -> Tensor:
    r"""Returns :math:`\sum_j c_{jm} T_j(\mathbf{N}) \mathbf{G}` for every part :math:`m`, the transpose of
    :func:`chebyshev`.
    """
    dtype = product_dtype(grad)
    scales = coefficients.to(dtype).unsqueeze(3)
    older, newer = grad.to(dtype), None
    if (kernels := fused_kernels(older, crow, LONGEST_ROW)) is not None:
        arrays = crow, col, value.to(dtype).contiguous()
        out: Tensor = kernels.clenshaw_adjoint(*arrays, scales.squeeze(3).contiguous(), older.contiguous())
        return out.to(grad.dtype)
    multiply = multiplier(crow, col, value, older)
    groups = scales.size(2), -1, grad.size(1)
    total = scales[0] * older.reshape(groups)
    with own_precision(grad):
        for j in range(1, coefficients.size(0)):
            if newer is None:
                newer = multiply(older)
            else:
                older, newer = newer, multiply(newer, older, -1, 2)
            total.addcmul_(scales[j], newer.reshape(groups))
    return total.reshape(coefficients.size(1), *grad.shape).to(grad.dtype)


@chebyshev.register_fake
def _(*args: Tensor) -> Tensor:
    return torch.empty_like(args[-1][0])


@chebyshev_adjoint.register_fake
def _(crow: Tensor, col: Tensor, value: Tensor, coefficients: Tensor, grad: Tensor) -> Tensor:
    return grad.new_empty(coefficients.size(1), *grad.shape)


def _chebyshev_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:7])


def _chebyshev_backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
    *arrays, coefficients = ctx.saved_tensors  # type: ignore[attr-defined]
    if torch.is_grad_enabled():
        # Who differentiates once more gets each part by the operator itself, on the transposed matrix.
        transposed, block = (*arrays[3:], *arrays[:3]), grad.contiguous().unsqueeze(0)
        parts = [chebyshev(*transposed, coefficients[:, m : m + 1], block) for m in range(coefficients.size(1))]
        return (None,) * 7 + (torch.stack(parts),)
    return (None,) * 7 + (chebyshev_adjoint(*arrays[3:], coefficients, grad.contiguous()),)


chebyshev.register_autograd(_chebyshev_backward, setup_context=_chebyshev_context)


def _members_as_columns(coefficients: Tensor, dim: int | None, members: int, width: int) -> Tensor:
    """Lays the coefficients of each member beside each other, as wide as the members' blocks are."""
    if dim is None:
        return coefficients if coefficients.size(3) == 1 else coefficients.repeat(1, 1, 1, members)
    stacked = coefficients.movedim(dim, 3)
    return stacked.expand(*stacked.shape[:4], width).reshape(*stacked.shape[:3], members * width)


def _members_as_groups(coefficients: Tensor, dim: int | None, members: int) -> Tensor:
    """Lays the coefficients of each member below each other, for members whose rows follow each other."""
    stacked = mapped(coefficients, dim, members, 2)
    return stacked.reshape(*stacked.shape[:2], members * stacked.size(3), stacked.size(4))


@chebyshev.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
    *arrays, coefficients, parts = args
    members = info.batch_size
    if any(dim is not None for dim in in_dims[:6]):
        parts = mapped(parts, in_dims[7], members, 1)
        count, _, rows, width = parts.shape
        groups = _members_as_groups(coefficients, in_dims[6], members)
        blocks = diagonal_blocks(arrays, in_dims[:6], members)
        return chebyshev(*blocks, groups, parts.reshape(count, -1, width)).view(members, rows, width), 0
    parts = mapped(parts, in_dims[7], members, 2)
    count, rows, _, width = parts.shape
    wide = _members_as_columns(coefficients, in_dims[6], members, width)
    return chebyshev(*arrays, wide, parts.reshape(count, rows, -1)).view(rows, members, width), 1


@chebyshev_adjoint.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
    crow, col, value, coefficients, grad = args
    members = info.batch_size
    if any(dim is not None for dim in in_dims[:3]):
        grad = mapped(grad, in_dims[4], members, 0)
        _, rows, width = grad.shape
        groups = _members_as_groups(coefficients, in_dims[3], members)
        blocks = diagonal_blocks((crow, col, value), in_dims[:3], members)
        out = chebyshev_adjoint(*blocks, groups, grad.reshape(-1, width))
        return out.view(out.size(0), members, rows, width), 1
    grad = mapped(grad, in_dims[4], members, 1)
    rows, _, width = grad.shape
    wide = _members_as_columns(coefficients, in_dims[3], members, width)
    out = chebyshev_adjoint(crow, col, value, wide, grad.reshape(rows, -1))
    return out.view(out.size(0), rows, members, width), 2
