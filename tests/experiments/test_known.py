"""What is known of runs: from a store, from tables, and from both."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.known import KnownRuns, best_first
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
    rest = found.seeds(further=True)
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


def test_what_ran_here_goes_before_an_older_final(tmp_path):
    found = known(written(tmp_path, Validated(0.8, "2026-03-01"), Validated(0.7, "2026-03-01")))
    assert found.validation(CORA, None, GCN, final=True) == Validated(0.7, "2026-03-01")
    remember(found, found.seeds(further=True), 0.6)
    for since in ("", "2026-03-01"):
        assert found.validation(CORA, None, GCN, final=True, since=since) == Validated(
            pytest.approx(0.66), "2026-03-02"
        )


def test_finalists_run_with_the_seeds_that_the_others_have_not():
    found = known(Record())
    assert found.seeds(further=False) + found.seeds(further=True) == SEEDS
    found.setting = replace(found.setting, seeds=SEEDS[:2])
    assert (found.seeds(further=False), found.seeds(further=True)) == (SEEDS[:2], ())
    remember(found, SEEDS[:2], 0.5)
    assert found.validation(CORA, None, GCN, final=True) == Validated(0.5, "2026-03-02")


def test_a_final_from_table_and_store_is_as_young_as_the_youngest_of_its_runs(tmp_path):
    found = known(written(tmp_path, Validated(0.8, "2026-03-09"), None))
    remember(found, found.seeds(further=True), 0.6)
    assert found.validation(CORA, None, GCN, final=True) == Validated(pytest.approx(0.66), "2026-03-09")


@pytest.mark.parametrize("count", [180, 300, 500, 630])
def test_equals_are_equals_whether_a_table_or_the_store_has_them(tmp_path, count):
    """Shares of validation nodes have more digits than tables."""
    generator = np.random.default_rng(count)
    for _ in range(300):
        shares = generator.integers(count // 2, count, len(SEEDS)) / count
        means = [float(np.mean(part)) for part in (shares[:3], shares[3:], shares)]
        in_parts = float(np.average([round(means[0], 6), means[1]], weights=[3, 7]))
        for pair in ((round(means[2], 6), round(in_parts, 6)), (round(in_parts, 6), round(means[2], 6))):
            assert best_first(pair) == [0, 1]
    assert best_first([0.5, 0.7, 0.6, 0.7]) == [1, 3, 2, 0]
    assert best_first([0.7, 0.7 + 1 / count / len(SEEDS)]) == [1, 0], "one node of one seed tells them apart"


def test_who_is_a_point_behind_is_a_finalist():
    """Finalists stand in the order of the contender, not of their scores: the first of equals is chosen."""
    scores = (0.6, 0.589999, 0.58, 0.6, 0.5895)  # the second as far as tables can tell
    some = tuple(Candidate("gcn", {"hidden_channels": n}, {}) for n in range(1, 6))
    first = {
        ("node", "cora", "clean", "authors", "", one.describe()): Validated(score, "2026-03-01")
        for one, score in zip(some, scores, strict=True)
    }
    finals = {place: Validated(0.7, "2026-03-01") for place in first}
    found = known(Record(validated=first, finals=finals))
    contender = Contender("gcn", "GCN", "tuned", some)
    assert found.finalists(CORA, contender) == [some[0], some[1], some[3]]
    assert found.choice(CORA, contender) is some[0]
    better = {place: Validated(score, "") for place, score in zip(finals, (0.6, 0.7, 0.9, 0.7, 0.9), strict=True)}
    assert known(Record(validated=first, finals=better)).choice(CORA, contender) is some[1]
