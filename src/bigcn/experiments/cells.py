"""One number of a table: what a contender reached on one graph under one amount of noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bigcn.datasets import default_protocol
from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.paper import Experiment, Series
from bigcn.experiments.published import published_number
from bigcn.experiments.records import RunResult
from bigcn.experiments.specs import LINK_PROTOCOL, METRICS
from bigcn.experiments.statistics import paired_interval, unpaired_interval

#: The columns of the results, in order.
COLUMNS = (
    "experiment", "model", "tuning", "dataset", "task", "case", "value", "protocol", "metric", "mean", "std", "seeds",
    "published", "validation", "chosen", "isolated", "low_degree", "epochs", "seconds", "scores", "isolated_scores",
    "low_degree_scores", "ran",
)  # fmt: skip
#: Whose authors' split is Planetoid's.
_PLANETOID = ("citeseer", "pubmed")
#: The metrics beside that of the task, by their column.
_FEW_LINKS = {"isolated": "accuracy_isolated", "low_degree": "accuracy_low_degree"}


@dataclass(frozen=True)
class Measured:
    """What the runs of a cell gave, one for each seed; scores are fractions, rounded as tables have them.

    Args:
        mean, std (float): Mean and standard deviation of the metric of the task.
        means (Mapping[str, float]): The means of other metrics.
        by_seed (Mapping[str, Mapping[int, float]]): Scores by metric and seed; empty where they were not kept.
        epochs (float): The mean number of epochs.
        seconds (float): The sum of the times.
        ran (str, optional): The day of the last run, as in 2026-11-18; nothing where it was not kept.
            (default: nothing)
    """

    mean: float
    std: float
    means: Mapping[str, float]
    by_seed: Mapping[str, Mapping[int, float]]
    epochs: float
    seconds: float
    ran: str = ""

    @classmethod
    def of(cls, metric: str, seeds: Sequence[int], results: Sequence[RunResult]) -> Self:
        """Sums up runs.

        Args:
            metric (str): The metric of the task. A run that diverged has nothing of it: what a user would have got.
            seeds (Sequence[int]): The seeds.
            results (Sequence[RunResult]): A run for each.
        """
        pairs = list(zip(seeds, results, strict=True))
        by_seed = {
            name: {seed: _digits(result.metrics[name]) for seed, result in pairs if name in result.metrics}
            for name in (f"val_{metric}", *_FEW_LINKS.values())
        }
        means = {name: _digits(np.mean(list(scores.values()))) for name, scores in by_seed.items() if scores}
        means[f"val_{metric}"] = _digits(sum(by_seed[f"val_{metric}"].values()) / len(pairs))
        own = {seed: _digits(result.metrics.get(metric, 0.0)) for seed, result in pairs}
        scores = list(own.values())
        return cls(
            _digits(np.mean(scores)),
            _digits(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0,
            means,
            {metric: own, **{name: by_seed[name] for name in _FEW_LINKS.values()}},
            _digits(np.mean([result.epochs or 0 for result in results])),
            _digits(np.sum([result.seconds for result in results])),
            last_day(results),
        )

    @classmethod
    def from_row(cls, row: Mapping[str, str], seeds: Sequence[int]) -> Self:
        """Reads what :meth:`Cell.row` gave out of a file.

        Args:
            row (Mapping): Texts by column.
            seeds (Sequence[int]): The seeds.
        """
        columns = {f"val_{row['metric']}": "validation", **{name: column for column, name in _FEW_LINKS.items()}}
        kept = {row["metric"]: "scores", **{name: f"{column}_scores" for column, name in _FEW_LINKS.items()}}
        return cls(
            fraction(row["mean"]),
            fraction(row["std"]),
            {name: fraction(row[column]) for name, column in columns.items() if row[column]},
            {name: _read_scores(row.get(column) or "", seeds) for name, column in kept.items()},
            float(row["epochs"]),
            float(row["seconds"]),
            row.get("ran") or "",
        )


@dataclass(frozen=True)
class Cell:
    """What a contender reached.

    Args:
        experiment (Experiment): The experiment.
        series (Series): The graph and the kind of noise.
        contender (Contender): The contender.
        candidate (Candidate): What validation chose for it.
        value (float, optional): The amount of noise.
        seeds (tuple[int, ...]): The seeds.
        measured (Measured): What its runs gave.
    """

    experiment: Experiment
    series: Series
    contender: Contender
    candidate: Candidate
    value: float | None
    seeds: tuple[int, ...]
    measured: Measured

    @property
    def metric(self) -> str:
        """The metric of the task."""
        return METRICS[self.series.task]

    def scores(self, metric: str | None = None) -> Mapping[int, float]:
        """Returns test scores by seed, as fractions; nothing where they were not kept.

        Args:
            metric (str, optional): Which. (default: the metric of the task)
        """
        return self.measured.by_seed.get(metric or self.metric, {})

    @property
    def mean(self) -> float:
        """The mean score in percent."""
        return 100 * self.measured.mean

    @property
    def std(self) -> float:
        """The standard deviation over seeds in percent."""
        return 100 * self.measured.std

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

    def mean_of(self, metric: str) -> float | None:
        """Returns the mean of another metric as a fraction, if there is one."""
        return self.measured.means.get(metric)

    def row(self) -> dict[str, Any]:
        """Returns the cell as a row of the results; scores are fractions, those of the seeds in order."""
        series, published, measured = self.series, self.published, self.measured
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
            "mean": measured.mean,
            "std": measured.std,
            "seeds": len(self.seeds),
            "published": None if published is None else round(published / 100, 6),
            "validation": self.mean_of(f"val_{self.metric}"),
            "chosen": self.candidate.describe(),
            **{column: self.mean_of(metric) for column, metric in _FEW_LINKS.items()},
            "epochs": measured.epochs,
            "seconds": measured.seconds,
            "scores": write_scores(self.scores(), self.seeds),
            **{
                f"{column}_scores": write_scores(self.scores(metric), self.seeds)
                for column, metric in _FEW_LINKS.items()
            },
            "ran": measured.ran,
        }
        return {column: row[column] for column in COLUMNS}


def last_day(results: Sequence[RunResult]) -> str:
    """Returns the day on which the last of some runs began."""
    return max(result.started for result in results)[:10]


def write_scores(scores: Mapping[int, float], seeds: Sequence[int]) -> str:
    """Writes scores in the order of their seeds, and a dash for a seed without one; nothing if there are none.

    Example:
        >>> write_scores({10: 0.25, 5: 0.827}, (5, 10, 15))
        '0.827 0.25 -'
    """
    return " ".join(f"{scores[seed]:g}" if seed in scores else "-" for seed in seeds) if scores else ""


def _read_scores(text: str, seeds: Sequence[int]) -> dict[int, float]:
    words = text.split()
    if not words:
        return {}
    if len(words) != len(seeds):
        raise ValueError(f"there are {len(words)} scores for {len(seeds)} seeds")
    return {seed: fraction(word) for seed, word in zip(seeds, words, strict=True) if word != "-"}


def fraction(text: str) -> float:
    """Reads a score.

    Args:
        text (str): A number from 0 to 1.
    """
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(f"a score must be from 0 to 1 (got {text!r})")
    return value


def _digits(value: Any) -> float:
    """Rounds a number: more digits are noise, and differ between machines."""
    return round(float(value), 6)


@dataclass(frozen=True)
class Difference:
    """How far apart two models are, in points: the mean and its 95 % confidence interval.

    A single seed gives no interval; its ends are infinite then.

    Args:
        mean, low, high (float): The difference and the ends of its interval.
        paired (bool, optional): Whether seeds are compared one by one; where only means and spreads are known, the
            interval is that of independent runs, which is wider for seeds that share their noise. It is written in
            square brackets. (default: :obj:`True`)
    """

    mean: float
    low: float
    high: float
    paired: bool = True

    def __str__(self) -> str:
        if self.high == float("inf"):
            return signed(self.mean)
        before, after = "()" if self.paired else "[]"
        return f"{signed(self.mean)} {before}{signed(self.low)} to {signed(self.high)}{after}"


def difference(first: Sequence[Cell], second: Sequence[Cell], metric: str | None = None) -> Difference | None:
    """Returns how far the first lies above the second, averaged over cells; :obj:`None` where no seed is shared.

    Args:
        first, second (Sequence[Cell]): The cells, pairwise.
        metric (str, optional): See :meth:`Cell.scores`. (default: the metric of the task)
    """
    ours, theirs = _by_seed(first, metric), _by_seed(second, metric)
    shared = ours.keys() & theirs.keys()
    if not shared:
        return _apart(first, second) if metric is None and not (ours and theirs) else None
    if len(shared) < 2:
        return Difference(100 * float(np.mean([ours[s] - theirs[s] for s in shared])), float("-inf"), float("inf"))
    mean, low, high = (100 * end for end in paired_interval(ours, theirs))
    return Difference(mean, low, high)


def _apart(first: Sequence[Cell], second: Sequence[Cell]) -> Difference | None:
    count = min(len(cell.seeds) for cell in (*first, *second))
    if count < 2:
        return None
    means, stds = (
        [float(np.mean([getattr(cell, name) for cell in cells])) for cells in (first, second)]
        for name in ("mean", "std")
    )
    # The spread of an average over cells is at most the average of their spreads.
    return Difference(*unpaired_interval(means, stds, (count, count)), paired=False)


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
