r"""Products with a learnable graph as one autograd function.

A graph of :math:`d` features has :math:`d^2 / 2` logits, and reading and writing them is what a training step costs.
Plain autograd would keep and combine a dozen matrices of that size; here the forward pass makes one, the strict upper
triangle :math:`\mathbf{S}` of the sigmoid, and the backward pass makes one, the gradient, as a product of two narrow
matrices. The symmetric adjacency is never formed.

The three passes over the triangle are operators, so that they compile, and so that mapping over the parameters of a
population is one pass over all of its members. Triton computes them on a GPU where it can.
"""

import functools
import types
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bigcn.feature_graphs import learnable_strips

#: If false, no GPU uses Triton.
USE_TRITON = True


def inverse_root(degree: Tensor, self_loops: bool) -> Tensor:
    """Returns one over the root of the degrees; without self-loops a sigmoid may have vanished in all of a row."""
    return (degree + 1 if self_loops else degree.clamp(min=1e-12)).rsqrt()


@functools.cache
def _triton() -> types.ModuleType | None:
    """Returns the kernels if this machine can run them."""
    try:
        from bigcn.feature_graphs import learnable_triton
    except ImportError:
        return None
    return learnable_triton if learnable_triton.works() else None


def _passes(tensor: Tensor) -> Any:
    """Returns the module whose functions suit a tensor best."""
    fits = tensor.is_cuda and tensor.dtype == torch.float32 and USE_TRITON
    return (_triton() if fits else None) or learnable_strips


@torch.library.custom_op("bigcn::learnable_triangle", mutates_args=())
def _triangle_op(packed: Tensor, size: int) -> tuple[Tensor, Tensor]:
    upper, degree = _passes(packed).triangle(packed.contiguous(), size)
    return upper, degree


@torch.library.custom_op("bigcn::learnable_product", mutates_args=())
def _product_op(upper: Tensor, scale: Tensor, block: Tensor, self_loops: bool, row_sums: bool = False) -> Tensor:
    out: Tensor = _passes(upper).product(upper.contiguous(), scale, block, self_loops, row_sums)
    return out.contiguous()


@torch.library.custom_op("bigcn::learnable_gradient", mutates_args=())
def _gradient_op(first: Tensor, second: Tensor, upper: Tensor) -> Tensor:
    out: Tensor = _passes(upper).gradient(first, second, upper.contiguous())
    return out


@_triangle_op.register_fake
def _(packed: Tensor, size: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(packed, memory_format=torch.contiguous_format), packed.new_empty(*packed.shape[:-1], size)


@_product_op.register_fake
def _(upper: Tensor, scale: Tensor, block: Tensor, self_loops: bool, row_sums: bool = False) -> Tensor:
    return block.new_empty(*block.shape[:-2], block.size(-2) + int(row_sums), block.size(-1))


@_gradient_op.register_fake
def _(first: Tensor, second: Tensor, upper: Tensor) -> Tensor:
    return torch.empty_like(upper, memory_format=torch.contiguous_format)


def _map_over_members(operator: Any) -> None:
    """Has an operator take all members of a population at once, in a leading dimension."""

    def members(arg: Any, dim: int | None, count: int) -> Any:
        if not isinstance(arg, Tensor):
            return arg
        return arg.expand(count, *arg.shape) if dim is None else arg.movedim(dim, 0)

    def mapped(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        out = operator(*(members(arg, dim, info.batch_size) for arg, dim in zip(args, in_dims, strict=True)))
        return out, 0 if isinstance(out, Tensor) else (0,) * len(out)

    operator.register_vmap(mapped)


for _operator in (_triangle_op, _product_op, _gradient_op):
    _map_over_members(_operator)


def _must_be_seen(*tensors: Tensor) -> bool:
    """Tells whether tensors are traced or mapped, so that a pass must be an operator; calling one takes its time."""
    return torch.compiler.is_compiling() or any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors))


def _triangle(packed: Tensor, size: int) -> tuple[Tensor, Tensor]:
    call = _triangle_op if _must_be_seen(packed) else _passes(packed).triangle
    upper, degree = call(packed, size)
    return upper, degree


def _product(upper: Tensor, scale: Tensor, block: Tensor, self_loops: bool, row_sums: bool = False) -> Tensor:
    call = _product_op if _must_be_seen(upper, scale, block) else _passes(upper).product
    out: Tensor = call(upper, scale, block, self_loops, row_sums)
    return out


def _gradient(first: Tensor, second: Tensor, upper: Tensor) -> Tensor:
    call = _gradient_op if _must_be_seen(first, second, upper) else _passes(upper).gradient
    out: Tensor = call(first, second, upper)
    return out


class TaylorPowers(torch.autograd.Function):
    r"""The powers :math:`\mathbf{W}^{\top} \mathbf{B}^b` of :math:`\mathbf{B} = \alpha \mathbf{I} + \beta \mathbf{N}`,
    with the two sums that the L1 norm needs.

    With :math:`\mathbf{M} = \mathbf{S} + \mathbf{S}^{\top} + \mathbf{I}`, :math:`r = (\mathbf{M}\mathbf{1})^{-1/2}` and
    :math:`\mathbf{N} = \mathrm{diag}(r) \mathbf{M} \mathrm{diag}(r)`, returns the stacked powers,
    :math:`\mathbf{1}^{\top}\mathbf{N}\mathbf{1}` and :math:`\mathrm{tr}\,\mathbf{N}`. Blocks lie, with one column per
    feature, as the weights of a layer do.

    Every feature must have a positive degree, which self-loops or a second feature ensure.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        packed: Tensor, block: Tensor, alpha: Tensor, beta: Tensor, iterations: int, self_loops: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        upper, degree = _triangle(packed, block.size(1))
        scale = inverse_root(degree, self_loops).unsqueeze(0)
        powers, hops = [block], []
        for step in range(iterations):
            hop = _product(upper, scale, powers[-1], self_loops, row_sums=step == 0)
            if step == 0:
                hop, row_sums = hop[:-1], hop[-1:]
            hops.append(hop)
            powers.append(torch.addcmul(alpha * powers[-1], beta, hop))
        trace = (scale**2).sum() if self_loops else torch.zeros_like(row_sums).sum()
        return torch.stack(powers), row_sums.sum(), trace, torch.stack(hops), upper, torch.cat([scale, row_sums])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, _, alpha, beta, _, self_loops = inputs
        powers, _, _, hops, upper, vectors = output
        ctx.mark_non_differentiable(hops, upper, vectors)
        ctx.set_materialize_grads(False)  # or zeros as large as the triangle would be made for it
        ctx.save_for_backward(powers, hops, upper, vectors, alpha, beta)
        ctx.self_loops = self_loops

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_powers: Tensor | None, grad_total: Tensor | None, grad_trace: Tensor | None, *unused: None
    ) -> Any:
        powers, hops, upper, vectors, alpha, beta = ctx.saved_tensors
        grad_powers = torch.zeros_like(powers) if grad_powers is None else grad_powers.contiguous()
        none = powers.new_zeros(())
        grad_total = none if grad_total is None else grad_total
        grad_trace = none if grad_trace is None else grad_trace
        scale, row_sums = vectors[:1], vectors[1:]
        grads, hopped = [grad_powers[-1]], []
        for b in range(len(hops) - 1, -1, -1):
            hopped.append(_product(upper, scale, grads[-1], ctx.self_loops))
            grads.append(torch.addcmul(torch.addcmul(grad_powers[b], alpha, grads[-1]), beta, hopped[-1]))
        *above, grad_block = grads
        grad, hopped_grad = torch.stack(above[::-1]), torch.stack(hopped[::-1])
        below = powers[:-1]
        touched = torch.addcmul(grad * hops, below, hopped_grad).sum(dim=(0, 1)).unsqueeze(0)
        grad_scale = (beta * touched + 2 * grad_total * row_sums) / scale
        if ctx.self_loops:
            grad_scale = grad_scale + 2 * grad_trace * scale
        grad_degree = -0.5 * scale**3 * grad_scale
        ones = torch.ones_like(scale)
        left, right = (beta * scale * grad).flatten(0, 1), (scale * below).flatten(0, 1)
        # Each outer product and its mirror image, since every weight stands in two places of M.
        first = torch.cat([left, right, 2 * grad_total * scale, grad_degree, ones])
        second = torch.cat([right, left, scale, ones, grad_degree])
        return _gradient(first, second, upper), grad_block, None, None, None, None


class _PlainPowers(torch.autograd.Function):
    """The same for what is neither traced nor mapped: PyTorch looks up the signature of a function whose context is set
    up apart in every call, which takes longer than a product with a small graph.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
        output = TaylorPowers.forward(*inputs)
        TaylorPowers.setup_context(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return TaylorPowers.backward(ctx, *grads)


def taylor_powers(
    packed: Tensor, block: Tensor, alpha: Tensor, beta: Tensor, iterations: int, self_loops: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the powers and the two sums of :class:`TaylorPowers`."""
    function = TaylorPowers if _must_be_seen(packed, block, alpha, beta) else _PlainPowers
    powers, total, trace, *_ = function.apply(packed, block, alpha, beta, iterations, self_loops)
    return powers, total, trace
