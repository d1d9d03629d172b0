"""`bigcn links`: edges that are probably mistakes, and links that are probably missing."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer
from rich.table import Table
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.typing import OptTensor

from bigcn.cli import own
from bigcn.cli.common import errors, output, print_json, print_table, resolve_device
from bigcn.datasets.own import InputError, OwnGraph, write_table
from bigcn.estimators import BiGCNClassifier, BiGCNLinkPredictor
from bigcn.experiments.records import MAX_SEED
from bigcn.links import LinkScorer, missing_links, suspicious_edges
from bigcn.links.scoring import Embed
from bigcn.training.checkpoint import load_checkpoint

if TYPE_CHECKING:
    import pandas as pd

#: How many of each kind are shown on a screen; the file has all.
SHOWN = 10
TITLES = {"suspect": "Edges that are probably mistakes", "missing": "Links that are probably missing"}


def _missing_links(text: str) -> int:
    """Reads a number of links; elsewhere the option says what becomes of missing feature values."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no number of links; for missing feature values there is '--gaps'"
        ) from None


def links(
    model: Annotated[
        Path, typer.Argument(help="The folder that 'bigcn train' saved, for nodes or for links.", show_default=False)
    ],
    nodes: own.Nodes,
    edges: own.Edges = None,
    missing: Annotated[
        int, typer.Option("--missing", help="How many missing links to list.", parser=_missing_links, metavar="<int>")
    ] = 100,
    suspect: Annotated[int, typer.Option("--suspect", help="How many doubtful edges to list.")] = 100,
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The table to write (.csv, .tsv, .parquet).", show_default=False),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    seed: Annotated[int, typer.Option(help="The seed of folds and random pairs.", max=MAX_SEED)] = 0,
    id: own.Id = None,
    source: own.Source = None,
    target: own.Target = None,
    weight: own.Weight = None,
    gaps: Annotated[str, typer.Option("--gaps", help="fill (missing feature values) or error.")] = "fill",
    unknown_ids: own.UnknownIds = "error",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    """Lists the most likely missing links, and the edges least supported by features and structure.

    Example:  bigcn links model nodes.csv edges.csv --missing 100 --suspect 100 -o links.csv

    An edge is judged by the features of its two ends, by their neighbourhoods, by common neighbours and by the model,
    all of it without that edge. A score lies between 0 and 1; it ranks pairs and is no probability of being right.
    """
    for option, value in (("--missing", missing), ("--suspect", suspect), ("--seed", seed)):
        if value < 0:
            raise ValueError(f"'{option}' must not be negative (got {value})")
    if gaps not in ("fill", "error"):
        raise ValueError(f"'--gaps' must be fill or error (got {gaps!r})")
    if out is not None:
        own.check_output(out, nodes, edges)
    where = resolve_device(device)
    checkpoint = load_checkpoint(model, where)
    kinds: dict[str | None, Any] = {"node": BiGCNClassifier, "link": BiGCNLinkPredictor}
    if checkpoint.task not in kinds:
        raise InputError(f"{model} was not trained by 'bigcn train', which 'bigcn links' needs")
    estimator = kinds[checkpoint.task].from_checkpoint(checkpoint, model, where)
    graph = own.graph_from_options(
        nodes,
        edges,
        id=id,
        source=source,
        target=target,
        weight=weight,
        missing=gaps,
        unknown_ids=unknown_ids,
        like=checkpoint.encoding,
    )
    table = link_table(graph, embedding_of(estimator, graph), missing, suspect, seed)
    if out is not None:
        write_table(table, out)
        errors.print(f"{len(table):,} pairs: {out}", markup=False, soft_wrap=True)
    warnings = own.print_warnings(graph)
    if as_json:
        print_json({"warnings": warnings, "rows": table.astype(object).to_dict(orient="records")})
        return
    for kind, words in TITLES.items():
        if (table["kind"] == kind).any():
            rows = table[table["kind"] == kind]
            output.print(f"{words} ({min(SHOWN, len(rows))} of {len(rows):,}):")
            print_table(screen_table(rows))


def embedding_of(estimator: BiGCNClassifier | BiGCNLinkPredictor, graph: OwnGraph) -> Embed:
    """Returns a function that embeds the nodes of the graph, given other edges.

    A model for links gives its embeddings; one for nodes the roots of its probabilities, whose cosine is how much two
    nodes' classes overlap (Bhattacharyya's coefficient).

    Args:
        estimator (BiGCNClassifier or BiGCNLinkPredictor): The trained model.
        graph (OwnGraph): The graph.
    """

    def embed(edge_index: Tensor, edge_weight: OptTensor) -> Tensor:
        other = replace(graph, data=Data(x=graph.data.x, edge_index=edge_index, edge_weight=edge_weight))
        if isinstance(estimator, BiGCNLinkPredictor):
            return torch.from_numpy(estimator.embed(other))
        return torch.from_numpy(estimator.predict_proba(other)).sqrt()

    return embed


def link_table(graph: OwnGraph, embed: Embed | None, missing: int, suspect: int, seed: int) -> "pd.DataFrame":
    """Returns doubtful edges and missing links as a table with a kind, two ids and a score.

    Args:
        graph (OwnGraph): The graph.
        embed (Callable, optional): A model, see :class:`~bigcn.links.LinkScorer`.
        missing, suspect (int): How many of each.
        seed (int): The seed of folds and random pairs.
    """
    import pandas as pd

    data = graph.data
    scorer = LinkScorer(data.x, data.edge_index, data.edge_weight, embed=embed, seed=seed)
    parts = []
    for kind, count, rank in (("suspect", suspect, suspicious_edges), ("missing", missing, missing_links)):
        if count == 0:
            continue
        pairs, scores = rank(data.x, data.edge_index, data.edge_weight, count, scorer=scorer)
        ends = {name: graph.ids[row.numpy()] for name, row in zip(("source", "target"), pairs, strict=True)}
        parts.append(pd.DataFrame({"kind": kind, **ends, "score": scores.numpy()}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["kind", "source", "target", "score"])


def screen_table(rows: "pd.DataFrame") -> Table:
    """Returns the first rows as a table for a screen."""
    table = Table()
    for name in ("source", "target", "score"):
        table.add_column(name, justify="right" if name == "score" else "left")
    for row in rows.head(SHOWN).itertuples():
        table.add_row(_plain(row.source), _plain(row.target), f"{row.score:.4f}")
    return table


def _plain(value: Any) -> str:
    from rich.markup import escape

    return escape(str(value))
