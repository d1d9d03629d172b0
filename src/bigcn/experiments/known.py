"""What is known of the runs of the experiments, from a store and from tables, and what validation chooses by it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bigcn.experiments.cells import Measured, last_day
from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.paper import FINALISTS, IN_REACH, Experiment, Series
from bigcn.experiments.recorded import Record, Validated
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.setting import Setting, make_spec
from bigcn.experiments.specs import METRICS
from bigcn.experiments.store import RunStore

#: How far apart two means may be that are the same: tables have six digits, and a mean may be put together from two.
EQUAL = 2e-6


class KnownRuns:
    """The runs that are known.

    Args:
        store (RunStore): Where runs are kept.
        setting (Setting): How they are run.
        record (Record): What tables hold of earlier runs. It counts where the store has nothing.
    """

    def __init__(self, store: RunStore, setting: Setting, record: Record) -> None:
        self.setting, self.record = setting, record
        #: By key. A run that diverged is known as well, and is not tried again at every turn.
        self.runs: dict[str, RunResult] = {}
        #: The keys of those that were carried out on this kind of device.
        self.here: set[str] = set()
        self._specs: dict[tuple[Series, float | None, int, int], tuple[RunSpec, str, Candidate]] = {}
        for spec, result in store.rows(history=True):
            key = replace(spec, device=setting.device).key
            if key in self.runs and (result.status != "ok" or (key in self.here and spec.device != setting.device)):
                continue
            self.runs[key] = result
            if spec.device == setting.device and result.status == "ok":
                self.here.add(key)

    def remember(self, spec: RunSpec, result: RunResult) -> None:
        """Adds a run that was carried out here."""
        self.runs[spec.key] = result
        self.here.add(spec.key)

    def spec(self, series: Series, value: float | None, candidate: Candidate, seed: int) -> tuple[RunSpec, str]:
        """Returns a run and its key."""
        # Settings cannot be hashed, so candidates are known by their identity, which is theirs while they are kept.
        place = (series, value, id(candidate), seed)
        if place not in self._specs:
            spec = make_spec(self.setting, series, value, candidate, seed)
            self._specs[place] = (spec, spec.key, candidate)
        return self._specs[place][:2]

    def results(
        self, series: Series, value: float | None, candidate: Candidate, seeds: Sequence[int]
    ) -> list[RunResult] | None:
        """Returns the runs of a candidate with some seeds, if all of them are known."""
        results = [self.runs.get(self.spec(series, value, candidate, seed)[1]) for seed in seeds]
        found = [result for result in results if result is not None]
        return found if len(found) == len(results) else None

    def have_run(self, series: Series, candidates: Sequence[Candidate], seeds: Sequence[int]) -> bool:
        """Tells whether candidates that there is a choice of have run with some seeds, whatever tables say."""
        where = series.decided_at
        return len(candidates) == 1 or all(self.results(*where, one, seeds) is not None for one in candidates)

    def measured(
        self, experiment: Experiment, series: Series, contender: Contender, candidate: Candidate, value: float | None
    ) -> Measured | None:
        """Returns what a candidate reached with all seeds, if it is known."""
        results = self.results(series, value, candidate, self.setting.seeds)
        if results is None:
            return self.record.cell(experiment, series, contender, candidate, value)
        return Measured.of(METRICS[series.task], self.setting.seeds, results)

    def has_seeds(
        self,
        experiment: Experiment,
        series: Series,
        contender: Contender,
        candidate: Candidate,
        value: float | None,
        since: str = "",
    ) -> bool:
        """Tells whether the score of every seed is known, in a table by runs since a day."""
        if self.results(series, value, candidate, self.setting.seeds) is not None:
            return True
        measured = self.record.cell(experiment, series, contender, candidate, value)
        # Where a choice is made, the first seeds may have run on an earlier day than the others.
        first = self.record.validation(series, value, candidate)
        return (
            measured is not None
            and bool(measured.by_seed[METRICS[series.task]])
            and min(measured.ran, (first or measured).ran) >= since
        )

    def validation(
        self, series: Series, value: float | None, candidate: Candidate, *, final: bool = False, since: str = ""
    ) -> Validated | None:
        """Returns the mean validation score of a candidate, if it is known.

        Args:
            series, value, candidate: Where, and of what.
            final (bool, optional): Whether it is that over all seeds, rather than over those of the choice.
                (default: :obj:`False`)
            since (str, optional): The day before which what is recorded does not count. (default: all does)
        """
        seeds = self.setting.seeds if final else self.setting.choice_seeds
        if (found := self._validation_here(series, value, candidate, seeds)) is not None:
            return found
        # The first seeds may stand in a table while the others have run here: later than what it has over all seeds.
        first = self.record.validation(series, value, candidate, since=since)
        rest = self._validation_here(series, value, candidate, self.seeds(further=True)) if final else None
        if first is None or rest is None:
            return self.record.validation(series, value, candidate, final=final, since=since)
        counts = [len(self.seeds(further=further)) for further in (False, True)]
        mean = float(np.average([first.mean, rest.mean], weights=counts))
        return Validated(round(mean, 6), max(first.ran, rest.ran))

    def _validation_here(
        self, series: Series, value: float | None, candidate: Candidate, seeds: Sequence[int]
    ) -> Validated | None:
        results = self.results(series, value, candidate, seeds) if seeds else None
        if not results:
            return None
        scores = [result.metrics.get(f"val_{METRICS[series.task]}", 0.0) for result in results]
        # As the table of candidates has it, so that equals are equals there as well.
        return Validated(round(float(np.mean(scores)), 6), last_day(results))

    def seeds(self, *, further: bool) -> tuple[int, ...]:
        """Returns the seeds that all candidates run with, or those that finalists run with beside them."""
        first = self.setting.choice_seeds
        return tuple(seed for seed in self.setting.seeds if seed not in first) if further else first

    def finalists(self, series: Series, contender: Contender, since: str = "") -> list[Candidate] | None:
        """Returns the candidates that come near the best on validation with the first seeds, in the order of the
        contender; :obj:`None` if some have not run.
        """
        candidates = contender.among(series.task)
        if len(candidates) == 1:
            return list(candidates)
        means = self._means(series, candidates, since)
        if means is None:
            return None
        last = max(means) - IN_REACH - EQUAL
        return [candidates[n] for n in sorted(best_first(means)[:FINALISTS]) if means[n] >= last]

    def choice(self, series: Series, contender: Contender, since: str = "") -> Candidate | None:
        """Returns the finalist with the best mean validation score over all seeds, the first of equals, or
        :obj:`None` if some candidates have not run. The test score is not looked at.
        """
        finalists = self.finalists(series, contender, since)
        if finalists is None or len(finalists) == 1:
            return finalists[0] if finalists else None
        means = self._means(series, finalists, since, final=True)
        return None if means is None else finalists[best_first(means)[0]]

    def _means(
        self, series: Series, candidates: Sequence[Candidate], since: str, final: bool = False
    ) -> list[float] | None:
        """Returns the validation scores of candidates, if all of them are known."""
        found = [self.validation(*series.decided_at, one, final=final, since=since) for one in candidates]
        means = [score.mean for score in found if score is not None]
        return means if len(means) == len(found) else None


def best_first(means: Sequence[float]) -> list[int]:
    """Returns the places of scores in their order, equals as they come."""
    left, order = list(range(len(means))), []
    while left:
        best = max(means[number] for number in left)
        order.append(next(number for number in left if means[number] >= best - EQUAL))
        left.remove(order[-1])
    return order
