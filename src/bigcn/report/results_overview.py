"""Who is ahead under which trouble, at a glance."""

import numpy as np

from bigcn.experiments.cells import signed
from bigcn.experiments.findings import OURS, PUBLISHED, TUNED, Findings, Rival
from bigcn.experiments.paper import EXPERIMENTS, Experiment, Series
from bigcn.report import results_tables as tables
from bigcn.report.results_summary import TITLE
from bigcn.report.words import dataset_title

#: What data may suffer from, by task, and the experiment about it.
_TROUBLES = {
    "Nodes": {
        "none": "node-table",
        "noise on all features": "noise-level",
        "noise on some nodes": "noise-rate",
        "noise on whole columns": "column-noise",
        "few features": "feature-rate",
        "wrong edges": "structure-mistakes",
    },
    "Links": {
        "none": "link-table",
        "noise on all features": "noise-level-link",
        "noise on some nodes": "noise-rate-link",
        "few features": "feature-rate-link",
    },
}
_INTRO = """\
The best on average over all amounts of a kind of noise, of the published form and of all that are tuned equally; in
brackets how far our form (BiGCN without a further word) is from it, or by how much it leads. Nothing is said where our
form, the published one or a baseline of the paper has not run in full; other models count where they have.
"""


def overview_section(findings: Findings, figure: str = "") -> str:
    """Returns who is ahead, by kind of noise and graph, or nothing if nothing has run in full.

    Args:
        findings (Findings): What was measured.
        figure (str, optional): Where the figure that sums up lies. (default: there is none)
    """
    parts = []
    for title, troubles in _TROUBLES.items():
        rows = []
        for trouble, name in troubles.items():
            cells = [_ahead(findings, EXPERIMENTS[name], series) for series in EXPERIMENTS[name].series]
            rows += [[trouble, *cells]] if any(cell != tables.NONE for cell in cells) else []
        if rows:
            graphs = [dataset_title(series.graph) for series in EXPERIMENTS[troubles["none"]].series]
            parts += [f"### {title}\n", tables.table(["trouble", *graphs], rows, words=True)]
    picture = [f"![{TITLE}]({figure})\n"] if figure else []
    return "\n".join(["## Who is ahead\n", *picture, _INTRO, *parts]) if parts else ""


def _ahead(findings: Findings, experiment: Experiment, series: Series) -> str:
    """Returns the best model on a graph and how far our form is from it."""
    titles = {Rival(contender.name, contender.tuning): contender.title for contender in experiment.contenders}
    rivals = [rival for rival in titles if rival.tuning == "tuned" or rival == PUBLISHED]
    curves = {rival: findings.curve(experiment.name, series, rival) for rival in rivals}
    means = {rival: float(np.mean([cell.mean for cell in curve])) for rival, curve in curves.items() if curve}
    if not {OURS, PUBLISHED, *TUNED} <= means.keys():
        return tables.NONE
    first, second, *_ = sorted(means, key=lambda rival: -means[rival])
    gap = means[OURS] - means[second if first == OURS else first]
    name = f"**{tables.escaped(titles[first])}**" if first == OURS else tables.escaped(titles[first])
    return f"{name} {means[first]:.1f} ({signed(gap)})"
