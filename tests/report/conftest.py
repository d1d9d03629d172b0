"""Comparisons and experiments that were never run: real specs with made-up results."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bigcn.experiments.comparison import Comparison, ComparisonResult
from bigcn.experiments.paper import EXPERIMENTS, SEEDS
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting

MODELS = ("bigcn:exact+spectral+rank=16", "bigcn:published", "gcn", "mlp")
LEVELS = (0.1, 0.5, 0.9)
NASTY = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>{{7*7}}"
MakeResult = Callable[..., ComparisonResult]


def made_up(spec: RunSpec, place: int, metric: str, failed: bool = False) -> RunResult:
    """Every model loses with noise, later ones more; seeds differ, but not for all models in the same way."""
    common = {"seconds": 0.5 + place, "started": "2026-03-01T12:00:00+00:00", "host": {"cpu": "some CPU"}}
    if failed:
        return RunResult(metrics={}, status="failed", error="the loss became NaN", **common)
    wobble = 0.002 * ((spec.seed * (place + 2)) % 7)
    score = 0.95 - 0.02 * place - (0.05 + 0.2 * place) * (spec.value or 0.0) + wobble
    lonely = {"accuracy_low_degree": score / 2} | ({"accuracy_isolated": score / 4} if spec.seed != 5 else {})
    return RunResult(metrics={metric: score} | (lonely if spec.task == "node" else {}), epochs=100, **common)


@pytest.fixture(scope="session")
def make_result() -> MakeResult:
    """Makes a result; `failing` names pairs of model and value all of whose runs failed."""

    def make(failing: tuple[tuple[str, float | None], ...] = (), **options: object) -> ComparisonResult:
        settings = {"dataset": "digits", "models": MODELS, "case": "noise-level", "values": LEVELS} | options
        comparison = Comparison(**settings)  # type: ignore[arg-type]
        pairs = []
        for spec in comparison.specs():
            place = comparison.models.index(spec.model)
            failed = (spec.model, spec.value) in failing
            pairs.append((spec, made_up(spec, place, comparison.metric, failed)))
        return ComparisonResult(comparison, tuple(pairs))

    return make


@pytest.fixture(scope="session")
def result(make_result: MakeResult) -> ComparisonResult:
    return make_result()


@dataclass(frozen=True)
class ForeignComparison:
    """What a comparison of a graph and a model that no registry knows would look like."""

    dataset: str
    models: tuple[str, ...]
    values: tuple[float, ...]
    case: str = "noise-level"
    task: str = "node"
    protocol: str = NASTY
    metric: str = "accuracy"
    title: str = NASTY


class ForeignResult(ComparisonResult):
    def verdict(self) -> str:
        return f"{NASTY} is best."


@pytest.fixture(scope="session")
def nasty(make_result: MakeResult) -> ComparisonResult:
    """A comparison whose every name tries to break out of the page."""
    pairs = []
    for spec, run in make_result(models=("bigcn", "gcn"), values=(0.1, 0.9)).pairs:
        settings = dict(spec.settings) | {NASTY: NASTY}
        foreign = replace(
            spec,
            dataset=NASTY,
            dataset_fingerprint=NASTY,
            protocol=NASTY,
            model=f"{spec.model}:{NASTY}",
            settings=settings,
        )
        if spec.seed == 15:
            run = replace(run, metrics={}, status="failed", error=NASTY)
        pairs.append((foreign, replace(run, versions={NASTY: NASTY}, host={"cpu": NASTY})))
    models = tuple(dict.fromkeys(spec.model for spec, _ in pairs))
    return ForeignResult(ForeignComparison(NASTY, models, (0.1, 0.9)), tuple(pairs))  # type: ignore[arg-type]


@pytest.fixture
def folder_is_tidy(tmp_path: Path) -> Callable[[], None]:
    """Checks that no draft was left behind."""

    def check() -> None:
        assert not [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"]

    return check


class Nothing:
    """A store without runs."""

    def rows(self, **_):
        return []


def falling(spec: RunSpec) -> RunResult:
    """Falls with noise; models and seeds differ."""
    place = sum(map(ord, spec.model)) % 17
    score = 0.9 - 0.2 * (spec.value or 0.0) - 0.01 * place + 0.001 * spec.seed
    few = {"accuracy_low_degree": score / 2, "accuracy_isolated": score / 3}
    metrics = {"accuracy": score, **few} if spec.task == "node" else {"roc_auc": score}
    options = {"versions": {"torch_geometric": "1|2"}, "host": {"gpu": "Some GPU"}, "started": "2026-03-01T12:00:00Z"}
    return RunResult(metrics=metrics, seconds=2.0, epochs=3, **options)


@pytest.fixture(scope="session")
def planned() -> Reproduction:
    """All experiments carried out with made-up results, once."""
    work = Reproduction(list(EXPERIMENTS.values()), Nothing(), Setting("cpu", SEEDS[:2]))
    for stage in ("choosing", "choosing", "reporting"):
        for spec in getattr(work, stage)():
            work.known.runs.setdefault(spec.key, falling(spec))
    return work


@pytest.fixture
def work(planned: Reproduction) -> Reproduction:
    """All experiments; what a test forgets, it forgets alone."""
    found = planned.about(planned.experiments)
    found.known = copy(found.known)
    found.known.runs = dict(found.known.runs)
    return found
