r"""Attention over the neighbours of each node as Triton kernels.

What belongs to an edge (its score, its share, whether dropout keeps it) is computed where it is needed and never
written down: a step reads the block once for every edge in each direction, and that is nearly all it does. Dropout is
drawn from a seed and the number of the edge, so that the backward pass draws the same.
"""

# Kernels are no Python, and Triton is where GPUs are.
# mypy: disable-error-code="no-untyped-def, import-not-found, untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Neighbours that are looked at at once, by the columns of the block.
AT_ONCE = {8: 32, 16: 32, 32: 16, 64: 16}
#: The widest block that a program can hold.
WIDEST = max(AT_ONCE)


@triton.jit
def _share(z, highest, counts, entries, valid, slope, COUNTS: tl.constexpr):
    """The shares of some edges, before they are divided by their sum."""
    share = tl.where(valid, tl.exp(tl.where(z > 0, z, slope * z) - highest), 0.0)
    if COUNTS:
        share *= tl.load(counts + entries, mask=valid, other=0.0)
    return share


@triton.jit
def _factor(entries, seed, p, DROP: tl.constexpr):
    """What dropout multiplies the shares of some edges with."""
    if DROP:
        return tl.where(tl.rand(seed, entries.to(tl.int32)) >= p, 1 / (1 - p), 0.0)
    else:
        return 1.0


@triton.jit(do_not_specialize=["slope", "p"])
def _forward_kernel(
    crow, col, counts, of_source, of_target, block, seed, out, total, highest, width, slope, p,
    COUNTS: tl.constexpr, DROP: tl.constexpr, BLOCK: tl.constexpr, NEIGHBOURS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    start, end = tl.load(crow + row), tl.load(crow + row + 1)
    own, drawn = tl.load(of_target + row), tl.load(seed)
    top = tl.full([], float("-inf"), dtype=block.dtype.element_ty)
    for first in range(start, end, NEIGHBOURS):
        entries = first + tl.arange(0, NEIGHBOURS)
        valid = entries < end
        z = tl.load(of_source + tl.load(col + entries, mask=valid, other=0)) + own
        top = tl.maximum(top, tl.max(tl.where(valid, tl.where(z > 0, z, slope * z), float("-inf")), axis=0))
    summed = tl.zeros([BLOCK], dtype=block.dtype.element_ty)
    shares = tl.zeros([], dtype=block.dtype.element_ty)
    for first in range(start, end, NEIGHBOURS):
        entries = first + tl.arange(0, NEIGHBOURS)
        valid = entries < end
        neighbours = tl.load(col + entries, mask=valid, other=0)
        share = _share(tl.load(of_source + neighbours) + own, top, counts, entries, valid, slope, COUNTS)
        shares += tl.sum(share, axis=0)
        places = neighbours[:, None] * width + columns[None, :]
        found = tl.load(block + places, mask=valid[:, None] & inside[None, :], other=0.0)
        summed += tl.sum((share * _factor(entries, drawn, p, DROP))[:, None] * found, axis=0)
    shares += 1e-16
    tl.store(out + row * width + columns, (summed / shares).to(block.dtype.element_ty), mask=inside)
    tl.store(total + row, shares.to(block.dtype.element_ty))
    tl.store(highest + row, top.to(block.dtype.element_ty))


@triton.jit(do_not_specialize=["slope", "p"])
def _target_kernel(
    crow, col, counts, of_source, of_target, block, seed, out, highest, grad, of_row, grad_target, width, slope, p,
    COUNTS: tl.constexpr, DROP: tl.constexpr, BLOCK: tl.constexpr, NEIGHBOURS: tl.constexpr,
):  # fmt: skip
    """The gradient of what the targets bring to the scores, and the products of gradient and result."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    start, end = tl.load(crow + row), tl.load(crow + row + 1)
    own, top, drawn = tl.load(of_target + row), tl.load(highest + row), tl.load(seed)
    wanted = tl.load(grad + row * width + columns, mask=inside, other=0.0)
    given = tl.sum(wanted * tl.load(out + row * width + columns, mask=inside, other=0.0), axis=0)
    total = tl.zeros([], dtype=block.dtype.element_ty)
    for first in range(start, end, NEIGHBOURS):
        entries = first + tl.arange(0, NEIGHBOURS)
        valid = entries < end
        neighbours = tl.load(col + entries, mask=valid, other=0)
        z = tl.load(of_source + neighbours) + own
        share = _share(z, top, counts, entries, valid, slope, COUNTS)
        places = neighbours[:, None] * width + columns[None, :]
        found = tl.load(block + places, mask=valid[:, None] & inside[None, :], other=0.0)
        along = tl.sum(found * wanted[None, :], axis=1)
        total += tl.sum(
            share * (_factor(entries, drawn, p, DROP) * along - given) * tl.where(z > 0, 1.0, slope), axis=0
        )
    tl.store(grad_target + row, total.to(block.dtype.element_ty))
    tl.store(of_row + row, given.to(block.dtype.element_ty))


@triton.jit(do_not_specialize=["slope", "p"])
def _source_kernel(
    crow, col, order, counts, of_source, of_target, block, seed, highest, grad, of_row, grad_source, grad_block, width,
    slope, p, COUNTS: tl.constexpr, DROP: tl.constexpr, BLOCK: tl.constexpr, NEIGHBOURS: tl.constexpr,
):  # fmt: skip
    """The gradients of what the sources bring: to the scores, and their rows of the block."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    start, end = tl.load(crow + row), tl.load(crow + row + 1)
    own, drawn = tl.load(of_source + row), tl.load(seed)
    mine = tl.load(block + row * width + columns, mask=inside, other=0.0)
    summed = tl.zeros([BLOCK], dtype=block.dtype.element_ty)
    total = tl.zeros([], dtype=block.dtype.element_ty)
    for first in range(start, end, NEIGHBOURS):
        places = first + tl.arange(0, NEIGHBOURS)
        valid = places < end
        targets = tl.load(col + places, mask=valid, other=0)
        entries = tl.load(order + places, mask=valid, other=0)
        z = own + tl.load(of_target + targets)
        share = _share(z, tl.load(highest + targets), counts, entries, valid, slope, COUNTS)
        factor = _factor(entries, drawn, p, DROP)
        at = targets[:, None] * width + columns[None, :]
        wanted = tl.load(grad + at, mask=valid[:, None] & inside[None, :], other=0.0)
        along = tl.sum(wanted * mine[None, :], axis=1)
        given = tl.load(of_row + targets, mask=valid, other=0.0)
        total += tl.sum(share * (factor * along - given) * tl.where(z > 0, 1.0, slope), axis=0)
        summed += tl.sum((share * factor)[:, None] * wanted, axis=0)
    tl.store(grad_source + row, total.to(block.dtype.element_ty))
    tl.store(grad_block + row * width + columns, summed.to(block.dtype.element_ty), mask=inside)


def _sizes(width: int) -> dict[str, int]:
    block = max(min(AT_ONCE), triton.next_power_of_2(width))
    return {"BLOCK": block, "NEIGHBOURS": AT_ONCE[block], "num_warps": 1}


def attention(
    of_source: Tensor, of_target: Tensor, block: Tensor, counts: Tensor | None, slope: float, p: float, seed: Tensor,
    crow: Tensor, col: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Returns the attention of one head, the sum of the shares of each row, and its highest score.

    Args:
        of_source, of_target (torch.Tensor): What every node brings to the scores of its edges, as source and target.
        block (torch.Tensor): What is averaged over the sources, with no more columns than :obj:`WIDEST`.
        counts (torch.Tensor, optional): How often an edge counts.
        slope (float): That of the leaky rectifier.
        p (float): The share of the edges that dropout takes.
        seed (torch.Tensor): What it is drawn from, one whole number.
        crow, col (torch.Tensor): The targets' sources, as pointers and columns.
    """
    rows, width = crow.numel() - 1, block.size(1)
    block = block.contiguous()
    out, total, highest = block.new_empty(rows, width), block.new_empty(rows, 1), block.new_empty(rows)
    _forward_kernel[(rows,)](
        crow, col, block if counts is None else counts, of_source, of_target, block, seed, out, total, highest, width,
        float(slope), float(p), COUNTS=counts is not None, DROP=p > 0, **_sizes(width),
    )  # fmt: skip
    return out, total, highest


def attention_gradients(
    of_source: Tensor, of_target: Tensor, block: Tensor, counts: Tensor | None, slope: float, p: float, seed: Tensor,
    out: Tensor, highest: Tensor, grad: Tensor,
    pattern: tuple[Tensor, Tensor], pattern_t: tuple[Tensor, Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Returns the gradients of what sources and targets bring, and of the block.

    Args:
        of_source, of_target, block, counts, slope, p, seed: As in :func:`attention`.
        out, highest (torch.Tensor): What it returned.
        grad (torch.Tensor): The gradient of the result, divided by the sum of the shares of each row.
        pattern (tuple): Pointers and columns.
        pattern_t (tuple): Those of the transpose, and where its entries stand in the pattern.
    """
    rows, width = pattern[0].numel() - 1, block.size(1)
    block, grad = block.contiguous(), grad.contiguous()
    given = block if counts is None else counts
    of_row, grad_target = block.new_empty(rows), block.new_empty(rows)
    grad_source, grad_block = torch.empty_like(of_source), torch.empty_like(block)
    options = {"COUNTS": counts is not None, "DROP": p > 0, **_sizes(width)}
    _target_kernel[(rows,)](
        *pattern, given, of_source, of_target, block, seed, out, highest, grad, of_row, grad_target, width,
        float(slope), float(p), **options,
    )  # fmt: skip
    _source_kernel[(pattern_t[0].numel() - 1,)](
        *pattern_t, given, of_source, of_target, block, seed, highest, grad, of_row, grad_source, grad_block, width,
        float(slope), float(p), **options,
    )  # fmt: skip
    return grad_source, grad_target, grad_block
