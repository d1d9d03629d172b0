"""What is known of runs: from a store, from tables, and from both."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.known import KnownRuns
from bigcn.experiments.paper import SEEDS, Series
from bigcn.experiments.recorded import CANDIDATE_COLUMNS, CANDIDATES, Record, Validated, candidate_row, read_record
from bigcn.experiments.records import RunResult
from bigcn.experiments.setting import Setting

CORA = Series("node", "cora")
GCN = Candidate("gcn", {"hidden_channels": 16}, {"weight_decay": 7e-3})


class Nothing:
    """A store without runs."""

    def rows(self, **_):
        return []


def known(record: Record) -> KnownRuns:
    return KnownRuns(Nothing(), Setting("cpu"), record)  # type: ignore[arg-type]


def remember(found: KnownRuns, seeds: tuple[int, ...], score: float) -> None:
    for seed in seeds:
        result = RunResult(metrics={"val_accuracy": score}, seconds=1.0, started="2026-03-02T12:00:00Z")
        found.remember(found.spec(CORA, None, GCN, seed)[0], result)


def written(folder: Path, first: Validated, final: Validated | None) -> Record:
    """A table of candidates with one, written and read."""
    row = candidate_row(Contender("gcn", "GCN", "tuned", (GCN,)), CORA, None, GCN, first, final)
    with (folder / CANDIDATES).open("w", newline="") as file:
        writer = csv.DictWriter(file, CANDIDATE_COLUMNS)
        writer.writeheader()
        writer.writerow(row)
    return read_record(folder)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """A table of candidates with one that is no finalist."""
    return written(tmp_path, Validated(0.8, "2026-03-01"), None)


def test_the_first_seeds_may_stand_in_a_table_and_the_others_in_the_store(record):
    found = known(record)
    assert found.validation(CORA, None, GCN) == Validated(0.8, "2026-03-01")
    assert found.validation(CORA, None, GCN, final=True) is None
    rest = found.seeds(final=True)
    remember(found, rest[:-1], 0.6)
    assert found.validation(CORA, None, GCN, final=True) is None
    remember(found, rest[-1:], 0.6)
    assert found.validation(CORA, None, GCN, final=True) == Validated(pytest.approx(0.66), "2026-03-02")
    assert found.validation(CORA, None, GCN, final=True, since="2026-03-02") is None
    remember(found, SEEDS[:3], 0.5)
    assert found.validation(CORA, None, GCN, final=True) == Validated(pytest.approx(0.57), "2026-03-02")


def test_a_final_is_as_old_as_the_oldest_of_its_runs(tmp_path):
    record = written(tmp_path, Validated(0.8, "2026-03-01"), Validated(0.66, "2026-03-02"))
    found = known(record)
    assert found.validation(CORA, None, GCN, final=True, since="2026-03-01") == Validated(0.66, "2026-03-02")
    assert found.validation(CORA, None, GCN, final=True, since="2026-03-02") is None


def test_finalists_run_with_the_seeds_that_the_others_have_not():
    found = known(Record())
    assert found.seeds(final=False) + found.seeds(final=True) == SEEDS
    found.setting = replace(found.setting, seeds=SEEDS[:2])
    assert (found.seeds(final=False), found.seeds(final=True)) == (SEEDS[:2], ())
    remember(found, SEEDS[:2], 0.5)
    assert found.validation(CORA, None, GCN, final=True) == Validated(0.5, "2026-03-02")
