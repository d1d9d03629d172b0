"""Files that hold a whole graph: what NetworkX reads, sparse matrices in .npz, and PyG's Data in .pt."""

import gzip
import json
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np

from bigcn.datasets.own.arrays import GraphArrays, read_npz, read_pyg
from bigcn.datasets.own.graph import InputError
from bigcn.datasets.own.tables import PARQUET_ENDINGS, TEXT_ENDINGS, Table, as_arrow, file_ending, first_line

TABLE_ENDINGS = (*TEXT_ENDINGS, *PARQUET_ENDINGS)
#: The column that labels are kept in, in formats where they have a place of their own.
LABEL, SPLIT = "label", "split"


@dataclass(eq=False)
class GraphFile:
    """The two tables of a graph, however it was kept.

    Args:
        nodes, edges (Table): The tables.
        name (str): What to call the graph.
        label (str, optional): The label column, where the format has one. (default: :obj:`None`)
        classes (tuple[str, ...], optional): The order of the classes, where the format has one. (default: :obj:`()`)
        said (tuple[str, ...], optional): What is to be said about it. (default: :obj:`()`)
    """

    nodes: Table
    edges: Table
    name: str
    label: str | None = None
    classes: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def open_graph(path: Path, id: str, source: str, target: str) -> GraphFile:
    """Opens a file that holds a whole graph, known by its ending.

    Args:
        path (Path): The file.
        id, source, target (str): What to call the columns with the ids.
    """
    ending = file_ending(path)
    if ending in NETWORKX:
        return _from_networkx(path, ending, id, source, target)
    if ending in (".npz", ".pt", ".pth"):
        arrays = read_npz(path) if ending == ".npz" else read_pyg(path)
        return _from_arrays(path, arrays, id, source, target)
    raise InputError(
        f"{path} is not a graph that can be read: one file for a whole graph is {', '.join(NETWORKX)}, .npz or .pt"
    )


#: Where the nodes are that a file lists: NetworkX makes one of whatever an edge names.
_LISTED = "bigcn: listed nodes"


def _read_node_link(nx: Any, path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        document = json.load(file)
    _check_node_link(path, document)
    # What is said of the graph as a whole is of no use here, whatever it is.
    graph = nx.node_link_graph({**document, "graph": {}}, edges="links" if "links" in document else "edges")
    graph.graph[_LISTED] = [entry.get("id", place) for place, entry in enumerate(document["nodes"])]
    return graph


def _check_node_link(path: Path, document: Any) -> None:
    """Refuses JSON that is something else than a node-link graph."""
    if not isinstance(document, dict):
        raise InputError(f"{path} is no node-link JSON: that is an object with 'nodes' and 'links' (or 'edges')")
    edges = "links" if "links" in document else "edges"
    for key in ("nodes", edges):
        if not isinstance(document.get(key), list):
            what = "is no list" if key in document else "is missing"
            raise InputError(f"{path} is no node-link JSON: {key!r} {what}")
        for i, entry in enumerate(document[key]):
            place = f"{path}, entry {i + 1:,} of {key!r}"
            if not isinstance(entry, dict):
                raise InputError(f"{place}: is no object with names and values")
            if missing := [end for end in ("source", "target") if key == edges and end not in entry]:
                raise InputError(f"{place}: {missing[0]!r} is missing")
            for end in ("source", "target") if key == edges else ("id",):
                if isinstance(entry.get(end, 0), dict | list | None):  # nodes without an id are numbered
                    raise InputError(f"{place}: {end!r} must be a number or a text")


def _read_gml(nx: Any, path: Path) -> Any:
    try:
        return nx.read_gml(path)
    except nx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return nx.read_gml(path, label="id")  # labels are optional, and need not be unique


#: What reads a file of each ending.
NETWORKX: dict[str, Callable[[Any, Path], Any]] = {
    ".graphml": lambda nx, path: nx.read_graphml(path),
    ".gml": _read_gml,
    ".gexf": lambda nx, path: nx.read_gexf(path),
    ".net": lambda nx, path: nx.read_pajek(path),
    ".json": _read_node_link,
}


def _from_networkx(path: Path, ending: str, id: str, source: str, target: str) -> GraphFile:
    try:
        import networkx as nx
    except ModuleNotFoundError as error:
        raise InputError(f"{path} needs networkx to be read: pip install networkx") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = NETWORKX[ending](nx, path)
    except InputError:
        raise
    except Exception as error:  # its readers let through whatever a broken file makes them stumble over
        said = isinstance(error, nx.NetworkXError | ParseError | json.JSONDecodeError)
        reason = first_line(error) if said else _guess(error)
        raise InputError(f"{path} is not a {ending} graph that can be read: {reason}") from error
    keys = list(graph.graph.get(_LISTED, graph.nodes))
    if not keys:
        raise InputError(f"{path} has no nodes")
    attributes = list(dict.fromkeys(name for _, values in graph.nodes(data=True) for name in values if name != id))
    ends = [(u, v, values) for u, v, values in graph.edges(data=True)]
    rows: dict[str, Any] = {id: lambda: keys}
    rows |= {str(name): partial(_values, graph, keys, name) for name in attributes}
    links: dict[str, Any] = {source: lambda: [u for u, _, _ in ends], target: lambda: [v for _, v, _ in ends]}
    if any("weight" in values for _, _, values in ends):
        links["weight"] = lambda: [values.get("weight", 1) for _, _, values in ends]
    return GraphFile(
        _table(path, rows, lambda i: f"node {keys[i]!r}"),
        _table(path, links, lambda i: f"edge {ends[i][0]!r}–{ends[i][1]!r}"),
        path.name.split(".")[0],
    )


def _guess(error: Exception) -> str:
    """Says what may be wrong with a file whose reader stumbled, in whose own words only programmers are at home."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, gzip.BadGzipFile | EOFError | zlib.error):
        return "it is no gzip file, or only a part of one"
    return "it is cut off, or holds something where it does not belong"


def _values(graph: Any, keys: list[Any], name: str) -> list[Any]:
    return [graph.nodes[key].get(name) for key in keys]


def _from_arrays(path: Path, arrays: GraphArrays, id: str, source: str, target: str) -> GraphFile:
    x = np.asfortranarray(arrays.x)
    rows: dict[str, Any] = {id: lambda: np.arange(len(x))}
    if arrays.labels is not None:
        rows[LABEL] = lambda: arrays.labels
    if arrays.split is not None:
        rows[SPLIT] = lambda: arrays.split
    rows |= {f"x{j}": partial(lambda j: x[:, j], j) for j in range(x.shape[1])}
    links: dict[str, Any] = {source: lambda: arrays.source, target: lambda: arrays.target}
    if arrays.weight is not None:
        links["weight"] = lambda: arrays.weight
    return GraphFile(
        _table(path, rows, lambda i: f"node {i}"),
        _table(path, links, lambda i: f"edge {i}"),
        path.name.split(".")[0],
        label=None if arrays.labels is None else LABEL,
        classes=arrays.classes,
        said=tuple(arrays.said),
    )


def _table(path: Path, columns: dict[str, Callable[[], Any]], row: Callable[[int], str]) -> Table:
    return Table(str(path), list(columns), lambda names: {name: as_arrow(columns[name]()) for name in names}, row)
