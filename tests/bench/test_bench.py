import pytest

from bigcn.bench.growth import growth
from bigcn.bench.steps import FEATURE_GRAPHS, against_direct, against_peer
from bigcn.bench.timing import compare_times, interleaved
from bigcn.datasets import digits

COLUMNS = {"bench", "graph", "contender", "against", "ratio", "spread"}


def test_contenders_take_turns():
    turns = []
    times = interleaved({"a": lambda: turns.append("a"), "b": lambda: turns.append("b")}, rounds=3)
    assert turns == ["a", "b"] * 5
    assert [len(seconds) for seconds in times.values()] == [3, 3]


def test_ratio_is_the_time_of_the_other_over_that_of_the_contender():
    ratio, low, high = compare_times({"fast": [1.0, 2.0, 1.0, 1.0], "slow": [4.0, 4.0, 6.0, 4.0]}, "fast", "slow")
    assert ratio == 4.0
    assert (low, high) == (4.0, 4.0)


def test_every_feature_graph_is_measured():
    data = digits()
    rows = list(against_peer("digits", data, rounds=2))
    assert len(rows) == len(FEATURE_GRAPHS) + 1
    (direct,) = against_direct("digits", data, rounds=2)
    for row in [*rows, direct]:
        assert row.keys() == COLUMNS
        assert row["ratio"] > 0


def test_another_result_is_not_measured(monkeypatch):
    forward = "bigcn.bench.direct.DirectLayer.forward"
    monkeypatch.setattr(forward, lambda self, x, laplacian: x.new_zeros(x.size(0), self.bias.numel()))
    with pytest.raises(AssertionError):
        list(against_direct("digits", digits(), rounds=2))


def test_growth_is_measured_in_processes_of_their_own():
    rows = list(growth((500, 1000), rounds=2))
    assert [row["bench"] for row in rows] == ["growth", "growth", "growth of seconds", "growth of bytes"]
    assert all(row["peak_gigabytes"] >= 0 for row in rows[:2])
