"""Who is ahead under which trouble, at a glance."""

import numpy as np

from bigcn.experiments.cells import signed
from bigcn.experiments.findings import OURS, PUBLISHED, TUNED, Findings, Rival
from bigcn.experiments.paper import LINK_GRAPHS, NODE_GRAPHS, Experiment, Series
from bigcn.report import results_tables as tables
from bigcn.report.words import dataset_title

#: What data may suffer from, and the experiments about it by task.
_TROUBLES = {
    "none": ("node-table", "link-table"),
    "noise on all features": ("noise-level", "noise-level-link"),
    "noise on some nodes": ("noise-rate", "noise-rate-link"),
    "noise on whole columns": ("column-noise",),
    "few features": ("feature-rate", "feature-rate-link"),
    "wrong edges": ("structure-mistakes",),
}
_INTRO = """\
The best on average over all amounts of a kind of noise, of the published form and of all that are tuned equally; in
brackets how far our form (BiGCN without a further word) is from it, or by how much it leads. Nothing is said where our
form, the published one or a baseline of the paper has not run in full; other models count where they have.
"""


def overview_section(findings: Findings) -> str:
    """Returns who is ahead, by kind of noise and graph, or nothing if nothing has run in full.

    Args:
        findings (Findings): What was measured.
    """
    parts = []
    for place, (title, graphs) in enumerate({"Nodes": NODE_GRAPHS, "Links": LINK_GRAPHS}.items()):
        rows = []
        for trouble, names in _TROUBLES.items():
            experiments = [e for e in findings.work.experiments if e.name in names[place : place + 1]]
            for experiment in experiments:
                cells = [_ahead(findings, experiment, graph) for graph in graphs]
                rows += [[trouble, *cells]] if any(cell != tables.NONE for cell in cells) else []
        if rows:
            heading = ["trouble", *(dataset_title(graph) for graph in graphs)]
            parts += [f"### {title}\n", tables.table(heading, rows, words=True)]
    return "\n".join(["## Who is ahead\n", _INTRO, *parts]) if parts else ""


def _ahead(findings: Findings, experiment: Experiment, graph: str) -> str:
    """Returns the best model on a graph and how far our form is from it."""
    series = next(series for series in experiment.series if series.graph == graph)
    titles = {Rival(contender.name, contender.tuning): contender.title for contender in experiment.contenders}
    rivals = [rival for rival in titles if rival.tuning == "tuned" or rival == PUBLISHED]
    means = {rival: mean for rival in rivals if (mean := _mean(findings, experiment, series, rival)) is not None}
    if not {OURS, PUBLISHED, *TUNED} <= means.keys():
        return tables.NONE
    first, second, *_ = sorted(means, key=lambda rival: -means[rival])
    gap = means[OURS] - means[second if first == OURS else first]
    name = f"**{tables.escaped(titles[first])}**" if first == OURS else tables.escaped(titles[first])
    return f"{name} {means[first]:.1f} ({signed(gap)})"


def _mean(findings: Findings, experiment: Experiment, series: Series, rival: Rival) -> float | None:
    cells = [findings.cell(experiment.name, series, rival, value) for value in series.values or (None,)]
    found = [cell.mean for cell in cells if cell is not None]
    return float(np.mean(found)) if len(found) == len(cells) else None
