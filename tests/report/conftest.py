"""Comparisons that were never run: real specs with made-up results."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bigcn.experiments.comparison import Comparison, ComparisonResult
from bigcn.experiments.records import RunResult, RunSpec

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
