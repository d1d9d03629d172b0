"""Runs that are stored, found again, summarised, merged and exported."""

import csv
import json
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bigcn.experiments import records, store
from bigcn.experiments.records import SUMMARY_COLUMNS
from bigcn.experiments.store import RunSpec, RunStore, StoreError

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def content(path):
    with RunStore(path) as runs:
        return list(runs.rows(history=True)), {spec.key: runs.history(spec) for spec, _ in runs.rows(history=True)}


@settings(max_examples=40, deadline=None)
@given(options=st.dictionaries(st.text(), json_values, max_size=4), name=st.text(), details=json_values)
@example(options={"\ud800": "\udcff"}, name="a\0b'; DROP TABLE runs; -- \udc80 Ω\r\n", details=None)
def test_round_trip(options, name, details, spec, done):
    spec = replace(spec, settings=options, dataset=name, case=name)
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


def test_failures_are_not_answered_and_the_newest_result_wins(path, spec, done, failed):
    old, new = done(0.7, started="2030-01-01T00:00:00Z"), done(0.9, started="2020-01-01T00:00:00Z")
    with RunStore(path) as runs:
        ids = [runs.append(spec, failed)]
        assert runs.get(spec) is None
        assert not runs.has(spec)
        assert list(runs.rows()) == []
        ids += [runs.append(spec, result) for result in (old, new, failed)]
        assert runs.get(spec) == new
        assert runs.has(spec.key)
        assert list(runs.rows()) == [(spec, new)]
        assert runs.history(spec) == list(zip(ids[::-1], [failed, new, old, failed], strict=True))
        assert len(list(runs.rows(history=True, status="failed"))) == 2
        assert runs.summary()[0]["mean"] == 0.9


def test_newest_wins_when_the_clock_is_set_back(path, monkeypatch, spec, done):
    clock = iter([2000, 1000, 1000])
    monkeypatch.setattr(store.time, "time_ns", lambda: next(clock))
    with RunStore(path) as runs:
        for accuracy in (0.1, 0.2, 0.3):
            runs.append(spec, done(accuracy))
            assert runs.get(spec) == done(accuracy)


def test_filters(path, spec, done):
    specs = [spec, replace(spec, value=None), replace(spec, seed=3), replace(spec, dataset="it's")]
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


def test_summary_agrees_with_numpy(path, spec, done, failed):
    scores = np.random.default_rng(0).random((2, 5))
    with RunStore(path) as runs:
        for model, row in zip(("gcn", "gat"), scores, strict=True):
            for seed, score in enumerate(row):
                runs.append(replace(spec, model=model, seed=seed), done(metrics={"accuracy": score, "f1": score / 2}))
        runs.append(replace(spec, seed=9), failed)
        rows = runs.summary("accuracy")
        assert runs.summary(model="gat", metric="f1")[0]["mean"] == pytest.approx(scores[1].mean() / 2)
        assert len(runs.summary()) == 4
    assert [row["model"] for row in rows] == ["gat", "gcn"]
    assert all(tuple(row) == SUMMARY_COLUMNS and row["seeds"] == 5 for row in rows)
    np.testing.assert_allclose([row["mean"] for row in rows], scores[::-1].mean(1))
    np.testing.assert_allclose([row["std"] for row in rows], scores[::-1].std(1, ddof=1))


# Merging and exporting.


def test_merge_in_either_order(tmp_path, spec, done, failed):
    names = [tmp_path / name for name in ("a", "b", "ab", "ba")]
    for i, name in enumerate(names[:2]):
        with RunStore(name) as runs:
            runs.append(replace(spec, seed=i), done(i))
            runs.append(spec, done(0.5 + i))
            runs.append(spec, failed)
    for target, sources in zip(names[2:], (names[:2], names[1::-1]), strict=True):
        with RunStore(target) as runs:
            assert [runs.merge(source) for source in (*sources, *sources, target)] == [3, 3, 0, 0, 0]
            assert runs.get(spec) == done(1.5)
        assert RunStore(target).export_json(tmp_path / f"{target.name}.json", history=True) is None
    assert content(names[2]) == content(names[3])
    assert (tmp_path / "ab.json").read_bytes() == (tmp_path / "ba.json").read_bytes()


def test_merge_from_a_read_only_folder(tmp_path, path, monkeypatch, spec, done):
    # Runs that are still in the log of a store which was never closed count, too.
    with RunStore(tmp_path / "live") as live, RunStore(path) as runs:
        live.append(spec, done())
        before = {file: (tmp_path / file).read_bytes() for file in ("live", "live-wal")}
        monkeypatch.setattr(store.os, "access", lambda *_: False)
        assert runs.merge(tmp_path / "live") == 1
        assert before == {file: (tmp_path / file).read_bytes() for file in before}


def test_merge_refuses(tmp_path, path, spec, done):
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("not a store")
    RunStore(tmp_path / "spoilt").append(spec, done())
    with sqlite3.connect(tmp_path / "spoilt") as db:
        db.execute("UPDATE runs SET settings = '{'")
    with RunStore(path) as runs:
        runs.append(spec, done())
        assert runs.merge(tmp_path / "empty") == 0
        assert (tmp_path / "empty").read_bytes() == b""
        for name, why in {"text": "not a SQLite", "spoilt": "damaged", "none": "not exist", ".": "folder"}.items():
            with pytest.raises(StoreError, match=why):
                runs.merge(tmp_path / name)
        assert not (tmp_path / "none").exists()
        assert list(runs.rows(history=True)) == [(spec, done())]


def test_export(tmp_path, path, spec, done, failed):
    with RunStore(path) as runs:
        runs.append(spec, done(metrics={"accuracy": 0.1, "f1": 1 / 3}))
        runs.append(replace(spec, seed=1, value=None), failed)
        runs.export_csv(tmp_path / "new" / "runs.csv", history=True)
        runs.export_json(tmp_path / "runs.json")
        runs.export_json(tmp_path / "runs.json")
        for target, why in {path: "is a database", tmp_path: "folder", path / "x.csv": "cannot be used"}.items():
            with pytest.raises(StoreError, match=why):
                runs.export_csv(target)
        assert runs.has(spec)
    with open(tmp_path / "new" / "runs.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[:9] == ["model", "dataset", "task", "case", "value", "protocol", "metric", "score", "seed"]
    found = [(line["seed"], line["metric"], line["score"], line["value"], line["error"]) for line in lines]
    assert sorted(found) == [
        ("0", "accuracy", "0.1", "0.5", ""),
        ("0", "f1", repr(1 / 3), "0.5", ""),
        ("1", "", "", "", failed.error),
    ]
    document = json.loads((tmp_path / "runs.json").read_text())
    (run,) = document["runs"]
    assert RunSpec(**{name: run[name] for name in records.SPEC_FIELDS}).key == run["key"] == spec.key
    assert run["metrics"] == {"accuracy": 0.1, "f1": 1 / 3}
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("name", ["runs.csv", "runs.json"])
@pytest.mark.parametrize(
    "content", [b"model,dataset,size\na,b,1\n", b'{\n "format": "another"\n}\n', b"x", b"\xff\xfe"]
)
def test_exports_replace_older_exports_alone(tmp_path, path, spec, done, name, content):
    with RunStore(path) as runs:
        runs.append(spec, done())
        export = runs.export_csv if name.endswith(".csv") else runs.export_json
        target = tmp_path / name
        target.write_bytes(content)
        with pytest.raises(StoreError, match=f"{name} is no export of runs"):
            export(target)
        assert target.read_bytes() == content
        target.write_bytes(b"")  # nothing is lost
        export(target)
        first = target.read_bytes()
        runs.append(replace(spec, seed=7), done())
        export(target)
        assert len(target.read_bytes()) > len(first)
        target.write_bytes(b"\xef\xbb\xbf" + first.replace(b"\n", b"\r\n"))  # as an editor may have saved it
        export(target)
        assert len(target.read_bytes()) > len(first)
