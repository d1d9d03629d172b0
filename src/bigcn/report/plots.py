"""Figures for papers and slides, as PNG and SVG, drawn without Matplotlib's global figures."""

import io
import textwrap
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.text import Text

from bigcn.experiments.comparison import ComparisonResult
from bigcn.files import PathLike, write_bytes
from bigcn.report.grid import Grid, grid_of
from bigcn.report.responses import responses
from bigcn.report.styles import BLUE, VERMILLION, style_of
from bigcn.report.words import label, number

# Text stays text in an SVG, and the same figure gives the same bytes.
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "bigcn", "svg.fonttype": "none"}
_METADATA: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def curves_figure(result: ComparisonResult) -> Figure:
    """Draws the score against the amount of noise, one line a model with its standard deviation as a shade; dots with
    error bars where there is one amount alone.

    Args:
        result (ComparisonResult): What the comparison found.
    """
    grid = grid_of(result)
    many = len(grid.values) > 1
    height = 4.2 if many else 1.4 + 0.42 * len(grid.models)
    figure = Figure(figsize=(7.2, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(_wrapped(label(result.comparison.title), 50), loc="left", fontsize=11, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y" if many else "x", alpha=0.25)
    if many:
        _draw_curves(axes, grid)
        handles = axes.get_lines()
        box = figure.legend(
            handles, [_wrapped(title) for title in grid.titles], loc="outside right upper", frameon=False, fontsize=9
        )
        _plain(*box.get_texts())
    else:
        _draw_dots(axes, grid)
    return figure


def response_figure(result: ComparisonResult) -> Figure | None:
    """Draws what the filter of each BiGCN does to every pair of node and feature frequency; :obj:`None` if the
    comparison has no BiGCN.

    Args:
        result (ComparisonResult): What the comparison found.
    """
    found = responses(result)
    if not found:
        return None
    figure = Figure(figsize=(0.8 + 2.9 * len(found), 3.1), layout="constrained")
    colours = LinearSegmentedColormap.from_list("response", [VERMILLION, "#FFFFFF", BLUE])
    for place, (response, axes) in enumerate(zip(found, figure.subplots(1, len(found), squeeze=False)[0], strict=True)):
        shown = response.grid.numpy()
        extent = (0.0, response.highest, 0.0, 2.0)
        image = axes.imshow(shown, cmap=colours, vmin=-1, vmax=1, origin="lower", extent=extent, aspect="auto")
        if shown.min() < 0.5 < shown.max():
            lines = axes.contour(shown, levels=[0.5], extent=extent, colors="black", linewidths=0.8)
            axes.clabel(lines, fmt="½", fontsize=9)
        axes.set_title(_wrapped(response.title, 34), fontsize=9, parse_math=False)
        axes.set_xlabel("feature frequency")
        if place == 0:
            axes.set_ylabel("node frequency")
    figure.colorbar(image, ax=list(figure.axes), label="scaled by (clipped at ±1)")
    return figure


def save_curves(path: PathLike, result: ComparisonResult) -> tuple[Path, Path]:
    """Saves :func:`curves_figure` as PNG and as SVG, and returns both files.

    Args:
        path (str or path): The files' name; :obj:`.png` and :obj:`.svg` are appended, or take each other's place.
        result (ComparisonResult): What the comparison found.
    """
    return save_figure(path, curves_figure(result))


def save_responses(path: PathLike, result: ComparisonResult) -> tuple[Path, ...]:
    """Saves :func:`response_figure` as PNG and as SVG, and returns the files: none if there is no BiGCN.

    Args:
        path (str or path): The files' name, as in :func:`save_curves`.
        result (ComparisonResult): What the comparison found.
    """
    figure = response_figure(result)
    return () if figure is None else save_figure(path, figure)


def save_figure(path: PathLike, figure: Figure) -> tuple[Path, Path]:
    """Saves a figure as PNG and as SVG, each whole or not at all.

    Args:
        path (str or path): The files' name, as in :func:`save_curves`.
        figure (matplotlib.figure.Figure): The figure.
    """
    stem = Path(path)
    if stem.suffix.lower() in (".png", ".svg"):  # any other dot is part of the name, as in "noise-0.5"
        stem = stem.with_suffix("")
    saved = []
    for kind, metadata in _METADATA.items():
        file = io.BytesIO()
        with matplotlib.rc_context(_SETTINGS):
            figure.savefig(file, format=kind, dpi=200, metadata=metadata)
        saved.append(write_bytes(stem.with_name(f"{stem.name}.{kind}"), file.getvalue()))
    return saved[0], saved[1]


def _draw_curves(axes: Axes, grid: Grid) -> None:
    for place, model in enumerate(grid.models):
        cells = [cell for cell in grid.row(model) if cell is not None]
        where = [cell["value"] for cell in cells]
        mean = [100 * cell["mean"] for cell in cells]
        style = style_of(place)
        (line,) = axes.plot(where, mean, color=style.colour, marker=style.marker, markersize=5, linewidth=1.6)
        line.set_gid(f"series-{place + 1}")
        if style.dashes:
            line.set_dashes([length / 2 for length in style.dashes])
        low, high = ([m + sign * 100 * c["std"] for m, c in zip(mean, cells, strict=True)] for sign in (-1, 1))
        axes.fill_between(where, low, high, color=style.colour, alpha=0.12, linewidth=0)
    if grid.logarithmic:
        axes.set_xscale("log")
        axes.minorticks_off()
    numbers = [value for value in grid.values if value is not None]
    axes.set_xticks(numbers, [number(value) for value in numbers])
    axes.set_xlabel(grid.axes[0])
    axes.set_ylabel(grid.axes[1])


def _draw_dots(axes: Axes, grid: Grid) -> None:
    for place, cell in enumerate(grid.row(model)[0] for model in grid.models):
        style = style_of(place)
        mean, std = ([100 * cell["mean"]], [100 * cell["std"]]) if cell else ([], [])
        bars = axes.errorbar(mean, [place] * len(mean), xerr=std, color=style.colour, marker=style.marker, capsize=3)
        bars.lines[0].set_gid(f"series-{place + 1}")
    axes.set_yticks(range(len(grid.models)), [_wrapped(title) for title in grid.titles])
    _plain(*axes.get_yticklabels())
    axes.set_ylim(len(grid.models) - 0.5, -0.5)
    axes.set_xlabel(grid.axes[1] if grid.values == (None,) else f"{grid.axes[1]} ({grid.axes[0]}: {grid.headings[0]})")


def _wrapped(name: str, width: int = 26) -> str:
    """A name of any length must leave room for the plot."""
    shown = name if len(name) <= 3 * width else f"{name[: 3 * width - 1]}…"
    return textwrap.fill(shown, width)


def _plain(*texts: Text) -> None:
    """A dollar sign in a name is a dollar sign."""
    for text in texts:
        text.set_parse_math(False)
