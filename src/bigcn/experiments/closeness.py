"""How close the measured numbers come to the paper's, against bars set before anything was measured.

All are compared as the paper prints its numbers, to one decimal.
"""

from typing import Literal, NamedTuple

from bigcn.experiments.cells import Cell, Difference, signed
from bigcn.experiments.claim_checks import TABLES, title
from bigcn.experiments.contenders import PAPER_BASELINES
from bigcn.experiments.findings import APPNP, OURS, PUBLISHED, Findings, series_of
from bigcn.experiments.paper import EXPERIMENTS, LINK_GRAPHS, NODE_GRAPHS
from bigcn.experiments.published import LINK_SPREADS, LINK_TABLE, NODE_SPREADS, NODE_TABLE, RUNS
from bigcn.experiments.statistics import unpaired_interval

#: How far the published form may lie from the paper, in points.
NODE_REACH = {"cora": 1.0, "citeseer": 1.0, "pubmed": 1.0, "photo": 1.0, "computers": 2.0}
LINK_REACH, CELL_REACH, BASELINE_REACH = 1.0, 1.5, 1.0
#: How far our form should lie above the published one on average over the noise levels.
NOISE_GAIN = {"cora": 2.0, "citeseer": 4.0, "pubmed": 4.0}


class Mark(NamedTuple):
    """A bar, and where we are.

    Args:
        what (str): What is compared.
        bar (str): What is asked.
        measured (str): What was measured.
        state (str): Whether the bar is met.
    """

    what: str
    bar: str
    measured: str
    state: Literal["met", "missed", "not run"]


def marks(findings: Findings) -> list[Mark]:
    """Returns every bar with what was measured."""
    return [*_published(findings), _cells(findings), *_baselines(findings), *_best_form(findings), *_noise(findings)]


def _tables() -> list[tuple[str, str]]:
    return [*(("node-table", graph) for graph in NODE_GRAPHS), *(("link-table", graph) for graph in LINK_GRAPHS)]


def _where(experiment: str, graph: str) -> str:
    return f"{title(graph)}, {'nodes' if experiment == 'node-table' else 'links'}"


def _paper(experiment: str, graph: str) -> float:
    return (NODE_TABLE if experiment == "node-table" else LINK_TABLE)["bigcn:published"][graph]


def to_the_paper(cell: Cell, row: str = PUBLISHED.name) -> Difference:
    """Returns how far a cell of a table lies above a number of the paper's, both to its one decimal, as of independent
    runs.

    Args:
        cell (Cell): One of clean data.
        row (str, optional): Whose number in the paper. (default: that of BiGCN)
    """
    nodes, graph = cell.experiment.name == "node-table", cell.series.graph
    published = (NODE_TABLE if nodes else LINK_TABLE)[row][graph]
    gap = round(round(cell.mean, 1) - published, 1)
    if len(cell.seeds) < 2:
        return Difference(gap, float("-inf"), float("inf"), paired=False)
    spreads = (cell.std, (NODE_SPREADS if nodes else LINK_SPREADS)[row][graph])
    ends = unpaired_interval((gap, 0.0), spreads, (len(cell.seeds), RUNS))[1:]
    return Difference(gap, *ends, paired=False)


def _published(findings: Findings) -> list[Mark]:
    out = []
    for experiment, graph in _tables():
        reach = NODE_REACH[graph] if experiment == "node-table" else LINK_REACH
        cell = findings.cell(experiment, series_of(experiment, graph), PUBLISHED)
        what, bar = (
            f"published form, {_where(experiment, graph)}",
            f"within {reach:g} of {_paper(experiment, graph):.1f}",
        )
        if cell is None:
            out.append(Mark(what, bar, "", "not run"))
            continue
        gap = to_the_paper(cell)
        out.append(_mark(what, bar, f"{cell.mean:.1f}: {gap}", abs(gap.mean) <= reach))
    return out


def _cells(findings: Findings) -> Mark:
    gaps = _gaps(findings.cells("fixed-learnable"))
    total = sum(len(series.values) for series in EXPERIMENTS["fixed-learnable"].series) * 2
    what, bar = "fixed and learned feature graph, Cora under noise", f"all {total} numbers within {CELL_REACH:g}"
    if len(gaps) < total:
        return Mark(what, bar, "", "not run")
    held = sum(abs(gap) <= CELL_REACH for gap in gaps)
    return _mark(what, bar, f"{held} of {total}; the furthest {signed(max(gaps, key=abs))}", held == total)


def _baselines(findings: Findings) -> list[Mark]:
    out = []
    for experiment in TABLES:
        for tuning, words in (("paper", "at the paper's settings"), ("tuned", "tuned")):
            cells = _of_baselines(findings, experiment, tuning)
            total = len(PAPER_BASELINES) * len(EXPERIMENTS[experiment].series)
            below = [cell for cell in cells if _is_weak(cell)]
            what = f"baselines {words}, {'nodes' if experiment == 'node-table' else 'links'}"
            named = ", ".join(
                f"{cell.contender.title} {title(cell.series.graph)} {to_the_paper(cell, cell.contender.name)}"
                for cell in below
            )
            measured = f"{len(cells) - len(below)} of {len(cells)} that have run" + (f"; not {named}" if named else "")
            if len(cells) < total and not below:
                out.append(Mark(what, f"at most {BASELINE_REACH:g} below the paper", measured, "not run"))
                continue
            out.append(_mark(what, f"at most {BASELINE_REACH:g} below the paper", measured, not below))
    return out


def weak_baselines(findings: Findings) -> list[Cell]:
    """Returns the cells of baselines that lie further below the paper than they may."""
    places = ((name, tuning) for name in TABLES for tuning in ("paper", "tuned"))
    return [cell for place in places for cell in _of_baselines(findings, *place) if _is_weak(cell)]


def _of_baselines(findings: Findings, experiment: str, tuning: str) -> list[Cell]:
    return [
        cell
        for cell in findings.cells(experiment)
        if cell.contender.tuning == tuning and cell.contender.name in PAPER_BASELINES
    ]


def _is_weak(cell: Cell) -> bool:
    return cell.gap is not None and cell.gap < -BASELINE_REACH


def _best_form(findings: Findings) -> list[Mark]:
    out = []
    for experiment, graph in _tables():
        cell = findings.cell(experiment, series_of(experiment, graph), OURS)
        what, bar = f"our form, {_where(experiment, graph)}", f"at least {_paper(experiment, graph):.1f}"
        if cell is None:
            out.append(Mark(what, bar, "", "not run"))
            continue
        gap = to_the_paper(cell)
        measured = f"{cell.mean:.1f}: {gap}{_distance(findings, experiment, graph)}"
        out.append(_mark(what, bar, measured, gap.mean >= 0))
    return out


def behind(findings: Findings) -> list[str]:
    """Returns the graphs on which our form classifies nodes worse than the paper says that BiGCN does."""
    cells = (findings.cell("node-table", series_of("node-table", graph), OURS) for graph in NODE_GRAPHS)
    return [cell.series.graph for cell in cells if cell is not None and to_the_paper(cell).mean < 0]


def _noise(findings: Findings) -> list[Mark]:
    out = []
    for graph, gain in NOISE_GAIN.items():
        gap = findings.above("noise-level", series_of("noise-level", graph), OURS, PUBLISHED)
        what, bar = f"our form, {title(graph)}, mean over noise levels", f"{gain:g} above the published form"
        if gap is None:
            out.append(Mark(what, bar, "", "not run"))
            continue
        out.append(_mark(what, bar, f"{gap}{_distance(findings, 'noise-level', graph)}", round(gap.mean, 1) >= gain))
    return out


def _distance(findings: Findings, experiment: str, graph: str) -> str:
    gap = findings.above(experiment, series_of(experiment, graph), OURS, APPNP)
    return "" if gap is None else f"; to APPNP {gap}"


def _gaps(cells: list[Cell]) -> list[float]:
    return [cell.gap for cell in cells if cell.gap is not None]


def _mark(what: str, bar: str, measured: str, met: bool) -> Mark:
    return Mark(what, bar, measured, "met" if met else "missed")
