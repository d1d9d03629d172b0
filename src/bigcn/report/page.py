"""The report of a comparison as one HTML file that needs nothing else: no network, no script, no other file."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from bigcn import __version__
from bigcn.experiments.comparison import ComparisonResult
from bigcn.files import PathLike, write_text
from bigcn.report import sections
from bigcn.report.charts import chart_of, close_up
from bigcn.report.grid import grid_of
from bigcn.report.lonely import lonely
from bigcn.report.own import own_sections
from bigcn.report.words import label, metric_title, printable, question


def write_page(path: PathLike, result: ComparisonResult, command: str) -> Path:
    """Writes the report of a comparison, whole or not at all, and returns its path.

    Args:
        path (str or path): The HTML file.
        result (ComparisonResult): What the comparison found.
        command (str): The command that repeats it.
    """
    return write_text(path, render_page(result, command))


def render_page(result: ComparisonResult, command: str) -> str:
    """Returns the report of a comparison as HTML; the same result gives the same text.

    Args:
        result (ComparisonResult): What the comparison found.
        command (str): The command that repeats it.
    """
    grid = grid_of(result)
    data = sections.data_sections(result, grid)
    chart, close = chart_of(result, grid), close_up(grid)
    shown = {series.place for series in close.series} if close else set()
    return (
        _environment()
        .get_template("page.html")
        .render(
            version=__version__,
            palette=sections.palette(),
            title=label(result.comparison.title),
            question=question(result.comparison),
            verdict=printable(result.verdict()).replace(" %", "\N{NO-BREAK SPACE}%"),
            facts=sections.facts(result, grid),
            grid=grid,
            metric=metric_title(grid.metric),
            chart=chart,
            close=close,
            left_out=[series.name for series in chart.series if close and series.place not in shown],
            table=sections.table(grid),
            own=own_sections(result),
            lonely=lonely(result, grid, at_hand=not data["missing"]),
            filters=sections.filters(result),
            heat=sections.HEAT,
            data=data,
            costs=sections.costs(result),
            failures=sections.failures(result),
            provenance=sections.provenance(result, command),
            runs=len(result.pairs),
        )
    )


@cache
def _environment() -> Environment:
    # Everything that comes from outside the templates is escaped, wherever in the page it stands.
    return Environment(
        loader=PackageLoader("bigcn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
