r"""Passes over the packed triangle of a learnable graph, strip by strip, as the CPU likes it.

Every function takes one graph (flat tensors of :mod:`bigcn.feature_graphs.learnable_packing`) or many in a leading
dimension, and knows no gradients.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from bigcn.feature_graphs.learnable_packing import STRIP, strip_views, strips


def triangle(packed: Tensor, size: int) -> tuple[Tensor, Tensor]:
    r"""Returns :math:`\mathbf{S}`, the strict upper triangle of the sigmoid, packed, and the degrees without loops."""
    # All of it at once is faster than strip by strip, although what is not above the diagonal has to be wiped out.
    upper = packed.sigmoid()
    layout = strips(size)
    degree = packed.new_zeros(*packed.shape[:-1], layout[0].width)
    for (start, stop, width, _), matrix in zip(layout, strip_views(upper, size, aligned=True), strict=True):
        matrix.narrow(-1, 0, stop - start).triu_(1)
        matrix.narrow(-1, size - start, width + start - size).zero_()
        degree.narrow(-1, start, stop - start).add_(matrix.sum(dim=-1))
        degree.narrow(-1, start, width).add_(matrix.sum(dim=-2))
    return upper, degree[..., :size].contiguous()


def product(upper: Tensor, scale: Tensor, block: Tensor, self_loops: bool, row_sums: bool = False) -> Tensor:
    r"""Returns :math:`\mathbf{W}^{\top} \mathbf{N}`, where :math:`\mathbf{N} = \mathrm{diag}(r) (\mathbf{S} +
    \mathbf{S}^{\top} + \mathbf{I}) \mathrm{diag}(r)`.

    Args:
        upper (torch.Tensor): :math:`\mathbf{S}`, packed.
        scale (torch.Tensor): :math:`r`, shape :obj:`[1, d]`.
        block (torch.Tensor): :math:`\mathbf{W}^{\top}`, shape :obj:`[h, d]`.
        self_loops (bool): If false, leaves the identity out.
        row_sums (bool, optional): If true, one more row, the last, has the row sums of :math:`\mathbf{N}`. (default:
            :obj:`False`)
    """
    if upper.dim() > 1 and upper.is_cpu:  # one after the other stays in the cache
        members = zip(upper, scale, block, strict=True)
        return torch.stack([_product(*member, self_loops, row_sums) for member in members])
    return _product(upper, scale, block, self_loops, row_sums)


def _product(upper: Tensor, scale: Tensor, block: Tensor, self_loops: bool, row_sums: bool = False) -> Tensor:
    size = block.size(-1)
    if upper.is_cpu and upper.dim() == 1 and not row_sums:
        return _product_of_columns(upper, scale, block, self_loops)
    scaled = (block * scale).contiguous()
    if row_sums:  # those of N are its product with ones
        scaled = torch.cat([scaled, scale], dim=-2)
    out = scaled.clone() if self_loops else torch.zeros_like(scaled)
    add = torch.Tensor.addmm_ if upper.dim() == 1 else torch.Tensor.baddbmm_
    # Calls take their time where strips are many: one makes all of the cuts.
    cuts = zip(strip_views(upper, size), out.split(STRIP, -1), scaled.split(STRIP, -1), strict=True)
    for start, (matrix, out_part, scaled_part) in zip(range(0, size, STRIP), cuts, strict=True):
        add(out_part, scaled.narrow(-1, start, size - start), matrix.mT)
        add(out.narrow(-1, start, size - start), scaled_part, matrix)
    return out.mul_(scale)


def _product_of_columns(upper: Tensor, scale: Tensor, block: Tensor, self_loops: bool) -> Tensor:
    """The same, a sixth faster: a CPU likes narrow blocks to have few columns rather than few rows, but not an odd
    number of them.
    """
    size, factor = block.size(-1), scale.t()
    scaled = (block.t() * factor).contiguous()
    out = scaled.clone() if self_loops else torch.zeros_like(scaled)
    cuts = zip(strip_views(upper, size), out.split(STRIP), scaled.split(STRIP), strict=True)
    for start, (matrix, out_part, scaled_part) in zip(range(0, size, STRIP), cuts, strict=True):
        out_part.addmm_(matrix, scaled[start:])
        out[start:].addmm_(matrix.t(), scaled_part)
    return out.mul_(factor).t().contiguous()


def gradient(first: Tensor, second: Tensor, upper: Tensor) -> Tensor:
    r"""Returns :math:`\mathbf{F}^{\top} \mathbf{G}` times the derivative of the sigmoid, above the diagonal, packed.

    Args:
        first, second (torch.Tensor): The two narrow matrices, shape :obj:`[r, d]`.
        upper (torch.Tensor): :math:`\mathbf{S}`, packed.
    """
    grad = torch.empty_like(upper)
    if upper.dim() > 1 and upper.is_cpu:
        for member in zip(first, second, upper, grad, strict=True):
            _gradient(*member)
    else:
        _gradient(first, second, upper, grad)
    return grad


def _gradient(first: Tensor, second: Tensor, upper: Tensor, grad: Tensor) -> None:
    size = second.size(-1)
    layout = strips(size)
    second = F.pad(second, (0, layout[0].width - size))  # the columns that align
    for (start, _, width, _), part, matrix in zip(
        layout, first.split(STRIP, -1), strip_views(grad, size, aligned=True), strict=True
    ):
        torch.matmul(part.mT, second.narrow(-1, start, width), out=matrix)
    # The derivative is zero where the triangle is.
    torch.ops.aten.sigmoid_backward.grad_input(grad, upper, grad_input=grad)
