"""The clock against a count of the seconds at which something was under way, and what the page says of it."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcn.experiments.findings import Findings
from bigcn.experiments.paper import EXPERIMENTS
from bigcn.experiments.records import RunResult
from bigcn.experiments.reproduction import Reproduction
from bigcn.report.results_cost import clock_seconds, costs, time_mark
from bigcn.report.results_page import results_page
from bigcn.report.words import duration

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


def test_costs_count_shared_runs_once(work):
    took = results_page(Findings(work), {}).partition("## What it took")[2]
    assert f"| all, each run of a store once | {len(work.used()):,} |" in took
    level = work.about([EXPERIMENTS["noise-level"]]).used()
    minutes, seconds = divmod(2 * len(level), 60)
    hours = f"{minutes // 60} h" if minutes >= 60 else f"{minutes} min {seconds} s"
    row = next(line for line in took.splitlines() if line.startswith("| `noise-level` "))
    assert f"| {len(level):,} | {hours}" in row
    assert "`bigcn reproduce noise-level --device cuda`" in row
    assert "gpu Some GPU" in took
    assert "torch\\_geometric 1\\|2" in took


def test_a_store_counts_once(work):
    here = costs(work)
    assert [store["first"] for store in here] == ["2026-03-01T12:00:00.000000+00:00"]
    # The same store again, as it was when it was smaller.
    again = costs(with_costs(work, [{**here[0], "all": {"runs": 1}}]))
    assert again == here


def recorded(monkeypatch, all_of_them, of_one):
    """Lets the record alone have so many runs by day, of all experiments and of any one."""
    monkeypatch.setattr(
        Reproduction, "recorded_runs", lambda self: Counter(all_of_them if len(self.experiments) > 1 else of_one)
    )


def test_what_was_run_again_counts_no_more(work, monkeypatch):
    here = costs(work)
    runs, level = here[0]["all"]["runs"], here[0]["experiments"]["noise-level"]["runs"]
    other = {**here[0], "first": "2026-02-01T09:00:00+00:00", "last": "2026-02-02T09:00:00+00:00", "hosts": ["cpu Old"]}
    recorded(monkeypatch, {"2026-02-01": runs // 4, "2026-02-02": runs // 4, "2026-02-03": 7}, {"2026-02-01": level})
    both = with_costs(work, [other])
    stores = costs(both)
    assert stores == [{**other, "standing": stores[0]["standing"]}, *here]
    assert stores[0]["standing"]["all"] == 2 * (runs // 4)
    took = results_page(Findings(both), {}).partition("## What it took")[2]
    assert f"| all, each run of a store once | {runs + 2 * (runs // 4):,} |" in took
    assert f"| `noise-level` | {2 * level:,} |" in took
    assert "- Ran on: cpu Old." in took
    assert "- When: 2026-02-01 to 2026-03-01." in took
    # Two seconds for each run, on a clock that runs on.
    assert time_mark(stores).measured == duration(2 * (runs + 2 * (runs // 4)))
    # Written down and read again, it is counted anew, not once more.
    assert costs(with_costs(work, stores[:1])) == stores


def test_runs_that_may_be_of_several_stores_are_divided(work, monkeypatch):
    here = costs(work)[0]
    long, short = (
        {**here, "first": day, "last": "2026-01-10", "all": {"runs": n, "gpu_clock": 10.0 * n}}
        for day, n in (("2026-01-08", 300), ("2026-01-10", 100))
    )
    recorded(monkeypatch, {"2026-01-10": 100, "2026-01-09": 30}, {})
    found = [store["standing"]["all"] for store in costs(with_costs(work, [long, short]))[:2]]
    assert found == [75 + 30, 25]


def test_stores_behind_which_nothing_stands_are_gone(work, monkeypatch):
    here = costs(work)
    gone = {**here[0], "first": "2026-01-01", "last": "2026-02-28"}
    assert costs(with_costs(work, [gone])) == here
    # A number without a day may be from any store that was written down before days were kept.
    old = {key: value for key, value in gone.items() if key != "dated"}
    recorded(monkeypatch, {"": 3, "2026-03-01": 2}, {})
    assert [store.get("standing", {}).get("all") for store in costs(with_costs(work, [old, gone]))] == [3, None]


def test_the_time_of_the_gpu_is_a_bar(work):
    seconds = 2 * len(work.used())
    assert time_mark(costs(work)) == (
        "all experiments, GPU time by the clock, processes side by side",
        "at most 1 h 0 min",
        duration(seconds),
        "missed",
    )
    quick = with_costs(work.about([]), [{"all": {"gpu_clock": 600.0}}])
    assert time_mark(costs(quick))[2:] == ("10 min 0 s", "met")
    assert time_mark(costs(with_costs(work.about([]), [])))[2:] == ("", "not run")


def with_costs(work: Reproduction, found: list[dict]) -> Reproduction:
    other = work.about(work.experiments)
    other.record = replace(work.record, costs=found)
    return other
