"""Files that are not stores, places where none can be, and stores that are locked or closed."""

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from bigcn.experiments import store
from bigcn.experiments.store import RunStore, StoreError


def test_empty_file_and_odd_names_become_stores(tmp_path, spec, done):
    for name in ("empty", "50% #1?mode=ro&.sqlite", ":memory:"):
        (tmp_path / name).touch()
        with RunStore(tmp_path / name) as runs:
            runs.append(spec, done())
        with RunStore(tmp_path / name) as runs:
            assert runs.has(spec)
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


def test_damaged(path, spec, done):
    with RunStore(path) as runs:
        for seed in range(20):
            runs.append(replace(spec, seed=seed), done())
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


def test_waits_for_another_process_that_creates_the_store(path, monkeypatch, spec, done):
    RunStore(path).close()
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(store.time, "sleep", lambda _: other.execute("ROLLBACK"))
        with RunStore(path) as runs:
            runs.append(spec, done())
        assert not other.in_transaction


def test_closed(path, spec):
    runs = RunStore(path)
    runs.close()
    runs.close()
    with pytest.raises(StoreError, match="closed"):
        runs.get(spec)
