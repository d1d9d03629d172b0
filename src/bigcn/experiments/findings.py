"""What was measured, ready to be asked: which cells there are, who leads and by how much."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bigcn.experiments.cells import Cell, Difference, difference
from bigcn.experiments.contenders import PAPER_BASELINES
from bigcn.experiments.paper import EXPERIMENTS, Experiment, Series
from bigcn.experiments.reproduction import Reproduction
from bigcn.nn.registry import title_of


class Rival(NamedTuple):
    """A model as it stands in a table."""

    name: str
    tuning: str

    @property
    def title(self) -> str:
        """The name of the model for people."""
        return title_of(self.name)


PUBLISHED = Rival("bigcn:published", "paper")
OURS = Rival("bigcn", "tuned")
APPNP = Rival("appnp", "tuned")
#: The paper's baselines, at the paper's settings and tuned.
UNTUNED = tuple(Rival(name, "paper") for name in PAPER_BASELINES)
TUNED = tuple(Rival(name, "tuned") for name in PAPER_BASELINES)


class Lead(NamedTuple):
    """How far a model lies above the best of others.

    Args:
        difference (Difference): By how much, over paired seeds.
        over (Cell): The best of the others.
    """

    difference: Difference
    over: Cell


class Findings:
    """The cells that have run, by experiment, series, contender and amount of noise.

    Args:
        work (Reproduction): The experiments.
    """

    def __init__(self, work: Reproduction) -> None:
        self.work = work
        self._cells: dict[tuple[str, Series, str, str, float | None], Cell] = {
            (cell.experiment.name, cell.series, cell.contender.name, cell.contender.tuning, cell.value): cell
            for cell in work.cells()
        }

    def cells(self, experiment: str) -> list[Cell]:
        """Returns all cells of an experiment."""
        return [cell for place, cell in self._cells.items() if place[0] == experiment]

    def cell(self, experiment: str, series: Series, rival: Rival, value: float | None = None) -> Cell | None:
        """Returns one cell, if it has run."""
        return self._cells.get((experiment, series, *rival, value))

    def curve(self, experiment: str, series: Series, rival: Rival) -> list[Cell] | None:
        """Returns the cells of a contender over all amounts of noise, or :obj:`None` if some have not run."""
        found = [self.cell(experiment, series, rival, value) for value in series.values or (None,)]
        cells = [cell for cell in found if cell is not None]
        return cells if len(cells) == len(found) else None

    def above(
        self, experiment: str, series: Series, first: Rival, second: Rival, metric: str | None = None
    ) -> Difference | None:
        """Returns how far one contender lies above another, averaged over all amounts of noise, if both have run."""
        ours, theirs = self.curve(experiment, series, first), self.curve(experiment, series, second)
        return None if ours is None or theirs is None else difference(ours, theirs, metric)

    def lead(
        self, experiment: str, series: Series, value: float | None, model: Rival, rivals: Iterable[Rival]
    ) -> Lead | None:
        """Returns how far a model lies above the best of its rivals, or :obj:`None` if one of them has not run."""
        own = self.cell(experiment, series, model, value)
        others = [self.cell(experiment, series, rival, value) for rival in rivals]
        if own is None or None in others:
            return None
        best = max((cell for cell in others if cell is not None), key=lambda cell: cell.mean)
        found = difference([own], [best])
        return None if found is None else Lead(found, best)

    def leads(self, experiment: str, series: Series, model: Rival, rivals: Sequence[Rival]) -> list[Lead] | None:
        """Returns :meth:`lead` for all amounts of noise, or :obj:`None` if something has not run."""
        found = [self.lead(experiment, series, value, model, rivals) for value in series.values or (None,)]
        leads = [lead for lead in found if lead is not None]
        return leads if len(leads) == len(found) else None

    def absent(self, experiment: Experiment) -> dict[Series, list[str]]:
        """Returns the titles of contenders that have not run in full, by series."""
        found: dict[Series, list[str]] = {}
        for series in experiment.series:
            titles = [
                f"{contender.title}{' (tuned)' if contender.tuning == 'tuned' else ''}"
                for contender in experiment.contenders
                if self.curve(experiment.name, series, Rival(contender.name, contender.tuning)) is None
            ]
            if titles:
                found[series] = titles
        return found


def series_of(experiment: str, graph: str, case: str | None = None, protocol: str = "") -> Series:
    """Returns the series of an experiment on a graph; where it has several, those of a kind of noise."""
    for series in EXPERIMENTS[experiment].series:
        if series.graph == graph and case in (None, series.case) and series.protocol == protocol:
            return series
    raise ValueError(f"{experiment} has no series on {graph}")
