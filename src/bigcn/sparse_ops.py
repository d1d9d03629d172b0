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
from bigcn.sparse_diagonal import diagonal_blocks, mapped, row_numbers

# PyTorch calls its CSR layout a prototype once per process; users of this library did not choose the layout.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
warnings.filterwarnings("ignore", message="Sparse CSC tensor support is in beta state")


#: Pointers, columns and values of a matrix and of its transpose.
Arrays = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


@torch.library.custom_op("bigcn::spmm", mutates_args=())
def spmm(
    crow: Tensor, col: Tensor, value: Tensor, crow_t: Tensor, col_t: Tensor, value_t: Tensor, block: Tensor
) -> Tensor:
    """Multiplies a CSR matrix with a dense block; the transposed arrays serve the backward pass."""
    return multiply(crow, col, value, block)


def multiply(crow: Tensor, col: Tensor, value: Tensor, block: Tensor) -> Tensor:
    """Multiplies a CSR matrix with a dense block, without gradients."""
    dtype = product_dtype(block)
    ready = block.to(dtype) if dtype != block.dtype else block  # on small graphs even a call without effect takes time
    times = multiplier(crow, col, value, ready)
    with own_precision(block):
        out = times(ready)
    return out.to(block.dtype) if dtype != block.dtype else out


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
        return multiply(crow, col, value, block)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        crow, col, value, crow_t, col_t, value_t = ctx.saved_tensors
        return (None,) * 6 + (product(crow, col, value, crow_t, col_t, value_t, grads[0].contiguous()),)


class _Damped(torch.autograd.Function):
    r"""A block moved towards its hop, plus another: :math:`(1 - s) \mathbf{X} + s \mathbf{A} \mathbf{X} + \mathbf{R}`,
    in two calls forward and in one backward.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        crow, col, value, crow_t, col_t, value_t, block, rest, strength = inputs
        ctx.save_for_backward(crow_t, col_t, value_t, crow, col, value)
        ctx.strength = strength
        start = torch.add(rest, block, alpha=1 - strength)
        return multiplier(crow, col, value, block)(block, start, 1, strength)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        crow, col, value, crow_t, col_t, value_t = ctx.saved_tensors
        grad = grads[0].contiguous()
        if torch.is_grad_enabled():  # it will be differentiated once more
            back = torch.lerp(grad, product(crow, col, value, crow_t, col_t, value_t, grad), ctx.strength)
        else:
            back = multiplier(crow, col, value, grad)(grad, grad, 1 - ctx.strength, ctx.strength)
        return (None,) * 6 + (back, grad, None)


def damped(arrays: Arrays, block: Tensor, rest: Tensor, strength: Tensor) -> Tensor | None:
    """Moves a block towards its hop and adds another, or returns :obj:`None` where that is no single call.

    Args:
        arrays (tuple[torch.Tensor, ...]): The matrix, see :func:`spmm`.
        block, rest (torch.Tensor): The blocks.
        strength (torch.Tensor): How far, a single number.
    """
    simple = block.is_cpu and block.dim() == 2 and block.dtype == arrays[2].dtype == rest.dtype == product_dtype(block)
    if not simple or strength.requires_grad or torch.is_autocast_enabled("cpu") or not _is_plain(arrays, block):
        return None
    out: Tensor = _Damped.apply(*arrays, block.contiguous(), rest, strength.item())
    return out


def _is_plain(arrays: Arrays, block: Tensor) -> bool:
    """Tells whether nothing is compiled, mapped or differentiated by the entries of the matrix."""
    if type(block) is not Tensor or arrays[2].requires_grad or arrays[5].requires_grad:
        return False
    return not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is None


def product(
    crow: Tensor, col: Tensor, value: Tensor, crow_t: Tensor, col_t: Tensor, value_t: Tensor, block: Tensor
) -> Tensor:
    """Multiplies a CSR matrix with a dense block, see :func:`spmm`, by the shortest way there is."""
    arrays = crow, col, value, crow_t, col_t, value_t
    if not _is_plain(arrays, block):
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
    return out.view(out.size(0), members, width), 1


#: The fused hops of a filter follow each other, and the longest row keeps all others waiting in each; that of a single
#: product may be longer.
LONGEST_ROW, LONGEST_OF_ONE = 256, 8192
#: Where rows are long, wider blocks than this are left to cuSPARSE, which divides long rows.
WIDEST = 64
_longest: MutableMapping[Tensor, tuple[int, int]] = WeakTensorKeyDictionary()


def fused_kernels(block: Tensor, crow: Tensor, longest: int) -> Any:
    """Returns our kernels, or :obj:`None` where they do not suit or there is no Triton.

    Args:
        block (torch.Tensor): The dense block.
        crow (torch.Tensor): The pointers of the matrix.
        longest (int): How many entries a row may have.
    """
    if not block.is_cuda or block.numel() == 0 or block.dtype not in (torch.float32, torch.float64):
        return None
    known = _longest.get(crow)
    if known is None or known[0] != crow._version:
        if torch.cuda.is_current_stream_capturing():
            return None  # to look would make it wait
        known = crow._version, int(crow.diff().max())
        _longest[crow] = known
    return _kernels() if known[1] <= longest else None


@cache
def _kernels() -> Any:
    if importlib.util.find_spec("triton") is None:
        return None
    return importlib.import_module("bigcn.sparse_triton")


def product_dtype(block: Tensor) -> torch.dtype:
    """Returns the precision in which a block is multiplied."""
    # Neither MKL nor cuSPARSE multiplies half-precision CSR matrices everywhere, so these take a detour.
    return torch.float32 if block.dtype in (torch.float16, torch.bfloat16) else block.dtype


def own_precision(*tensors: Tensor | None) -> AbstractContextManager[object]:
    """Keeps autocast out, which would ask for half-precision products of these tensors."""
    kind = next((tensor.device.type for tensor in tensors if tensor is not None), "cpu")
    lowers = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if lowers else nullcontext()


def multiplier(crow: Tensor, col: Tensor, value: Tensor, block: Tensor) -> Callable[..., Tensor]:
    """Returns a function of :obj:`x`, :obj:`rest`, :obj:`beta` and :obj:`alpha` that multiplies the matrix and adds."""
    value = value if value.dtype == block.dtype else value.to(block.dtype)
    if block.is_cuda and torch.are_deterministic_algorithms_enabled():
        # cuSPARSE adds up long rows in any order; a sorted scatter does not.
        row = row_numbers(crow)

        def scatter(x: Tensor, rest: Tensor | None = None, beta: float = 1, alpha: float = 1) -> Tensor:
            start = x.new_zeros(crow.numel() - 1, x.size(1)) if rest is None else beta * rest
            return start.index_add(0, row, value.unsqueeze(1) * x.index_select(0, col), alpha=alpha)

        return scatter
    if (blocks := column_blocks(crow, col, value, block)) is not None:
        return partial(multiply_blocks, blocks)
    longest = LONGEST_OF_ONE if block.size(1) <= WIDEST else LONGEST_ROW
    if (kernels := fused_kernels(block, crow, longest)) is not None:
        return partial(kernels.multiply, crow, col, value)
    matrix = torch.sparse_csr_tensor(crow, col, value, (crow.numel() - 1, block.size(0)), check_invariants=False)

    def multiply_add(x: Tensor, rest: Tensor | None = None, beta: float = 1, alpha: float = 1) -> Tensor:
        return matrix @ x if rest is None else torch.addmm(rest, matrix, x, beta=beta, alpha=alpha)

    return multiply_add


def sampled_product(crow: Tensor, col: Tensor, left: Tensor, right: Tensor) -> Tensor:
    r"""Returns the entries of :math:`\mathbf{L} \mathbf{R}^{\top}` at those of a CSR pattern."""
    if (kernels := fused_kernels(left, crow, LONGEST_OF_ONE)) is not None:
        out: Tensor = kernels.sampled(crow, col, left, right)
        return out
    size = crow.numel() - 1, right.size(0)
    empty = torch.sparse_csr_tensor(crow, col, left.new_zeros(col.numel()), size, check_invariants=False)
    return torch.sparse.sampled_addmm(empty, left, right.t(), beta=0.0).values()
