"""A run to store, and what may come of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bigcn.experiments.records import RunResult, RunSpec


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store can be."""
    return tmp_path / "runs.sqlite"


@pytest.fixture(scope="session")
def spec() -> RunSpec:
    return RunSpec("node", "cora", "f1", "public", "noise-level", 0.5, "gcn", {"lr": 0.01, "hidden": [16]}, 0, "cpu")


@pytest.fixture(scope="session")
def done() -> Callable[..., RunResult]:
    """Makes the result of a run, a successful one unless told otherwise."""

    def make(accuracy: float = 0.8, **changes: object) -> RunResult:
        fixed = {"seconds": 1.5, "epochs": 7, "started": "2024-05-01T10:00:00+00:00", "versions": {}, "host": {}}
        return RunResult(**({"metrics": {"accuracy": accuracy}} | fixed | changes))  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def failed(done: Callable[..., RunResult]) -> RunResult:
    return done(metrics={}, status="failed", error="loss became NaN")
