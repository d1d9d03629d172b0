"""A comparison as a grid: one row a model, one column an amount of noise."""

from dataclasses import dataclass
from typing import Any

from bigcn.experiments.comparison import ComparisonResult
from bigcn.report.words import amount, metric_title, model_title, number, score

BEST, TIE = "*", "≈"


@dataclass(frozen=True)
class Grid:
    """The scores of a comparison, laid out for tables and plots.

    Args:
        models (tuple[str, ...]): The names of the models, those without a single good run too.
        values (tuple): The amounts of noise, ascending; a single :obj:`None` for clean data.
        cells (dict): The row of :meth:`~bigcn.experiments.comparison.ComparisonResult.rows` by model and value.
        failed (dict): How many runs failed, by model and value.
        case (str): The kind of noise.
        metric (str): The metric.
    """

    models: tuple[str, ...]
    values: tuple[float | None, ...]
    cells: dict[tuple[str, float | None], dict[str, Any]]
    failed: dict[tuple[str, float | None], int]
    case: str
    metric: str

    def row(self, model: str) -> list[dict[str, Any] | None]:
        """Returns what is known of a model, in the order of the values."""
        return [self.cells.get((model, value)) for value in self.values]

    def text(self, model: str, value: float | None) -> str:
        """Returns the score of a cell, or what is there instead."""
        cell = self.cells.get((model, value))
        if cell is not None:
            return score(cell)
        return "failed" if self.failed.get((model, value)) else "–"

    def mark(self, model: str, value: float | None) -> str:
        """Returns the mark of the best and of what cannot be told from it."""
        cell = self.cells.get((model, value))
        return "" if cell is None else BEST if cell["best"] else TIE if cell["tie"] else ""

    @property
    def titles(self) -> list[str]:
        """The names of the models for people."""
        return [model_title(model) for model in self.models]

    @property
    def headings(self) -> list[str]:
        """The heading of each column."""
        return ["score" if value is None else number(value) for value in self.values]

    @property
    def hardest(self) -> float | None:
        """The amount of noise that leaves least to learn from."""
        return self.values[0 if self.case == "feature-rate" else -1]

    @property
    def middle(self) -> float | None:
        """An amount of noise between little and much, at which there is something to see."""
        return self.values[len(self.values) // 2]

    @property
    def seeds(self) -> int:
        """The most seeds that any cell has."""
        return max((cell["seeds"] for cell in self.cells.values()), default=0)

    @property
    def axes(self) -> tuple[str, str]:
        """What is measured against what."""
        return amount(self.case), f"{metric_title(self.metric)}, %"

    @property
    def logarithmic(self) -> bool:
        """Whether the values span so much that a linear axis would crowd most of them together."""
        numbers = [value for value in self.values if value is not None]
        return len(numbers) > 2 and numbers[0] > 0 and numbers[-1] / numbers[0] >= 30


def grid_of(result: ComparisonResult) -> Grid:
    """Lays out a comparison.

    Args:
        result (ComparisonResult): What the comparison found.
    """
    comparison = result.comparison
    rows = result.rows()
    # A single seed ties with everything, which is a word below the table and no mark in it.
    several = any(row["seeds"] > 1 for row in rows)
    cells = {(row["model"], row["value"]): row | {"tie": row["tie"] and several} for row in rows}
    failed: dict[tuple[str, float | None], int] = {}
    for spec, _ in result.failures():
        failed[spec.model, spec.value] = failed.get((spec.model, spec.value), 0) + 1
    good = {spec.model for spec, run in result.pairs if run.status == "ok"}
    lost = [spec.model for spec, _ in result.pairs if spec.model not in good]
    found = {value for _, value in [*cells, *failed] if value is not None}
    return Grid(
        models=tuple(dict.fromkeys([*(model for model, _ in cells), *lost])),
        values=tuple(sorted(found)) or (None,),
        cells=cells,
        failed=failed,
        case=comparison.case,
        metric=comparison.metric,
    )
