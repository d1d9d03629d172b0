"""How close the numbers come to the paper's, and what other splits say where our form does not reach them."""

from typing import Any

from bigcn.experiments.cells import Cell, protocol_of
from bigcn.experiments.closeness import behind, marks, weak_baselines
from bigcn.experiments.findings import APPNP, OURS, PUBLISHED, Findings, Rival
from bigcn.experiments.paper import EXPERIMENTS
from bigcn.report import results_tables as tables
from bigcn.report.results_cost import time_mark
from bigcn.report.results_reasons import reason
from bigcn.report.words import dataset_title

_INTRO = """\
Compared to one decimal, as the paper prints its numbers: {summary}.
The bars were set before anything here ran; that of Computers is wider, and gains are asked for under noise, because a
prototype had come that far.
In square brackets stands the 95 % confidence interval of a difference to the paper, as of independent runs, from both
standard deviations (Welch's).
"""
_SPLITS = """\
### Where our form is below the paper

Means of BiGCN, ours and as published, here, and differences over paired seeds. All seeds share the test nodes of the
authors' split, which are as much a draw as the seeds are: other splits of the same graphs (`protocols`) tell how much
of a difference belongs to them. On Cora the public split has the training and validation nodes of the authors' split
and other test nodes.
"""


def closeness_section(findings: Findings, stores: list[dict[str, Any]]) -> str:
    """Returns every bar with what was measured.

    Args:
        findings (Findings): What was measured.
        stores (list): What it took, see :func:`~bigcn.report.results_cost.costs`.
    """
    found = [*marks(findings), time_mark(stores)]
    states = [mark.state for mark in found]
    summary = f"{states.count('met')} met, {states.count('missed')} missed, {states.count('not run')} not run in full"
    rows = [[*(tables.escaped(text) or tables.NONE for text in mark[:3]), tables.state(mark.state)] for mark in found]
    parts = [
        "## How close it is\n",
        _INTRO.format(summary=summary),
        tables.table(["what", "bar", "measured", ""], rows, words=True),
    ]
    if weak := weak_baselines(findings):
        parts += ["### Baselines that are below the paper\n", *(f"- {_why(findings, cell)}" for cell in weak), ""]
    if splits := _other_splits(findings):
        heading = ["", "published form", "our form", "our form − published form", "our form − APPNP"]
        parts += [_SPLITS, tables.table(heading, splits)]
    return "\n".join(parts)


def _why(findings: Findings, cell: Cell) -> str:
    """Says why a baseline is weak: of one that validation chose, what it was preferred to."""
    contender, kind = cell.contender, "links" if cell.series.task == "link" else "nodes"
    title = f"{contender.title}, {dataset_title(cell.series.graph)}, {kind}"
    as_printed = findings.cell(cell.experiment.name, cell.series, Rival(contender.name, "paper"))
    validation = [one and one.mean_of(f"val_{cell.metric}") for one in (cell, as_printed)]
    if contender.tuning != "tuned":
        return tables.escaped(f"{title}, at the paper's settings: {reason(cell)}.")
    if as_printed is None or None in validation:
        return tables.escaped(f"{title}, tuned: {reason(cell)}.")
    chosen, printed = (100 * (score or 0.0) for score in validation)
    return tables.escaped(
        f"{title}, tuned: what was chosen has {chosen:.1f} on validation data and {cell.mean:.1f} on test data, the "
        f"paper's settings have {printed:.1f} and {as_printed.mean:.1f}."
    )


def _other_splits(findings: Findings) -> list[list[str]]:
    rows = []
    for graph in behind(findings):
        for name in ("node-table", "protocols"):
            for series in EXPERIMENTS[name].series:
                theirs, ours = (findings.cell(name, series, rival) for rival in (PUBLISHED, OURS))
                if series.graph != graph or theirs is None or ours is None:
                    continue
                gaps = (findings.above(name, series, OURS, rival) for rival in (PUBLISHED, APPNP))
                split = f"{dataset_title(graph)}, {protocol_of(series)}"
                rows.append(
                    [
                        tables.escaped(split),
                        f"{theirs.mean:.1f}",
                        f"{ours.mean:.1f}",
                        *(tables.NONE if gap is None else str(gap) for gap in gaps),
                    ]
                )
    return rows
