"""What a report says about a graph of one's own, with the names that its tables use."""

import statistics
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bigcn.experiments.comparison import ComparisonResult, same_score
from bigcn.experiments.own import MAJORITY, OwnResult
from bigcn.report.charts import edge_rows
from bigcn.report.words import duration, label, metric_title, model_title, percent, plural, printable

#: The scores that are shown of each model, by task; of the last of each, less is better where it stands in the second.
SCORES: dict[str, tuple[str, ...]] = {
    "node": ("accuracy", "macro_f1", "ece"),
    "link": ("roc_auc", "average_precision"),
}
LESS_IS_BETTER = ("ece",)
#: What a score means, where that needs a word.
MEANINGS = {
    "macro_f1": "Macro-F1 counts every class alike, however rare.",
    "ece": "The calibration error is how far confidence and accuracy lie apart: the less, the better.",
    "roc_auc": "ROC-AUC is how often a link scores higher than a pair of nodes that is none.",
    "average_precision": "Average precision is the share of links among the pairs that score as high as a link or "
    "higher, averaged over the links.",
}
#: Why the largest class cannot be the best of those.
CONSTANT = "The largest class says the same of every node: its calibration error is out of the contest."
#: Up to so many classes the confusion is shown as a matrix, beyond as a list of what is confused most.
MATRIX = 12


def own_table(result: OwnResult) -> Table:
    """Returns the scores of all models on a graph of one's own as a table for the terminal.

    Args:
        result (OwnResult): What was found.
    """
    shown = score_rows(result)
    table = Table(
        title=Text(label(result.comparison.title), style="bold"),
        title_justify="left",
        caption=Text(f"On the test part, in percent; * best. {shown['note']}".strip()),
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("model", min_width=12)
    for heading in shown["headings"]:
        table.add_column(heading, justify="right")
    for row in shown["rows"]:
        cells = [
            Text(f"{cell['text']} {'*' if cell['best'] else ' '}", style="bold green" if cell["best"] else "")
            for cell in row["cells"]
        ]
        table.add_row(Text(row["name"]), *cells)
    return table


def score_rows(result: ComparisonResult) -> dict[str, Any]:
    """Returns the mean of every score of every model that has one, with the best marked, and who cannot be the best."""
    metrics = SCORES[result.comparison.task]
    found: dict[str, dict[str, list[float]]] = {}
    for spec, run in result.pairs:
        for metric in metrics:
            if run.status == "ok" and metric in run.metrics:
                found.setdefault(spec.model, {}).setdefault(metric, []).append(run.metrics[metric])
    means = {model: {metric: statistics.fmean(s) for metric, s in by.items()} for model, by in found.items()}
    best = {}
    for metric in metrics:
        scores = [by[metric] for model, by in means.items() if metric in by and _competes(model, metric)]
        if scores:
            best[metric] = min(scores) if metric in LESS_IS_BETTER else max(scores)

    def cell(model: str, metric: str) -> dict[str, Any]:
        score = means[model].get(metric)
        if score is None:
            return {"text": "–", "best": False}
        won = _competes(model, metric) and same_score(score, best[metric])
        return {"text": percent(score), "best": won}

    rows = [{"name": model_title(model), "cells": [cell(model, metric) for metric in metrics]} for model in means]
    note = CONSTANT if "ece" in means.get(MAJORITY, {}) else ""
    return {
        "headings": [metric_title(metric) for metric in metrics],
        "meanings": [MEANINGS[metric] for metric in metrics if metric in MEANINGS],
        "rows": rows,
        "note": note,
    }


def _competes(model: str, metric: str) -> bool:
    # Whoever says the same of every node is calibrated, and no use.
    return model != MAJORITY or metric not in LESS_IS_BETTER


def graph_words(about: dict[str, Any]) -> str:
    """Says in a line how large a graph is.

    Args:
        about (dict): What :attr:`OwnResult.about` gives.
    """
    data = about["data"]
    kinds = ", ".join(plural(count, f"{kind} column") for kind, count in data["features"].items() if count)
    words = f"{plural(data['nodes'], 'node')}, {plural(data['edges'], 'edge')}, {kinds or 'no columns'}"
    if about["classes"]:
        words += f", {len(about['classes'])} classes, {plural(data['unlabelled'], 'node')} without a label"
    return words


def own_sections(result: ComparisonResult) -> dict[str, Any] | None:
    """Returns what the page shows of a graph of one's own; :obj:`None` for other graphs.

    Args:
        result (ComparisonResult): What was found.
    """
    about = result.about if isinstance(result, OwnResult) else {}
    if not about:
        return None
    report, classes = about["report"], [label(name) for name in about["classes"]]
    return {
        "scores": score_rows(result),
        "classes": _classes(report, classes) if "confusion" in report else None,
        "reliability": _reliability(report) if "reliability" in report else None,
        "trials": _trials(about),
        "edges": edge_rows(about["feature_edges"]),
        "feature_graph": label(about["feature_graph"]),
        "warnings": [printable(warning) for warning in about["data"]["warnings"]],
    }


def _classes(report: dict[str, Any], classes: list[str]) -> dict[str, Any]:
    counts = {(truth, predicted): count for truth, predicted, count in report["confusion"]}
    rows = []
    for place, name in enumerate(classes):
        right = counts.get((place, place), 0)
        true = sum(count for (truth, _), count in counts.items() if truth == place)
        said = sum(count for (_, predicted), count in counts.items() if predicted == place)
        rows.append(
            {
                "name": name,
                "place": place,
                "nodes": true,
                "recall": percent(right / true) if true else "–",
                "precision": percent(right / said) if said else "–",
                "cells": [counts.get((place, other), 0) for other in range(len(classes))],
            }
        )
    wrong = sorted(((count, t, p) for (t, p), count in counts.items() if t != p), key=lambda cell: -cell[0])
    confused = [{"truth": classes[t], "predicted": classes[p], "nodes": count} for count, t, p in wrong[:10]]
    return {"names": classes, "rows": rows, "matrix": len(classes) <= MATRIX, "confused": confused}


def _reliability(report: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {
            "range": f"{percent(row['from'], 0)}–{percent(row['to'], 0)} %",
            "nodes": row["nodes"],
            "confidence": percent(row["confidence"]),
            "accuracy": percent(row["accuracy"]),
        }
        for row in report["reliability"]
    ]
    return {"rows": rows, "ece": percent(report["scores"]["ece"]), "temperature": f"{report['temperature']:.2f}"}


def _trials(about: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": label(trial["name"]),
            "score": percent(trial["score"]),
            "epochs": trial["epochs"],
            "seconds": duration(trial["seconds"]),
            "chosen": trial["name"] == about["chosen"],
        }
        for trial in about["trials"]
    ]
