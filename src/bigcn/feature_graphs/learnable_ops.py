r"""Products with a learnable graph as one autograd function.

A graph of :math:`d` features has :math:`d^2` logits, and reading and writing them is what a training step costs. Plain
autograd would keep and combine a dozen matrices of that size; here the forward pass makes one, the strict upper
triangle :math:`\mathbf{S}` of the sigmoid, and the backward pass makes one, the gradient, as a product of two narrow
matrices. The symmetric adjacency is never formed.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: The rows of a strip: narrow enough to stay in the cache of a core between its two products.
STRIP = 256


def triangle(logits: Tensor) -> Tensor:
    r"""Returns :math:`\mathbf{S}`, the strict upper triangle of the sigmoid of the logits."""
    return logits.sigmoid().triu(1)


def symmetric_product(upper: Tensor, block: Tensor, self_loops: bool) -> Tensor:
    r"""Returns :math:`(\mathbf{S} + \mathbf{S}^{\top} + \mathbf{I})` times a block."""
    out = upper @ block + upper.transpose(-1, -2) @ block
    return out + block if self_loops else out


def inverse_root(degree: Tensor, self_loops: bool) -> Tensor:
    """Returns one over the root of the degrees as a column; without self-loops a sigmoid may have vanished in all."""
    return (degree + 1 if self_loops else degree.clamp(min=1e-12)).rsqrt().unsqueeze(-1)


def _in_strips(tensor: Tensor) -> range | None:
    """Returns where the strips of rows begin that keep a CPU from touching the empty half of a large triangle.

    A GPU is better off with one large product, and so is anything that is traced or mapped.
    """
    size = tensor.size(-1)
    wrapped = torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    if tensor.device.type != "cpu" or size < 2 * STRIP or wrapped:
        return None
    return range(0, size, STRIP)


def _triangle_and_degree(logits: Tensor) -> tuple[Tensor, Tensor]:
    strips = _in_strips(logits)
    if strips is None:
        upper = triangle(logits)
        return upper, upper.sum(dim=0) + upper.sum(dim=1)
    upper, degree = torch.zeros_like(logits), logits.new_zeros(logits.size(0))
    for start in strips:
        rows = slice(start, start + STRIP)
        strip = upper[rows, start:]
        torch.sigmoid(logits[rows, start:], out=strip)
        strip[:, : strip.size(0)].triu_(1)
        degree[rows] += strip.sum(dim=1)
        degree[start:] += strip.sum(dim=0)
    return upper, degree


def _product(upper: Tensor, block: Tensor, self_loops: bool) -> Tensor:
    """The same as :func:`symmetric_product`, for use inside of functions that know their gradient."""
    strips = _in_strips(upper)
    if strips is None:
        return symmetric_product(upper, block, self_loops)
    out = block.clone() if self_loops else torch.zeros_like(block)
    for start in strips:
        rows = slice(start, start + STRIP)
        strip = upper[rows, start:]
        out[rows].addmm_(strip, block[start:])
        out[start:].addmm_(strip.t(), block[rows])
    return out


def _gradient_of_logits(first: Tensor, second: Tensor, upper: Tensor) -> Tensor:
    r"""Returns the product of two narrow matrices times the derivative of the sigmoid, above the diagonal."""
    strips = _in_strips(upper)
    if strips is None:
        grad: Tensor = torch.ops.aten.sigmoid_backward(first @ second.transpose(-1, -2), upper)
        return grad
    grad = torch.zeros_like(upper)
    across = second.t().contiguous()
    for start in strips:
        rows = slice(start, start + STRIP)
        outer = first[rows] @ across[:, start:]
        torch.ops.aten.sigmoid_backward.grad_input(outer, upper[rows, start:], grad_input=grad[rows, start:])
    return grad


class TaylorPowers(torch.autograd.Function):
    r"""The powers :math:`\mathbf{B}^b \mathbf{W}` of :math:`\mathbf{B} = \alpha \mathbf{I} + \beta \mathbf{N}`, with
    the two sums that the L1 norm needs.

    With :math:`\mathbf{M} = \mathbf{S} + \mathbf{S}^{\top} + \mathbf{I}`, :math:`r = (\mathbf{M}\mathbf{1})^{-1/2}` and
    :math:`\mathbf{N} = \mathrm{diag}(r) \mathbf{M} \mathrm{diag}(r)`, returns the stacked powers,
    :math:`\mathbf{1}^{\top}\mathbf{N}\mathbf{1}` and :math:`\mathrm{tr}\,\mathbf{N}`.

    Every feature must have a positive degree, which self-loops or a second feature ensure.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        logits: Tensor, block: Tensor, alpha: Tensor, beta: Tensor, iterations: int, self_loops: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        upper, degree = _triangle_and_degree(logits)
        scale = inverse_root(degree, self_loops)
        powers, hops = [block], []
        ones = torch.ones_like(scale)
        for step in range(iterations):
            # The row sums of N ride along with the first product.
            operand = torch.cat([powers[-1], ones], dim=-1) if step == 0 else powers[-1]
            hop = scale * _product(upper, scale * operand, self_loops)
            if step == 0:
                hop, row_sums = hop[:, :-1], hop[:, -1:]
            hops.append(hop)
            powers.append(alpha * powers[-1] + beta * hop)
        trace = (scale**2).sum() if self_loops else torch.zeros_like(row_sums).sum()
        return torch.stack(powers), row_sums.sum(), trace, torch.stack(hops), upper, torch.cat([scale, row_sums], -1)

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
        grad_powers = torch.zeros_like(powers) if grad_powers is None else grad_powers
        none = powers.new_zeros(())
        grad_total = none if grad_total is None else grad_total
        grad_trace = none if grad_trace is None else grad_trace
        scale, row_sums = vectors[:, :1], vectors[:, 1:]
        grad, grad_scale = grad_powers[-1], 2 * grad_total * row_sums / scale
        if ctx.self_loops:
            grad_scale = grad_scale + 2 * grad_trace * scale
        left, right = [], []
        for b in range(len(hops) - 1, -1, -1):
            hopped = scale * _product(upper, scale * grad, ctx.self_loops)
            touched = (grad * hops[b] + powers[b] * hopped).sum(dim=-1, keepdim=True)
            grad_scale = grad_scale + beta * touched / scale
            left.append(beta * scale * grad)
            right.append(scale * powers[b])
            grad = grad_powers[b] + alpha * grad + beta * hopped
        grad_degree = -0.5 * scale**3 * grad_scale
        ones = torch.ones_like(scale)
        # Each outer product and its mirror image, since every weight stands in two places of M.
        first = torch.cat([*left, *right, 2 * grad_total * scale, grad_degree, ones], dim=-1)
        second = torch.cat([*right, *left, scale, ones, grad_degree], dim=-1)
        grad_logits = _gradient_of_logits(first, second, upper)
        return grad_logits, grad, None, None, None, None
