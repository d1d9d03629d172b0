"""What the tables of the results hold of earlier runs, so that a store that is gone is no loss."""

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from bigcn.experiments.cells import COLUMNS, Cell, Measured, fraction, protocol_of
from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.paper import EXPERIMENTS, SEEDS, Experiment, Series

#: The table of what validation chose from, and its columns.
CANDIDATES = "candidates.csv"
CANDIDATE_COLUMNS = (
    "model", "dataset", "task", "case", "value", "protocol", "candidate", "validation", "ran", "final", "final_ran",
)  # fmt: skip
#: A column of tables whose runs had a cap on their epochs.
CAP = "max_epochs"
#: What the runs took, by the store that they were in.
COSTS = "costs.json"

_Place = tuple[str, ...]


class Validated(NamedTuple):
    """A mean validation score of a candidate, and the day of the last run behind it; nothing where it was not kept."""

    mean: float
    ran: str


@dataclass(frozen=True)
class Record:
    """The tables of earlier runs.

    Args:
        cells (Mapping): What was measured and what had been chosen, by place.
        validated (Mapping): The mean validation score of a candidate where a choice was made, over the seeds of the
            choice, by place.
        finals (Mapping): The same over all seeds, of those that did best.
        costs (list): What earlier runs took, see :mod:`bigcn.report.results_cost`.
    """

    cells: Mapping[_Place, tuple[Measured, str]] = field(default_factory=dict)
    validated: Mapping[_Place, Validated] = field(default_factory=dict)
    finals: Mapping[_Place, Validated] = field(default_factory=dict)
    costs: list[dict[str, Any]] = field(default_factory=list)

    def cell(
        self, experiment: Experiment, series: Series, contender: Contender, candidate: Candidate, value: float | None
    ) -> Measured | None:
        """Returns what a candidate reached, if it is the one that had been chosen."""
        measured, chosen = self.cells.get(_cell_place(experiment, series, contender, value), (None, ""))
        return measured if chosen == candidate.describe() else None

    def chosen(self, experiment: Experiment, series: Series, contender: Contender) -> Candidate | None:
        """Returns what had been chosen for a contender, if it is still among its candidates."""
        places = (_cell_place(experiment, series, contender, value) for value in series.values or (None,))
        words = {self.cells[place][1] for place in places if place in self.cells}
        found = [candidate for candidate in contender.among(series.task) if candidate.describe() in words]
        return found[0] if len(found) == len(words) == 1 else None

    def left_out(self, cells: Iterable[Cell]) -> int:
        """Returns how many of its rows have no place among some cells: their model or its candidate is gone."""
        known = {_cell_place(cell.experiment, cell.series, cell.contender, cell.value) for cell in cells}
        return len(self.cells.keys() - known)

    def validation(
        self, series: Series, value: float | None, candidate: Candidate, *, final: bool = False, since: str = ""
    ) -> Validated | None:
        """Returns the mean validation score of a candidate.

        Args:
            series, value, candidate: Where, and of what.
            final (bool, optional): Whether it is that over all seeds. (default: :obj:`False`)
            since (str, optional): The day before which runs do not count. (default: all do)
        """
        place = (*_where(series, value), candidate.describe())
        first, found = self.validated.get(place), (self.finals if final else self.validated).get(place)
        # The first seeds of a final may have run on an earlier day than the others.
        return found if found is not None and min(found.ran, (first or found).ran) >= since else None


def read_record(folder: Path) -> Record:
    """Reads what is in a folder of results; short runs count for nothing.

    Args:
        folder (Path): The folder, which need not exist.
    """
    cells: dict[_Place, tuple[Measured, str]] = {}
    finals: dict[_Place, Validated] = {}
    for name in EXPERIMENTS:
        with _readable(folder / f"{name}.csv") as path:
            for row in _rows(path):
                if row["seeds"] == str(len(SEEDS)) and not row.get(CAP):
                    place = (name, *_place(row), row["model"], row["tuning"])
                    cells[place] = Measured.from_row(row, SEEDS), row["chosen"]
                    if row["validation"]:  # what is reported has run with all seeds
                        finals[*_place(row), row["chosen"]] = _validated(row)
    with _readable(folder / CANDIDATES) as path:
        rows = [((*_place(row), row["candidate"]), row) for row in _rows(path)]
        validated = {place: _validated(row) for place, row in rows}
        finals |= {place: _validated(row, "final", "final_ran") for place, row in rows if row.get("final")}
    with _readable(folder / COSTS) as path:
        costs = json.loads(path.read_text("utf-8")) if path.exists() else []
        _check_costs(costs)
    return Record(cells, validated, finals, costs)


def candidate_row(
    contender: Contender,
    series: Series,
    value: float | None,
    candidate: Candidate,
    validated: Validated,
    final: Validated | None,
) -> dict[str, Any]:
    """Returns a line of the table of what validation chose from."""
    where = (contender.name, series.graph, series.task, series.case, value, protocol_of(series), candidate.describe())
    return dict(zip(CANDIDATE_COLUMNS, (*where, *validated, *(final or (None, ""))), strict=True))


def _check_costs(costs: Any) -> None:
    kinds = {"first": str, "last": str, "hosts": list, "versions": list, "experiments": dict, "all": dict}
    if not isinstance(costs, list) or not all(
        isinstance(store, dict) and all(isinstance(store.get(name), kind) for name, kind in kinds.items())
        for store in costs
    ):
        raise ValueError("it must be a list of what stores took")
    for store in costs:
        if not all(isinstance(text, str) for text in (*store["hosts"], *store["versions"])):
            raise ValueError("machines and versions must be texts")
        standing = store.get("standing", {"all": 0, "experiments": {}})
        if not isinstance(standing, dict) or not isinstance(standing.get("experiments"), dict):
            raise ValueError("what stands of a store must be numbers by experiment")
        counts = [store["all"], *store["experiments"].values()]
        if not all(isinstance(count, dict) and count.get("runs") for count in counts):
            raise ValueError("what a store took must have a number of runs")
        numbers = [*(value for count in counts for value in count.values()), standing.get("all")]
        if not all(_is_amount(value) for value in (*numbers, *standing["experiments"].values())):
            raise ValueError("what a store took must be numbers")


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


@contextmanager
def _readable(path: Path) -> Iterator[Path]:
    try:
        yield path
    except KeyError as error:
        raise ValueError(f"{path} is not a table of results: it has no column {error}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as results: {error}") from None


def _rows(path: Path) -> list[dict[str, str]]:
    """Reads a table, which is written again from what was read: what is not understood would be lost."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    if not text.endswith("\n"):
        raise ValueError("its last line does not end; was the file cut off?" if text else "it is empty")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows = list(reader)
    if strange := set(reader.fieldnames or ()) - {*COLUMNS, *CANDIDATE_COLUMNS, CAP}:
        raise ValueError(f"it has a column {min(strange)!r}, which results do not have")
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            raise ValueError(f"row {number} has more or fewer fields than there are columns; was the file cut off?")
        for day in filter(None, (row.get("ran"), row.get("final_ran"))):
            if not is_day(day):
                raise ValueError(f"a day must be like 2026-11-18 (got {day!r})")
    return rows


def is_day(text: str) -> bool:
    """Tells whether a text is a day as tables have it; days are compared as texts.

    Example:
        >>> is_day("2026-11-18"), is_day("20261118"), is_day("2026-11-31")
        (True, False, False)
    """
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _validated(row: Mapping[str, str], mean: str = "validation", ran: str = "ran") -> Validated:
    return Validated(fraction(row[mean]), row.get(ran) or "")


def _place(row: Mapping[str, str]) -> _Place:
    return row["task"], row["dataset"], row["case"], row["protocol"], _amount(row["value"])


def _cell_place(experiment: Experiment, series: Series, contender: Contender, value: float | None) -> _Place:
    return (experiment.name, *_where(series, value), contender.name, contender.tuning)


def _where(series: Series, value: float | None) -> _Place:
    return series.task, series.graph, series.case, protocol_of(series), _amount(value)


def _amount(value: float | str | None) -> str:
    return "" if value in (None, "") else f"{float(value):g}"
