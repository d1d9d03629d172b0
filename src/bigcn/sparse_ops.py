"""Products with sparse matrices as operators that compile, map and differentiate.

PyTorch's CSR product is an order of magnitude faster on a CPU than gathering and scattering messages, but its backward
pass converts the matrix anew each time, and neither :func:`torch.compile` nor :func:`torch.func.vmap` take sparse
tensors. The operators here work on the plain arrays, keep the transpose, and do both.
"""

import importlib
import importlib.util
import warnings
from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from bigcn.sparse_blocks import column_blocks
from bigcn.sparse_blocks import multiply as multiply_blocks
from bigcn.sparse_diagonal import diagonal_blocks, mapped

# PyTorch calls its CSR layout a prototype once per process; users of this library did not choose the layout.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
warnings.filterwarnings("ignore", message="Sparse CSC tensor support is in beta state")


@torch.library.custom_op("bigcn::spmm", mutates_args=())
def spmm(
    crow: Tensor, col: Tensor, value: Tensor, crow_t: Tensor, col_t: Tensor, value_t: Tensor, block: Tensor
) -> Tensor:
    """Multiplies a CSR matrix with a dense block; the transposed arrays serve the backward pass."""
    return _multiply(crow, col, value, block)


def _multiply(crow: Tensor, col: Tensor, value: Tensor, block: Tensor) -> Tensor:
    dtype = _product_dtype(block)
    multiply = _multiplier(crow, col, value, block.to(dtype))
    with own_precision(block):
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


class _Product(torch.autograd.Function):
    """The same product without what an operator needs to be compiled, mapped or differentiated by its values, which on
    a small graph takes longer than the product.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        crow, col, value, crow_t, col_t, value_t, block = inputs
        ctx.save_for_backward(crow_t, col_t, value_t, crow, col, value)
        return _multiply(crow, col, value, block)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        crow, col, value, crow_t, col_t, value_t = ctx.saved_tensors
        return (None,) * 6 + (product(crow, col, value, crow_t, col_t, value_t, grads[0].contiguous()),)


def product(
    crow: Tensor, col: Tensor, value: Tensor, crow_t: Tensor, col_t: Tensor, value_t: Tensor, block: Tensor
) -> Tensor:
    """Multiplies a CSR matrix with a dense block, see :func:`spmm`, by the shortest way there is."""
    arrays = crow, col, value, crow_t, col_t, value_t
    plain = type(block) is Tensor and not (value.requires_grad or value_t.requires_grad)
    if not plain or torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None:
        return spmm(*arrays, block)
    out: Tensor = _Product.apply(*arrays, block)
    return out


@spmm.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
    *arrays, block = args
    if any(dim is not None for dim in in_dims[:6]):
        block = mapped(block, in_dims[6], info.batch_size, 0)
        out = spmm(*diagonal_blocks(arrays, in_dims[:6], info.batch_size), block.reshape(-1, block.size(2)))
        return out.view(info.batch_size, -1, block.size(2)), 0
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
        coefficients (torch.Tensor): Shape :obj:`[degree + 1, num_parts, groups, h]`, for as many groups of rows of
            equal size, or one for :obj:`h`.
        parts (torch.Tensor): Shape :obj:`[num_parts, n, h]`.
    """
    dtype = _product_dtype(parts)
    rows, width = parts.shape[1:]
    scales = coefficients.to(dtype).unsqueeze(3)
    blocks = parts.to(dtype).contiguous().view(len(parts), scales.size(2), -1, width)
    if (kernels := fused_kernels(blocks, crow)) is not None:
        arrays = crow, col, value.to(dtype).contiguous()
        out: Tensor = kernels.clenshaw(*arrays, scales.squeeze(3).contiguous(), blocks.view(len(parts), rows, width))
        return out.to(parts.dtype)
    multiply = _multiplier(crow, col, value, blocks[0].view(rows, width))

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
    dtype = _product_dtype(grad)
    scales = coefficients.to(dtype).unsqueeze(3)
    older, newer = grad.to(dtype), None
    if (kernels := fused_kernels(older, crow)) is not None:
        arrays = crow, col, value.to(dtype).contiguous()
        out: Tensor = kernels.clenshaw_adjoint(*arrays, scales.squeeze(3).contiguous(), older.contiguous())
        return out.to(grad.dtype)
    multiply = _multiplier(crow, col, value, older)
    groups = scales.size(2), -1, grad.size(1)
    total = scales[0] * older.reshape(groups)
    with own_precision(grad):
        for j in range(1, coefficients.size(0)):
            if newer is None:
                newer = multiply(older)
            else:
                older, newer = newer, multiply(newer, older, -1, 2)
            total.addcmul_(scales[j], newer.reshape(groups))
    return total.reshape(-1, *grad.shape).to(grad.dtype)


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
        return out.view(-1, members, rows, width), 1
    grad = mapped(grad, in_dims[4], members, 1)
    rows, _, width = grad.shape
    wide = _members_as_columns(coefficients, in_dims[3], members, width)
    out = chebyshev_adjoint(crow, col, value, wide, grad.reshape(rows, -1))
    return out.view(-1, rows, members, width), 2


#: A fused hop walks along each row by itself, so that a very long one would keep all others waiting.
LONGEST_ROW = 256
_short: MutableMapping[Tensor, tuple[int, bool]] = WeakTensorKeyDictionary()


def fused_kernels(block: Tensor, crow: Tensor) -> Any:
    """Returns the kernels that take a hop at once, or :obj:`None` where they do not suit or there is no Triton."""
    if not block.is_cuda or block.numel() == 0 or block.dtype not in (torch.float32, torch.float64):
        return None
    known = _short.get(crow)
    if known is None or known[0] != crow._version:
        if torch.cuda.is_current_stream_capturing():
            return None  # to look would make it wait
        known = crow._version, int(crow.diff().max()) <= LONGEST_ROW
        _short[crow] = known
    return _kernels() if known[1] else None


@cache
def _kernels() -> Any:
    if importlib.util.find_spec("triton") is None:
        return None
    return importlib.import_module("bigcn.sparse_triton")


def _product_dtype(block: Tensor) -> torch.dtype:
    # Neither MKL nor cuSPARSE multiplies half-precision CSR matrices everywhere, so these take a detour.
    return torch.float32 if block.dtype in (torch.float16, torch.bfloat16) else block.dtype


def own_precision(block: Tensor) -> AbstractContextManager[object]:
    """Keeps autocast out, which would ask for a half-precision product."""
    kind = block.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


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
    if (blocks := column_blocks(crow, col, value, block)) is not None:
        return partial(multiply_blocks, blocks)
    matrix = torch.sparse_csr_tensor(crow, col, value, (crow.numel() - 1, block.size(0)), check_invariants=False)

    def multiply_add(x: Tensor, rest: Tensor | None = None, beta: float = 1, alpha: float = 1) -> Tensor:
        return matrix @ x if rest is None else torch.addmm(rest, matrix, x, beta=beta, alpha=alpha)

    return multiply_add


def row_numbers(pointers: Tensor) -> Tensor:
    """Returns the row of every entry of a CSR matrix."""
    counts = pointers[1:] - pointers[:-1]
    return torch.repeat_interleave(torch.arange(counts.numel(), device=pointers.device), counts)
