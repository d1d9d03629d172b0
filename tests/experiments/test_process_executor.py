"""Units in several processes."""

import multiprocessing
import os
import select
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest

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


def test_processes_stay_for_the_next_call_and_dead_ones_do_not(tmp_path):
    listed = specs()
    with RunStore(tmp_path / "runs.sqlite") as store, ProcessExecutor(2) as executor:
        execute(listed[:2], store, executor=executor, together=False)
        before = list(executor._pools)
        execute(listed[2:3], store, executor=executor, together=False)
        assert executor._pools == before
        assert len(before) == 2
        os.kill(before[0].submit(os.getpid).result(), signal.SIGKILL)

        def until_it_is_noticed():
            while True:
                execute(listed[3:], store, executor=executor, together=False, force=True)

        with pytest.raises(ChildProcessError):
            until_it_is_noticed()
        assert len(execute(listed[3:], store, executor=executor, together=False, force=True)) == 1
    assert executor._pools == []


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


def test_long_units_come_first_and_processes_go_where_the_work_is():
    def units(dataset, case="clean", values=(), seeds=(1,)):
        comparison = Comparison(dataset=dataset, models=("mlp",), case=case, values=values, seeds=seeds)
        return [Unit((spec,)) for spec in comparison.specs()]

    small, large = units("cora", seeds=(1, 2, 3)), units("computers", seeds=(1, 2, 3, 4, 5, 6))
    dense = units("computers", "structure-mistakes", (0.001, 0.01))
    waiting = Waiting([*small, *large, *dense], 3)
    taken = [waiting.next(place) for place in range(3)]
    assert [unit.specs[0].value for unit in taken[:2]] == [0.01, 0.001]
    assert taken[2] in large, "a third finds more to do there than on Cora"
    rest = [waiting.next(0) for _ in range(5)]
    assert rest == [unit for unit in large if unit not in taken], "in the order in which they came"
    assert [waiting.next(place) for place in (0, 1, 2)] == small
    assert waiting.next(0) is None


def begun(processes):
    """Begins a short unit and one for each process that never ends, and returns once the short one has."""
    endless = {"max_epochs": 10**9, "patience": None}
    more = Comparison(dataset="digits", models=("mlp",), seeds=tuple(range(processes)), training=endless).specs()
    units = ProcessExecutor(processes).run([Unit((spec,)) for spec in (specs()[0], *more)])
    next(units)
    return units, multiprocessing.active_children()


def test_a_process_that_dies_is_said():
    units, (process,) = begun(1)
    process.kill()
    with pytest.raises(ChildProcessError, match="died"):
        next(units)


def test_who_breaks_off_does_not_wait_for_what_is_under_way():
    units, processes = begun(2)
    units.close()  # as an interruption does
    assert [process.exitcode for process in processes] == [-signal.SIGTERM] * 2


CALLER = """
import multiprocessing, signal
from bigcn.experiments.comparison import Comparison
from bigcn.experiments.execution import Unit
from bigcn.experiments.process_executor import ProcessExecutor
short, long = ({"max_epochs": 3}, {"max_epochs": 10**9, "patience": None})
listed = [Comparison(dataset="digits", models=("mlp",), seeds=(5,), training=t).specs()[0] for t in (short, long)]
units = ProcessExecutor(1).run([Unit((spec,)) for spec in listed])
next(units)
print(multiprocessing.active_children()[0].pid, flush=True)
signal.pause()
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for a process that is no child, as Linux can")
def test_no_process_outlives_its_caller():
    with subprocess.Popen([sys.executable, "-c", CALLER], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        process = os.pidfd_open(int(caller.stdout.readline()))
        caller.kill()
    assert select.select([process], [], [], 60)[0], "it works on for nobody"
    os.close(process)


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        ProcessExecutor(0)
