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
        upper = triangle(logits)
        scale = inverse_root(upper.sum(dim=0) + upper.sum(dim=1), self_loops)
        powers, hops = [block], []
        ones = torch.ones_like(scale)
        for step in range(iterations):
            # The row sums of N ride along with the first product.
            operand = torch.cat([powers[-1], ones], dim=-1) if step == 0 else powers[-1]
            hop = scale * symmetric_product(upper, scale * operand, self_loops)
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
        ctx.save_for_backward(powers, hops, upper, vectors, alpha, beta)
        ctx.self_loops = self_loops

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_powers: Tensor, grad_total: Tensor, grad_trace: Tensor, *unused: Tensor) -> Any:
        powers, hops, upper, vectors, alpha, beta = ctx.saved_tensors
        scale, row_sums = vectors[:, :1], vectors[:, 1:]
        grad, grad_scale = grad_powers[-1], 2 * grad_total * row_sums / scale
        if ctx.self_loops:
            grad_scale = grad_scale + 2 * grad_trace * scale
        left, right = [], []
        for b in range(len(hops) - 1, -1, -1):
            hopped = scale * symmetric_product(upper, scale * grad, ctx.self_loops)
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
        grad_logits = torch.ops.aten.sigmoid_backward(first @ second.transpose(-1, -2), upper)
        return grad_logits, grad, None, None, None, None
