"""The geometry of the charts in the page: everything is worked out here, the template only writes it down."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bigcn.experiments.comparison import ComparisonResult
from bigcn.report.grid import Grid
from bigcn.report.styles import Style, style_of
from bigcn.report.words import model_title, number, percent, plural, printable, score

WIDTH = 680.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 18.0, 40.0, 70.0
_HEIGHT = 420.0
_ROW = 54.0


@dataclass(frozen=True)
class Tick:
    """A place on an axis and what stands there."""

    at: float
    text: str


@dataclass(frozen=True)
class Mark:
    """A score in a chart: where, how far it spreads, and what to say about it."""

    x: float
    y: float
    text: str
    low: float
    high: float
    best: bool = False
    seeds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Series:
    """The scores of one model: its marks, the lines between them and the shade of its spread."""

    place: int
    name: str
    style: Style
    marks: tuple[Mark, ...]
    line: str = ""
    band: str = ""

    @property
    def dashes(self) -> str:
        """The dashes as SVG wants them."""
        return " ".join(f"{length:g}" for length in self.style.dashes)


@dataclass(frozen=True)
class Chart:
    """A chart with its axes, as large as :obj:`width` and :obj:`height` say, in units of its own."""

    kind: str
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_label: str
    y_label: str
    series: tuple[Series, ...]


def chart_of(result: ComparisonResult, grid: Grid) -> Chart:
    """Draws the curves of a comparison, or dots where there is one amount of noise alone.

    Args:
        result (ComparisonResult): What the comparison found.
        grid (Grid): The same, laid out.
    """
    return _curves(grid, grid.models) if len(grid.values) > 1 else _dots(result, grid)


def close_up(grid: Grid) -> Chart | None:
    """Draws the curves without those that fall far behind and so press all others together; :obj:`None` where there
    are no such curves.

    Args:
        grid (Grid): The comparison, laid out.
    """
    if len(grid.values) < 2 or not grid.cells:
        return None
    best = {value: max(cell["mean"] for (_, at), cell in grid.cells.items() if at == value) for _, value in grid.cells}
    behind = {model: 0.0 for model, _ in grid.cells}
    for (model, value), cell in grid.cells.items():
        behind[model] = max(behind[model], best[value] - cell["mean"])
    means = [cell["mean"] for cell in grid.cells.values()]
    near = tuple(model for model, gap in behind.items() if gap < 0.25 * (max(means) - min(means)))
    close = [cell["mean"] for (model, _), cell in grid.cells.items() if model in near]
    crowded = 1 < len(near) < len(behind) and max(close) - min(close) < 0.4 * (max(means) - min(means))
    return _curves(grid, near, height=320.0) if crowded else None


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Returns about so many round numbers that reach from below :obj:`low` to above :obj:`high`.

    Example:
        >>> nice_ticks(63, 97)
        [60.0, 70.0, 80.0, 90.0, 100.0]
    """
    span = max(high - low, 1e-6)
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min(factor for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * tick, 10) for tick in range(first, max(last, first + 1) + 1)]


def _ends(cell: dict[str, Any]) -> tuple[float, float]:
    """Where the spread of a score begins and ends, in percent; no score lies beyond 0 or 100."""
    mean, std = 100 * cell["mean"], 100 * cell["std"]
    return max(0.0, mean - std), min(100.0, mean + std)


def _score_ticks(grid: Grid, models: tuple[str, ...]) -> list[float]:
    ends = [end for (model, _), cell in grid.cells.items() if model in models for end in _ends(cell)] or [0.0, 100.0]
    # Two points at least, or hairs would be blown up to mountains.
    high = max(2.0, *ends)
    return [tick for tick in nice_ticks(min(high - 2.0, *ends), high) if 0 <= tick <= 100]


def _curves(grid: Grid, models: tuple[str, ...], height: float = _HEIGHT) -> Chart:
    values = [value for value in grid.values if value is not None]
    places = [math.log(value) for value in values] if grid.logarithmic else values
    right, bottom = WIDTH - _RIGHT, height - _BOTTOM
    inset = 14.0  # keeps markers off the axis
    stretch = (right - _LEFT - 2 * inset) / ((places[-1] - places[0]) or 1)
    across = {value: _LEFT + inset + stretch * (at - places[0]) for value, at in zip(values, places, strict=True)}
    ticks = _score_ticks(grid, models)

    def up(share: float) -> float:
        return bottom - (bottom - _TOP) * (share - ticks[0]) / (ticks[-1] - ticks[0])

    series = []
    for model in models:
        place = grid.models.index(model)
        marks: list[Mark | None] = []
        for cell in grid.row(model):
            if cell is None:
                marks.append(None)  # the line is broken where runs are missing
                continue
            low, high = _ends(cell)
            at = across[cell["value"]]
            marks.append(Mark(at, up(100 * cell["mean"]), _tip(cell), up(low), up(high), cell["best"]))
        runs = _runs(marks)
        series.append(
            Series(
                place,
                model_title(model),
                style_of(place),
                tuple(mark for run in runs for mark in run),
                line="".join(_path([(mark.x, mark.y) for mark in run]) for run in runs),
                band="".join(
                    _path([(m.x, m.high) for m in run] + [(m.x, m.low) for m in reversed(run)]) + "z"
                    for run in runs
                    if len(run) > 1 and grid.seeds > 1
                ),
            )
        )
    every = math.ceil(len(values) / 10)
    return Chart(
        "curves",
        *(WIDTH, height, _LEFT, right, _TOP, bottom),
        x_ticks=tuple(Tick(across[value], number(value)) for value in values[::every]),
        y_ticks=tuple(Tick(up(tick), number(tick)) for tick in ticks),
        x_label=grid.axes[0],
        y_label=grid.axes[1],
        series=tuple(series),
    )


def _dots(result: ComparisonResult, grid: Grid) -> Chart:
    value = grid.values[0]
    order = sorted(grid.models, key=lambda model: -grid.cells.get((model, value), {"mean": -1})["mean"])
    height = _TOP + _ROW * len(order) + _BOTTOM
    left, right, bottom = 20.0, WIDTH - 20.0, height - _BOTTOM
    ticks = _score_ticks(grid, grid.models)

    def across(share: float) -> float:
        return left + (right - left) * (share - ticks[0]) / (ticks[-1] - ticks[0])

    series, names = [], []
    for row, model in enumerate(order):
        at = _TOP + _ROW * (row + 0.66)
        names.append(Tick(at - 18, model_title(model)))
        cell, place = grid.cells.get((model, value)), grid.models.index(model)
        marks: tuple[Mark, ...] = ()
        if cell is not None:
            low, high = _ends(cell)
            runs = tuple(across(100 * share) for share in result.scores(model, value).values())
            mean = across(100 * cell["mean"])
            marks = (Mark(mean, at, _tip(cell), across(low), across(high), cell["best"], runs),)
        series.append(Series(place, model_title(model), style_of(place), marks))
    return Chart(
        "dots",
        *(WIDTH, height, left, right, _TOP, bottom),
        x_ticks=tuple(Tick(across(tick), number(tick)) for tick in ticks),
        y_ticks=tuple(names),
        x_label=grid.axes[1] + ("" if value is None else f" ({grid.axes[0]}: {number(value)})"),
        y_label="",
        series=tuple(series),
    )


def _tip(cell: dict[str, Any]) -> str:
    at = "" if cell["value"] is None else f" at {number(cell['value'])}"
    mark = ", best" if cell["best"] else ", cannot be told from the best" if cell["tie"] else ""
    return f"{model_title(cell['model'])}{at}: {score(cell)} % over {plural(cell['seeds'], 'seed')}{mark}"


def _runs(marks: list[Mark | None]) -> list[list[Mark]]:
    runs: list[list[Mark]] = [[]]
    for mark in marks:
        if mark is None:
            runs.append([])
        else:
            runs[-1].append(mark)
    return [run for run in runs if run]


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def share(part: float, whole: float) -> str:
    """Returns a share as a CSS length.

    Example:
        >>> share(1, 4)
        '25.0%'
    """
    return f"{percent(part / whole if whole else 0.0)}%"


def edge_rows(edges: Sequence[tuple[str, str, float]]) -> list[dict[str, Any]]:
    """Returns edges between features with their weights as bars; of a negative weight the bar is of another colour.

    Args:
        edges (Sequence[tuple[str, str, float]]): The names of both ends, and the weight.

    Example:
        >>> edge_rows([("a", "b", -0.5)])
        [{'first': 'a', 'second': 'b', 'weight': '-0.500', 'share': '100.0%', 'against': True}]
    """
    top = max((abs(weight) for _, _, weight in edges), default=1.0)
    return [
        {
            "first": printable(a),
            "second": printable(b),
            "weight": f"{weight:+.3f}",
            "share": share(abs(weight), top),
            "against": weight < 0,
        }
        for a, b, weight in edges
    ]
