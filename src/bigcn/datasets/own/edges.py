"""Ids, and the undirected graph that an edge table means."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from bigcn.datasets.own.columns import as_floats, parse_number, plain
from bigcn.datasets.own.graph import InputError
from bigcn.datasets.own.tables import Table

UNKNOWN_IDS = ("error", "drop")


@dataclass(eq=False)
class Edges:
    """An undirected graph, and what happened on the way to it.

    Args:
        index (torch.Tensor): Every edge in both directions, sorted.
        weight (torch.Tensor, optional): The weights.
        duplicates, self_loops, unknown (int): Edges merged, removed, and skipped for an unknown id.
    """

    index: Tensor
    weight: Tensor | None
    duplicates: int
    self_loops: int
    unknown: int

    @property
    def once(self) -> Tensor:
        """Every edge once, the smaller node first."""
        return self.index[:, self.index[0] < self.index[1]]


def read_ids(table: Table, name: str) -> pa.ChunkedArray:
    """Returns the ids of the nodes, as whole numbers or text; an id that is missing or not unique is refused."""
    ids = as_ids(table, name)
    if ids.null_count:
        first = int(np.asarray(pc.is_null(ids)).argmax())
        raise InputError(f"{table.place(first, name)}: the id is missing")
    if pc.count_distinct(ids).as_py() < len(ids):
        seen: dict[object, int] = {}
        for i, value in enumerate(ids.to_pylist()):
            if value in seen:
                raise InputError(f"{table.place(i, name)}: id {value!r} stands in {_row(table, seen[value])} already")
            seen[value] = i
    return ids


def _row(table: Table, i: int) -> str:
    return table.place(i).removeprefix(f"{table.title}, ")


def as_ids(table: Table, name: str) -> pa.ChunkedArray:
    """Returns a column of ids as whole numbers or text, with null where there is none."""
    column = plain(table, name, table.take(name))
    if pa.types.is_floating(column.type):
        # Whole numbers that a table with gaps had to keep as floats.
        numbers = as_floats(column)
        whole = np.isnan(numbers) | ((numbers == np.floor(numbers)) & (np.abs(numbers) < 2**53))
        if whole.all():
            return pc.cast(pc.if_else(pc.is_nan(column), None, column), pa.int64())
    if pa.types.is_integer(column.type):
        try:
            return pc.cast(column, pa.int64())
        except pa.ArrowInvalid:
            pass
    if not pa.types.is_string(column.type):
        column = pc.cast(column, pa.string())
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def read_edges(
    table: Table,
    source: str,
    target: str,
    weight: str | None,
    ids: pa.ChunkedArray,
    nodes: str,
    unknown_ids: str,
) -> Edges:
    """Reads an edge table.

    Args:
        table (Table): The table.
        source, target (str): The columns with the two ends.
        weight (str, optional): The column with the weights.
        ids (pyarrow.ChunkedArray): The ids of the nodes.
        nodes (str): What the node table is called.
        unknown_ids (str): :obj:`"error"` refuses an edge with an id that no node has, :obj:`"drop"` skips it.
    """
    table.load([source, target, *([weight] if weight else [])])
    ends = []
    for name in (source, target):
        column = as_ids(table, name)
        if column.null_count:
            first = int(np.asarray(pc.is_null(column)).argmax())
            raise InputError(f"{table.place(first, name)}: the id is missing")
        position = match(column, ids)
        unknown = position < 0
        if unknown.any() and unknown_ids == "error":
            first = int(unknown.argmax())
            value = column[first].as_py()
            raise InputError(
                f"{table.place(first, name)}: id {value!r} is not in {nodes}{_near(value, ids)} "
                f"({int(unknown.sum()):,} such in this column; --unknown-ids drop skips them)"
            )
        ends.append(position)
    strength = None if weight is None else read_weights(table, weight)
    kept = (ends[0] >= 0) & (ends[1] >= 0)
    lost = int((~kept).sum())
    if lost:
        ends = [end[kept] for end in ends]
        strength = None if strength is None else strength[kept]
    return tidy(ends[0], ends[1], strength, len(ids), lost, table.title)


def match(column: pa.ChunkedArray, ids: pa.ChunkedArray) -> np.ndarray:
    """Returns the position of each id among those of the nodes, -1 for none; a number matches its plain text."""
    if column.type != ids.type:
        column, ids = pc.cast(column, pa.string()), pc.cast(ids, pa.string())
    found = pc.index_in(column, value_set=ids.combine_chunks())
    return np.asarray(pc.fill_null(found, -1)).astype(np.int64)


def _near(value: object, ids: pa.ChunkedArray) -> str:
    """Names the id that was probably meant: another spelling of the same number."""
    number = parse_number(str(value))
    if not math.isfinite(number):
        return ""
    # Whole numbers as they are usually written, or as a column with gaps has them; then any other spelling.
    usual = [str(int(number)), f"{int(number)}.0"] if number == int(number) else []
    meant = next((text for text in usual if match(pa.chunked_array([[text]]), ids)[0] >= 0), None)
    if meant is None:
        meant = next((str(id) for id in ids.to_pylist() if parse_number(str(id)) == number), None)
    return "" if meant is None else f", where {meant!r} is another id"


def read_weights(table: Table, name: str) -> np.ndarray:
    """Returns the weights of edges; all must be numbers above zero."""
    column = plain(table, name, table.take(name))
    if pa.types.is_string(column.type):
        try:
            weights = as_floats(pc.cast(column, pa.float64()))
        except pa.ArrowInvalid:
            texts = column.to_pylist()
            weights = np.array([parse_number(text or "", table.decimal) for text in texts])
            if np.isnan(weights).any():
                first = int(np.isnan(weights).argmax())
                raise InputError(
                    f"{table.place(first, name)}: {texts[first]!r} is not a weight (a number above zero)"
                ) from None
    else:
        weights = as_floats(column)
    with np.errstate(over="ignore"):
        single = weights.astype(np.float32)
    # Not a number is not above zero, either; too small a number is zero in single precision.
    bad = ~((single > 0) & np.isfinite(single))
    if bad.any():
        first = int(bad.argmax())
        place, found = table.place(first, name), weights[first]
        if found > 0 and np.isfinite(found):
            size = "small" if single[first] == 0 else "large"
            raise InputError(f"{place}: the weight {found:g} is too {size} for single precision")
        what = "missing" if np.isnan(found) else f"{found:g}"
        raise InputError(f"{place}: the weight must be a number above zero, and it is {what}")
    return weights


def tidy(
    source: np.ndarray, target: np.ndarray, weight: np.ndarray | None, num_nodes: int, unknown: int, title: str
) -> Edges:
    """Drops directions, removes self-loops, and merges duplicates with their weights added."""
    loops = source == target
    self_loops = int(loops.sum())
    if self_loops:
        source, target = source[~loops], target[~loops]
        weight = None if weight is None else weight[~loops]
    ends = (np.minimum(source, target), np.maximum(source, target))
    values = np.ones(len(source)) if weight is None else weight
    # Building the matrix sorts and merges in linear time.
    upper = coo_array((values, ends), shape=(num_nodes, num_nodes)).tocsr()
    both = (upper + upper.T).tocsr()
    both.sort_indices()
    rows = np.repeat(np.arange(num_nodes), np.diff(both.indptr))
    index = torch.from_numpy(np.stack([rows, both.indices.astype(np.int64)]))
    weights = None
    if weight is not None:
        with np.errstate(over="ignore"):
            weights = torch.from_numpy(both.data.astype(np.float32))
        if not bool(torch.isfinite(weights).all()):
            raise InputError(f"{title}: the weights of an edge that stands there several times add up to infinity")
    return Edges(index, weights, len(source) - upper.nnz, self_loops, unknown)


def count_components(edges: Edges, num_nodes: int) -> tuple[int, int]:
    """Returns the number of isolated nodes and of connected components."""
    low, high = edges.once.numpy()
    ones = np.ones(len(low), dtype=np.int8)
    matrix = coo_array((ones, (low, high)), shape=(num_nodes, num_nodes)).tocsr()
    touched = np.zeros(num_nodes, dtype=bool)
    touched[low] = touched[high] = True
    components, _ = connected_components(matrix, directed=False)
    return int((~touched).sum()), int(components)
