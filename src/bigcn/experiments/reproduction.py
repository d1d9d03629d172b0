"""Carrying out the experiments of :mod:`bigcn.experiments.paper`: the plan, the runs, the rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from bigcn.experiments.cells import Cell
from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.decisions import Decisions
from bigcn.experiments.execution import Executor, execute
from bigcn.experiments.known import KnownRuns
from bigcn.experiments.paper import FINALISTS, Experiment, Series
from bigcn.experiments.recorded import Record, candidate_row
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.setting import Setting
from bigcn.experiments.store import RunStore


class Reproduction(Decisions):
    """Some of the experiments, and what is known of them.

    Args:
        experiments (Sequence[Experiment]): The experiments.
        store (RunStore): Where runs are kept.
        setting (Setting): How they are run.
        record (Record, optional): What tables hold of earlier runs. It is reported where the store has nothing, unless
            this is a short run; runs are carried out all the same, but for what :meth:`lacking` leaves aside.
            (default: nothing)
    """

    def __init__(
        self, experiments: Sequence[Experiment], store: RunStore, setting: Setting, record: Record | None = None
    ) -> None:
        found = Record() if record is None or setting.is_short else record
        super().__init__(experiments, KnownRuns(store, setting, found))
        self.store = store

    def about(self, experiments: Sequence[Experiment]) -> "Reproduction":
        """Returns what is known about other experiments; both share it."""
        other = object.__new__(Reproduction)
        Decisions.__init__(other, experiments, self.known)
        other.store = self.store
        return other

    def choosing(self) -> list[RunSpec]:
        """Returns the runs that validation chooses from, at one amount of noise of each series; those that run with all
        seeds are left out until it is known which they are.
        """
        return list(self._choosing().values())

    def reporting(self) -> list[RunSpec]:
        """Returns the runs that are reported; those of contenders whose candidate is not chosen yet are left out."""
        return list(self._reporting().values())

    def _choosing(self) -> dict[str, RunSpec]:
        return _by_key(
            self.known.spec(*series.decided_at, candidate, seed)
            for experiment, series, contender in self._contests()
            if not (self._trusting and self._is_settled(experiment, series, contender))
            for candidate, further in _compared(series, contender, self._planned(series, contender))
            if not (self._trusting and self._validation(series, candidate, final=further) is not None)
            for seed in self.known.seeds(further=further)
        )

    def _chosen_from(self) -> Iterator[tuple[Series, Candidate, bool]]:
        """Gives what stands behind choices: all that has run where it is not known yet who is to run with all seeds."""
        for _, series, contender in self._contests():
            finalists = self._finalists(series, contender) or contender.among(series.task)
            for candidate, further in _compared(series, contender, finalists):
                yield series, candidate, further

    def _chosen_from_keys(self) -> set[str]:
        return {
            self.known.spec(*series.decided_at, candidate, seed)[1]
            for series, candidate, further in self._chosen_from()
            for seed in self.known.seeds(further=further)
        }

    def _reporting(
        self, pick: Callable[[Experiment, Series, Contender], Candidate | None] | None = None
    ) -> dict[str, RunSpec]:
        """Returns the runs of what is to be reported, or of what is picked."""
        pick = pick or (self._wanted if self._trusting else self._decided)
        return _by_key(
            self.known.spec(series, value, candidate, seed)
            for experiment, series, contender in self._contests()
            if (candidate := pick(experiment, series, contender)) is not None
            for value in series.values or (None,)
            if not (
                self._trusting and self.known.has_seeds(experiment, series, contender, candidate, value, self._since)
            )
            for seed in self.setting.seeds
        )

    def lacking(self, since: str = "") -> "Reproduction":
        """Returns what neither the store nor the record has with the scores of all seeds, and choices whose candidates
        are known in part; only that is run then.

        Args:
            since (str, optional): A day, as in 2026-11-18: what the record has from before does not count.
                (default: all counts)
        """
        other = self.about(self.experiments)
        other._since = since
        other.experiments = [
            replace(experiment, series=(series,), contenders=(contender,))
            for experiment, series, contender in other._contests()
            if (candidate := other._wanted(experiment, series, contender)) is None
            or not other._is_settled(experiment, series, contender)
            or not all(
                other.known.has_seeds(experiment, series, contender, candidate, v, since)
                for v in series.values or (None,)
            )
        ]
        other._trusting = True
        return other

    def run(
        self,
        on_run: Callable[[RunSpec, RunResult, bool], None] | None = None,
        executor: Executor | None = None,
        together: bool | None = None,
        max_memory: int | None = None,
    ) -> None:
        """Carries out what is missing: first what validation chooses from, beside what needs no choice, then what it
        chooses in the end from, then the rest of what is reported.
        """
        known = self.known
        # Which candidates run with all seeds is known after the first turn, what they are beaten by after the second.
        for stage in (self._first, self._first, self._reporting):
            missing = [spec for key, spec in _near_each_other(stage()) if key not in known.runs]

            def remember(spec: RunSpec, result: RunResult, stored: bool) -> None:
                known.remember(spec, result)
                if on_run is not None:
                    on_run(spec, result, stored)

            execute(missing, self.store, on_run=remember, executor=executor, together=together, max_memory=max_memory)

    def _first(self) -> dict[str, RunSpec]:
        return {**self._choosing(), **self._reporting(self._decided)}

    def missing(self) -> tuple[int, int]:
        """Returns about how many runs are still to be done, and how many there are in all.

        Where validation has not chosen yet, the runs of the candidate to come are counted too, and as many finalists as
        there may be beside those that are known; where it has, and others have come since, only these are. See
        :meth:`is_decided`.
        """
        specs = {*self._choosing(), *self._reporting()}
        all_seeds = len(self.setting.seeds)
        undecided = sum(
            len(series.values or (None,)) * all_seeds - all_seeds * (series.decided_at[0] == series)
            for series, contender in {(s, c.name, c.tuning): (s, c) for _, s, c in self._waiting()}.values()
        )
        finals: dict[object, int] = {}
        for experiment, series, contender in self._contests():
            place = (series.decided_at, contender.name, contender.tuning)
            finals[place] = max(finals.get(place, 0), self._finals(experiment, series, contender))
        undecided += sum(finals.values())
        return sum(key not in self.known.runs for key in specs) + undecided, len(specs) + undecided

    def is_decided(self) -> bool:
        """Tells whether all is known that validation chooses from, so that :meth:`missing` is exact."""
        if not self._trusting:
            return all(self._decided(*contest) is not None for contest in self._contests())
        # Runs of what is reported that are done again may change what validation chooses.
        to_do = self._reporting().keys() - self.known.runs.keys()
        return all(self._is_settled(*contest) for contest in self._contests()) and not to_do & self._chosen_from_keys()

    def _finals(self, experiment: Experiment, series: Series, contender: Contender) -> int:
        """Returns how many runs with the other seeds there will be before anything is chosen, where it is not known of
        which candidates.
        """
        if (self._trusting and self._is_settled(experiment, series, contender)) or self._planned(series, contender):
            return 0
        finalists = min(FINALISTS, len(contender.among(series.task)))
        if self._trusting:
            where, since = series.decided_at, self._since
            known = (
                self.record.validation(*where, one, final=True, since=since) for one in contender.among(series.task)
            )
            finalists = max(0, finalists - sum(final is not None for final in known))
        return finalists * len(self.known.seeds(further=True))

    def _waiting(self) -> Iterator[tuple[Experiment, Series, Contender]]:
        """Gives what validation has not chosen for yet."""
        pick = self._wanted if self._trusting else self._decided
        return (contest for contest in self._contests() if pick(*contest) is None)

    def estimate(self, at_once: int = 1) -> float | None:
        """Returns about how many seconds the missing runs will take, from those of this device, if there are any.

        Args:
            at_once (int, optional): How many processes carry them out. (default: :obj:`1`)
        """
        known = self.known
        times = [known.runs[key].seconds for key in known.here if known.runs[key].status == "ok"]
        return self.missing()[0] * float(np.mean(times)) / at_once if times else None

    def cells(self) -> Iterator[Cell]:
        """Gives a cell for every contender, graph and amount of noise that has run with all seeds."""
        for experiment, series, contender in self._contests():
            candidate = self._shown(experiment, series, contender)
            if candidate is None:
                continue
            for value in series.values or (None,):
                measured = self.known.measured(experiment, series, contender, candidate, value)
                if measured is not None:
                    yield Cell(experiment, series, contender, candidate, value, self.setting.seeds, measured)

    def candidates(self) -> list[dict[str, Any]]:
        """Returns what validation chose from: the mean score of every candidate wherever a choice is made."""
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for _, series, contender in self._contests():
            where, candidates = series.decided_at, contender.among(series.task)
            for candidate in candidates if len(candidates) > 1 else ():
                if (first := self._validation(series, candidate)) is not None:
                    last = self._validation(series, candidate, final=True)
                    rows[*where, contender.name, id(candidate)] = candidate_row(
                        contender, *where, candidate, first, last
                    )
        return list(rows.values())

    def rows(self) -> list[dict[str, Any]]:
        """Returns the cells as rows of the results."""
        return [cell.row() for cell in self.cells()]

    def used(self) -> dict[str, RunResult]:
        """Returns the runs that stand behind the experiments, those that validation chose from among them."""
        keys = {*self._chosen_from_keys(), *self._reporting(self._wanted), *self._reporting(self._shown)}
        return {key: self.known.runs[key] for key in sorted(keys) if key in self.known.runs}

    def starts(self) -> set[str]:
        """Returns when each run of the store began."""
        return {result.started for result in self.known.runs.values()}

    def recorded_runs(self) -> Counter[str]:
        """Returns how many runs that the record alone has are behind what is reported, by the day of the last of those
        that were written down together; nothing stands for days that were not kept.
        """
        days = {
            self.known.spec(cell.series, cell.value, cell.candidate, seed)[1]: cell.measured.ran
            for cell in self.cells()
            for seed in cell.seeds
        }
        for series, candidate, further in self._chosen_from():
            if (found := self._validation(series, candidate, final=further)) is not None:
                for seed in self.known.seeds(further=further):
                    days.setdefault(self.known.spec(*series.decided_at, candidate, seed)[1], found.ran)
        return Counter(day for key, day in days.items() if key not in self.known.runs)


def _compared(series: Series, contender: Contender, finalists: Sequence[Candidate]) -> Iterator[tuple[Candidate, bool]]:
    """Gives what validation compares: all candidates with the first seeds, and finalists with the others."""
    candidates = contender.among(series.task)
    if len(candidates) > 1:
        yield from product(candidates, (False,))
        yield from product(finalists, (True,))


def _by_key(specs: Iterator[tuple[RunSpec, str]]) -> dict[str, RunSpec]:
    return {key: spec for spec, key in specs}


def _near_each_other(specs: dict[str, RunSpec]) -> list[tuple[str, RunSpec]]:
    """Sorts runs so that those on the same graph follow each other; the order of graphs stays."""
    graphs: dict[tuple[str, str], int] = {}
    for spec in specs.values():
        graphs.setdefault((spec.dataset, spec.task), len(graphs))
    return sorted(specs.items(), key=lambda item: graphs[item[1].dataset, item[1].task])
