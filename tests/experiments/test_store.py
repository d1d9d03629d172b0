import csv
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bigcn.experiments import records, store
from bigcn.experiments.records import SUMMARY_COLUMNS
from bigcn.experiments.store import RunResult, RunSpec, RunStore, StoreError

SPEC = RunSpec("node", "cora", "f1", "public", "noise-level", 0.5, "gcn", {"lr": 0.01, "hidden": [16]}, 0, "cpu")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def done(accuracy=0.8, **changes):
    fixed = {"seconds": 1.5, "epochs": 7, "started": "2024-05-01T10:00:00+00:00", "versions": {}, "host": {}}
    return RunResult(**({"metrics": {"accuracy": accuracy}} | fixed | changes))


FAILED = done(metrics={}, status="failed", error="loss became NaN")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


def content(path):
    with RunStore(path) as runs:
        return list(runs.rows(history=True)), {spec.key: runs.history(spec) for spec, _ in runs.rows(history=True)}


@settings(max_examples=40, deadline=None)
@given(options=st.dictionaries(st.text(), json_values, max_size=4), name=st.text(), details=json_values)
@example(options={"\ud800": "\udcff"}, name="a\0b'; DROP TABLE runs; -- \udc80 Ω\r\n", details=None)
def test_round_trip(options, name, details):
    spec = replace(SPEC, settings=options, dataset=name, case=name)
    result = done(metrics={name: 0.1}, details={"any": details}, error=None)
    with tempfile.TemporaryDirectory() as folder, RunStore(Path(folder) / "runs") as runs:
        runs.append(spec, result)
        assert runs.get(spec) == runs.get(spec.key) == result
        ((back, _),) = runs.rows(dataset=name)
        assert (back, back.settings, back.key) == (spec, spec.settings, spec.key)
        runs.export_csv(Path(folder) / "runs.csv")
        runs.export_json(Path(folder) / "runs.json")
        with open(Path(folder) / "runs.csv", encoding="utf-8", newline="") as file:
            (line,) = csv.DictReader(file)
        assert (line["dataset"], line["metric"], json.loads(line["settings"])) == (
            spec.dataset,
            *result.metrics,
            spec.settings,
        )
        assert json.loads((Path(folder) / "runs.json").read_text())["runs"][0]["details"] == result.details


def test_failures_are_not_answered_and_the_newest_result_wins(path):
    old, new = done(0.7, started="2030-01-01T00:00:00Z"), done(0.9, started="2020-01-01T00:00:00Z")
    with RunStore(path) as runs:
        ids = [runs.append(SPEC, FAILED)]
        assert runs.get(SPEC) is None
        assert not runs.has(SPEC)
        assert list(runs.rows()) == []
        ids += [runs.append(SPEC, result) for result in (old, new, FAILED)]
        assert runs.get(SPEC) == new
        assert runs.has(SPEC.key)
        assert list(runs.rows()) == [(SPEC, new)]
        assert runs.history(SPEC) == list(zip(ids[::-1], [FAILED, new, old, FAILED], strict=True))
        assert len(list(runs.rows(history=True, status="failed"))) == 2
        assert runs.summary()[0]["mean"] == 0.9


def test_newest_wins_when_the_clock_is_set_back(path, monkeypatch):
    clock = iter([2000, 1000, 1000])
    monkeypatch.setattr(store.time, "time_ns", lambda: next(clock))
    with RunStore(path) as runs:
        for accuracy in (0.1, 0.2, 0.3):
            runs.append(SPEC, done(accuracy))
            assert runs.get(SPEC) == done(accuracy)


def test_filters(path):
    specs = [SPEC, replace(SPEC, value=None), replace(SPEC, seed=3), replace(SPEC, dataset="it's")]
    with RunStore(path) as runs:
        for spec in reversed(specs):
            runs.append(spec, done())
        assert {spec for spec, _ in runs.rows()} == set(specs)
        assert [spec for spec, _ in runs.rows(dataset="it's")] == specs[3:]
        assert [spec for spec, _ in runs.rows(value=None)] == [specs[1]]
        assert [spec.seed for spec, _ in runs.rows(dataset="cora", value=0.5)] == [0, 3]
        with pytest.raises(ValueError, match="cannot be filtered by colour"):
            runs.rows(colour="red")
        # Appending while reading is safe, even when another process has written in between.
        for spec, _ in runs.rows():
            with RunStore(path) as other:
                other.append(spec, done())
            runs.append(spec, done())


def test_format_is_pinned(path):
    # A file with other columns is another format: raise STORE_FORMAT and teach the store to read the old one.
    RunStore(path).close()
    with sqlite3.connect(path) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(runs)")]
    assert store.STORE_FORMAT == 1
    assert " ".join(sorted(columns)) == (
        "case dataset dataset_fingerprint details device epochs error host key metrics model protocol recorded "
        "run_id seconds seed settings started status task value versions"
    )


def test_summary_agrees_with_numpy(path):
    scores = np.random.default_rng(0).random((2, 5))
    with RunStore(path) as runs:
        for model, row in zip(("gcn", "gat"), scores, strict=True):
            for seed, score in enumerate(row):
                runs.append(replace(SPEC, model=model, seed=seed), done(metrics={"accuracy": score, "f1": score / 2}))
        runs.append(replace(SPEC, seed=9), FAILED)
        rows = runs.summary("accuracy")
        assert runs.summary(model="gat", metric="f1")[0]["mean"] == pytest.approx(scores[1].mean() / 2)
        assert len(runs.summary()) == 4
    assert [row["model"] for row in rows] == ["gat", "gcn"]
    assert all(tuple(row) == SUMMARY_COLUMNS and row["seeds"] == 5 for row in rows)
    np.testing.assert_allclose([row["mean"] for row in rows], scores[::-1].mean(1))
    np.testing.assert_allclose([row["std"] for row in rows], scores[::-1].std(1, ddof=1))


# Merging and exporting.


def test_merge_in_either_order(tmp_path):
    names = [tmp_path / name for name in ("a", "b", "ab", "ba")]
    for i, name in enumerate(names[:2]):
        with RunStore(name) as runs:
            runs.append(replace(SPEC, seed=i), done(i))
            runs.append(SPEC, done(0.5 + i))
            runs.append(SPEC, FAILED)
    for target, sources in zip(names[2:], (names[:2], names[1::-1]), strict=True):
        with RunStore(target) as runs:
            assert [runs.merge(source) for source in (*sources, *sources, target)] == [3, 3, 0, 0, 0]
            assert runs.get(SPEC) == done(1.5)
        assert RunStore(target).export_json(tmp_path / f"{target.name}.json", history=True) is None
    assert content(names[2]) == content(names[3])
    assert (tmp_path / "ab.json").read_bytes() == (tmp_path / "ba.json").read_bytes()


def test_merge_from_a_read_only_folder(tmp_path, path, monkeypatch):
    # Runs that are still in the log of a store which was never closed count, too.
    with RunStore(tmp_path / "live") as live, RunStore(path) as runs:
        live.append(SPEC, done())
        before = {file: (tmp_path / file).read_bytes() for file in ("live", "live-wal")}
        monkeypatch.setattr(store.os, "access", lambda *_: False)
        assert runs.merge(tmp_path / "live") == 1
        assert before == {file: (tmp_path / file).read_bytes() for file in before}


def test_merge_refuses(tmp_path, path):
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("not a store")
    RunStore(tmp_path / "spoilt").append(SPEC, done())
    with sqlite3.connect(tmp_path / "spoilt") as db:
        db.execute("UPDATE runs SET settings = '{'")
    with RunStore(path) as runs:
        runs.append(SPEC, done())
        assert runs.merge(tmp_path / "empty") == 0
        assert (tmp_path / "empty").read_bytes() == b""
        for name, why in {"text": "not a SQLite", "spoilt": "damaged", "none": "not exist", ".": "folder"}.items():
            with pytest.raises(StoreError, match=why):
                runs.merge(tmp_path / name)
        assert not (tmp_path / "none").exists()
        assert list(runs.rows(history=True)) == [(SPEC, done())]


def test_export(tmp_path, path):
    with RunStore(path) as runs:
        runs.append(SPEC, done(metrics={"accuracy": 0.1, "f1": 1 / 3}))
        runs.append(replace(SPEC, seed=1, value=None), FAILED)
        runs.export_csv(tmp_path / "new" / "runs.csv", history=True)
        runs.export_json(tmp_path / "runs.json")
        runs.export_json(tmp_path / "runs.json")
        for target, why in {path: "is a database", tmp_path: "folder", path / "x.csv": "cannot be used"}.items():
            with pytest.raises(StoreError, match=why):
                runs.export_csv(target)
        assert runs.has(SPEC)
    with open(tmp_path / "new" / "runs.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[:9] == ["model", "dataset", "task", "case", "value", "protocol", "metric", "score", "seed"]
    found = [(line["seed"], line["metric"], line["score"], line["value"], line["error"]) for line in lines]
    assert sorted(found) == [
        ("0", "accuracy", "0.1", "0.5", ""),
        ("0", "f1", repr(1 / 3), "0.5", ""),
        ("1", "", "", "", FAILED.error),
    ]
    document = json.loads((tmp_path / "runs.json").read_text())
    (run,) = document["runs"]
    assert RunSpec(**{name: run[name] for name in records.SPEC_FIELDS}).key == run["key"] == SPEC.key
    assert run["metrics"] == {"accuracy": 0.1, "f1": 1 / 3}
    assert not list(tmp_path.rglob("*.tmp"))


# Files that are not stores, and places where none can be.


def test_empty_file_and_odd_names_become_stores(tmp_path):
    for name in ("empty", "50% #1?mode=ro&.sqlite", ":memory:"):
        (tmp_path / name).touch()
        with RunStore(tmp_path / name) as runs:
            runs.append(SPEC, done())
        with RunStore(tmp_path / name) as runs:
            assert runs.has(SPEC)
    assert {file.name for file in tmp_path.iterdir()} == {"empty", "50% #1?mode=ro&.sqlite", ":memory:"}


@pytest.mark.parametrize(
    "text", [b"x", b"id,label\n1,2\n", b"\0" * 4096, b"SQLite format 3", bytes(range(256)) * 20], ids=range(5)
)
def test_other_files_are_left_as_they_are(path, text):
    path.write_bytes(text)
    with pytest.raises(StoreError, match=r"not a run store: .+; it was left as it is\.$"):
        RunStore(path)
    assert path.read_bytes() == text


def test_other_databases_are_left_as_they_are(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE runs (a)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="holds something else"):
        RunStore(path)
    assert path.read_bytes() == before


def test_newer_format(path):
    RunStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 2")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer version of bigcn"):
        RunStore(path)
    assert path.read_bytes() == before


def test_damaged(path):
    with RunStore(path) as runs:
        for seed in range(20):
            runs.append(replace(SPEC, seed=seed), done())
    blob = bytearray(path.read_bytes())
    blob[4096:] = b"\xff" * (len(blob) - 4096)
    path.write_bytes(blob)
    with pytest.raises(StoreError, match="damaged"), RunStore(path) as runs:
        list(runs.rows())


@pytest.mark.parametrize("place", [".", "file/runs.sqlite", "/dev/null", "/proc/runs.sqlite"])
def test_places_without_stores(tmp_path, place):
    (tmp_path / "file").touch()
    if not Path(tmp_path, place).parent.exists():
        pytest.skip(f"this system has no {place}")
    with pytest.raises(StoreError, match=r"\.$") as caught:
        RunStore(tmp_path / place)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_read_only_folder(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o555)
    if os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("this user may write anywhere")
    with pytest.raises(StoreError, match="cannot be opened"):
        RunStore(tmp_path / "locked" / "runs.sqlite")


def test_read_only_file(path, monkeypatch):
    RunStore(path).close()
    monkeypatch.setattr(store.os, "access", lambda *_: False)
    with pytest.raises(StoreError, match="read-only"):
        RunStore(path)


def test_waits_for_another_process_that_creates_the_store(path, monkeypatch):
    RunStore(path).close()
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(store.time, "sleep", lambda _: other.execute("ROLLBACK"))
        with RunStore(path) as runs:
            runs.append(SPEC, done())
        assert not other.in_transaction


def test_closed(path):
    runs = RunStore(path)
    runs.close()
    runs.close()
    with pytest.raises(StoreError, match="closed"):
        runs.get(SPEC)


# Many processes. One child imports the library, then forks: each writer opens the store for itself.

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
def test_killed_writer_loses_at_most_the_run_in_flight(path):
    reported = child(KILLED, path)
    assert len(reported) >= 191
    with RunStore(path) as runs:
        stored = {spec.key for spec, _ in runs.rows(history=True)}
        # Each of the five may have been killed between storing a run and reporting it.
        assert set(reported) <= stored
        assert len(stored) <= len(reported) + 5
        runs.append(SPEC, done())
        assert runs.has(SPEC)
