"""Units in several processes."""

import os
import signal
import time

import pytest

from bigcn.experiments import process_executor
from bigcn.experiments.comparison import Comparison
from bigcn.experiments.execution import execute
from bigcn.experiments.process_executor import ProcessExecutor
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


def _die(unit):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(process_executor, "_run", _die)
    with RunStore(tmp_path / "runs.sqlite") as store, pytest.raises(RuntimeError, match="died"):
        execute(specs(("sgc",)), store, executor=ProcessExecutor(1), together=False)


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        ProcessExecutor(0)
