"""One honest comparison: models under a kind of noise, on one graph, over seeds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from bigcn.datasets import default_protocol, get_spec
from bigcn.experiments.execution import Executor, execute
from bigcn.experiments.records import RunResult, RunSpec, summarise
from bigcn.experiments.specs import LINK_PROTOCOL, METRICS, make_run
from bigcn.experiments.statistics import is_tie
from bigcn.experiments.store import RunStore
from bigcn.nn.registry import get_model
from bigcn.noise import CASES, make_noise

TaskName = Literal["node", "link"]
Pair = tuple[RunSpec, RunResult]
#: What a case is called in a sentence.
PHRASES: dict[str, str] = {
    "clean": "on clean data",
    "noise-level": "with Gaussian noise of standard deviation {} on all features",
    "noise-rate": "with Gaussian noise on a share of {} of the nodes",
    "column-noise": "with Gaussian noise on a share of {} of the feature columns",
    "structure-mistakes": "with a share of {} of all node pairs flipped",
    "feature-rate": "with a share of {} of the feature columns kept",
}
#: Amounts of noise to name to who gave none, where the usual ones are too much.
EXAMPLES: dict[str, str] = {"structure-mistakes": "0.001,0.01"}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is compared.

    Args:
        dataset (str): The name of a graph in :mod:`bigcn.datasets`.
        models (tuple[str, ...]): Names of models, see :func:`bigcn.nn.registry.get_model`.
        task (str, optional): :obj:`"node"` or :obj:`"link"`. (default: :obj:`"node"`)
        case (str, optional): :obj:`"clean"` or a case of :mod:`bigcn.noise`. (default: :obj:`"clean"`)
        values (tuple[float, ...], optional): The amounts of noise; none for clean data. (default: :obj:`()`)
        seeds (tuple[int, ...], optional): One run each; the seed decides the noise, a random split, the negatives, the
            initial weights and the dropout, the same for every model. (default: :obj:`(5, 10, 15)`)
        protocol (str, optional): The split of the nodes; link prediction has its own. (default: the graph's)
        device (str, optional): :obj:`"cpu"` or :obj:`"cuda"`. (default: :obj:`"cpu"`)
        training (dict, optional): Changes to how every model is trained, see :class:`~bigcn.training.TrainConfig`.
        negatives (str, optional): Of link prediction, :obj:`"fresh"` or :obj:`"fixed"`. (default: :obj:`"fresh"`)
    """

    dataset: str
    models: tuple[str, ...]
    task: TaskName = "node"
    case: str = "clean"
    values: tuple[float, ...] = ()
    seeds: tuple[int, ...] = (5, 10, 15)
    protocol: str = ""
    device: str = "cpu"
    training: dict[str, Any] = field(default_factory=dict)
    negatives: Literal["fresh", "fixed"] = "fresh"

    def __post_init__(self) -> None:
        get_spec(self.dataset)
        if self.task not in METRICS:
            raise ValueError(f"'task' must be 'node' or 'link' (got {self.task!r})")
        if self.case != "clean" and self.case not in CASES:
            raise ValueError(f"'case' must be one of clean, {', '.join(CASES)} (got {self.case!r})")
        if self.task == "link" and self.case == "structure-mistakes":
            raise ValueError("'case' must not be 'structure-mistakes' for links: the mistakes would count as links")
        if (self.case == "clean") != (not self.values):
            amounts = EXAMPLES.get(self.case, "0.2,0.5")
            asked = "no 'values'" if self.case == "clean" else f"'values', the amounts of noise ('--values {amounts}')"
            raise ValueError(f"the case {self.case!r} takes {asked}")
        if self.negatives not in ("fresh", "fixed"):
            raise ValueError(f"'negatives' must be 'fresh' or 'fixed' (got {self.negatives!r})")
        for name in ("models", "values", "seeds"):
            listed = getattr(self, name)
            if len(set(listed)) < len(listed) or (not listed and name != "values"):
                raise ValueError(f"'{name}' must be a list without repetition (got {', '.join(map(str, listed))})")
        for model in self.models:
            get_model(model)
        for value in self.values:
            try:
                make_noise(self.case, value, seed=0)
            except ValueError as error:
                raise ValueError(f"'values' ('--values') do not fit the case {self.case!r}: {error}") from None
        protocol = LINK_PROTOCOL if self.task == "link" else self.protocol or default_protocol(self.dataset)
        if self.task == "link" and self.protocol not in ("", protocol):
            raise ValueError(f"'protocol' of link prediction is {protocol} (got {self.protocol!r})")
        object.__setattr__(self, "protocol", protocol)

    @property
    def metric(self) -> str:
        """The metric that the models are judged by."""
        return METRICS[self.task]

    @property
    def title(self) -> str:
        """The comparison in a few words."""
        task = "node classification" if self.task == "node" else "link prediction"
        return f"{get_spec(self.dataset).title}, {task}, {self.case.replace('-', ' ')}"

    def specs(self) -> list[RunSpec]:
        """Returns every run that the comparison consists of; runs on the same noisy graph stand together."""
        return [
            self._spec(model, value, seed)
            for value in self.values or (None,)
            for seed in self.seeds
            for model in self.models
        ]

    def _spec(self, model: str, value: float | None, seed: int) -> RunSpec:
        return make_run(
            model,
            task=self.task,
            dataset=self.dataset,
            protocol=self.protocol,
            case=self.case,
            value=value,
            seed=seed,
            device=self.device,
            training=self.training,
            negatives=self.negatives,
        )


@dataclass(frozen=True)
class ComparisonResult:
    """What a comparison found.

    Args:
        comparison (Comparison): What was compared.
        pairs (tuple): Each run with its result.
    """

    comparison: Comparison
    pairs: tuple[Pair, ...]

    def scores(self, model: str, value: float | None) -> dict[int, float]:
        """Returns the score of a model at an amount of noise, by seed."""
        return {
            spec.seed: result.metrics[self.comparison.metric]
            for spec, result in self.pairs
            if spec.model == model and spec.value == value and result.status == "ok"
        }

    def rows(self) -> list[dict[str, Any]]:
        """Returns mean and standard deviation of every model and amount of noise, with the best and its ties."""
        rows = summarise([pair for pair in self.pairs if pair[1].status == "ok"], self.comparison.metric)
        for row in rows:
            rivals = [other for other in rows if other["value"] == row["value"]]
            best = max(rivals, key=lambda other: other["mean"])
            row["best"] = same_score(row["mean"], best["mean"])
            row["tie"] = not row["best"] and is_tie(
                self.scores(best["model"], row["value"]), self.scores(row["model"], row["value"])
            )
        return rows

    def failures(self) -> list[Pair]:
        """Returns the runs that failed."""
        return [pair for pair in self.pairs if pair[1].status != "ok"]

    def verdict(self) -> str:
        """Says in a sentence who won where it was hardest."""
        rows = self.rows()
        if not rows:
            return "No run succeeded."
        values = self.comparison.values or (None,)
        # Fewer columns kept is harder; of everything else, more is.
        value = min(values) if self.comparison.case == "feature-rate" else max(values)  # type: ignore[type-var]
        last = sorted((row for row in rows if row["value"] == value), key=lambda row: -row["mean"])
        best, winners = last[0], [get_model(row["model"]).title for row in last if row["best"]]
        phrase = PHRASES.get(self.comparison.case, f"with {self.comparison.case} {{}}").format(value)
        score = "accuracy" if self.comparison.task == "node" else "ROC-AUC"
        sentence = (
            f"On {get_spec(self.comparison.dataset).title} {phrase}, {' and '.join(winners)} "
            f"{'is' if len(winners) == 1 else 'are'} best with {100 * best['mean']:.1f} % {score}"
        )
        ties = [get_model(row["model"]).title for row in last if row["tie"]]
        beaten = [row for row in last if not row["best"] and not row["tie"]]
        if ties:
            seeds = f"{best['seeds']} seed{'s' if best['seeds'] > 1 else ''}"
            them = "it" if len(winners) == 1 else "them"
            sentence += f", though {', '.join(ties)} cannot be told from {them} over {seeds}"
        if beaten:
            gap = 100 * (best["mean"] - beaten[0]["mean"])
            sentence += f"; the next, {get_model(beaten[0]['model']).title}, is {gap:.1f} points behind"
        return sentence + "."


def same_score(first: float, second: float) -> bool:
    """Tells whether two scores are the same but for rounding.

    Example:
        >>> same_score(0.1 + 0.2, 0.3), same_score(0.9, 0.8999)
        (True, False)
    """
    return round(first - second, 12) == 0


def run_comparison(
    comparison: Comparison,
    store: RunStore,
    force: bool = False,
    on_run: Callable[[RunSpec, RunResult, bool], None] | None = None,
    executor: Executor | None = None,
    together: bool | None = None,
) -> ComparisonResult:
    """Runs what is not in the store yet, stores each run as it ends, and answers from the store.

    Args:
        comparison (Comparison): What to compare.
        store (RunStore): Where runs are kept.
        force (bool, optional): If set to :obj:`True`, repeats runs that are stored. (default: :obj:`False`)
        on_run (Callable, optional): Called with each run, its result and whether it came from the store.
        executor (Executor, optional): Who carries out the runs. (default: this process)
        together (bool, optional): Whether runs that can be are trained as populations. (default: on a GPU)
    """
    specs = comparison.specs()
    results = execute(specs, store, force, on_run, executor, together)
    return ComparisonResult(comparison, tuple(zip(specs, results, strict=True)))
