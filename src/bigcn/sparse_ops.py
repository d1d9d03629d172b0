"""Products with sparse matrices as operators that compile, map and differentiate.

PyTorch's CSR product is an order of magnitude faster on a CPU than gathering and scattering messages, but its backward
pass converts the matrix anew each time, and neither :func:`torch.compile` nor :func:`torch.func.vmap` take sparse
tensors. The operators here work on the plain arrays, keep the transpose, and do both.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# PyTorch calls its CSR layout a prototype once per process; users of this library did not choose the layout.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
warnings.filterwarnings("ignore", message="Sparse CSC tensor support is in beta state")


@torch.library.custom_op("bigcn::spmm", mutates_args=())
def spmm(
    crow: Tensor, col: Tensor, value: Tensor, crow_t: Tensor, col_t: Tensor, value_t: Tensor, block: Tensor
) -> Tensor:
    """Multiplies a CSR matrix with a dense block; the transposed arrays serve the backward pass."""
    dtype = _product_dtype(block)
    multiply = _multiplier(crow, col, value, block.to(dtype))
    with _own_precision(block):
        return multiply(block.to(dtype)).to(block.dtype)


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
    grad_value = None
    if block:
        grad_value = (grad.index_select(0, row_numbers(crow)) * block[0].index_select(0, col)).sum(-1)
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
    blocks, scales = parts.to(dtype).contiguous(), coefficients.to(dtype).unsqueeze(2)
    multiply = _multiplier(crow, col, value, blocks[0])

    def term(j: int) -> Tensor:
        return blocks[0] * scales[j, 0] if len(blocks) == 1 else (blocks * scales[j]).sum(dim=0)

    degree = coefficients.size(0) - 1
    older, newer = None, term(degree)
    with _own_precision(parts):
        for j in range(degree - 1, -1, -1):
            rest = term(j) if older is None else term(j).sub_(older)
            older, newer = newer, multiply(newer, rest, 1, 2 if j else 1)
    return newer.to(parts.dtype)


@torch.library.custom_op("bigcn::chebyshev_adjoint", mutates_args=())
def chebyshev_adjoint(crow: Tensor, col: Tensor, value: Tensor, coefficients: Tensor, grad: Tensor) -> Tensor:
    r"""Returns :math:`\sum_j c_{jm} T_j(\mathbf{N}) \mathbf{G}` for every part :math:`m`, the transpose of
    :func:`chebyshev`.
    """
    dtype = _product_dtype(grad)
    scales = coefficients.to(dtype).unsqueeze(2)
    older, newer = grad.to(dtype), None
    multiply = _multiplier(crow, col, value, older)
    total = scales[0] * older
    with _own_precision(grad):
        for j in range(1, coefficients.size(0)):
            if newer is None:
                newer = multiply(older)
            else:
                older, newer = newer, multiply(newer, older, -1, 2)
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


def _multiplier(crow: Tensor, col: Tensor, value: Tensor, block: Tensor) -> Callable[..., Tensor]:
    """Returns a function of :obj:`x`, :obj:`rest`, :obj:`beta` and :obj:`alpha` that multiplies the matrix and adds."""
    value = value.to(block.dtype)
    if block.is_cuda and torch.are_deterministic_algorithms_enabled():
        # cuSPARSE adds up long rows in any order; a sorted scatter does not.
        row = row_numbers(crow)

        def multiply(x: Tensor, rest: Tensor | None = None, beta: float = 1, alpha: float = 1) -> Tensor:
            start = x.new_zeros(crow.numel() - 1, x.size(1)) if rest is None else beta * rest
            return start.index_add(0, row, value.unsqueeze(1) * x.index_select(0, col), alpha=alpha)

        return multiply
    matrix = torch.sparse_csr_tensor(crow, col, value, (crow.numel() - 1, block.size(0)), check_invariants=False)

    def multiply_add(x: Tensor, rest: Tensor | None = None, beta: float = 1, alpha: float = 1) -> Tensor:
        return matrix @ x if rest is None else torch.addmm(rest, matrix, x, beta=beta, alpha=alpha)

    return multiply_add


def row_numbers(pointers: Tensor) -> Tensor:
    """Returns the row of every entry of a CSR matrix."""
    counts = pointers[1:] - pointers[:-1]
    return torch.repeat_interleave(torch.arange(counts.numel(), device=pointers.device), counts)
