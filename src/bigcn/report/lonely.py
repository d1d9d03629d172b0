"""How the models do on nodes that their neighbours can tell little or nothing about."""

import statistics
from typing import Any

from bigcn.datasets import make_split
from bigcn.experiments.comparison import ComparisonResult, same_score
from bigcn.experiments.graphs import noisy_graph
from bigcn.experiments.own import count_test_nodes, is_own
from bigcn.experiments.statistics import is_tie
from bigcn.report.grid import Grid
from bigcn.report.words import model_title, number, percent, plural
from bigcn.tasks.nodes import LOW_DEGREE

#: The scores on such nodes, and who they are.
_LONELY = {"accuracy_low_degree": f"at most {LOW_DEGREE} neighbours", "accuracy_isolated": "no neighbour"}
#: With fewer test nodes than this a score says nothing.
FEW = 10


def lonely(result: ComparisonResult, grid: Grid, at_hand: bool = True) -> dict[str, Any] | None:
    """Returns the scores on nodes with few neighbours at the hardest amount of noise, if they were measured on more
    than a handful.

    Args:
        result (ComparisonResult): What the comparison found.
        grid (Grid): The same as a grid.
        at_hand (bool, optional): If set to :obj:`False`, the graph is not there to count its nodes.
            (default: :obj:`True`)
    """
    found: dict[str, dict[str, dict[int, float]]] = {metric: {} for metric in (grid.metric, *_LONELY)}
    for spec, run in result.pairs:
        if run.status == "ok" and spec.value == grid.hardest:
            for metric in found.keys() & run.metrics.keys():
                found[metric].setdefault(spec.model, {})[spec.seed] = run.metrics[metric]
    if not any(found[metric] for metric in _LONELY):
        return None
    counts = _counts(result, at_hand)
    nodes = {
        metric: [counts[seed][metric] for seed in sorted(_seeds(scores)) if seed in counts]
        for metric, scores in found.items()
    }
    few = [metric for metric in _LONELY if nodes[metric] and max(nodes[metric]) < FEW]
    columns = [metric for metric in found if found[metric] and metric not in few]
    if columns == [grid.metric]:
        return None
    equal = [metric for metric in columns if metric in _LONELY and _are_equal(found[metric])]
    cells = {metric: _marked(found[metric], metric not in equal) for metric in columns}
    names = dict.fromkeys(model for metric in columns for model in found[metric])
    blank = {"mean": "–", "missing": True}
    rows = [
        {"name": model_title(model), "cells": [cells[metric].get(model, blank) for metric in columns]}
        for model in names
    ]
    headings = []
    for metric in columns:
        seeds, many = len(_seeds(found[metric])), _range(nodes[metric])
        if metric == grid.metric:
            heading = f"all {many} test nodes" if many else "all test nodes"
        else:
            heading = f"{_LONELY[metric]}: {many} nodes" if many else _LONELY[metric]
        # A random split may leave no such node among the test nodes.
        headings.append(heading + (f" (in {seeds} of {plural(grid.seeds, 'seed')})" if seeds < grid.seeds else ""))
    left_out = [f"{_LONELY[metric]} ({_range(nodes[metric])})" for metric in few]
    return {
        "headings": headings,
        "rows": rows,
        "at": number(grid.hardest),
        "left_out": ", ".join(left_out),
        "equal": bool(equal),
    }


def _counts(result: ComparisonResult, at_hand: bool) -> dict[int, dict[str, int]]:
    """Returns how many test nodes each score is over, by seed, where that is stored or soon counted."""
    if is_own(result.comparison.dataset):
        told = [(spec.seed, run.details.get("own", {}).get("test_nodes")) for spec, run in result.pairs]
        return {seed: counts for seed, counts in told if counts}
    # Mistakes in the structure make another graph for each seed.
    if not at_hand or result.comparison.task != "node" or result.comparison.case == "structure-mistakes":
        return {}
    first = result.pairs[0][0]
    data = noisy_graph(first.dataset, "clean", None, first.seed)
    return {
        seed: count_test_nodes(data, make_split(data, first.dataset, first.protocol, seed).test)
        for seed in {spec.seed for spec, _ in result.pairs}
    }


def _seeds(scores: dict[str, dict[int, float]]) -> set[int]:
    return {seed for by_seed in scores.values() for seed in by_seed}


def _range(counts: list[int]) -> str:
    return " to ".join(dict.fromkeys(f"{end:,}" for end in (min(counts), max(counts)))) if counts else ""


def _are_equal(scores: dict[str, dict[int, float]]) -> bool:
    """Tells whether several models have the very same scores, so that none is better."""
    means = [statistics.fmean(by_seed.values()) for by_seed in scores.values()]
    return len(means) > 1 and all(same_score(mean, means[0]) for mean in means)


def _marked(scores: dict[str, dict[int, float]], marks: bool) -> dict[str, dict[str, Any]]:
    """Returns mean and spread of each model with the best and its ties, as the table of the comparison has them."""
    means = {model: statistics.fmean(by_seed.values()) for model, by_seed in scores.items()}
    best = max(means, key=lambda model: means[model])
    winners = {model for model, mean in means.items() if same_score(mean, means[best])}
    several = any(len(by_seed) > 1 for by_seed in scores.values())
    return {
        model: {
            "mean": percent(means[model]),
            "std": percent(statistics.stdev(by_seed.values())) if len(by_seed) > 1 else "",
            "best": marks and model in winners,
            "tie": several and model not in winners and is_tie(scores[best], by_seed),
            "missing": False,
            "note": "",
        }
        for model, by_seed in scores.items()
    }
