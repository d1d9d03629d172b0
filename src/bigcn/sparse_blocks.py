"""Sparse matrices made ready for many products on a CPU.

Indices have 32 bits, as the library that multiplies wants them: it would copy others in each product. Each entry of a
sparse matrix asks for a row of the dense block, and where the rows do not fit into the processor's cache, most of them
come from main memory, one by one. Large matrices are therefore cut into blocks of columns whose rows fit, and
multiplied block by block.
"""

import math
from collections.abc import MutableMapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

#: How many bytes of the dense block belong to a block of columns, about.
CACHE_BYTES = 8 * 2**20
#: With fewer entries in a row of a block, going over all rows again takes longer than what it saves.
ENTRIES_PER_ROW = 4
#: From which product on a matrix is made ready: that takes as long as a few products.
WORTH_FROM = 3
#: Matrices with more entries keep indices of 64 bits.
MOST_ENTRIES = 2**31 - 1

Blocks = list[tuple[Tensor, int, int]]


@dataclass
class _Known:
    """What is known of a matrix.

    Args:
        crow (torch.Tensor): Its pointers.
        value (TensorWeakRef): Its values, which may belong to a step of training that is not to be kept alive.
        versions (tuple[int, ...]): The versions of these and of its columns.
        products (int): How many there have been.
        blocks (dict): Its blocks of columns, by their number.
    """

    crow: Tensor
    value: TensorWeakRef
    versions: tuple[int, ...]
    products: int = 0
    blocks: dict[int, Blocks] = field(default_factory=dict)


_known: MutableMapping[Tensor, _Known] = WeakTensorKeyDictionary()


def column_blocks(crow: Tensor, col: Tensor, value: Tensor, block: Tensor) -> Blocks | None:
    """Returns the blocks of columns of a CSR matrix with their first and last column, or :obj:`None` where the plain
    matrix does as well.

    Args:
        crow, col, value (torch.Tensor): The matrix.
        block (torch.Tensor): The dense block that it is to be multiplied with.
    """
    if block.device.type != "cpu" or col.numel() > MOST_ENTRIES:
        return None
    versions = (crow._version, value._version, col._version)
    known = _known.get(col)
    if known is None or known.crow is not crow or known.value() is not value or known.versions != versions:
        known = _known[col] = _Known(crow, TensorWeakRef(value), versions)
    known.products += 1
    if known.products < WORTH_FROM:
        return None
    count = num_blocks(crow.numel() - 1, col.numel(), block)
    if count not in known.blocks:
        known.blocks[count] = cut(crow, col, value.detach(), block.size(0), count)
    return known.blocks[count]


def num_blocks(rows: int, entries: int, block: Tensor) -> int:
    """Returns into how many blocks of columns to cut a matrix, a power of two."""
    size = block.numel() * block.element_size()
    if size < 2 * CACHE_BYTES / math.sqrt(2):
        return 1
    wanted = round(math.log2(size / CACHE_BYTES))
    allowed = math.floor(math.log2(max(entries / (ENTRIES_PER_ROW * max(rows, 1)), 1)))
    return int(2 ** min(wanted, allowed))


def cut(crow: Tensor, col: Tensor, value: Tensor, num_cols: int, count: int) -> Blocks:
    """Cuts a CSR matrix into blocks of columns.

    Args:
        crow, col, value (torch.Tensor): The matrix.
        num_cols (int): Its columns.
        count (int): The number of blocks.
    """
    if count == 1:
        arrays = crow.int(), col.int(), value
        return [(torch.sparse_csr_tensor(*arrays, (crow.numel() - 1, num_cols), check_invariants=False), 0, num_cols)]
    blocks: Blocks = []
    for number in range(count):
        first, last = num_cols * number // count, num_cols * (number + 1) // count
        inside = (col >= first) & (col < last)
        pointers = F.pad(inside.cumsum(0), (1, 0))[crow].int()
        shape = (crow.numel() - 1, last - first)
        arrays = pointers, (col[inside] - first).int(), value[inside]
        blocks.append((torch.sparse_csr_tensor(*arrays, shape, check_invariants=False), first, last))
    return blocks


def multiply(blocks: Blocks, x: Tensor, rest: Tensor | None = None, beta: float = 1, alpha: float = 1) -> Tensor:
    """Multiplies a matrix with a dense block and adds: :obj:`beta * rest + alpha * matrix @ x`, or without
    :obj:`rest` just the product.
    """
    (matrix, first, last), *others = blocks
    some = x[first:last] if others else x
    if rest is None:
        alpha, out = 1, matrix @ some
    else:
        out = torch.addmm(rest, matrix, some, beta=beta, alpha=alpha)
    for matrix, first, last in others:
        torch.addmm(out, matrix, x[first:last], alpha=alpha, out=out)
    return out
