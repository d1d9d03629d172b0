"""The sparse matrices of all members of a population, down the diagonal of one."""

from collections.abc import MutableMapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

#: Pointers and columns of block-diagonal matrices, by the columns they were made from and for as long as these live.
_joined: MutableMapping[Tensor, tuple[Tensor, Tensor, tuple[Any, ...]]] = WeakTensorKeyDictionary()


def diagonal_blocks(arrays: Sequence[Tensor], in_dims: Sequence[int | None], members: int) -> list[Tensor]:
    """Joins mapped matrices of equal size and number of entries down the diagonal of one.

    Args:
        arrays (Sequence[torch.Tensor]): Pointers, columns and values, of one matrix or of one and its transpose.
        in_dims (Sequence[int, optional]): Where the members of each array are.
        members (int): How many there are.
    """
    out: list[Tensor] = []
    for first in range(0, len(arrays), 3):
        crow, col, value = arrays[first : first + 3]
        num_cols = arrays[(first + 3) % len(arrays)].size(-1) - 1  # the rows of the transpose
        pointers, columns = joined_pattern(crow, col, in_dims[first], in_dims[first + 1], members, num_cols)
        out += [pointers, columns, mapped(value, in_dims[first + 2], members, 0).reshape(-1)]
    return out


def joined_pattern(
    crow: Tensor, col: Tensor, crow_dim: int | None, col_dim: int | None, members: int, num_cols: int
) -> tuple[Tensor, Tensor]:
    """Returns pointers and columns of the matrices of all members down one diagonal; made once, then remembered.

    Args:
        crow, col (torch.Tensor): Pointers and columns, mapped or the same for all members.
        crow_dim, col_dim (int, optional): Where their members are.
        members (int): How many there are.
        num_cols (int): The columns of one matrix.
    """
    stamp = (crow, crow._version, col._version, crow_dim, col_dim, members, num_cols)
    known = _joined.get(col)
    if known is None or known[2][0] is not crow or known[2][1:] != stamp[1:]:
        pointers, columns = mapped(crow, crow_dim, members, 0), mapped(col, col_dim, members, 0)
        entries = columns.size(1)
        shift = torch.arange(members, device=col.device, dtype=col.dtype).unsqueeze(1)
        ends = pointers.new_full((1,), members * entries)
        pointers = torch.cat([(pointers[:, :-1] + entries * shift).reshape(-1), ends])
        known = pointers, (columns + num_cols * shift).reshape(-1), stamp
        _joined[col] = known
    return known[0], known[1]


def mapped(tensor: Tensor, dim: int | None, members: int, to: int) -> Tensor:
    """Puts the members of a mapped tensor in the given dimension, repeating one that is not mapped."""
    if dim is not None:
        return tensor.movedim(dim, to)
    shape = [*tensor.shape[:to], members, *tensor.shape[to:]]
    return tensor.unsqueeze(to).expand(shape)


def make_room(crow: Tensor, more: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns pointers with room for more entries at the end of each row, the row of every entry, and where those stand
    that were there before. All rows get about the same: the longest keeps the others waiting.

    Args:
        crow (torch.Tensor): The pointers of a matrix.
        more (int): How many entries there is to be room for.
    """
    before = torch.arange(crow.numel(), device=crow.device) * more // max(crow.numel() - 1, 1)
    pointers, row = crow + before, row_numbers(crow)
    old = torch.arange(row.numel(), device=crow.device) + before.index_select(0, row)
    return pointers, row_numbers(pointers), old


def row_numbers(pointers: Tensor, entries: int | None = None) -> Tensor:
    """Returns the row of every entry of a CSR matrix.

    Args:
        pointers (torch.Tensor): Its pointers.
        entries (int, optional): How many entries it has, which a GPU would have to be waited for.
    """
    counts = pointers[1:] - pointers[:-1]
    numbers = torch.arange(counts.numel(), device=pointers.device)
    return torch.repeat_interleave(numbers, counts, output_size=entries)
