"""Units in several processes."""

import os
import signal
import time
from itertools import pairwise

import pytest

from bigcn.experiments import process_executor
from bigcn.experiments.comparison import Comparison
from bigcn.experiments.execution import Unit, execute
from bigcn.experiments.process_executor import ProcessExecutor, Waiting
from bigcn.experiments.store import RunStore


def specs(models=("sgc", "mlp")):
    training = {"max_epochs": 3}
    return Comparison(dataset="digits", models=models, seeds=(5, 10), training=training).specs()


def test_results_are_those_of_one_process(tmp_path):
    listed = specs()
    with RunStore(tmp_path / "one.sqlite") as store:
        expected = execute(listed, store, together=False)
    with RunStore(tmp_path / "two.sqlite") as store:
        found = execute(listed, store, executor=ProcessExecutor(2), together=False)
        assert all(store.has(spec) for spec in listed)
    assert [result.metrics for result in found] == [result.metrics for result in expected]


def test_after_the_deadline_nothing_is_begun(tmp_path):
    executor = ProcessExecutor(1, minutes=1)
    executor.deadline = time.monotonic() - 1
    with RunStore(tmp_path / "runs.sqlite") as store:
        assert execute(specs(), store, executor=executor, together=False) == []


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_process_stays_with_its_graph_and_every_unit_is_taken_once(count):
    listed = [
        Unit((spec,))
        for dataset in ("digits", "citeseer", "cora")
        for spec in Comparison(dataset=dataset, models=("mlp",), seeds=(1, 2, 3)).specs()
    ]
    waiting = Waiting(listed, count)
    taken: list[list[Unit]] = [[] for _ in range(count)]
    while (unit := waiting.next(turn := sum(map(len, taken)) % count)) is not None:
        taken[turn].append(unit)
    assert sorted(u.specs[0].key for units in taken for u in units) == sorted(u.specs[0].key for u in listed)
    for units in taken:
        graphs = [unit.specs[0].dataset for unit in units]
        changes = sum(a != b for a, b in pairwise(graphs))
        assert changes <= (2 if count == 1 else 1), "it comes back to no graph, and changes when its own is done"
    if count <= 3:
        assert len({units[0].specs[0].dataset for units in taken}) == count


def _die(unit):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(process_executor, "_run", _die)
    with RunStore(tmp_path / "runs.sqlite") as store, pytest.raises(ChildProcessError, match="died"):
        execute(specs(("sgc",)), store, executor=ProcessExecutor(1), together=False)


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        ProcessExecutor(0)
