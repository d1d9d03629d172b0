"""One number of a table: what a contender reached on one graph under one amount of noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bigcn.datasets import default_protocol
from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.paper import Experiment, Series
from bigcn.experiments.published import published_number
from bigcn.experiments.records import RunResult
from bigcn.experiments.specs import LINK_PROTOCOL, METRICS
from bigcn.experiments.statistics import paired_interval

#: The columns of the results, in order.
COLUMNS = (
    "experiment", "model", "tuning", "dataset", "task", "case", "value", "protocol", "metric", "mean", "std", "seeds",
    "published", "validation", "chosen", "isolated", "low_degree", "epochs", "seconds",
)  # fmt: skip
#: Whose authors' split is Planetoid's.
_PLANETOID = ("citeseer", "pubmed")


@dataclass(frozen=True)
class Cell:
    """What a contender reached, seed by seed.

    Args:
        experiment (Experiment): The experiment.
        series (Series): The graph and the kind of noise.
        contender (Contender): The contender.
        candidate (Candidate): What validation chose for it.
        value (float, optional): The amount of noise.
        seeds (tuple[int, ...]): The seeds.
        results (tuple[RunResult, ...]): A run for each.
    """

    experiment: Experiment
    series: Series
    contender: Contender
    candidate: Candidate
    value: float | None
    seeds: tuple[int, ...]
    results: tuple[RunResult, ...]

    @property
    def metric(self) -> str:
        """The metric of the task."""
        return METRICS[self.series.task]

    def scores(self, metric: str | None = None) -> dict[int, float]:
        """Returns test scores by seed, as fractions.

        Args:
            metric (str, optional): Which. A run without it is left out. (default: the metric of the task, of which a
                run that diverged has nothing: that is what a user would have got)
        """
        pairs = zip(self.seeds, self.results, strict=True)
        if metric is None:
            return {seed: result.metrics.get(self.metric, 0.0) for seed, result in pairs}
        return {seed: result.metrics[metric] for seed, result in pairs if metric in result.metrics}

    @property
    def mean(self) -> float:
        """The mean score in percent."""
        return 100 * float(np.mean(list(self.scores().values())))

    @property
    def std(self) -> float:
        """The standard deviation over seeds in percent."""
        return 100 * float(np.std(list(self.scores().values()), ddof=1)) if len(self.seeds) > 1 else 0.0

    @property
    def published(self) -> float | None:
        """What the paper prints, in percent; its numbers belong to the authors' split."""
        series = self.series
        split = series.protocol in ("", "authors") or (series.protocol == "public" and series.graph in _PLANETOID)
        if not split:
            return None
        return published_number(self.contender.name, series.task, series.graph, series.case, self.value)

    @property
    def gap(self) -> float | None:
        """How far the mean lies above what the paper prints, in points, both to its one decimal."""
        return None if self.published is None else round(round(self.mean, 1) - self.published, 1)

    def row(self) -> dict[str, Any]:
        """Returns the cell as a row of the results; scores are fractions."""
        series, published = self.series, self.published
        row = {
            "experiment": self.experiment.name,
            "model": self.contender.name,
            "tuning": self.contender.tuning,
            "dataset": series.graph,
            "task": series.task,
            "case": series.case,
            "value": self.value,
            "protocol": protocol_of(series),
            "metric": self.metric,
            "mean": self.mean / 100,
            "std": self.std / 100,
            "seeds": len(self.seeds),
            "published": None if published is None else round(published / 100, 6),
            "validation": self._mean_of(f"val_{self.metric}"),
            "chosen": self.candidate.describe(),
            "isolated": self._mean_of("accuracy_isolated"),
            "low_degree": self._mean_of("accuracy_low_degree"),
            "epochs": float(np.mean([result.epochs or 0 for result in self.results])),
            "seconds": float(np.sum([result.seconds for result in self.results])),
        }
        return {column: row[column] for column in COLUMNS}

    def _mean_of(self, metric: str) -> float | None:
        found = list(self.scores(metric).values())
        return float(np.mean(found)) if found else None


@dataclass(frozen=True)
class Difference:
    """How far apart two models are, in points: the mean and its 95 % confidence interval over paired seeds.

    A single seed gives no interval; its ends are infinite then.
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        between = f" ({signed(self.low)} to {signed(self.high)})" if self.high < float("inf") else ""
        return f"{signed(self.mean)}{between}"


def difference(first: Sequence[Cell], second: Sequence[Cell], metric: str | None = None) -> Difference | None:
    """Returns how far the first lies above the second, averaged over cells; :obj:`None` where no seed is shared.

    Args:
        first, second (Sequence[Cell]): The cells, pairwise.
        metric (str, optional): See :meth:`Cell.scores`. (default: the metric of the task)
    """
    ours, theirs = _by_seed(first, metric), _by_seed(second, metric)
    shared = ours.keys() & theirs.keys()
    if not shared:
        return None
    if len(shared) < 2:
        return Difference(100 * float(np.mean([ours[s] - theirs[s] for s in shared])), float("-inf"), float("inf"))
    return Difference(*(100 * end for end in paired_interval(ours, theirs)))


def protocol_of(series: Series) -> str:
    """Returns how the nodes or the links of a series are divided."""
    return LINK_PROTOCOL if series.task == "link" else series.protocol or default_protocol(series.graph)


def signed(points: float) -> str:
    """Writes a difference in points.

    Example:
        >>> signed(-0.84), signed(2.0), signed(-0.01)
        ('−0.8', '+2.0', '±0.0')
    """
    text = f"{points:+.1f}"
    return "±0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def _by_seed(cells: Sequence[Cell], metric: str | None) -> dict[int, float]:
    found = [cell.scores(metric) for cell in cells]
    shared = set.intersection(*(set(scores) for scores in found)) if found else set()
    return {seed: float(np.mean([scores[seed] for scores in found])) for seed in shared}
