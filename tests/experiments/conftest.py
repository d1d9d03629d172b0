"""A run to store and what may come of it; and tables of made-up runs."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bigcn.experiments.paper import EXPERIMENTS
from bigcn.experiments.recorded import Record
from bigcn.experiments.records import RunResult, RunSpec
from bigcn.experiments.reproduction import Reproduction
from bigcn.experiments.setting import Setting
from bigcn.report.reproduction import write_reproduction

FULL = Setting("cpu")


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


class Nothing:
    """A store without runs."""

    def rows(self, **_):
        return []


@pytest.fixture(scope="session")
def empty() -> Callable[..., Reproduction]:
    """Makes some experiments of which a record alone knows anything."""

    def make(
        record: Record | None = None,
        setting: Setting = FULL,
        names: tuple[str, ...] = ("link-table", "noise-rate", "sensitivity-k"),
    ) -> Reproduction:
        return Reproduction([EXPERIMENTS[name] for name in names], Nothing(), setting, record)  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def made_up() -> Callable[[RunSpec], RunResult]:
    """Makes the result of a run, always the same."""

    def make(spec: RunSpec) -> RunResult:
        seed = [spec.seed, *map(ord, spec.model + spec.dataset), int(100 * (spec.value or 0))]
        score, val = (float(number) for number in np.random.default_rng(seed).uniform(0.3, 0.9, 2))
        metric = "accuracy" if spec.task == "node" else "roc_auc"
        few = {"accuracy_low_degree": score / 2, "accuracy_isolated": score / 3} if spec.task == "node" else {}
        options = {"versions": {"torch": "2"}, "host": {"gpu": "Some GPU"}, "started": "2026-03-01T12:00:00Z"}
        return RunResult(metrics={metric: score, f"val_{metric}": val, **few}, seconds=2.0, epochs=3, **options)

    return make


@pytest.fixture(scope="session")
def planned(empty, made_up) -> Reproduction:
    """Some experiments carried out with made-up results, once."""
    work = empty()
    for stage in ("choosing", "choosing", "reporting"):
        for spec in getattr(work, stage)():
            work.known.runs.setdefault(spec.key, made_up(spec))
    return work


@pytest.fixture
def folder(planned, tmp_path) -> Path:
    """Where their tables are."""
    write_reproduction(planned, tmp_path / "results", tmp_path / "page.md")
    return tmp_path / "results"


@pytest.fixture(scope="session")
def change() -> Callable[..., None]:
    """Rewrites the rows of a table; one that becomes nothing is left out."""

    def rewrite(path: Path, how: Callable[[dict[str, str]], dict[str, str] | None]) -> None:
        with path.open(newline="") as file:
            rows = [changed for row in csv.DictReader(file) if (changed := how(row)) is not None]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    return rewrite


@pytest.fixture(scope="session")
def forget_seeds() -> Callable[[dict[str, str]], dict[str, str]]:
    """Leaves the scores of single seeds out of a row."""
    return lambda row: {name: "" if name.endswith("scores") else text for name, text in row.items()}
