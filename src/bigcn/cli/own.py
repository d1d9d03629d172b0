"""What commands on a user's own graph share: the options that say how to read it, and the first look at it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bigcn.cli.common import errors, names, output
from bigcn.datasets.own import Encoding, InputError, OwnGraph, look, read_graph
from bigcn.datasets.own.writing import table_ending
from bigcn.estimators.base import GraphEstimator
from bigcn.estimators.ordering import check_labels, stratified_split
from bigcn.report.words import plural

Nodes = Annotated[
    Path,
    typer.Argument(
        help="The table of nodes (.csv, .tsv, .parquet), or one file with the whole graph (.graphml, .gml, .gexf, "
        ".net, .json, .npz, .pt).",
        show_default=False,
    ),
]
Edges = Annotated[
    Path | None,
    typer.Argument(help="The table of edges; not with one file for the whole graph.", show_default=False),
]
Label = Annotated[
    str | None,
    typer.Option("--label", help="The column with the labels; empty cells are to be predicted.", show_default=False),
]
Id = Annotated[
    str | None, typer.Option("--id", help="The column with the ids of the nodes; by default id.", show_default=False)
]
Source = Annotated[
    str | None,
    typer.Option("--source", help="The column with one end of each edge; by default source.", show_default=False),
]
Target = Annotated[
    str | None,
    typer.Option("--target", help="The column with the other end; by default target.", show_default=False),
]
Weight = Annotated[
    str | None,
    typer.Option("--weight", help="The column with the weights of edges; by default weight.", show_default=False),
]
Features = Annotated[
    str | None,
    typer.Option("--features", help="Feature columns, separated by commas; by default all.", show_default=False),
]
SplitColumn = Annotated[
    str | None,
    typer.Option("--split", help="The column that says train, val or test; by default split.", show_default=False),
]
NoStandardize = Annotated[bool, typer.Option("--no-standardize", help="Take numbers as they are.")]
Missing = Annotated[str, typer.Option("--missing", help="fill (missing feature values) or error.")]
UnknownIds = Annotated[str, typer.Option("--unknown-ids", help="error, or drop edges to ids that no node has.")]
Name = Annotated[
    str | None, typer.Option("--name", help="What to call the graph; by default the file.", show_default=False)
]


def graph_from_options(
    nodes: Path,
    edges: Path | None = None,
    *,
    label: str | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    features: str | None = None,
    split: str | None = None,
    no_standardize: bool = False,
    missing: str = "fill",
    unknown_ids: str = "error",
    like: Encoding | None = None,
    name: str | None = None,
) -> OwnGraph:
    """Reads the graph that the options of a command describe.

    Args:
        nodes, edges, label, id, source, target, weight, split, name, like: See
            :func:`~bigcn.datasets.own.read_graph`.
        features (str, optional): The feature columns, separated by commas. (default: all)
        no_standardize (bool, optional): Whether numbers are taken as they are. (default: :obj:`False`)
        missing, unknown_ids (str): See :func:`~bigcn.datasets.own.read_graph`; other words are refused.
    """
    for option, value, words in (
        ("--missing", missing, ("fill", "error")),
        ("--unknown-ids", unknown_ids, ("error", "drop")),
    ):
        if value not in words:
            raise ValueError(f"'{option}' must be {' or '.join(words)} (got {value!r})")
    options: dict[str, Any] = {"missing": missing, "unknown_ids": unknown_ids}
    with asking_if_swapped(nodes, edges, id or (None if like is None else like.id)):
        return read_graph(
            nodes,
            edges,
            label=label,
            id=id,
            source=source,
            target=target,
            weight=weight,
            features=None if features is None else names(features, "--features"),
            split=split,
            standardize=not no_standardize,
            like=like,
            name=name,
            **options,
        )


@contextmanager
def asking_if_swapped(nodes: Path, edges: Path | None, id: str | None = None) -> Iterator[None]:
    """Adds a question to what is wrong with two tables if only the second has the ids.

    Args:
        nodes, edges (Path, optional): The tables.
        id (str, optional): The column with the ids. (default: :obj:`"id"`)
    """
    try:
        yield
    except InputError as error:
        if edges is not None and _has_column(edges, id or "id") and not _has_column(nodes, id or "id"):
            raise InputError(f"{error}; {edges} has one: are the two swapped?") from None
        raise


def _has_column(path: Path, name: str) -> bool:
    try:
        from bigcn.datasets.own.tables import open_table

        return name in open_table(path, str(path), [name]).names
    except (InputError, ModuleNotFoundError):
        return False


def print_look(graph: OwnGraph, console: Console = output, split: str | None = None) -> None:
    """Prints what was understood of the files.

    Args:
        graph (OwnGraph): The graph.
        console (Console, optional): Where to. (default: standard output)
        split (str, optional): What trains, validates and tests, see :func:`how_divided`. (default: :obj:`None`)
    """
    console.print(f"{graph.name}:", markup=False, soft_wrap=True)
    for line in look(graph.summary, graph.encoding.columns, split=split):
        style = "yellow" if line.startswith("warning") else None
        console.print(f"  {line}", markup=False, soft_wrap=True, style=style)


def how_divided(graph: OwnGraph, estimator: GraphEstimator) -> str | None:
    """Says what trains, validates and tests, and who decided it; nothing where there are no labels to divide.

    Args:
        graph (OwnGraph): The graph.
        estimator (GraphEstimator): What is trained.
    """
    seed, parts = estimator.seed, (1 - estimator.val_share - estimator.test_share, estimator.val_share)
    shares = "/".join(f"{100 * share:.0f}" for share in (*parts, estimator.test_share))
    if estimator.task == "link":
        return f"{shares} of the links, drawn by seed {seed}"
    if graph.split is not None:
        sizes = [f"{len(getattr(graph.split, part)):,} {part}" for part in ("train", "val", "test")]
        column = graph.split.protocol.removeprefix("column ")
        return f"{', '.join(sizes)}, by column {column!r}"
    return f"{shares} of the labelled nodes, class by class, drawn by seed {seed}" if graph.classes else None


def why_refused(graph: OwnGraph) -> str | None:
    """Returns why no classifier can be trained on a graph, if so.

    Args:
        graph (OwnGraph): The graph.
    """
    try:
        check_labels(graph)
        if graph.split is None:
            stratified_split(graph.data.y, graph.classes, seed=0)
    except InputError as error:
        unlabelled = graph.data.y is None or not bool((graph.data.y >= 0).any())
        return f"{error}; '--task link' needs no labels" if unlabelled else str(error)
    return None


def print_warnings(graph: OwnGraph) -> list[str]:
    """Prints on standard error what was left out of the files, and what looks wrong in them; returns it.

    Args:
        graph (OwnGraph): The graph.
    """
    skipped = graph.summary.unknown
    said = [f"{plural(skipped, 'edge')} skipped for an unknown id."] if skipped else []
    said += graph.summary.warnings
    print_sentences(said)
    return said


def print_sentences(warnings: Iterable[str]) -> None:
    """Prints warnings on standard error.

    Args:
        warnings (Iterable[str]): The sentences.
    """
    for sentence in warnings:
        errors.print(f"warning: {sentence}", markup=False, soft_wrap=True, style="yellow")


def print_model(save: Path | None, console: Console = output) -> None:
    """Says where the model is, or that none was kept.

    Args:
        save (Path, optional): Its folder.
        console (Console, optional): Where to. (default: standard output)
    """
    said = "No model was kept: '--save FOLDER' keeps one." if save is None else f"The model: {save}"
    console.print(said, markup=False, soft_wrap=True)


def check_output(out: Path, *inputs: Path | None) -> None:
    """Refuses a table that could not be written, or would take the place of one that is read, before anything is read.

    Args:
        out (Path): Where the table goes.
        inputs (Path, optional): What is read.
    """
    table_ending(out)
    if not out.parent.is_dir():
        raise ValueError(f"'--output' names a file in {out.parent}, and there is no such folder")
    if out.exists() and any(path is not None and path.exists() and out.samefile(path) for path in inputs):
        raise ValueError(f"'--output' names {out}, which is read: the table needs a file of its own")
