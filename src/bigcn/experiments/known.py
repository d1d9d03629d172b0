"""What is known of the runs of the experiments, from a store and from tables, and what validation chooses by it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bigcn.experiments.cells import last_day
from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.paper import FINALISTS, Series
from bigcn.experiments.recorded import Record, Validated
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.setting import Setting, make_spec
from bigcn.experiments.specs import METRICS
from bigcn.experiments.store import RunStore


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
        results = self.results(series, value, candidate, self.seeds(final))
        if results is None:
            return self.record.validation(series, value, candidate, final=final, since=since)
        scores = [result.metrics.get(f"val_{METRICS[series.task]}", 0.0) for result in results]
        # As the table of candidates has it, so that equals are equals there as well.
        return Validated(round(float(np.mean(scores)), 6), last_day(results))

    def seeds(self, final: bool) -> tuple[int, ...]:
        """Returns the seeds that finalists run with, or those of all candidates."""
        return self.setting.seeds if final else self.setting.choice_seeds

    def finalists(self, series: Series, contender: Contender, since: str = "") -> list[Candidate] | None:
        """Returns the candidates that do best on validation with the seeds of the choice, the first of equals, in the
        order of the contender; :obj:`None` if some have not run.
        """
        candidates = contender.among(series.task)
        if len(candidates) == 1:
            return list(candidates)
        best = self._best_first(series, candidates, since)
        return None if best is None else [candidates[number] for number in sorted(best[:FINALISTS])]

    def choice(self, series: Series, contender: Contender, since: str = "") -> Candidate | None:
        """Returns the finalist with the best mean validation score over all seeds, the first of equals, or
        :obj:`None` if some candidates have not run. The test score is not looked at.
        """
        finalists = self.finalists(series, contender, since)
        if finalists is None or len(finalists) == 1:
            return finalists[0] if finalists else None
        best = self._best_first(series, finalists, since, final=True)
        return finalists[best[0]] if best else None

    def _best_first(
        self, series: Series, candidates: Sequence[Candidate], since: str, final: bool = False
    ) -> list[int] | None:
        """Returns the numbers of candidates in the order of their validation scores, if all of these are known."""
        found = [self.validation(*series.decided_at, one, final=final, since=since) for one in candidates]
        means = [score.mean for score in found if score is not None]
        return sorted(range(len(means)), key=lambda number: -means[number]) if len(means) == len(found) else None
