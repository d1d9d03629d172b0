"""Many processes and one store. One child imports the library, then forks: each writer opens the store for itself."""

import os
import sqlite3
import subprocess
import sys

import pytest

from bigcn.experiments.store import RunStore

PRELUDE = """
import os, signal, sys
from bigcn.experiments.store import RunResult, RunSpec, RunStore, StoreError

path = sys.argv[1]

def write(runs, seed, details=None):
    spec = RunSpec("node", "cora", "f1", "public", "clean", None, "gcn", {}, seed, "cpu")
    result = RunResult(metrics={"accuracy": seed}, seconds=1, started="2024-05-01T10:00:00Z", versions={}, host={},
                       details=details or {})
    runs.append(spec, result)
    return spec.key
"""
TOGETHER = """
open(path, "w").close()  # Once an empty file is there, once nothing at all.
for place in (path, path + ".new"):
    ready, go = os.pipe()
    children = []
    for writer in range(4):
        children.append(os.fork())
        if children[-1] == 0:
            os.close(go)
            os.read(ready, 1)  # Returns when the parent closes the other end: all begin at once.
            with RunStore(place) as runs:
                for i in range(50):
                    write(runs, 50 * writer + i)
            os._exit(0)
    os.close(go)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
runs = RunStore(path)
if os.fork() == 0:
    try:
        write(runs, 0)
    except StoreError:
        os._exit(7)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7  # A store does not travel through a fork,
write(runs, 200)  # and the one who opened it does not suffer.
runs.close()
"""
KILLED = """
for round, reports in enumerate((1, 2, 30, 57, 101)):
    read, report = os.pipe()
    child = os.fork()
    if child == 0:
        with RunStore(path) as runs:
            for i in range(10**6):
                os.write(report, (write(runs, 10**6 * round + i, {"curve": list(range(3000))}) + "\\n").encode())
    os.close(report)
    with open(read) as lines:
        for _ in range(reports):
            print(lines.readline(), end="")
        os.kill(child, signal.SIGKILL)
        print(lines.read(), end="")  # What it reported before it died.
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def child(script, path):
    run = subprocess.run([sys.executable, "-c", PRELUDE + script, path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    return run.stdout.split()


@forks
def test_writers_at_once(path):
    child(TOGETHER, path)
    for name, count in ((path, 201), (f"{path}.new", 200)):
        with RunStore(name) as runs:
            assert sorted(spec.seed for spec, _ in runs.rows(history=True)) == list(range(count))


@forks
def test_killed_writer_loses_at_most_the_run_in_flight(path, spec, done):
    reported = child(KILLED, path)
    assert len(reported) >= 191
    with RunStore(path) as runs:
        stored = {spec.key for spec, _ in runs.rows(history=True)}
        # Each of the five may have been killed between storing a run and reporting it.
        assert set(reported) <= stored
        assert len(stored) <= len(reported) + 5
        runs.append(spec, done())
        assert runs.has(spec)
