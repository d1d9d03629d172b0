"""The node table, read a column at a time and written row by row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from bigcn.datasets.own import pipeline
from bigcn.datasets.own.columns import Unusable, Values, read_values
from bigcn.datasets.own.encoding import column_of
from bigcn.datasets.own.graph import Column, InputError
from bigcn.datasets.own.labels import read_split
from bigcn.datasets.own.pipeline import Roles
from bigcn.datasets.own.tables import Table
from bigcn.distributed.arrays import map_array, read_rows, write_array
from bigcn.distributed.shards import SPLIT

#: Features that are written in one go.
CELLS = 1 << 24
#: Columns of a text table that are read in one pass over it.
COLUMNS = 16


@dataclass(eq=False)
class Written:
    """What became of the feature columns.

    Args:
        columns (list[Column]): How each became features.
        filled (int): How many features are not zero.
        said (list[str]): What there is to say about the tables, with the columns that were left out.
    """

    columns: list[Column] = field(default_factory=list)
    filled: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(len(column.features) for column in self.columns)


def write_columns(
    table: Table, wanted: Sequence[str], roles: Roles, standardize: bool, missing: str, scratch: Path, written: Written
) -> Iterator[tuple[Column, Values]]:
    """Writes the encoded cells of each column, and yields it with its cells before the next is read."""
    columns = written.columns
    unusable: list[str] = []
    for group in range(0, len(wanted), COLUMNS):
        table.load(wanted[group : group + COLUMNS])
        for name in wanted[group : group + COLUMNS]:
            try:
                values = read_values(table, name)
                pipeline._check_usable(table, name, values, chosen=roles.features is not None)
            except Unusable as error:
                if roles.features is not None:
                    raise
                unusable.append(str(error))
                written.said.append(pipeline.left_out(str(error)))
                continue
            if values.missing.any() and missing == "error":
                first = int(values.missing.argmax())
                raise InputError(
                    f"{table.place(first, name)}: the value is missing ({int(values.missing.sum()):,} such in this "
                    f"column; --missing mean fills them)"
                )
            column = column_of(name, values, standardize)
            if column.kind == "category":
                cells = np.where(values.missing, -1, values.numbers).astype(np.int32)
                share = np.bincount(cells[cells >= 0], minlength=len(column.categories)) / max(1, (cells >= 0).sum())
                write_array(scratch / f"share-{len(columns)}.npy", share.astype(np.float32))
                written.filled += len(cells)
            else:
                numbers = np.where(values.missing, values.known.mean(), values.numbers)
                with np.errstate(over="ignore"):
                    cells = ((numbers - column.mean) / column.scale).astype(np.float32)
                if not np.isfinite(cells).all():
                    first = int((~np.isfinite(cells)).argmax())
                    raise InputError(f"{table.place(first, name)}: the value is too large for single precision")
                written.filled += int(np.count_nonzero(cells))
            write_array(scratch / f"column-{len(columns)}.npy", cells)
            columns.append(column)
            yield column, values
    if not columns:
        raise pipeline.no_features(table, unusable)


def feature_blocks(
    columns: Sequence[Column], scratch: Path, num_nodes: int, width: int, sparse: bool
) -> Iterator[np.ndarray | csr_array]:
    """Yields the features of some rows at a time, from the columns on disk."""
    shares = {
        i: np.asarray(map_array(scratch / f"share-{i}.npy"))
        for i, column in enumerate(columns)
        if column.kind == "category"
    }
    step = max(1, CELLS // width)
    for start in range(0, num_nodes, step):
        stop = min(start + step, num_nodes)
        block = np.zeros((stop - start, width), dtype=np.float32)
        place = 0
        for i, column in enumerate(columns):
            kind = np.int32 if column.kind == "category" else np.float32
            chosen = read_rows(scratch / f"column-{i}.npy", kind, start, stop)
            if column.kind == "category":
                known = np.flatnonzero(chosen >= 0)
                block[known, place + chosen[known]] = 1
                # The mean of a category is its share.
                block[chosen < 0, place : place + len(column.features)] = shares[i]
            else:
                block[:, place] = chosen
            place += len(column.features)
        yield csr_array(block) if sparse else block


def read_parts(
    table: Table, name: str, y: np.ndarray | None, num_nodes: int, asked: bool
) -> tuple[np.ndarray, list[str]]:
    """Returns the part of the split that each node is in, -1 for none, and what is to be said about it."""
    split, said = read_split(table, name, y, whole=True, asked=asked)
    assert split is not None
    part = np.full(num_nodes, -1, dtype=np.int8)
    for number, key in enumerate(SPLIT):
        part[getattr(split, key).numpy()] = number
    return part, said
