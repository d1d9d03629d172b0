"""The clock against a count of the seconds at which something was under way."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcn.experiments.records import RunResult
from bigcn.report.results_cost import clock_seconds

START = datetime(2026, 1, 1, tzinfo=UTC)


def run(start, seconds):
    return RunResult(metrics={}, seconds=float(seconds), started=(START + timedelta(seconds=start)).isoformat())


def test_populations_that_overlap():
    first = [run(0, 2)] * 5  # until 10
    second = [run(4, 1)] * 3  # until 7
    third = [run(9, 4)]  # until 13
    later = [run(20, 5)]
    assert clock_seconds([*later, *first, *third, *second]) == 13 + 5
    assert clock_seconds([]) == 0


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), unique_by=lambda pair: pair[0]))
def test_the_clock_counts_every_second_once(runs):
    under_way = {second for start, length in runs for second in range(start, start + length)}
    assert clock_seconds([run(*pair) for pair in runs]) == pytest.approx(len(under_way))
