"""From columns to features and back."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bigcn.datasets.own.graph import Column, Encoding, InputError

if TYPE_CHECKING:
    import pandas as pd

    from bigcn.datasets.own.columns import Values

#: The most features that columns may become.
MAX_FEATURES = 100_000


def column_of(name: str, values: "Values", standardize: bool) -> Column:
    """Decides how a column becomes features.

    Numbers are brought to mean zero and variance one. Booleans and categories stay 0 and 1: standardised, a rare flag
    would become the largest number of its row, while 0 and 1 are of the size of standardised numbers already.

    Args:
        name (str): The column.
        values (Values): Its cells.
        standardize (bool): Whether numbers are standardised.
    """
    if values.kind != "number":
        return Column(name, values.kind, categories=values.categories)
    if not standardize:
        return Column(name, "number")
    known = values.known
    if known.size == 0:
        return Column(name, "number")
    if known.min() == known.max():  # the mean and the deviation would be rounding
        return Column(name, "number", float(known[0]))
    return Column(name, "number", float(known.mean()), float(known.std()) or 1.0)


def encode_values(columns: Sequence[Column], cells: "Sequence[Values]", num_nodes: int) -> tuple[Tensor, Tensor | None]:
    """Returns features, with NaN where a cell is missing, and a mask of these places if there are any.

    Args:
        columns (Sequence[Column]): How each column becomes features.
        cells (Sequence[Values]): The cells of each column.
        num_nodes (int): The number of rows.
    """
    width = sum(len(column.features) for column in columns)
    check_size(num_nodes, width)
    # Columns are laid down one after the other; the transposition at the end is one pass, not one for each column.
    x = np.zeros((width, num_nodes), dtype=np.float32)
    start = 0
    for column, values in zip(columns, cells, strict=True):
        block = x[start : start + len(column.features)]
        start += len(column.features)
        if column.kind == "category":
            rows = np.flatnonzero(~values.missing)
            block[values.numbers[rows].astype(np.int64), rows] = 1
            block[:, values.missing] = np.nan
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                block[0] = (values.numbers - column.mean) / column.scale
    features = torch.from_numpy(x).t().contiguous()
    return features, torch.isnan(features) if any(values.missing.any() for values in cells) else None


def check_size(num_nodes: int, width: int) -> None:
    """Refuses features that would not fit into half of the memory."""
    if width > MAX_FEATURES:
        raise InputError(f"the columns become {width:,} features, and at most {MAX_FEATURES:,} are possible")
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if 4 * num_nodes * width > memory / 2:
        raise InputError(
            f"{width:,} features of {num_nodes:,} nodes need {4 * num_nodes * width / 1e9:.0f} GB, more than half of "
            f"this machine's memory ({memory / 1e9:.0f} GB)"
        )


def encode(encoding: Encoding, frame: "pd.DataFrame") -> Tensor:
    """Turns a table into features, with NaN where a cell is missing.

    Args:
        encoding (Encoding): How columns become features.
        frame (pandas.DataFrame): A table with these columns, in any order.
    """
    from bigcn.datasets.own.columns import read_values
    from bigcn.datasets.own.tables import frame_table

    table = frame_table(frame, "the table")
    for column in encoding.columns:
        table.require(column.name, "no option")
    cells = [read_values(table, column.name, column) for column in encoding.columns]
    return encode_values(encoding.columns, cells, len(frame))[0]


def decode(encoding: Encoding, x: Tensor | np.ndarray, hard: bool = True) -> "pd.DataFrame":
    """Turns features back into columns in the units that they had.

    Numbers lose their standardisation; a boolean is true from one half on; of a category the largest feature counts.
    Where a feature is NaN the cell is missing.

    Args:
        encoding (Encoding): How columns became features.
        x (torch.Tensor): The features.
        hard (bool, optional): If set to :obj:`False`, booleans and categories stay numbers, a column for each
            feature. (default: :obj:`True`)
    """
    import pandas as pd

    matrix = x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)
    if matrix.ndim != 2 or matrix.shape[1] != len(encoding.feature_names):
        raise ValueError(
            f"'x' must have {len(encoding.feature_names):,} features, as the encoding (got shape {list(matrix.shape)})"
        )
    columns: dict[str, Any] = {}
    start = 0
    for column in encoding.columns:
        block = matrix[:, start : start + len(column.features)]
        start += len(column.features)
        if column.kind == "number":
            # In single precision a number prints as it was written, unless it has to be scaled.
            plain = column.mean == 0 and column.scale == 1
            columns[column.name] = block[:, 0] if plain else block[:, 0].astype(np.float64) * column.scale + column.mean
        elif not hard:
            columns |= dict(zip(column.features, block.T, strict=True))
        else:
            columns[column.name] = _chosen(column, block)
    return pd.DataFrame(columns)


def _chosen(column: Column, block: np.ndarray) -> np.ndarray:
    missing = np.isnan(block).any(axis=1)
    if column.kind == "category":
        choice, words = np.nan_to_num(block).argmax(axis=1), column.categories
    else:
        choice, words = (block[:, 0] >= 0.5).astype(np.int64), column.categories
        if not words:
            return np.where(missing, np.nan, choice) if missing.any() else choice
    cells = np.array(words, dtype=object)[choice]
    cells[missing] = None
    return cells
