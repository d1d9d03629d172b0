"""`bigcn denoise`: a node table with its features cleaned along the graph and along the columns."""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch
import typer
from rich.table import Table

from bigcn.cli import own
from bigcn.cli.common import errors, output, print_json, print_table
from bigcn.datasets.own import Column, OwnGraph, decode, write_table
from bigcn.datasets.own.pipeline import open_tables
from bigcn.datasets.own.writing import carried
from bigcn.experiments.records import MAX_SEED
from bigcn.report.words import plural
from bigcn.smoothing import Denoised
from bigcn.smoothing import denoise as clean_features

if TYPE_CHECKING:
    import pandas as pd

#: How many links between features are named, and how many columns are shown on a screen.
LINKS, SHOWN = 10, 20
#: The share of the variance of hidden values below which nothing is said to restore a column.
RESTORED = 0.1
WORDS = {
    "both": "Cleaned along the graph and along the columns.",
    "nodes": "Cleaned along the graph alone: the columns do not clearly help to restore each other.",
    "features": "Cleaned along the columns alone: the graph does not clearly help to restore them.",
    "none": "Nothing was cleaned: neither the graph nor the columns restore hidden values better than column means.",
}


def denoise(
    nodes: own.Nodes,
    edges: own.Edges = None,
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The table to write (.csv, .tsv, .parquet).", show_default=False),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            help="The standard deviation of the noise, if you know it, as a share of that of the columns (with "
            "--no-standardize, in their units).",
            show_default=False,
        ),
    ] = None,
    hidden: Annotated[float, typer.Option(help="The share of known values to hide while choosing.")] = 0.1,
    seed: Annotated[int, typer.Option(help="What decides which values are hidden.", max=MAX_SEED)] = 0,
    label: own.Label = None,
    id: own.Id = None,
    source: own.Source = None,
    target: own.Target = None,
    weight: own.Weight = None,
    features: own.Features = None,
    split: own.SplitColumn = None,
    no_standardize: own.NoStandardize = False,
    missing: own.Missing = "fill",
    unknown_ids: own.UnknownIds = "error",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    """Cleans the features of a node table by smoothing along the graph and along the columns, without labels.

    Example:  bigcn denoise nodes.csv edges.csv --label kind -o clean.csv

    How strongly, and which columns inform each other, is chosen by hiding known values and restoring them. The table
    written has the columns and units of the table read; ids, labels and columns that are no features stay as they are,
    and so do the known cells of flags and categories that nothing restores.
    """
    if out is not None:
        own.check_output(out, nodes, edges)
    if not 0 < hidden < 1:
        raise ValueError(f"'--hidden' must lie between 0 and 1 (got {hidden:g})")
    if noise is not None and not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"'--noise' must be a finite number, not negative (got {noise:g})")
    if seed < 0:
        raise ValueError(f"'--seed' must not be negative (got {seed})")
    graph = own.graph_from_options(
        nodes,
        edges,
        label=label,
        id=id,
        source=source,
        target=target,
        weight=weight,
        features=features,
        split=split,
        no_standardize=no_standardize,
        missing=missing,
        unknown_ids=unknown_ids,
    )
    result = clean_graph(graph, noise, hidden, seed)
    changes = column_changes(graph, result)
    if out is not None:
        write_table(cleaned_table(graph, result, nodes, edges), out)
    warnings = own.print_warnings(graph)
    if as_json:
        print_json(document(graph, result, changes, out) | {"warnings": warnings})
        return
    tell(graph, result, changes)
    if out is not None:
        errors.print(f"{plural(graph.data.num_nodes, 'row')}: {out}", markup=False, soft_wrap=True)


def clean_graph(graph: OwnGraph, noise: float | None, hidden: float, seed: int) -> Denoised:
    """Cleans the features of a graph; values that were missing are not taken for known ones, and flags and categories
    that nothing restores stay as they were: of a number some noise can be taken off, of a word it takes the word.

    Args:
        graph (OwnGraph): The graph.
        noise, hidden, seed: See :func:`bigcn.smoothing.denoise`.
    """
    x = graph.data.x
    if graph.missing is not None:
        x = torch.where(graph.missing, torch.nan, x)
    result = clean_features(
        x,
        graph.data.edge_index,
        graph.data.edge_weight,
        noise=noise,
        hidden=hidden,
        groups=column_of_features(graph),
        seed=seed,
    )
    kept = [
        column.kind != "number" and share is not None and share < RESTORED for column, share in restored(graph, result)
    ]
    stays = torch.tensor([kept[number] for number in column_of_features(graph)])
    return replace(result, x=torch.where(stays & ~torch.isnan(x), x, result.x))


def restored(graph: OwnGraph, result: Denoised) -> list[tuple[Column, float | None]]:
    """Returns for each column how much of the variance of its hidden values was restored, if any was to be."""
    columns = graph.encoding.columns
    if result.explained is None or result.directions == "none":
        return [(column, None) for column in columns]
    first = np.unique(column_of_features(graph), return_index=True)[1]
    return list(zip(columns, result.explained[first].tolist(), strict=True))


def column_of_features(graph: OwnGraph) -> list[int]:
    """Returns the number of the column that each feature comes from."""
    return [number for number, column in enumerate(graph.encoding.columns) for _ in column.features]


def cleaned_table(graph: OwnGraph, result: Denoised, nodes: Path, edges: Path | None) -> "pd.DataFrame":
    """Returns the node table with its feature columns cleaned, in their order and units, and all others as they were.

    Args:
        graph (OwnGraph): The graph.
        result (Denoised): Its features, cleaned.
        nodes, edges (Path): The files that it was read from.
    """
    import pandas as pd

    encoding = graph.encoding
    table = open_tables(nodes, edges, encoding.id, encoding.source, encoding.target).nodes
    untouched = result.directions == "none" and graph.missing is None
    cleaned = decode(encoding, result.x)
    columns: dict[str, Any] = {}
    for name in table.names:
        column = next((column for column in encoding.columns if column.name == name), None)
        if name in (encoding.id, encoding.label):  # 1,5 is a name there
            columns[name] = table.take(name).to_pandas()
        elif column is None or untouched:
            columns[name] = carried(table, name)
        else:
            columns[name] = _rounded(cleaned[name].to_numpy(), column)
    return pd.DataFrame(columns)


def _rounded(values: np.ndarray, column: Column) -> np.ndarray:
    """Returns numbers without the digits that single precision made up."""
    if column.kind != "number":
        return values
    spread = float(np.std(values.astype(np.float64)))
    digits = 6 - (math.floor(math.log10(spread)) if spread > 0 else 0)
    return np.round(values.astype(np.float64), min(max(digits, 0), 12))


def column_changes(graph: OwnGraph, result: Denoised) -> list[dict[str, Any]]:
    """Returns for each feature column how much it changed: numbers by how far, others by how many cells.

    Args:
        graph (OwnGraph): The graph.
        result (Denoised): Its features, cleaned.
    """
    gaps = graph.missing if graph.missing is not None else torch.zeros_like(graph.data.x, dtype=torch.bool)
    before, after = (decode(graph.encoding, x) for x in (graph.data.x, result.x))
    changes, start = [], 0
    for column, share in restored(graph, result):
        known = ~gaps[:, start].numpy()
        start += len(column.features)
        old, new = before[column.name].to_numpy()[known], after[column.name].to_numpy()[known]
        change: dict[str, Any] = {"column": column.name, "kind": column.kind, "filled": int((~known).sum())}
        if column.kind == "number":
            moved = float(np.sqrt(np.mean(np.square(new - old)))) if len(old) else 0.0
            spread = float(np.std(old)) if len(old) else 0.0
            change |= {"moved": moved, "share": moved / spread if spread > 0 else 0.0}
        else:
            change["changed"] = int((old != new).sum())
        changes.append(change | {"restored": share})
    return changes


def said(result: Denoised) -> str:
    """Returns which directions were best, in a sentence."""
    if result.directions == "none" and result.criterion == "noise":
        return "Nothing was cleaned: with so little noise, the table as it is comes nearest to the truth."
    return WORDS[result.directions]


def document(graph: OwnGraph, result: Denoised, changes: list[dict[str, Any]], out: Path | None) -> dict[str, Any]:
    """Returns the account of what was done as plain values."""
    found = {name: result.best(name) for name in ("both", "nodes", "features", "none")}
    choice = result.choice
    return {
        "output": None if out is None else str(out),
        "directions": result.directions,
        "said": said(result),
        "lambda1": choice.lambda1,
        "lambda2": choice.lambda2,
        "feature_graph": choice.feature_graph,
        "rank": choice.rank if choice.feature_graph == "spectral" else None,
        "criterion": result.criterion,
        "errors": {name: None if best is None else best.error for name, best in found.items()},
        "columns": changes,
        "feature_edges": feature_edges(graph, result),
    }


def feature_edges(graph: OwnGraph, result: Denoised) -> list[dict[str, Any]]:
    """Returns the strongest links between features of different columns, by the names in the table."""
    if result.choice.lambda2 == 0:
        return []
    owner, names = column_of_features(graph), graph.feature_names
    widest = max(len(column.features) for column in graph.encoding.columns)
    # Those within a category, which exclude each other, say nothing; more are asked for to have enough without them.
    found = result.feature_graph.top_edges(LINKS + widest * len(names) if widest > 1 else LINKS)
    edges = [(int(i), int(j), weight) for i, j, weight in found if abs(weight) >= 0.001]
    between = [edge for edge in edges if owner[edge[0]] != owner[edge[1]]]
    return [{"one": names[i], "other": names[j], "weight": weight} for i, j, weight in between[:LINKS]]


def tell(graph: OwnGraph, result: Denoised, changes: list[dict[str, Any]]) -> None:
    """Prints the account for people."""
    account = document(graph, result, changes, None)
    output.print(account["said"], soft_wrap=True)
    strengths = f"Strength along the graph {account['lambda1']:g}, along the columns {account['lambda2']:g}"
    kind = f" ({account['feature_graph']} graph)" if account["lambda2"] > 0 else ""
    output.print(strengths + kind + ".", soft_wrap=True)
    judged = "Error on hidden values" if result.criterion == "hidden" else "Estimated error of the result"
    named = {"none": "column means" if result.criterion == "hidden" else "as it is"}
    shown = [f"{named.get(name, name)} {value:.4f}" for name, value in account["errors"].items() if value is not None]
    output.print(f"{judged}: {', '.join(shown)}.", soft_wrap=True)
    table = Table()
    for name in ("column", "change", "filled"):
        table.add_column(name, justify="left" if name == "column" else "right", overflow="fold")
    for change in sorted(changes, key=lambda c: -c.get("share", 0.0))[:SHOWN]:
        moved = (
            f"{change['moved']:.3g} ({100 * change['share']:.0f} % of its spread)"
            if "moved" in change
            else f"{change['changed']:,} cells"
        )
        table.add_row(_plain(change["column"]), moved, f"{change['filled']:,}")
    print_table(table)
    if len(changes) > SHOWN:
        output.print(f"… and {len(changes) - SHOWN:,} more columns.")
    for line in remarks(changes):
        output.print(line, markup=False, soft_wrap=True)
    for edge in account["feature_edges"]:
        line = f"  {edge['one']} – {edge['other']}: {edge['weight']:+.3f}"
        output.print(line, markup=False, soft_wrap=True)


def remarks(changes: list[dict[str, Any]]) -> list[str]:
    """Returns what is to be said about columns that nothing restores."""
    untold = [change for change in changes if change["restored"] is not None and change["restored"] < RESTORED]
    words = [change for change in untold if "changed" in change]
    kept, filled = ", ".join(f"'{change['column']}'" for change in words), sum(change["filled"] for change in words)
    stays = ", which stay as they were."
    if filled:
        guessed = f"{plural(filled, 'cell')} filled there {'is a guess' if filled == 1 else 'are guesses'}"
        stays = f": what was known stays as it was, and the {guessed}."
    moved = ", ".join(f"'{change['column']}'" for change in untold if change.get("share", 0.0) > 0.5)
    said = [f"Nothing restores hidden values of {kept}{stays}"] if kept else []
    if moved:
        said.append(
            f"Nothing restores hidden values of {moved}: what was taken for noise may be data. '--features' names the "
            "columns to clean."
        )
    return said


def _plain(value: Any) -> str:
    from rich.markup import escape

    return escape(str(value))
