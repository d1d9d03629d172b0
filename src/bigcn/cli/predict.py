"""`bigcn predict`: labels for every node, from a trained model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bigcn.cli import own, shards
from bigcn.cli.common import errors, print_json, resolve_device
from bigcn.datasets.own import OwnGraph, write_table
from bigcn.distributed.commands import predict_command
from bigcn.estimators import BiGCNClassifier
from bigcn.report.words import plural
from bigcn.training.checkpoint import CheckpointError, load_checkpoint

if TYPE_CHECKING:
    import pandas as pd


def predict(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="The folder that 'bigcn train' saved.", show_default=False)],
    nodes: own.Nodes,
    edges: own.Edges = None,
    out: Annotated[
        Path,
        typer.Option("--output", "-o", help="The table to write (.csv, .tsv, .parquet), or - for standard output."),
    ] = Path("-"),
    all_probabilities: Annotated[
        bool, typer.Option("--all-probabilities", help="Add a column with the probability of each class.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    id: own.Id = None,
    source: own.Source = None,
    target: own.Target = None,
    weight: own.Weight = None,
    missing: own.Missing = "fill",
    unknown_ids: own.UnknownIds = "error",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    """Predicts the class of every node, labelled or not, with its probability.

    Example:  bigcn predict model nodes.csv edges.csv -o labels.csv

    The graph is the one that the model was trained on, or another with the same columns; others are refused with a list
    of what differs.
    """
    to_screen = str(out) == "-"
    if not to_screen:
        own.check_output(out, nodes, edges)
    where = resolve_device(device)
    if shards.is_sharded(nodes):
        if to_screen:
            raise ValueError("'--output' must name a table to write the predictions for shards to")
        shards.refuse_options(context, "model", "nodes", "out", "device")
        predict_command(nodes, model, out, where)
        return
    checkpoint = load_checkpoint(model, where)
    if checkpoint.task == "link":
        raise CheckpointError(f"{model} was trained for links: 'bigcn links' uses it")
    classifier = BiGCNClassifier.from_checkpoint(checkpoint, model, where)
    graph = own.graph_from_options(
        nodes,
        edges,
        id=id,
        source=source,
        target=target,
        weight=weight,
        missing=missing,
        unknown_ids=unknown_ids,
        like=checkpoint.encoding,
    )
    table = predictions(classifier, graph, all_probabilities)
    if not to_screen:
        write_table(table, out)
        errors.print(f"{plural(len(table), 'prediction')}: {out}", markup=False, soft_wrap=True)
    warnings = own.print_warnings(graph)
    if as_json:
        print_json({"warnings": warnings, "rows": table.astype(object).to_dict(orient="records")})
    elif to_screen:
        sys.stdout.write(table.to_csv(index=False, lineterminator="\n"))


def predictions(classifier: BiGCNClassifier, graph: OwnGraph, all_probabilities: bool) -> "pd.DataFrame":
    """Returns a table with the id, the label and its probability for every node, in the order of the nodes.

    Args:
        classifier (BiGCNClassifier): The classifier.
        graph (OwnGraph): The graph.
        all_probabilities (bool): Whether to add a column for each class.
    """
    import pandas as pd

    probabilities = classifier.predict_proba(graph)
    chosen = probabilities.argmax(axis=1)
    columns: dict[str, Any] = {
        "id": graph.ids,
        "label": classifier.classes_[chosen],
        "probability": probabilities[np.arange(len(chosen)), chosen],
    }
    if all_probabilities:
        columns |= {f"p({name})": probabilities[:, place] for place, name in enumerate(classifier.classes_)}
    return pd.DataFrame(columns)
