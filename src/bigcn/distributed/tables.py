"""Partitioning a graph from tables that do not fit into memory."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from bigcn.datasets.own import pipeline
from bigcn.datasets.own.classes import check_classes, check_divisible
from bigcn.datasets.own.edges import read_ids
from bigcn.datasets.own.graph import Encoding, InputError
from bigcn.datasets.own.labels import read_labels
from bigcn.datasets.own.pipeline import Roles
from bigcn.datasets.own.tables import checked_path
from bigcn.distributed.assign import METHODS, Method, assign
from bigcn.distributed.edge_stream import EdgeStream, sort_edges
from bigcn.distributed.edges import EdgeSorter
from bigcn.distributed.node_columns import Written, feature_blocks, read_parts, write_columns
from bigcn.distributed.shards import Manifest
from bigcn.distributed.table_warnings import warnings_about
from bigcn.distributed.writing import NodeColumns, new_folder, write_shards
from bigcn.files import PathLike
from bigcn.nn.cost import SPARSE_BELOW, WIDE_FEATURES


def partition_tables(
    nodes: PathLike,
    edges: PathLike,
    folder: PathLike,
    parts: int,
    *,
    label: str | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    split: str | None = None,
    standardize: bool = True,
    missing: Literal["error", "mean"] = "error",
    unknown_ids: Literal["error", "drop"] = "error",
    method: Method = "neighbours",
    seed: int = 0,
    overwrite: bool = False,
) -> Manifest:
    """Writes shards of a graph from a table of nodes and a table of edges, without ever holding the graph.

    Edges are read a batch at a time and sorted through buckets on disk; node columns are read one after the other and
    written row by row. Memory grows with the number of nodes (their ids, one column, where each goes), not with the
    features or the edges. Everything means what it means to :func:`bigcn.read_graph`, but for missing features, which
    that fills along the graph: here they are refused, or filled with the mean of their column. What was left out of the
    tables, or looks wrong in them, is in :obj:`warnings` of the manifest.

    Args:
        nodes, edges (str or path): The tables, Parquet or text.
        folder (str or path): Where to write the shards.
        parts (int): How many, one for each process.
        label, id, source, target, weight, features, split, standardize, unknown_ids: See :func:`bigcn.read_graph`.
        missing (str, optional): :obj:`"error"` refuses missing features, :obj:`"mean"` fills them.
            (default: :obj:`"error"`)
        method, seed: See :func:`~bigcn.distributed.assign.assign`.
        overwrite (bool, optional): If set to :obj:`True`, replaces older shards. (default: :obj:`False`)
    """
    if parts < 1:
        raise InputError(f"'--parts' must be at least 1 (got {parts})")
    if method not in METHODS:
        raise InputError(f"'--method' must be one of {', '.join(METHODS)} (got {method!r})")
    for option, value, choices in (
        ("--missing", missing, ("error", "mean")),
        ("--unknown-ids", unknown_ids, ("error", "drop")),
    ):
        if value not in choices:
            raise InputError(f"'{option}' must be {' or '.join(choices)} (got {value!r})")
    roles = Roles(label, id, source, target, weight, None if features is None else tuple(features), split)
    with new_folder(folder, overwrite) as draft:
        scratch = Path(tempfile.mkdtemp(dir=draft.parent, prefix="."))
        try:
            return _partition(
                Path(nodes), Path(edges), draft, scratch, parts, roles, standardize, missing, unknown_ids, method, seed
            )
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _partition(
    nodes: Path,
    edges: Path,
    draft: Path,
    scratch: Path,
    parts: int,
    roles: Roles,
    standardize: bool,
    missing: str,
    unknown_ids: str,
    method: Method,
    seed: int,
) -> Manifest:
    id, source, target = roles.ends(None)
    file = pipeline.open_tables(nodes, edges, id, source, target)
    table, links = file.nodes, file.edges
    said = list(file.said)
    if table.unnamed:
        said.append(f"{table.title} has {table.unnamed} columns without a name, which were left out.")
    table.require(id, "--id")
    label = pipeline._label(table, roles, None, file)
    wanted = pipeline._feature_names(table, roles, id, label, None, said)
    parts_in = pipeline._split_column(table, roles, wanted, label, None)
    wanted = [name for name in wanted if name != parts_in]
    for column, option in ((source, "--source"), (target, "--target")):
        links.require(column, option)
    weight = pipeline._weight(links, roles, None, said)

    ids = read_ids(table, id)
    if len(ids) == 0:
        raise InputError(f"{table.title} has no rows of nodes")
    if parts > len(ids):
        raise InputError(f"'--parts' must be at most the number of nodes, {len(ids):,} (got {parts})")
    stream = EdgeStream(checked_path(edges), links, source, target, weight)
    sorter = EdgeSorter(scratch, len(ids), stream.expected, weight is not None)
    unknown = sort_edges(stream, sorter, ids, table.title, unknown_ids)
    graph = sorter.finish()
    owner = assign(graph, parts, method, seed)

    y, classes = (None, ()) if label is None else read_labels(table, label, None, file.classes)
    asked = roles.split is not None
    part, remarks = (None, []) if parts_in is None else read_parts(table, parts_in, y, len(ids), asked)
    if y is not None:
        counts = np.bincount(y[y >= 0], minlength=len(classes)).tolist()
        check_classes(counts, classes, file.name)
        if part is None:
            check_divisible(counts, classes)
    written = Written(said=[*said, *remarks])
    cells = write_columns(table, wanted, roles, standardize, missing, scratch, written)
    found = list(warnings_about(graph, y, classes, cells))  # which writes the columns
    width = written.width
    sparse = width >= WIDE_FEATURES and written.filled < SPARSE_BELOW * len(ids) * width
    blocks = feature_blocks(written.columns, scratch, len(ids), width, sparse)
    about = NodeColumns(blocks, width, sparse, labels=y, split=part, ids=ids.to_numpy())
    rest = pipeline.unused(table, written.columns, id, label, parts_in)
    encoding = Encoding(tuple(written.columns), classes, label, standardize, id, source, target, weight, rest)
    return write_shards(
        draft,
        graph,
        owner,
        parts,
        about,
        method=method,
        classes=classes,
        name=file.name,
        encoding=encoding.to_dict(),
        removed={"duplicates": sorter.duplicates, "self_loops": sorter.self_loops, "unknown": unknown},
        warnings=(*written.said, *found),
    )
