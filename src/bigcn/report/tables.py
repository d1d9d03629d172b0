"""A comparison as a table: for the terminal, as plain text, as Markdown and as CSV."""

import csv
import io
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bigcn.experiments.comparison import ComparisonResult
from bigcn.experiments.records import SUMMARY_COLUMNS
from bigcn.files import PathLike, write_text
from bigcn.report.grid import BEST, TIE, Grid, grid_of
from bigcn.report.words import label, plural


def legend(result: ComparisonResult) -> str:
    """Says what the marks of a table mean, and what is not in it.

    Args:
        result (ComparisonResult): What the comparison found.
    """
    grid = grid_of(result)
    across, measured = grid.axes
    parts = [f"{measured.removesuffix(', %')} in percent"]
    if grid.values != (None,):
        parts.append(f"columns: {across}")
    if grid.seeds > 1:
        parts[0] += f", mean ± standard deviation over {grid.seeds} seeds"
    parts.append(f"{BEST} best")
    if any(cell["tie"] for cell in grid.cells.values()):
        parts.append(f"{TIE} cannot be told from the best, seed by seed")
    elif grid.seeds == 1 and len(grid.models) > 1:
        parts.append("one seed cannot tell models apart")
    if lost := len(result.failures()):
        parts.append(f"{plural(lost, 'run')} of {len(result.pairs)} failed")
    return "; ".join(parts) + "."


def comparison_table(result: ComparisonResult) -> Table:
    """Returns a comparison as a table for the terminal.

    Args:
        result (ComparisonResult): What the comparison found.
    """
    grid = grid_of(result)
    # Names are wrapped in Text, which no square bracket in them can turn into markup.
    table = Table(
        title=Text(label(result.comparison.title), style="bold"),
        title_justify="left",
        caption=Text(legend(result)),
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 0 if len(grid.values) > 6 else 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("model", min_width=12)
    # With more columns than these a usual terminal has no room for a score and its spread on one line.
    stacked = len(grid.values) > 3
    columns = [_column(grid, value, stacked) for value in grid.values]
    for heading, cells in zip(grid.headings, columns, strict=True):
        table.add_column(Text(heading.rjust(len(cells[0].plain.partition("\n")[0]) - 2)), no_wrap=True)
    for title, *cells in zip(grid.titles, *columns, strict=True):
        table.add_row(Text(title), *cells)
    return table


def text_table(result: ComparisonResult) -> str:
    """Returns a comparison as plain text in aligned columns, with a legend below.

    Args:
        result (ComparisonResult): What the comparison found.
    """
    rows = _rows(grid_of(result))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([label(result.comparison.title), "", *lines, "", legend(result)]) + "\n"


def markdown_table(result: ComparisonResult) -> str:
    """Returns a comparison as a Markdown table, the best in bold, with a legend below.

    Args:
        result (ComparisonResult): What the comparison found.
    """
    grid = grid_of(result)
    lines = [["model", *grid.headings], ["---", *["---:"] * len(grid.values)]]
    for model, title in zip(grid.models, grid.titles, strict=True):
        cells = [_markdown(_cell(grid, model, value)) for value in grid.values]
        marks = [grid.mark(model, value) for value in grid.values]
        lines.append([_markdown(title), *(f"**{c}**" if m == BEST else c for c, m in zip(cells, marks, strict=True))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{_markdown(legend(result))}\n"


def write_csv(path: PathLike, result: ComparisonResult) -> Path:
    """Writes the rows of a comparison, whole or not at all; scores are fractions, and clean data have no value.

    Args:
        path (str or path): The file.
        result (ComparisonResult): What the comparison found.
    """
    file = io.StringIO(newline="")
    table = csv.DictWriter(file, SUMMARY_COLUMNS, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(result.rows())
    return write_text(path, file.getvalue())


def _column(grid: Grid, value: float | None, stacked: bool) -> list[Text]:
    """Returns the cells of a column, aligned by hand: rich would drop the blanks after a number without a mark."""
    texts = [grid.text(model, value) for model in grid.models]
    lines = [text.replace("± ", "±").split() if stacked else [text] for text in texts]
    width = max(len(line) for cell in lines for line in cell)
    cells = []
    for model, (first, *rest) in zip(grid.models, lines, strict=True):
        mark = grid.mark(model, value)
        style = "bold green" if mark == BEST else "" if (model, value) in grid.cells else "dim"
        text = Text(f"{first.rjust(width)} {mark or ' '}", style=style)
        cells.append(text.append("".join(f"\n{line.rjust(width)}" for line in rest), style="not bold dim"))
    return cells


def _cell(grid: Grid, model: str, value: float | None) -> str:
    # A blank where there is no mark keeps the numbers of a column in line.
    return f"{grid.text(model, value)} {grid.mark(model, value) or ' '}"


def _rows(grid: Grid) -> list[list[str]]:
    rows = [["model", *(f"{heading}  " for heading in grid.headings)]]
    for model, title in zip(grid.models, grid.titles, strict=True):
        rows.append([title, *(_cell(grid, model, value) for value in grid.values)])
    return rows


def _markdown(text: str) -> str:
    for character in "\\|*_`<>[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
