"""One figure for those who read no further: our form under noise and wrong edges, beside the best of all baselines."""

from bigcn.experiments.cells import Cell
from bigcn.experiments.findings import OURS, PUBLISHED, Findings, Rival
from bigcn.experiments.paper import EXPERIMENTS, Experiment, Series
from bigcn.report.results_figures import LOOKS, Curve, Panel, curve_of, score_title
from bigcn.report.words import amount, dataset_title

#: The name of the figure.
SUMMARY = "summary"
TITLE = "Node classification under noise on all features (above) and wrong edges (below)"
#: A row of panels each.
_ROWS = ("noise-level", "structure-mistakes")
_GCN = Rival("gcn", "tuned")
#: What has no style of its own elsewhere: the best baseline is another at each amount.
_BEST = "the best of eight tuned baselines at each amount"


def summary_panels(findings: Findings) -> list[Panel]:
    """Returns a row of panels for each trouble, or nothing unless all of it has run.

    Args:
        findings (Findings): What was measured.
    """
    drawn = [_panel(findings, EXPERIMENTS[name], series) for name in _ROWS for series in EXPERIMENTS[name].series]
    panels = [panel for panel in drawn if panel is not None]
    return panels if len(panels) == len(drawn) else []


def _panel(findings: Findings, experiment: Experiment, series: Series) -> Panel | None:
    rivals = [Rival(contender.name, contender.tuning) for contender in experiment.contenders]
    found = {rival: findings.curve(experiment.name, series, rival) for rival in rivals}
    curves = {rival: curve for rival, curve in found.items() if curve is not None}
    if len(curves) < len(found):
        return None
    baselines = [curve for rival, curve in curves.items() if rival not in (OURS, PUBLISHED)]
    best = [max(cells, key=lambda cell: cell.mean) for cells in zip(*baselines, strict=True)]
    lines = [
        _line("BiGCN, our form", LOOKS.index("bigcn"), curves[OURS])._replace(heavy=True),
        _line("BiGCN as published", LOOKS.index("bigcn:published"), curves[PUBLISHED]),
        _line("GCN, tuned", LOOKS.index("gcn"), curves[_GCN]),
        _line(_BEST, LOOKS.index("sage"), best),
    ]
    return Panel(dataset_title(series.graph), amount(series.case), score_title(series), lines)


def _line(label: str, style: int, cells: list[Cell]) -> Curve:
    return curve_of(label, style, [(cell.value or 0.0, cell) for cell in cells])
