"""The figures of the reproduction: a panel for each graph, a curve for each model, shaded by its standard deviation."""

import io
import math
import re
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bigcn.experiments.cells import Cell
from bigcn.experiments.findings import OURS, Findings, Rival
from bigcn.experiments.paper import Experiment, Series
from bigcn.nn.registry import title_of
from bigcn.report.styles import OKABE_ITO, style_of
from bigcn.report.words import amount, dataset_title, metric_title, number

# Text stays text, and the same figure gives the same bytes.
_SETTINGS = {"svg.hashsalt": "bigcn", "svg.fonttype": "none"}
_COLUMNS = 3
#: A model looks the same in all figures; the palette of the package comes first, so those who matter most do.
LOOKS = ("bigcn:published", "bigcn", "appnp", "gcn", "gat", "gdc", "sage", "sgc", "gin", "mlp")
#: Ten models stand in a figure: wine, brown and grey are beside the seven.
_COLOURS = (*(colour for _, colour, _, _ in OKABE_ITO), "#882255", "#8C510A", "#8C8C8C")
#: How far below all that others ever reach a curve must lie for a panel not to stretch down to it: as a share of what
#: they take up themselves, and in points.
_FAR_BELOW, _POINTS_BELOW = 0.5, 5.0


class Curve(NamedTuple):
    """A line of a panel: where, how high, and whether it is the heaviest."""

    label: str
    style: int
    where: list[float]
    mean: list[float]
    std: list[float]
    heavy: bool = False


class Panel(NamedTuple):
    """A panel: its title, what its axes are, its lines, and whether it may end above some of them."""

    title: str
    across: str
    up: str
    curves: list[Curve]
    cuts: bool = False


def panels(findings: Findings, experiment: Experiment) -> list[Panel]:
    """Returns what is drawn of an experiment: all that has run; none where nothing has or there is nothing to draw.

    Args:
        findings (Findings): What was measured.
        experiment (Experiment): The experiment.
    """
    if experiment.figure:
        drawn = [_over_amounts(findings, experiment, series) for series in experiment.series]
    elif experiment.name in ("sensitivity-k", "sensitivity-lambda2"):
        drawn = [_over_settings(findings, experiment)]
    elif experiment.name == "sensitivity-p-lambda":
        drawn = [_over_p(findings, experiment, series) for series in experiment.series]
    elif experiment.name == "depth":
        drawn = [_over_depth(findings, experiment, series) for series in experiment.series]
    else:
        drawn = []
    return [panel for panel in drawn if any(len(curve.where) > 1 for curve in panel.curves)]


def figure_of(drawn: list[Panel], title: str, columns: int | None = None, scale: float = 1.0) -> Figure:
    """Draws panels.

    Args:
        drawn (list[Panel]): The panels.
        title (str): The title above them.
        columns (int, optional): How many stand side by side. (default: three at most, and four as two by two)
        scale (float, optional): The size of a panel; text keeps its own. (default: :obj:`1.0`)
    """
    columns = columns or (2 if len(drawn) == 4 else min(_COLUMNS, len(drawn)))
    rows = math.ceil(len(drawn) / columns)
    figure = Figure(figsize=(0.6 + 3.4 * scale * columns, 0.9 + 2.8 * scale * rows), layout="constrained")
    figure.suptitle(title, fontsize=11, parse_math=False)
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in places[len(drawn) :]:
        axes.set_axis_off()
    for axes, panel in zip(places, drawn, strict=False):
        _draw(axes, panel)
    lines = {line.get_label(): line for axes in places for line in axes.get_lines()}
    handles, names = list(lines.values()), [str(label) for label in lines]
    if len(places) > len(drawn):  # there is room beside the last panel
        box = places[len(drawn)].legend(handles, names, loc="center", frameon=False, fontsize=10)
    else:
        box = figure.legend(handles, names, loc="outside lower center", ncols=1 + columns, frameon=False, fontsize=9)
    for text in box.get_texts():
        text.set_parse_math(False)
    return figure


def svg(figure: Figure) -> bytes:
    """Returns a figure as an SVG file.

    Args:
        figure (matplotlib.figure.Figure): The figure.
    """
    file = io.BytesIO()
    with matplotlib.rc_context(_SETTINGS):  # type: ignore[arg-type]
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    # Hundredths of a point are finer than any screen, and digits are half of the file. What is not in quotes is text.
    text = re.sub(r'"[^"<>]*"', lambda found: re.sub(r"(\d\.\d\d)\d+", r"\1", found[0]), file.getvalue().decode())
    return re.sub(r"\n\s*", "\n", text).encode()


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=10, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    for curve in panel.curves:
        style, colour = style_of(curve.style), _COLOURS[curve.style % len(_COLOURS)]
        (line,) = axes.plot(
            *(curve.where, curve.mean),
            color=colour,
            marker=style.marker,
            markersize=4,
            linewidth=2.2 if curve.heavy else 1.2,
            zorder=3 if curve.heavy else 2,
        )
        line.set_label(curve.label)
        if style.dashes:
            line.set_dashes([length / 2 for length in style.dashes])
        low, high = ([m + sign * s for m, s in zip(curve.mean, curve.std, strict=True)] for sign in (-1, 1))
        axes.fill_between(curve.where, low, high, color=colour, alpha=0.12, linewidth=0)
    if panel.cuts:
        _cut(axes, panel.curves)
    ticks = sorted({place for curve in panel.curves for place in curve.where})
    if ticks[0] > 0 and ticks[-1] / ticks[0] > 50:
        axes.set_xscale("log")
        axes.minorticks_off()
    else:
        shown = ticks[:: 2 if len(ticks) > 6 else 1]
        axes.set_xticks(shown, [number(tick) for tick in shown])
    axes.tick_params(labelsize=8)
    axes.set_xlabel(panel.across, fontsize=9)
    axes.set_ylabel(panel.up, fontsize=9)


def _cut(axes: Axes, curves: list[Curve]) -> None:
    """Lets a panel end above curves that lie far below all others, and names them: the others would be one line."""
    lowest = sorted(curves, key=lambda curve: max(curve.mean))
    for count in range(len(lowest) // 2, 0, -1):
        low, high = (end(end(curve.mean) for curve in lowest[count:]) for end in (min, max))
        if low - max(lowest[count - 1].mean) > max(_FAR_BELOW * (high - low), _POINTS_BELOW):
            break
    else:
        return
    shown = lowest[count:]
    spread = max((std for curve in shown for std in curve.std), default=0.0)
    axes.set_ylim(low - min(spread, 2.0) - 0.08 * (high - low), high + min(spread, 2.0) + 0.04 * (high - low))
    words = [f"{curve.label} {min(curve.mean):.0f} to {max(curve.mean):.0f}" for curve in reversed(lowest[:count])]
    named = axes.text(0.02, 0.02, "below: " + ",\n".join(words), transform=axes.transAxes, fontsize=8, color="#4A4F55")
    named.set_parse_math(False)
    named.set_in_layout(False)  # a long name must not narrow the panel


def _over_amounts(findings: Findings, experiment: Experiment, series: Series) -> Panel:
    curves = []
    for place, contender in enumerate(experiment.contenders):
        rival = Rival(contender.name, contender.tuning)
        found = [findings.cell(experiment.name, series, rival, value) for value in series.values]
        style = LOOKS.index(contender.name) if contender.name in LOOKS else place
        curve = curve_of(contender.title, style, [(c.value or 0.0, c) for c in found if c is not None])
        curves.append(curve._replace(heavy=rival == OURS))
    several = len({other.case for other in experiment.series}) > 1
    title = dataset_title(series.graph) + (f", {series.case.replace('-', ' ')}" if several else "")
    return Panel(title, amount(series.case), score_title(series), [curve for curve in curves if curve.where], cuts=True)


def _over_settings(findings: Findings, experiment: Experiment) -> Panel:
    curves = []
    for place, series in enumerate(experiment.series):
        found = [
            (float(contender.name.partition("=")[2]), cell)
            for contender in experiment.contenders
            if (cell := _only(findings, experiment, series, Rival(contender.name, contender.tuning))) is not None
        ]
        curves.append(curve_of(case_title(series), place, found))
    across = "rounds k" if experiment.name == "sensitivity-k" else "strength of the feature direction"
    return Panel("Cora", across, score_title(experiment.series[0]), [curve for curve in curves if curve.where])


def _over_p(findings: Findings, experiment: Experiment, series: Series) -> Panel:
    found: dict[float, list[tuple[float, Cell]]] = {}
    for contender in experiment.contenders:
        p, strength = (float(part) for part in contender.name.partition("=")[2].split(","))
        cell = _only(findings, experiment, series, Rival(contender.name, contender.tuning))
        if cell is not None:
            found.setdefault(strength, []).append((p, cell))
    curves = [curve_of(f"λ = {v:g}", place, sorted(found[v], key=_first)) for place, v in enumerate(sorted(found))]
    return Panel(case_title(series), "p", score_title(series), curves)


def _over_depth(findings: Findings, experiment: Experiment, series: Series) -> Panel:
    found: dict[str, list[tuple[float, Cell]]] = {}
    for contender in experiment.contenders:
        cell = _only(findings, experiment, series, Rival(contender.name, contender.tuning))
        kind = contender.title.rpartition(", ")[0]
        found.setdefault(kind, [])
        if cell is not None:
            found[kind].append((float(contender.name.partition("@")[2]), cell))
    # What has no variant in its name looks as it does elsewhere.
    plain = {title_of(name): place for place, name in enumerate(LOOKS)}
    others = iter(place for place in range(len(_COLOURS)) if place not in {plain.get(kind) for kind in found})
    curves = [curve_of(kind, plain[kind] if kind in plain else next(others), cells) for kind, cells in found.items()]
    return Panel(case_title(series), "layers", score_title(series), [curve for curve in curves if curve.where])


def case_title(series: Series) -> str:
    """Returns the kind and the amount of noise of a series for people.

    Example:
        >>> case_title(Series("node", "cora", "noise-level", (0.5,))), case_title(Series("node", "cora"))
        ('Noise level 0.5', 'Clean')
    """
    return " ".join([series.case.replace("-", " ").capitalize(), *(number(value) for value in series.values)])


def _only(findings: Findings, experiment: Experiment, series: Series, rival: Rival) -> Cell | None:
    return findings.cell(experiment.name, series, rival, series.values[0] if series.values else None)


def curve_of(label: str, style: int, cells: list[tuple[float, Cell]]) -> Curve:
    """Returns the line through some cells, each with its place along the axis."""
    where = [place for place, _ in cells]
    return Curve(label, style, where, [cell.mean for _, cell in cells], [cell.std for _, cell in cells])


def _first(pair: tuple[float, Cell]) -> float:
    return pair[0]


def score_title(series: Series) -> str:
    """Returns what the scores of a series are, for an axis."""
    metric = {"node": "accuracy", "link": "roc_auc"}[series.task]
    return f"{metric_title(metric)}, %"
