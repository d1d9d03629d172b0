"""The edge table, read a batch at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq

from bigcn.datasets.own.edges import as_ids, match, read_weights
from bigcn.datasets.own.graph import InputError
from bigcn.datasets.own.tables import PARQUET_ENDINGS, Table, file_ending, first_line
from bigcn.datasets.own.text import BLOCK_BYTES, read_header, streaming
from bigcn.distributed.edges import EdgeSorter

#: Edges that are read in one go.
BATCH = 1 << 20


@dataclass(frozen=True)
class EdgeStream:
    """The edge table, a batch at a time.

    Args:
        path (Path): The file.
        table (Table): The same, opened.
        source, target (str): The columns with the two ends.
        weight (str, optional): The column with the weights.
    """

    path: Path
    table: Table
    source: str
    target: str
    weight: str | None

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [self.source, self.target, *([self.weight] if self.weight else [])]

    @property
    def in_parquet(self) -> bool:
        """Whether the table is a Parquet file."""
        return file_ending(self.path) in PARQUET_ENDINGS

    @property
    def expected(self) -> int:
        """About how many edges there are."""
        if self.in_parquet:
            return int(pq.ParquetFile(self.path).metadata.num_rows)
        return self.path.stat().st_size // 8

    def __iter__(self) -> Iterator[Table]:
        start = 0
        header = 1 if self.in_parquet else 2
        try:
            for batch in self._batches():
                columns = dict(zip(self.names, batch, strict=True))
                yield Table(
                    self.table.title,
                    self.names,
                    lambda wanted, columns=columns: {name: columns[name] for name in wanted},  # type: ignore[misc]
                    lambda i, start=start: f"row {start + i + header:,}",  # type: ignore[misc]
                    self.table.decimal,
                )
                start += len(batch[0])
        except pa.ArrowException as error:
            raise InputError(f"{self.path} cannot be read as a table: {first_line(error)}") from error

    def _batches(self) -> Iterator[list[pa.ChunkedArray]]:
        if self.in_parquet:
            with pq.ParquetFile(self.path, memory_map=True) as file:
                for batch in file.iter_batches(BATCH, columns=self.names):
                    yield [pa.chunked_array([batch.column(name)]) for name in self.names]
            return
        usual = "\t" if file_ending(self.path) in (".tsv", ".tab") else ","
        header, delimiter = read_header(self.path, usual, [self.source, self.target])
        raw = {name.strip(): name for name in header}
        names = [raw[name] for name in self.names]
        with streaming(self.path) as file:
            reader = pa.csv.open_csv(
                file,
                read_options=pa.csv.ReadOptions(block_size=BLOCK_BYTES),
                parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types={name: pa.string() for name in names}, include_columns=names, strings_can_be_null=False
                ),
            )
            for batch in reader:
                yield [pa.chunked_array([pa.compute.utf8_trim_whitespace(batch.column(name))]) for name in names]


class _Places:
    """Finds the place of an id in the node table; the search tree for numbers is built once."""

    def __init__(self, ids: pa.ChunkedArray) -> None:
        self._ids = ids
        self._order: np.ndarray | None = None
        if pa.types.is_int64(ids.type):
            numbers = ids.to_numpy()
            self._order = np.argsort(numbers, kind="stable")
            self._sorted = numbers[self._order]

    def __call__(self, column: pa.ChunkedArray) -> np.ndarray:
        if self._order is None or not pa.types.is_int64(column.type):
            return match(column, self._ids)
        wanted = column.to_numpy()
        near = np.searchsorted(self._sorted, wanted).clip(max=len(self._sorted) - 1)
        return np.where(self._sorted[near] == wanted, self._order[near], -1)


def sort_edges(stream: EdgeStream, sorter: EdgeSorter, ids: pa.ChunkedArray, nodes: str, unknown_ids: str) -> int:
    """Sorts all edges; returns how many were skipped for an unknown id."""
    places, lost = _Places(ids), 0
    for table in stream:
        ends = []
        for name in (stream.source, stream.target):
            column = as_ids(table, name)
            if column.null_count:
                first = int(np.asarray(pa.compute.is_null(column)).argmax())
                raise InputError(f"{table.place(first, name)}: the id is missing")
            found = places(column)
            if unknown_ids == "error" and (found < 0).any():
                first = int((found < 0).argmax())
                raise InputError(
                    f"{table.place(first, name)}: id {column[first].as_py()!r} is not in {nodes} "
                    f"(--unknown-ids drop skips such edges)"
                )
            ends.append(found)
        weight = None if stream.weight is None else read_weights(table, stream.weight)
        kept = (ends[0] >= 0) & (ends[1] >= 0)
        lost += int((~kept).sum())
        sorter.add(ends[0][kept], ends[1][kept], None if weight is None else weight[kept])
    return lost
