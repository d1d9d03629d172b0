"""What validation decides in some experiments, by what is known of their runs and by what tables say."""

from collections.abc import Iterator, Sequence

from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.known import KnownRuns
from bigcn.experiments.paper import Experiment, Series
from bigcn.experiments.recorded import Validated


class Decisions:
    """Who is chosen in some experiments, and who is reported.

    Args:
        experiments (Sequence[Experiment]): The experiments.
        known (KnownRuns): What is known of the runs.
    """

    def __init__(self, experiments: Sequence[Experiment], known: KnownRuns) -> None:
        self.experiments, self.known = list(experiments), known
        self.setting, self.record = known.setting, known.record
        #: Whether only what neither the store nor the record has is to be run, and the day before which the record does
        #: not count for that.
        self._trusting, self._since = False, ""

    def choice(self, series: Series, contender: Contender) -> Candidate | None:
        """Returns the candidate that validation chooses, or :obj:`None` if some have not run yet, see
        :meth:`KnownRuns.choice`.
        """
        return self.known.choice(series, contender, self._since)

    def _finalists(self, series: Series, contender: Contender) -> list[Candidate] | None:
        return self.known.finalists(series, contender, self._since)

    def _planned(self, series: Series, contender: Contender) -> list[Candidate]:
        """Returns who is to run with all seeds, so far as it is known; by runs alone, where tables are not trusted."""
        here = self._trusting or self.known.have_run(series, contender.among(series.task), self.setting.choice_seeds)
        return (self._finalists(series, contender) if here else None) or []

    def _validation(self, series: Series, candidate: Candidate, *, final: bool = False) -> Validated | None:
        return self.known.validation(*series.decided_at, candidate, final=final, since=self._since)

    def chosen_before(self) -> list[tuple[Series, Contender]]:
        """Returns where what is reported was chosen from other candidates than those of today: some of these have not
        run, or the one that validation chooses has not in all its places.
        """
        return [
            (series, contender)
            for experiment, series, contender in self._contests()
            if self.record.chosen(experiment, series, contender) is not None
            and not (
                self._is_settled(experiment, series, contender)
                and self._shown(experiment, series, contender) is self._wanted(experiment, series, contender)
            )
        ]

    def chosen_from_unknown(self) -> list[tuple[Series, Contender]]:
        """Returns where what is reported was chosen from candidates of which no table has anything."""
        return [
            (series, contender)
            for experiment, series, contender in self._contests()
            if len(contender.among(series.task)) > 1
            and self.record.chosen(experiment, series, contender) is not None
            and all(self._validation(series, one) is None for one in contender.among(series.task))
        ]

    def _is_settled(self, experiment: Experiment, series: Series, contender: Contender) -> bool:
        """Tells whether it is known what validation chooses: from all candidates, or so long as the record has none of
        them, from the record. Where it has some, others have come since.
        """
        candidates, where = contender.among(series.task), series.decided_at
        known = (self.record.validation(*where, candidate) is not None for candidate in candidates)
        if self._since or any(known):
            return self.choice(series, contender) is not None
        return self._wanted(experiment, series, contender) is not None

    def _decided(self, experiment: Experiment, series: Series, contender: Contender) -> Candidate | None:
        """Returns what is to be reported where no candidate has to run first."""
        if self._trusting and self._is_settled(experiment, series, contender):
            return self._wanted(experiment, series, contender)
        planned = self._planned(series, contender)
        # Where tables are not trusted, finals of the record must not choose before those that are to be run.
        if self._trusting or len(planned) == 1 or self.known.have_run(series, planned, self.setting.seeds):
            return self.choice(series, contender) if planned else None
        return None

    def _wanted(self, experiment: Experiment, series: Series, contender: Contender) -> Candidate | None:
        """Returns what validation chooses, or had chosen where nothing else is known and old choices count."""
        chosen = self.choice(series, contender)
        return chosen if chosen or self._since else self.record.chosen(experiment, series, contender)

    def _shown(self, experiment: Experiment, series: Series, contender: Contender) -> Candidate | None:
        """Returns what is reported: what validation chooses, and until that has run everywhere, what is recorded."""
        wanted = self._wanted(experiment, series, contender)
        before = self.record.chosen(experiment, series, contender)
        if wanted is None or before is None or wanted is before:
            return wanted
        places = ((experiment, series, contender, wanted, value) for value in series.values or (None,))
        return before if any(self.known.measured(*place) is None for place in places) else wanted

    def _contests(self) -> Iterator[tuple[Experiment, Series, Contender]]:
        for experiment in self.experiments:
            for series in experiment.series:
                for contender in experiment.contenders:
                    yield experiment, series, contender
