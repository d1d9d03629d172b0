r"""Attention over the neighbours of each node as Triton kernels.

What belongs to an edge (its scores, its shares, what dropout keeps of it) is computed where it is needed and never
written down: a step reads the block once for every edge in each direction, all heads together, and that is nearly all
it does. Dropout is drawn from a seed and the number of edge and head, so that the backward pass draws the same.
"""

# Kernels are no Python, and Triton is where GPUs are.
# mypy: disable-error-code="no-untyped-def, import-not-found, untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

#: How many numbers of the block a program has before it at once, and for how many neighbours at most.
AT_ONCE, NEIGHBOURS = 1024, 32
#: The most columns that all heads may have together, each filled up to a power of two.
WIDEST = AT_ONCE


@triton.jit
def _layout(count, width, HEADS: tl.constexpr, CHANNELS: tl.constexpr):
    """The heads, which of them there are, and of all their columns which there are and where."""
    heads, channels = tl.arange(0, HEADS), tl.arange(0, CHANNELS)
    real = heads < count
    return heads, real, real[:, None] & (channels < width)[None, :], heads[:, None] * width + channels[None, :]


@triton.jit
def _edges(col, of_source, own, first, end, count, heads, real, NEIGHBOURS: tl.constexpr):
    """Some edges of a target: their numbers, which there are and for which heads, their sources and scores."""
    entries = first + tl.arange(0, NEIGHBOURS)
    valid = entries < end
    seen = valid[:, None] & real[None, :]
    sources = tl.load(col + entries, mask=valid, other=0)
    z = tl.load(of_source + sources[:, None] * count + heads[None, :], mask=seen, other=0.0) + own[None, :]
    return entries, valid, seen, sources, z


@triton.jit
def _rows(block, starts, valid, place, inside):
    """Some rows of a block, for all heads."""
    places = starts[:, None, None] + place[None, :, :]
    return tl.load(block + places, mask=valid[:, None, None] & inside[None, :, :], other=0.0)


@triton.jit
def _share(z, highest, counts, entries, valid, seen, slope, COUNTS: tl.constexpr):
    """The shares of some edges, before they are divided by their sum."""
    share = tl.where(seen, tl.exp(tl.where(z > 0, z, slope * z) - highest), 0.0)
    if COUNTS:
        share *= tl.load(counts + entries, mask=valid, other=0.0)[:, None]
    return share


@triton.jit
def _factor(entries, heads, count, seed, p, DROP: tl.constexpr):
    """What dropout multiplies the shares of some edges with."""
    if DROP:
        numbers = entries.to(tl.int32)[:, None] * count + heads[None, :]
        return tl.where(tl.rand(seed, numbers) >= p, 1 / (1 - p), 0.0)
    else:
        return 1.0


@triton.jit(do_not_specialize=["slope", "p"])
def _forward_kernel(
    crow, col, counts, of_source, of_target, block, seed, out, total, highest, count, width, slope, p,
    COUNTS: tl.constexpr, DROP: tl.constexpr, HEADS: tl.constexpr, CHANNELS: tl.constexpr, NEIGHBOURS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    heads, real, inside, place = _layout(count, width, HEADS, CHANNELS)
    start, end = tl.load(crow + row), tl.load(crow + row + 1)
    own, drawn = tl.load(of_target + row * count + heads, mask=real, other=0.0), tl.load(seed)
    top = tl.full([HEADS], float("-inf"), dtype=block.dtype.element_ty)
    for first in range(start, end, NEIGHBOURS):
        entries, valid, seen, sources, z = _edges(col, of_source, own, first, end, count, heads, real, NEIGHBOURS)
        top = tl.maximum(top, tl.max(tl.where(seen, tl.where(z > 0, z, slope * z), float("-inf")), axis=0))
    summed = tl.zeros([HEADS, CHANNELS], dtype=block.dtype.element_ty)
    shares = tl.zeros([HEADS], dtype=block.dtype.element_ty)
    for first in range(start, end, NEIGHBOURS):
        entries, valid, seen, sources, z = _edges(col, of_source, own, first, end, count, heads, real, NEIGHBOURS)
        share = _share(z, top[None, :], counts, entries, valid, seen, slope, COUNTS)
        shares += tl.sum(share, axis=0)
        found = _rows(block, sources * count * width, valid, place, inside)
        summed += tl.sum((share * _factor(entries, heads, count, drawn, p, DROP))[:, :, None] * found, axis=0)
    shares += 1e-16
    out_type = block.dtype.element_ty
    tl.store(out + row * count * width + place, (summed / shares[:, None]).to(out_type), mask=inside)
    tl.store(total + row * count + heads, shares.to(out_type), mask=real)
    tl.store(highest + row * count + heads, top.to(out_type), mask=real)


@triton.jit(do_not_specialize=["slope", "p"])
def _target_kernel(
    crow, col, counts, of_source, of_target, block, seed, out, highest, grad, of_row, grad_target, count, width, slope,
    p, COUNTS: tl.constexpr, DROP: tl.constexpr, HEADS: tl.constexpr, CHANNELS: tl.constexpr, NEIGHBOURS: tl.constexpr,
):  # fmt: skip
    """The gradient of what the targets bring to the scores, and the products of gradient and result."""
    row = tl.program_id(0).to(tl.int64)
    heads, real, inside, place = _layout(count, width, HEADS, CHANNELS)
    start, end = tl.load(crow + row), tl.load(crow + row + 1)
    own, drawn = tl.load(of_target + row * count + heads, mask=real, other=0.0), tl.load(seed)
    top = tl.load(highest + row * count + heads, mask=real, other=0.0)
    wanted = tl.load(grad + row * count * width + place, mask=inside, other=0.0)
    given = tl.sum(wanted * tl.load(out + row * count * width + place, mask=inside, other=0.0), axis=1)
    total = tl.zeros([HEADS], dtype=block.dtype.element_ty)
    for first in range(start, end, NEIGHBOURS):
        entries, valid, seen, sources, z = _edges(col, of_source, own, first, end, count, heads, real, NEIGHBOURS)
        share = _share(z, top[None, :], counts, entries, valid, seen, slope, COUNTS)
        found = _rows(block, sources * count * width, valid, place, inside)
        along = tl.sum(found * wanted[None, :, :], axis=2)
        factor = _factor(entries, heads, count, drawn, p, DROP)
        total += tl.sum(share * (factor * along - given[None, :]) * tl.where(z > 0, 1.0, slope), axis=0)
    tl.store(grad_target + row * count + heads, total.to(block.dtype.element_ty), mask=real)
    tl.store(of_row + row * count + heads, given.to(block.dtype.element_ty), mask=real)


@triton.jit(do_not_specialize=["slope", "p"])
def _source_kernel(
    crow, col, order, counts, of_source, of_target, block, seed, highest, grad, of_row, grad_source, grad_block, count,
    width, slope, p,
    COUNTS: tl.constexpr, DROP: tl.constexpr, HEADS: tl.constexpr, CHANNELS: tl.constexpr, NEIGHBOURS: tl.constexpr,
):  # fmt: skip
    """The gradients of what the sources bring: to the scores, and their rows of the block."""
    row = tl.program_id(0).to(tl.int64)
    heads, real, inside, place = _layout(count, width, HEADS, CHANNELS)
    start, end = tl.load(crow + row), tl.load(crow + row + 1)
    own, drawn = tl.load(of_source + row * count + heads, mask=real, other=0.0), tl.load(seed)
    mine = tl.load(block + row * count * width + place, mask=inside, other=0.0)
    summed = tl.zeros([HEADS, CHANNELS], dtype=block.dtype.element_ty)
    total = tl.zeros([HEADS], dtype=block.dtype.element_ty)
    for first in range(start, end, NEIGHBOURS):
        numbers = first + tl.arange(0, NEIGHBOURS)
        valid = numbers < end
        seen = valid[:, None] & real[None, :]
        targets = tl.load(col + numbers, mask=valid, other=0)
        entries = tl.load(order + numbers, mask=valid, other=0)
        at = targets[:, None] * count + heads[None, :]
        z = own[None, :] + tl.load(of_target + at, mask=seen, other=0.0)
        top = tl.load(highest + at, mask=seen, other=0.0)
        share = _share(z, top, counts, entries, valid, seen, slope, COUNTS)
        factor = _factor(entries, heads, count, drawn, p, DROP)
        wanted = _rows(grad, targets * count * width, valid, place, inside)
        along = tl.sum(wanted * mine[None, :, :], axis=2)
        given = tl.load(of_row + at, mask=seen, other=0.0)
        total += tl.sum(share * (factor * along - given) * tl.where(z > 0, 1.0, slope), axis=0)
        summed += tl.sum((share * factor)[:, :, None] * wanted, axis=0)
    tl.store(grad_source + row * count + heads, total.to(block.dtype.element_ty), mask=real)
    tl.store(grad_block + row * count * width + place, summed.to(block.dtype.element_ty), mask=inside)


def columns(heads: int, channels: int) -> int:
    """Returns how many columns of the block a program has, see :obj:`WIDEST`.

    Args:
        heads, channels (int): How many heads there are, and the channels of each.
    """
    return int(triton.next_power_of_2(heads) * triton.next_power_of_2(channels))


def _sizes(heads: int, channels: int) -> dict[str, int]:
    return {
        "HEADS": triton.next_power_of_2(heads),
        "CHANNELS": triton.next_power_of_2(channels),
        "NEIGHBOURS": min(NEIGHBOURS, AT_ONCE // columns(heads, channels)),
        "num_warps": 1,
    }


def attention(
    of_source: Tensor, of_target: Tensor, block: Tensor, counts: Tensor | None, slope: float, p: float, seed: Tensor,
    crow: Tensor, col: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Returns the attention of all heads, the sums of the shares of each row, and its highest scores.

    Args:
        of_source, of_target (torch.Tensor): What every node brings to the scores of its edges, as source and target,
            :obj:`[num_nodes, heads]`.
        block (torch.Tensor): What is averaged over the sources, :obj:`[num_nodes, heads, channels]`, see
            :obj:`WIDEST`.
        counts (torch.Tensor, optional): How often an edge counts.
        slope (float): That of the leaky rectifier.
        p (float): The share of the edges that dropout takes.
        seed (torch.Tensor): What it is drawn from, one whole number.
        crow, col (torch.Tensor): The targets' sources, as pointers and columns.
    """
    rows, (_, heads, channels) = crow.numel() - 1, block.shape
    of_source, of_target, block = of_source.contiguous(), of_target.contiguous(), block.contiguous()
    out, total, highest = (block.new_empty(rows, heads, *more) for more in ((channels,), (1,), ()))
    _forward_kernel[(rows,)](
        crow, col, block if counts is None else counts, of_source, of_target, block, seed, out, total, highest, heads,
        channels, float(slope), float(p), COUNTS=counts is not None, DROP=p > 0, **_sizes(heads, channels),
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
        grad (torch.Tensor): The gradient of the result, divided by the sums of the shares of each row.
        pattern (tuple): Pointers and columns.
        pattern_t (tuple): Those of the transpose, and where its entries stand in the pattern.
    """
    rows, (_, heads, channels) = pattern[0].numel() - 1, block.shape
    of_source, of_target, block = of_source.contiguous(), of_target.contiguous(), block.contiguous()
    grad, given = grad.contiguous(), block if counts is None else counts
    of_row, grad_target = block.new_empty(rows, heads), block.new_empty(rows, heads)
    grad_source, grad_block = torch.empty_like(of_source), torch.empty_like(block)
    options = {"COUNTS": counts is not None, "DROP": p > 0, **_sizes(heads, channels)}
    _target_kernel[(rows,)](
        *pattern, given, of_source, of_target, block, seed, out, highest, grad, of_row, grad_target, heads, channels,
        float(slope), float(p), **options,
    )  # fmt: skip
    _source_kernel[(pattern_t[0].numel() - 1,)](
        *pattern_t, given, of_source, of_target, block, seed, highest, grad, of_row, grad_source, grad_block, heads,
        channels, float(slope), float(p), **options,
    )  # fmt: skip
    return grad_source, grad_target, grad_block
