import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcn.bench import timing
from bigcn.bench.growth import growth
from bigcn.bench.settings import ROUNDS, TOLERANCES, WIDTHS, against_settings
from bigcn.bench.steps import FEATURE_GRAPHS, against_direct, against_peer
from bigcn.bench.timing import compare_times, interleaved
from bigcn.datasets import digits

COLUMNS = {"bench", "graph", "contender", "against", "ratio", "spread"}


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless told."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    return now


def test_contenders_take_turns_of_calls_in_a_row(clock):
    turns = []

    def takes(name, seconds):
        turns.append(name)
        clock[0] += seconds

    contenders = {"a": lambda: takes("a", 0.6 * timing.TURN), "b": lambda: takes("b", 10 * timing.TURN)}
    times = interleaved(contenders, rounds=3)
    # The first turn does not know yet that one call fills it.
    assert turns == ["a", "a", "a", "b", "b"] + ["a", "a", "a", "b"] * 4
    assert times["a"] == pytest.approx([0.6 * timing.TURN] * 3)
    assert times["b"] == pytest.approx([10 * timing.TURN] * 3)


def test_ratio_is_the_time_of_the_other_over_that_of_the_contender():
    ratio, low, high = compare_times({"fast": [1.0, 2.0, 1.0, 1.0], "slow": [4.0, 4.0, 6.0, 4.0]}, "fast", "slow")
    assert ratio == 4.0
    assert (low, high) == (4.0, 4.0)


@given(st.lists(st.tuples(*[st.floats(1e-3, 1e3)] * 2), min_size=2, max_size=12))
def test_ratio_lies_within_its_quartiles(rounds):
    fast, slow = (list(times) for times in zip(*rounds, strict=True))
    ratio, low, high = compare_times({"fast": fast, "slow": slow}, "fast", "slow")
    assert ratio == pytest.approx(np.median(np.divide(slow, fast)))
    assert low <= ratio <= high


def test_every_feature_graph_is_measured():
    data = digits()
    rows = list(against_peer("digits", data, rounds=2))
    assert len(rows) == len(FEATURE_GRAPHS)
    (direct,) = against_direct("digits", data, rounds=2)
    for row in [*rows, direct]:
        assert row.keys() == COLUMNS
        assert row["ratio"] > 0


def test_settings_are_measured_against_the_usual_ones():
    rows = list(against_settings("digits", digits(), rounds=2))
    by_bench = {
        bench: [row for row in rows if row["bench"] == bench] for bench in dict.fromkeys(r["bench"] for r in rows)
    }
    assert [len(found) for found in by_bench.values()] == [len(ROUNDS) - 1, len(WIDTHS) - 1, len(TOLERANCES)]
    exact = by_bench["exact filter"]
    assert [row["tolerance"] for row in exact] == list(TOLERANCES)
    assert sorted(row["hops"] for row in exact) == [row["hops"] for row in exact]  # more precise, more hops
    assert all(row.keys() >= COLUMNS and row["against"] == "bigcn:taylor+none" for row in exact)
    contenders = [row["contender"] for row in by_bench["rounds of ADMM"] + by_bench["hidden units"]]
    assert all(key in " ".join(contenders) for key in ("k=1", "k=4", "h=32", "h=128"))
    assert not any("k=2" in key or "h=16" in key for key in contenders)


def test_small_graphs_do_not_bend_the_growth(monkeypatch):
    def measured(words, **options):
        size = int(words[2].partition("main(")[2].partition(",")[0])
        found = {"nodes": size, "bytes": 1e6 * max(size, 50), "seconds": 1.0 + size**1.5, "ratio": [1.0, 1.0, 1.0]}
        return subprocess.CompletedProcess(words, 0, json.dumps(found), "")

    module = sys.modules["bigcn.bench.growth"]  # the function hides it in its package
    monkeypatch.setattr(module.subprocess, "run", measured)
    monkeypatch.setattr(module, "FIT_FROM", 1000)
    *_, seconds, size = growth((10, 1000, 10_000, 100_000), rounds=2)
    assert seconds["graph"] == size["graph"] == "1,000 to 100,000 nodes"
    assert seconds["ratio"] == pytest.approx(1.5, abs=1e-4)
    assert size["ratio"] == pytest.approx(1)


def test_another_result_is_not_measured(monkeypatch):
    forward = "bigcn.bench.direct.DirectLayer.forward"
    monkeypatch.setattr(forward, lambda self, x, laplacian: x.new_zeros(x.size(0), self.bias.numel()))
    with pytest.raises(AssertionError):
        list(against_direct("digits", digits(), rounds=2))


def test_growth_is_measured_in_processes_of_their_own():
    held = np.ones(2**26)  # half a gigabyte that the other processes have no part in
    rows = list(growth((500, 1000), rounds=2))
    assert held.all()
    assert [row["bench"] for row in rows] == ["growth", "growth", "growth of seconds", "growth of bytes"]
    assert all(row["peak_gigabytes"] > 0 for row in rows[:2])
