r"""How the logits of a learnable graph lie in memory: the upper triangle in strips of rows.

The strip that begins in row :math:`i` holds the columns from :math:`i` on, as a dense row-major matrix, and the strips
follow each other in one flat tensor. That is little more than half of a square, and parameter, gradient and the
moments of Adam all have this size; strips are matrices to products, and what is not above the diagonal (a triangle in
each strip, and columns beyond the last that align the rows) is zero wherever it could matter.

:data:`STRIP` and :data:`ALIGN` are part of the format of stored models.
"""

import bisect
import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

#: The rows of a strip: few enough to stay in the cache of a core between its two products.
STRIP = 128
#: Rows begin at multiples of this many entries, as vector instructions like it.
ALIGN = 16


class Strip(NamedTuple):
    r"""A strip of rows of the upper triangle.

    Args:
        start, stop (int): The rows; its columns begin at :obj:`start`.
        width (int): The entries of a row, those for alignment included.
        offset (int): Where it begins in the flat tensor.
    """

    start: int
    stop: int
    width: int
    offset: int

    @property
    def rows(self) -> int:
        return self.stop - self.start


def strips(size: int) -> tuple[Strip, ...]:
    """Returns the strips of a graph of so many features."""
    # A tracer would look into the cache.
    return _make_strips(size) if torch.compiler.is_compiling() else _kept_strips(size)


def _make_strips(size: int) -> tuple[Strip, ...]:
    aligned = -(-size // ALIGN) * ALIGN
    found, offset = [], 0
    for start in range(0, size, STRIP):
        strip = Strip(start, min(start + STRIP, size), aligned - start, offset)
        found.append(strip)
        offset += strip.rows * strip.width
    return tuple(found)


_kept_strips = functools.lru_cache(maxsize=256)(_make_strips)


def packed_numel(size: int) -> int:
    """Returns the number of entries that hold the triangle of so many features."""
    full, rest = divmod(size, STRIP)
    aligned = -(-size // ALIGN) * ALIGN
    return STRIP * (full * aligned - STRIP * full * (full - 1) // 2) + rest * (aligned - STRIP * full)


def packed_size(numel: int) -> int:
    """Returns the number of features of a flat tensor, the inverse of :func:`packed_numel`."""
    size = bisect.bisect_left(range(numel + 1), numel, key=packed_numel)
    if packed_numel(size) != numel:
        raise ValueError(f"no number of features has {numel:,} packed logits")
    return size


def strip_views(packed: Tensor, size: int, aligned: bool = False) -> list[Tensor]:
    """Returns the strips of a flat tensor, or of many in leading dimensions, as matrices.

    Args:
        packed (torch.Tensor): The flat tensor, without gaps in its last dimension.
        size (int): The number of features.
        aligned (bool, optional): Whether the matrices have the columns for alignment. (default: :obj:`False`)
    """
    lead, strides, first = packed.shape[:-1], packed.stride()[:-1], packed.storage_offset()
    return [
        packed.as_strided(
            (*lead, stop - start, width if aligned else size - start), (*strides, width, 1), first + offset
        )
        for start, stop, width, offset in strips(size)
    ]


def pack(square: Tensor) -> Tensor:
    """Returns the flat form of a square, or of many in leading dimensions."""
    size = square.size(-1)
    parts = []
    for strip in strips(size):
        rows = square[..., strip.start : strip.stop, strip.start :].triu(1)
        parts.append(F.pad(rows, (0, strip.start + strip.width - size)).flatten(-2))
    return torch.cat(parts, dim=-1)


def unpack(packed: Tensor, size: int) -> Tensor:
    """Returns the square whose strict upper triangle a flat tensor holds, zero elsewhere; differentiable."""
    parts = []
    for strip in strips(size):
        flat = packed[..., strip.offset : strip.offset + strip.rows * strip.width]
        rows = flat.unflatten(-1, (strip.rows, strip.width))[..., : size - strip.start].triu(1)
        parts.append(F.pad(rows, (strip.start, 0)))
    return torch.cat(parts, dim=-2)
