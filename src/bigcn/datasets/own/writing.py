"""Writing tables, and graphs as tables: whole or not at all."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data

from bigcn.datasets.own.encoding import decode
from bigcn.datasets.own.graph import Column, Encoding, InputError, OwnGraph
from bigcn.datasets.splits import Split
from bigcn.files import PathLike, draft_of, refuse_special

if TYPE_CHECKING:
    import pandas as pd

    from bigcn.datasets.own.tables import Table

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


def write_table(frame: "pd.DataFrame", path: PathLike) -> Path:
    """Writes a table without its index, in the format that the ending of the file speaks of.

    Args:
        frame (pandas.DataFrame): The table.
        path (str or path): The file: .csv, .tsv, .csv.gz, .tsv.gz or .parquet.
    """
    ending = table_ending(path)
    with draft_of(path) as draft:
        separator = "\t" if ending.startswith(".tsv") else ","
        if ending == ".parquet":
            frame.to_parquet(draft, index=False)
        elif ending.endswith(".gz"):
            # The name of the draft and the time would make the same table another file each time.
            with draft.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
                frame.to_csv(file, index=False, sep=separator)
        else:
            frame.to_csv(draft, index=False, sep=separator)
    return Path(path)


def table_ending(path: PathLike) -> str:
    """Returns the ending of a table to write, and refuses another; for checks before there is anything to write."""
    name = Path(path).name.lower()
    ending = next((ending for ending in reversed(ENDINGS) if name.endswith(ending)), None)
    if ending is None:
        raise InputError(f"{path}: a table is written as {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, by its ending")
    try:
        refuse_special(path)
    except ValueError as error:
        raise InputError(str(error)) from None
    return ending


def carried(table: "Table", name: str) -> "pd.Series":
    """Returns a column that is to be written as it was read; numbers with a decimal comma, which :func:`write_table`
    does not write, get a decimal point.

    Args:
        table (Table): The table that was read.
        name (str): The column.
    """
    import pyarrow as pa

    from bigcn.datasets.own.columns import MOSTLY_NUMBERS, distinct_texts, known_text, parse_number

    column = table.take(name)
    if table.decimal == "." or not pa.types.is_string(column.type):
        return column.to_pandas()
    codes, texts = distinct_texts(known_text(column))
    is_number = np.array([not np.isnan(parse_number(text, table.decimal)) for text in texts] + [False])
    known = codes >= 0
    # As for features: what is no number among many is a slip, and in a column of words "1,5" is a word.
    if not known.any() or is_number[codes[known]].mean() <= MOSTLY_NUMBERS:
        return column.to_pandas()
    cells = column.to_pandas()
    return cells.where(~is_number[codes], cells.str.replace(table.decimal, ".", regex=False))


def write_graph(
    graph: OwnGraph | Data,
    nodes: PathLike,
    edges: PathLike,
    *,
    ids: Sequence[Any] | np.ndarray | None = None,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    split: Split | None = None,
) -> None:
    """Writes a graph as a table of nodes and a table of edges that :func:`read_graph` reads.

    Features are written in the units that they were read in, gaps as gaps, and each undirected edge once.

    Args:
        graph (OwnGraph or Data): The graph; of a PyG :obj:`Data` the features, edges, weights and labels.
        nodes, edges (str or path): The files, see :func:`write_table`.
        ids (Sequence, optional): The ids of the nodes. (default: those that were read, or their numbers)
        feature_names (Sequence[str], optional): The names of the features of a :obj:`Data`.
            (default: :obj:`"x0"`, :obj:`"x1"`, …)
        classes (Sequence[str], optional): The names of the classes of a :obj:`Data`. (default: their numbers)
        split (Split, optional): A split, for a column :obj:`"split"`. (default: that of an :class:`OwnGraph`)
    """
    for path in (nodes, edges):
        table_ending(path)
    if isinstance(graph, OwnGraph):
        data, encoding, gaps = graph.data, graph.encoding, graph.missing
        ids, split = graph.ids if ids is None else ids, split or graph.split
    else:
        data, gaps = graph, None
        encoding = _plain_encoding(data, feature_names, classes)
        ids = np.arange(data.num_nodes) if ids is None else ids
    node_frame, edge_frame = _frames(data, encoding, gaps, ids, split)
    write_table(node_frame, nodes)
    write_table(edge_frame, edges)


def _plain_encoding(data: Data, feature_names: Sequence[str] | None, classes: Sequence[str] | None) -> Encoding:
    names = feature_names if feature_names is not None else [f"x{j}" for j in range(data.x.size(1))]
    if len(names) != data.x.size(1):
        raise ValueError(f"'feature_names' must name the {data.x.size(1)} features (got {len(names)})")
    if classes is None and data.y is not None:
        classes = [str(i) for i in range(int(data.y.max()) + 1)]
    label = None if data.y is None else "label"
    return Encoding(tuple(Column(name, "number") for name in names), tuple(classes or ()), label, False)


def _frames(
    data: Data, encoding: Encoding, gaps: torch.Tensor | None, ids: Any, split: Split | None
) -> "tuple[pd.DataFrame, pd.DataFrame]":
    import pandas as pd

    x = data.x if data.x.layout == torch.strided else data.x.to_dense()
    features = decode(encoding, x if gaps is None else torch.where(gaps, torch.nan, x))
    roles: dict[str, Any] = {encoding.id: ids}
    if data.y is not None and encoding.label is not None:
        names = np.array([*encoding.classes, None], dtype=object)
        roles[encoding.label] = names[data.y.cpu().numpy()]
    if split is not None:
        parts = np.full(data.num_nodes, None, dtype=object)
        for part in ("train", "val", "test"):
            parts[getattr(split, part).cpu().numpy()] = part
        roles["split"] = parts
    if clash := [name for name in roles if name in features.columns]:
        raise ValueError(f"a feature must not be called {clash[0]!r}, as the column with ids, labels or split is")
    node_frame = pd.concat([pd.DataFrame(roles), features], axis=1)

    source, target = data.edge_index.cpu().numpy()
    once = source < target
    keys = np.asarray(ids)
    links = {encoding.source: keys[source[once]], encoding.target: keys[target[once]]}
    if data.get("edge_weight") is not None:
        links[encoding.weight or "weight"] = data.edge_weight.cpu().numpy()[once]
    return node_frame, pd.DataFrame(links)
