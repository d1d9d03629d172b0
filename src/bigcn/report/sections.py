"""What the page says, section by section, as plain values for its template."""

import json
import statistics
from collections.abc import Iterable
from typing import Any

from bigcn.experiments.comparison import ComparisonResult
from bigcn.experiments.own import is_own
from bigcn.report.charts import edge_rows, share
from bigcn.report.evidence import FEATURE_NOISE, SIDE, Evidence, NoEvidence, evidence, examples
from bigcn.report.grid import Grid
from bigcn.report.own import graph_words
from bigcn.report.pictures import half_lines, heat_map, ink_strip, listening_grid
from bigcn.report.responses import responses
from bigcn.report.styles import OKABE_ITO
from bigcn.report.words import (
    amount,
    dataset_of,
    dataset_title,
    duration,
    label,
    metric_title,
    model_title,
    number,
    percent,
    plural,
    printable,
)

#: The side of a heat map, in units of its own.
HEAT = 200.0


def facts(result: ComparisonResult, grid: Grid) -> list[tuple[str, str]]:
    """Returns what was compared, as terms and their descriptions."""
    comparison, spec = result.comparison, dataset_of(result.comparison.dataset)
    graph = dataset_title(comparison.dataset)
    if spec is not None:
        graph += f": {spec.nodes:,} nodes, {spec.edges:,} edges, {spec.features:,} features, {spec.classes} classes"
    own = getattr(result, "about", {})
    if own:
        graph += f": {graph_words(own)}"
    task = "node classification" if comparison.task == "node" else "link prediction"
    rows = [("Graph", graph)]
    if spec is not None:
        rows.append(("Source", f"{spec.source} ({spec.licence})"))
    rows.append(("Task", f"{task}, judged by {metric_title(grid.metric)}; split “{label(comparison.protocol)}”"))
    if not own:
        noise = f"{amount(grid.case)}: {', '.join(grid.headings)}" if grid.values != (None,) else "none"
        rows.append(("Noise", noise))
    seconds = sum(run.seconds for _, run in result.pairs)
    days = sorted({run.started[:10] for _, run in result.pairs})
    when = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
    rows.append(("Runs", f"{len(result.pairs):,}, {duration(seconds)} of computing in all, {when}"))
    return rows


def table(grid: Grid) -> list[dict[str, Any]]:
    """Returns the scores of each model."""
    rows = []
    for place, model in enumerate(grid.models):
        cells = []
        for value in grid.values:
            cell = grid.cells.get((model, value))
            if cell is None:
                cells.append({"mean": grid.text(model, value), "missing": True})
                continue
            few = cell["seeds"] < grid.seeds
            cells.append(
                {
                    "mean": percent(cell["mean"]),
                    "std": percent(cell["std"]) if cell["seeds"] > 1 else "",
                    "best": cell["best"],
                    "tie": cell["tie"],
                    "missing": False,
                    "note": f"{cell['seeds']} of {plural(grid.seeds, 'seed')}" if few else "",
                }
            )
        rows.append({"name": model_title(model), "place": place, "cells": cells})
    return rows


def filters(result: ComparisonResult) -> list[dict[str, Any]]:
    """Returns the picture of every filter in the comparison, with what it says."""
    found = []
    for response in responses(result):
        grid = response.grid.numpy()
        a = response.arguments
        settings = f"p = {a['p']:g}, {a['iterations']} rounds, nodes {a['node_filter']} {a['node_strength']:g}"
        if not response.one_way:
            form = a["feature_filter"] + (", adjacency" if a["feature_operator"] == "adjacency" else "")
            settings += f", features {form} {a['feature_strength']:g}"
        found.append(
            {
                "name": response.title,
                "words": response.words,
                "verdict": response.verdict,
                "settings": settings,
                "low_pass": response.low_pass,
                "uri": heat_map(grid),
                "half": half_lines(grid, HEAT, HEAT),
                "highest": number(response.highest),
                "one_way": response.one_way,
            }
        )
    return found


def data_sections(result: ComparisonResult, grid: Grid) -> dict[str, Any]:
    """Returns what is shown of the data: the feature graph, and digits before and after; or why they are missing."""
    if is_own(result.comparison.dataset):  # its own section shows what was kept of it
        return {"missing": "", "features": None, "denoised": None}
    try:
        seen = evidence(result, grid.middle)
    except NoEvidence as reason:
        return {"missing": str(reason), "features": None, "denoised": None}
    return {"missing": "", "features": _feature_graph(seen), "denoised": _denoised(seen)}


def costs(result: ComparisonResult) -> list[dict[str, Any]]:
    """Returns how long each model took."""
    seconds: dict[str, list[float]] = {}
    epochs: dict[str, list[int]] = {}
    for spec, run in result.pairs:
        if run.status == "ok":
            seconds.setdefault(spec.model, []).append(run.seconds)
            if run.epochs:
                epochs.setdefault(spec.model, []).append(run.epochs)
    means = {model: statistics.fmean(times) for model, times in seconds.items()}
    rows = []
    for model, mean in means.items():
        trained = statistics.fmean(epochs[model]) if model in epochs else None
        rows.append(
            {
                "name": model_title(model),
                "seconds": duration(mean),
                "share": share(mean, max(means.values())),
                "epochs": "" if trained is None else f"{trained:,.0f}",
                "epoch": "" if not trained else f"{1000 * mean / trained:.3g} ms",
            }
        )
    return rows


def failures(result: ComparisonResult) -> list[dict[str, str]]:
    """Returns what failed and why."""
    return [
        {
            "name": model_title(spec.model),
            "value": number(spec.value),
            "seed": str(spec.seed),
            "error": printable(run.error or "no reason is known"),
        }
        for spec, run in result.failures()
    ]


def provenance(result: ComparisonResult, command: str) -> dict[str, Any]:
    """Returns everything that is needed to do it all again."""
    specs, runs = [spec for spec, _ in result.pairs], [run for _, run in result.pairs]
    settings = {(spec.model, _pretty(spec.settings)): None for spec in specs}
    made = [
        ("Versions", _distinct(", ".join(f"{name} {v}" for name, v in run.versions.items()) for run in runs)),
        ("Machine", _distinct(", ".join(dict.fromkeys(run.host.values())) for run in runs)),
        ("Device", _distinct(spec.device for spec in specs)),
        ("Seeds", [", ".join(_distinct(str(spec.seed) for spec in specs))]),
        ("Split", _distinct(spec.protocol for spec in specs)),
        ("Graph, SHA-256", _distinct(spec.dataset_fingerprint for spec in specs)),
    ]
    return {
        "command": printable(command),
        "made": [(term, [printable(line) for line in lines]) for term, lines in made],
        "settings": [(model_title(model), label(model), text) for model, text in settings],
        "runs": [
            {
                "name": model_title(spec.model),
                "value": number(spec.value),
                "seed": spec.seed,
                "score": percent(run.metrics[result.comparison.metric], 2) if run.status == "ok" else "failed",
                "seconds": duration(run.seconds),
                "key": spec.key,
            }
            for spec, run in result.pairs
        ],
    }


def palette() -> list[dict[str, str]]:
    """Returns the colours of the series for light and for dark paper."""
    return [{"light": light, "dark": dark} for _, _, light, dark in OKABE_ITO]


def _feature_graph(seen: Evidence) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "rank": seen.rank,
        "at": number(seen.value),
        "amount": amount(seen.case),
        "seed": seen.seed,
        "total": len(seen.columns),
    }
    if seen.is_digits:
        return shown | {"uri": listening_grid(seen.listening(), SIDE), "edges": []}
    return shown | {"uri": "", "edges": edge_rows(seen.strongest_edges())}


def _denoised(seen: Evidence) -> dict[str, Any] | None:
    if not seen.is_digits or seen.case not in FEATURE_NOISE:
        return None
    nodes = examples(seen).numpy()
    one, two = seen.smoothed(two_way=False), seen.smoothed(two_way=True)
    strips = [
        ("Clean", seen.clean.x.numpy(), None, "as they were written"),
        ("Noisy", seen.noisy.x.numpy(), seen.error, "what the models see"),
        ("Smoothed along the nodes", one.table, one.error, f"λ₁ = {one.lambda1:g}"),
        ("Smoothed both ways", two.table, two.error, f"λ₁ = {two.lambda1:g}, λ₂ = {two.lambda2:g}"),
    ]
    rows = [
        {
            "name": name,
            "note": note,
            "error": "" if error is None else f"{error:.4f}",
            "uri": ink_strip(pixels[nodes].reshape(-1, SIDE, SIDE)),
        }
        for name, pixels, error, note in strips
    ]
    gain = 1 - two.error / one.error if one.error else 0.0
    kinds = ", ".join(str(int(kind)) for kind in seen.clean.y[nodes])
    return {"rows": rows, "gain": gain, "gain_text": f"{abs(100 * gain):.0f} %", "kinds": kinds}


def _distinct(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))


def _pretty(settings: Any) -> str:
    return json.dumps(settings, indent=1, sort_keys=True, ensure_ascii=False)
