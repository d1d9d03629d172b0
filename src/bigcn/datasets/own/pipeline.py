"""From tables to a graph, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from bigcn.datasets.own.columns import Unusable, Values, read_values
from bigcn.datasets.own.edges import read_edges, read_ids
from bigcn.datasets.own.encoding import column_of, encode_values
from bigcn.datasets.own.formats import TABLE_ENDINGS, GraphFile, open_graph
from bigcn.datasets.own.graph import Column, Encoding, InputError, NoClasses, OwnGraph
from bigcn.datasets.own.labels import USUAL_SPLIT, is_split, read_labels, read_split
from bigcn.datasets.own.summary import summarize
from bigcn.datasets.own.tables import Table, checked_path, file_ending, listed, open_table
from bigcn.smoothing.imputation import fill_missing

#: A text column with more categories than this is left out.
MAX_CATEGORIES = 1_000
#: From so many on, texts that are all different are names, not categories.
MIN_UNIQUE = 10


@dataclass(frozen=True)
class Roles:
    """Which column plays which part; :obj:`None` for the usual one.

    Args:
        label, id, source, target, weight, features, split: See :func:`~bigcn.datasets.own.read_graph`.
    """

    label: str | None = None
    id: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    split: str | None = None

    def ends(self, like: Encoding | None) -> tuple[str, str, str]:
        """Returns the columns with ids, sources and targets: those named, those of a model, or the usual ones."""
        usual = like or Encoding(())
        return self.id or usual.id, self.source or usual.source, self.target or usual.target


def build(
    nodes: Any,
    edges: Any,
    roles: Roles,
    standardize: bool,
    missing: str,
    unknown_ids: str,
    like: Encoding | None,
    name: str | None,
) -> OwnGraph:
    """Does what :func:`~bigcn.datasets.own.read_graph` says, with arguments that were checked."""
    id, source, target = roles.ends(like)
    file = open_tables(nodes, edges, id, source, target)
    table, links = file.nodes, file.edges
    said = list(file.said)
    if table.unnamed:
        said.append(f"{table.title} has {table.unnamed} columns without a name, which were left out.")

    table.require(id, "--id")
    label = _label(table, roles, like, file)
    wanted = _feature_names(table, roles, id, label, like, said)
    split = roles.split or USUAL_SPLIT
    table.load([id, *([label] if label else []), *([split] if split in table.names else []), *wanted])
    parts_in = _split_column(table, roles, wanted, label, like)
    wanted = [name for name in wanted if name != parts_in]

    # Edges are checked before features: their mistakes are the more common ones.
    ids = read_ids(table, id)
    if len(ids) == 0:
        raise InputError(f"{table.title} has no rows of nodes")
    for column, option in ((source, "--source"), (target, "--target")):
        links.require(column, option)
    weight = _weight(links, roles, like, said)
    graph = read_edges(links, source, target, weight, ids, table.title, unknown_ids)

    y, classes = None, () if like is None else like.classes
    refusal: NoClasses | None = None
    if label is not None:
        try:
            y, classes = read_labels(table, label, None if like is None else like.classes, file.classes)
        except NoClasses as error:
            refusal = error  # which comes with a first look at the rest
    parts = None
    if parts_in is not None:
        parts, remarks = read_split(table, parts_in, y, like is None, asked=roles.split is not None)
        said += remarks

    cells, columns = _columns(table, wanted, roles, standardize, like, said)
    x, gaps = encode_values(columns, cells, len(ids))
    _check_range(table, x, columns)
    if gaps is not None:
        if missing == "error":
            raise _first_missing(table, columns, cells)
        if refusal is None:
            owner = [number for number, column in enumerate(columns) for _ in column.features]
            x = fill_missing(x, gaps, graph.index, graph.weight, owner)
    summary = summarize(graph, len(ids), columns, cells, y, classes, said)
    rest = unused(table, columns, id, label, parts_in)
    encoding = like or Encoding(tuple(columns), classes, label, standardize, id, source, target, weight, rest)
    own = OwnGraph(
        data=Data(
            x=x,
            edge_index=graph.index,
            **({} if graph.weight is None else {"edge_weight": graph.weight}),
            **({} if y is None else {"y": torch.from_numpy(y)}),
        ),
        ids=ids.to_numpy(),
        encoding=encoding,
        summary=summary,
        name=name or file.name,
        split=parts,
        missing=gaps,
    )
    if refusal is not None:
        refusal.graph = own
        raise refusal
    return own


def open_tables(nodes: Any, edges: Any, id: str, source: str, target: str) -> GraphFile:
    """Opens the two tables, or the one file that holds both."""
    if edges is None:
        if hasattr(nodes, "columns"):
            raise InputError("a table of nodes needs a table of edges beside it: give both")
        path = checked_path(nodes)
        if file_ending(path) in TABLE_ENDINGS:
            raise InputError(f"{path} is a table of nodes, and needs a table of edges beside it: give both")
        return open_graph(path, id, source, target)
    table = open_table(nodes, "the node table", [id])
    links = open_table(edges, "the edge table", [source, target])
    return GraphFile(table, links, "graph" if hasattr(nodes, "columns") else _name_of(Path(nodes)))


def _name_of(path: Path) -> str:
    """Names a graph by its node table, or by the folder of one that is just called nodes."""
    name = path.name.split(".")[0]
    return path.parent.name if name == "nodes" and path.parent.name not in ("", "..") else name


def _label(table: Table, roles: Roles, like: Encoding | None, file: GraphFile) -> str | None:
    if roles.label is not None:
        return table.require(roles.label, "--label")
    usual = file.label if like is None else like.label
    return usual if usual in table.names else None


def _feature_names(
    table: Table, roles: Roles, id: str, label: str | None, like: Encoding | None, said: list[str]
) -> list[str]:
    """Returns the feature columns: those chosen, those of the model, or all that have no other part to play."""
    taken = {id, label, roles.split}
    others = [name for name in table.names if name not in taken]
    if like is not None:
        known = [column.name for column in like.columns]
        if roles.features is not None and set(roles.features) != set(known):
            raise InputError(f"the model was trained on the columns {listed(known)}, not on {listed(roles.features)}")
        lacking = [name for name in known if name not in table.names]
        extra = [name for name in others if name not in known and name != USUAL_SPLIT]
        if lacking:
            also = f"; it has {listed(extra)}, which the model does not know" if extra else ""
            raise InputError(
                f"{table.title} differs from what the model was trained on: it lacks {listed(lacking)}{also}"
            )
        # What training left out is no news.
        if new := [name for name in extra if name not in like.unused]:
            was = "was" if len(new) == 1 else "were"
            said.append(f"The model does not know {listed(new)}, which {was} left out.")
        return known
    if roles.features is None:
        return others
    for name in roles.features:
        if name not in table.names:
            raise InputError(
                f"{table.title} has no column {name!r} that --features names: its columns are {listed(table.names)}"
            )
        if name in taken:
            raise InputError(f"{table.title}, column {name!r}: cannot be a feature, it is the id, label or split")
    return list(dict.fromkeys(roles.features))


def _split_column(
    table: Table, roles: Roles, wanted: Sequence[str], label: str | None, like: Encoding | None
) -> str | None:
    """Returns the split column: the one that was named, or the one called so, unless it is a feature."""
    if roles.split is not None:
        return table.require(roles.split, "--split")
    known = USUAL_SPLIT in wanted and (like is not None or roles.features is not None)
    if USUAL_SPLIT not in table.names or known:
        return None
    # Where no labels are divided, a slip does no harm, and what it stands in may be anything.
    return USUAL_SPLIT if is_split(table, USUAL_SPLIT, whole=like is not None or label is None) else None


def _weight(links: Table, roles: Roles, like: Encoding | None, said: list[str]) -> str | None:
    if roles.weight is not None:
        return links.require(roles.weight, "--weight")
    if like is None:
        return "weight" if "weight" in links.names else None
    if like.weight is None:
        if "weight" in links.names:
            said.append("The model was trained on edges without weights, and those of this graph were left out.")
        return None
    return links.require(like.weight, "--weight")


def _columns(
    table: Table, wanted: Sequence[str], roles: Roles, standardize: bool, like: Encoding | None, said: list[str]
) -> tuple[list[Values], list[Column]]:
    """Reads the feature columns and decides how each becomes features."""
    cells: list[Values] = []
    if like is not None:
        problems = []
        for column in like.columns:
            try:
                cells.append(read_values(table, column.name, column))
            except InputError as error:
                problems.append(str(error))
        if problems:
            raise InputError("; ".join(problems))
        return cells, list(like.columns)
    columns: list[Column] = []
    unusable: list[str] = []
    for name in wanted:
        try:
            values = read_values(table, name)
            _check_usable(table, name, values, chosen=roles.features is not None)
        except Unusable as error:
            if roles.features is not None:
                raise
            unusable.append(str(error))
            continue
        cells.append(values)
        columns.append(column_of(name, values, standardize))
    if not columns:
        raise no_features(table, unusable)
    said += [left_out(error) for error in unusable]
    return cells, columns


def unused(table: Table, columns: Sequence[Column], *roles: str | None) -> tuple[str, ...]:
    """Returns the columns of the node table that became no features and have no part to play.

    Args:
        table (Table): The node table.
        columns (Sequence[Column]): Those that became features.
        roles (str, optional): Those with ids, labels and the split.
    """
    known = {*roles, *(column.name for column in columns)}
    return tuple(name for name in table.names if name not in known)


def left_out(error: str) -> str:
    """Returns the warning about a column that cannot become features."""
    return f"{error}; it was left out."


def no_features(table: Table, unusable: Sequence[str]) -> InputError:
    """Returns what is wrong with a table without features, and why its columns became none.

    Args:
        table (Table): The node table.
        unusable (Sequence[str]): What is wrong with each of its columns that might have become features.
    """
    reasons = [error.removeprefix(f"{table.title}, ") for error in unusable[:3]]
    more = f" and {len(unusable) - 3:,} more" if len(unusable) > 3 else ""
    why = f" ({'; '.join(reasons)}{more})" if reasons else ""
    return InputError(f"{table.title} has no feature columns: its columns are {listed(table.names)}{why}")


def _check_usable(table: Table, name: str, values: Values, chosen: bool) -> None:
    """Refuses a column that says nothing, or that says something else about each node."""
    if values.missing.all():
        raise Unusable(f"{table.title}, column {name!r}: holds no value at all")
    if values.kind != "category":
        return
    count = len(values.categories)
    if count > MAX_CATEGORIES:
        raise Unusable(
            f"{table.title}, column {name!r}: holds {count:,} different texts, and at most {MAX_CATEGORIES:,} "
            f"can become features"
        )
    if count >= MIN_UNIQUE and count == int((~values.missing).sum()) and not chosen:
        raise Unusable(f"{table.title}, column {name!r}: holds another text for each node, as names and ids do")


def _check_range(table: Table, x: torch.Tensor, columns: Sequence[Column]) -> None:
    """Refuses numbers that single precision cannot hold."""
    if not bool(torch.isinf(x).any()):
        return
    row, feature = (int(i) for i in torch.isinf(x).nonzero()[0])
    owner = [column.name for column in columns for _ in column.features][feature]
    raise InputError(f"{table.place(row, owner)}: the value is too large for single precision")


def _first_missing(table: Table, columns: Sequence[Column], cells: Sequence[Values]) -> InputError:
    first = min((int(values.missing.argmax()), i) for i, values in enumerate(cells) if values.missing.any())
    total = sum(int(values.missing.sum()) for values in cells)
    place = table.place(first[0], columns[first[1]].name)
    return InputError(f"{place}: the value is missing ({total:,} such in all, which 'fill' in place of 'error' fills)")
