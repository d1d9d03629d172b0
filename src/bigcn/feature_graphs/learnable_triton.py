r"""Passes over the packed triangles of a population of learnable graphs, as Triton kernels.

They do what :mod:`bigcn.feature_graphs.learnable_strips` does, in single precision, for all members at once, and read
and write the triangle once in each pass (a product reads it twice, the second time mostly from the cache of the GPU).
No kernel waits for another, none adds up in an order that varies, and no choice depends on data or on timing, so that a
step is deterministic and can be captured.
"""

# Kernels are no Python, and Triton is where GPUs are.
# mypy: disable-error-code="no-untyped-def, import-not-found"

import functools
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bigcn.feature_graphs.learnable_packing import ALIGN, STRIP
from bigcn.precision import fast_products_allowed
from bigcn.user_warnings import warn_user


class Tiles(NamedTuple):
    """How a kernel cuts its work.

    Args:
        rows, cols (int): The size of a tile, both divisors of :data:`STRIP`.
        warps, stages (int): How many warps work on it, and how many tiles are on their way at once.
    """

    rows: int
    cols: int
    warps: int
    stages: int


#: Chosen for large populations on an H200; benchmarks/population_floor.py --tune measures others.
TRIANGLE = Tiles(32, 64, 4, 1)
PRODUCT = Tiles(32, 64, 4, 4)
GRADIENT = Tiles(64, 128, 4, 3)
#: How many rows of the two narrow matrices are multiplied at once.
GRADIENT_RANK = 16
#: A product of few members takes smaller tiles, lest most of the GPU idle.
PRODUCT_OF_FEW = Tiles(16, 64, 4, 3)
FEW_TILES = 256
#: Wider blocks are cut.
MAX_WIDTH = 128


@triton.jit
def _strip_of(first_row, aligned, STRIP: tl.constexpr):
    """Returns where the strip of a row begins: the row, the entry in memory, and the width."""
    number = first_row // STRIP
    start = number * STRIP
    return start, start * aligned - start * (start - STRIP) // 2, aligned - start


@triton.jit
def _triangle_kernel(
    packed, upper, row_sums, col_sums, size, aligned, packed_stride, upper_stride,
    STRIP: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    first_row, first_col, member = tl.program_id(1) * ROWS, tl.program_id(0) * COLS, tl.program_id(2).to(tl.int64)
    start, offset, width = _strip_of(first_row, aligned, STRIP)
    if first_col >= start:
        rows, cols = first_row + tl.arange(0, ROWS), first_col + tl.arange(0, COLS)
        place = offset + (rows - start)[:, None] * width + (cols - start)[None, :]
        inside = (rows < size)[:, None] & (cols < aligned)[None, :]
        logits = tl.load(packed + member * packed_stride + place, mask=inside, other=0.0)
        above = (cols[None, :] > rows[:, None]) & (cols < size)[None, :] & inside
        weights = tl.where(above, tl.sigmoid(logits), 0.0)
        tl.store(upper + member * upper_stride + place, weights, mask=inside)
        # Sums of tiles, which are added up later and in order.
        by_rows = row_sums + (member * tl.num_programs(0) + tl.program_id(0)) * aligned + rows
        tl.store(by_rows, tl.sum(weights, axis=1), mask=rows < size)
        by_cols = col_sums + (member * tl.num_programs(1) + tl.program_id(1)) * aligned + cols
        tl.store(by_cols, tl.sum(weights, axis=0), mask=cols < aligned)


@triton.jit
def _product_kernel(
    upper, scale, block, out, size, aligned, height, upper_stride, scale_stride, block_stride, block_row, out_stride,
    SELF_LOOPS: tl.constexpr, ROW_SUMS: tl.constexpr, PRECISION: tl.constexpr, STRIP: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, HEIGHT: tl.constexpr,
):  # fmt: skip
    first_row, member = tl.program_id(0) * ROWS, tl.program_id(1).to(tl.int64)
    rows, heights = first_row + tl.arange(0, ROWS), tl.program_id(2) * HEIGHT + tl.arange(0, HEIGHT)
    upper += member * upper_stride
    scale += member * scale_stride
    block += member * block_stride + heights[None, :] * block_row
    out += member * out_stride
    total = tl.zeros((ROWS, HEIGHT), dtype=tl.float32)

    # To the right of the diagonal, rows of the triangle.
    start, offset, width = _strip_of(first_row, aligned, STRIP)
    lines = upper + offset + (rows - start)[:, None] * width - start
    if ROW_SUMS:  # place by place, so that threads need not exchange anything before the end
        on_right = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for first in range(first_row // COLS * COLS, size, COLS):
        inner = first + tl.arange(0, COLS)
        tile = tl.load(lines + inner[None, :], mask=(rows < size)[:, None] & (inner < aligned)[None, :], other=0.0)
        values = tl.load(block + inner[:, None], mask=(inner < size)[:, None] & (heights < height)[None, :], other=0.0)
        scales = tl.load(scale + inner, mask=inner < size, other=0.0)
        total = tl.dot(tile, values * scales[:, None], total, input_precision=PRECISION)
        if ROW_SUMS:
            on_right += tile * scales[None, :]

    # Below the diagonal, columns of the triangle.
    if ROW_SUMS:
        sums = tl.sum(on_right, axis=1)
        below = tl.zeros((COLS, ROWS), dtype=tl.float32)
    for first in range(0, tl.minimum(first_row + ROWS, size), COLS):
        inner = first + tl.arange(0, COLS)
        top, offset_of_top, width_of_top = _strip_of(first, aligned, STRIP)
        place = offset_of_top + (inner - top)[:, None] * width_of_top + (rows - top)[None, :]
        tile = tl.load(upper + place, mask=(inner < size)[:, None] & (rows < aligned)[None, :], other=0.0)
        values = tl.load(block + inner[:, None], mask=(inner < size)[:, None] & (heights < height)[None, :], other=0.0)
        scales = tl.load(scale + inner, mask=inner < size, other=0.0)
        total = tl.dot(tl.trans(tile), values * scales[:, None], total, input_precision=PRECISION)
        if ROW_SUMS:
            below += tile * scales[:, None]

    mine = (rows < size)[:, None] & (heights < height)[None, :]
    own = tl.load(scale + rows, mask=rows < size, other=0.0)
    if SELF_LOOPS:
        total += own[:, None] * tl.load(block + rows[:, None], mask=mine, other=0.0)
    tl.store(out + heights[None, :] * size + rows[:, None], total * own[:, None], mask=mine)
    if ROW_SUMS:
        sums += tl.sum(below, axis=0)
        if SELF_LOOPS:
            sums += own
        # Wide blocks are cut, and each cut finds the same sums.
        tl.store(out + height * size + rows, sums * own, mask=(rows < size) & (tl.program_id(2) == 0))


@triton.jit
def _gradient_kernel(
    first, second, upper, grad, size, aligned, rank, first_stride, second_stride, upper_stride, grad_stride,
    PRECISION: tl.constexpr, STRIP: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, RANK: tl.constexpr,
):  # fmt: skip
    first_row, first_col, member = tl.program_id(1) * ROWS, tl.program_id(0) * COLS, tl.program_id(2).to(tl.int64)
    start, offset, width = _strip_of(first_row, aligned, STRIP)
    if first_col >= start:
        rows, cols = first_row + tl.arange(0, ROWS), first_col + tl.arange(0, COLS)
        lefts = first + member * first_stride + rows[None, :]
        rights = second + member * second_stride + cols[None, :]
        total = tl.zeros((ROWS, COLS), dtype=tl.float32)
        for begin in range(0, rank, RANK):
            inner = (begin + tl.arange(0, RANK))[:, None]
            left = tl.load(lefts + inner * size, mask=(inner < rank) & (rows < size)[None, :], other=0.0)
            right = tl.load(rights + inner * size, mask=(inner < rank) & (cols < size)[None, :], other=0.0)
            total = tl.dot(tl.trans(left), right, total, input_precision=PRECISION)
        place = offset + (rows - start)[:, None] * width + (cols - start)[None, :]
        inside = (rows < size)[:, None] & (cols < aligned)[None, :]
        weights = tl.load(upper + member * upper_stride + place, mask=inside, other=0.0)
        # The derivative of the sigmoid is zero where the triangle is.
        tl.store(grad + member * grad_stride + place, total * weights * (1 - weights), mask=inside)


def triangle(packed: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """See :func:`bigcn.feature_graphs.learnable_strips.triangle`."""
    members, tiles = _members(packed, 1), TRIANGLE
    aligned, upper = _aligned(size), torch.empty_like(members)
    grid = (triton.cdiv(aligned, tiles.cols), triton.cdiv(size, tiles.rows), len(members))
    row_sums = members.new_zeros(len(members), grid[0], aligned)
    col_sums = members.new_zeros(len(members), grid[1], aligned)
    with torch.cuda.device_of(packed):
        _triangle_kernel[grid](
            members, upper, row_sums, col_sums, size, aligned, members.stride(0), upper.stride(0),
            STRIP=STRIP, ROWS=tiles.rows, COLS=tiles.cols, num_warps=tiles.warps, num_stages=tiles.stages,
        )  # fmt: skip
    degree = row_sums.sum(dim=1)[:, :size] + col_sums.sum(dim=1)[:, :size]
    return upper.view(packed.shape), degree.view(*packed.shape[:-1], size)


def product(upper: Tensor, scale: Tensor, block: Tensor, self_loops: bool, row_sums: bool = False) -> Tensor:
    """See :func:`bigcn.feature_graphs.learnable_strips.product`."""
    members, scales, blocks = _members(upper, 1), _members(scale, 2), _members(block, 2)
    count, height, size = blocks.shape
    tiles = PRODUCT if count * triton.cdiv(size, PRODUCT.rows) >= FEW_TILES else PRODUCT_OF_FEW
    wide = min(max(triton.next_power_of_2(height), 16), MAX_WIDTH)
    out = torch.empty(count, height + row_sums, size, dtype=block.dtype, device=block.device)
    with torch.cuda.device_of(upper):
        _product_kernel[(triton.cdiv(size, tiles.rows), count, triton.cdiv(height, wide))](
            members, scales, blocks, out, size, _aligned(size), height,
            members.stride(0), scales.stride(0), blocks.stride(0), blocks.stride(1), out.stride(0),
            SELF_LOOPS=self_loops, ROW_SUMS=row_sums, PRECISION=_precision(upper.device), STRIP=STRIP,
            ROWS=tiles.rows, COLS=tiles.cols, HEIGHT=wide, num_warps=tiles.warps, num_stages=tiles.stages,
        )  # fmt: skip
    return out.view(*block.shape[:-2], *out.shape[1:])


def gradient(first: Tensor, second: Tensor, upper: Tensor) -> Tensor:
    """See :func:`bigcn.feature_graphs.learnable_strips.gradient`."""
    members, firsts, seconds = _members(upper, 1), first.contiguous(), second.contiguous()
    firsts, seconds, tiles = _members(firsts, 2), _members(seconds, 2), GRADIENT
    count, rank, size = firsts.shape
    aligned, grad = _aligned(size), torch.empty(members.shape, dtype=upper.dtype, device=upper.device)
    with torch.cuda.device_of(upper):
        _gradient_kernel[(triton.cdiv(aligned, tiles.cols), triton.cdiv(size, tiles.rows), count)](
            firsts, seconds, members, grad, size, aligned, rank,
            firsts.stride(0), seconds.stride(0), members.stride(0), grad.stride(0),
            PRECISION=_precision(upper.device), STRIP=STRIP,
            ROWS=tiles.rows, COLS=tiles.cols, RANK=GRADIENT_RANK, num_warps=tiles.warps, num_stages=tiles.stages,
        )  # fmt: skip
    return grad.view(upper.shape)


def works() -> bool:
    """Tells whether kernels compile and run here, which takes a compiler and a driver besides Triton."""
    size = 17
    try:
        packed = torch.zeros(size * _aligned(size), device="cuda")
        upper, degree = triangle(packed, size)
        scale = degree.rsqrt().unsqueeze(0)
        gradient(scale, product(upper, scale, scale, False, row_sums=True)[-1:], upper)
    except Exception as error:  # whatever it is, there is another way
        warn_user(f"learnable graphs do without Triton on this machine: {error}")
        return False
    return True


def _members(tensor: Tensor, dims: int) -> Tensor:
    """Returns a tensor with one leading dimension, and without gaps along the last."""
    tensor = tensor.reshape(-1, *tensor.shape[tensor.dim() - dims :])
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def _precision(device: Any) -> str:
    """Returns how kernels multiply: in three passes of the tensor cores, which is as precise as single precision, or
    in one where PyTorch may do so too.
    """
    if not _has_tf32(device):
        return "ieee"
    return "tf32" if fast_products_allowed() else "tf32x3"


@functools.cache
def _has_tf32(device: Any) -> bool:
    return device.type != "cuda" or not (torch.version.hip or torch.cuda.get_device_capability(device) < (8, 0))
