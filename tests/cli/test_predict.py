import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bigcn import read_graph
from bigcn.estimators import BiGCNClassifier


@pytest.fixture
def expected(trained) -> pd.DataFrame:
    graph = read_graph("nodes.csv", "edges.csv", label="kind")
    model = BiGCNClassifier.load("model")
    columns = {"id": graph.ids, "label": model.predict(graph), "probability": model.predict_proba(graph).max(axis=1)}
    return pd.DataFrame(columns)


READERS = {"out.csv": pd.read_csv, "out.tsv": lambda path: pd.read_csv(path, sep="\t"), "out.parquet": pd.read_parquet}


@pytest.mark.parametrize("name", READERS)
def test_every_node_in_the_order_of_the_table(trained, expected, name):
    outcome = trained("predict", "model", "nodes.csv", "edges.csv", "-o", name)
    assert outcome.code == 0, outcome.err
    assert outcome.out == ""
    found = READERS[name](name)
    assert list(found.columns) == ["id", "label", "probability"]
    assert (found["id"] == pd.read_csv("nodes.csv")["id"]).all()
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    known = pd.read_csv("nodes.csv")["kind"]
    assert (found["label"] == known)[known.notna()].mean() > 0.7


def test_all_probabilities(trained):
    assert trained("predict", "model", "nodes.csv", "edges.csv", "-o", "out.csv", "--all-probabilities").code == 0
    out = pd.read_csv("out.csv")
    shares = out[["p(beech)", "p(fir)", "p(oak)"]]
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.allclose(shares.max(axis=1), out["probability"])
    assert (shares.idxmax(axis=1) == "p(" + out["label"] + ")").all()


def test_to_standard_output(trained, expected):
    outcome = trained("predict", "model", "nodes.csv", "edges.csv")
    assert outcome.out.splitlines()[0] == "id,label,probability"
    assert len(outcome.out.splitlines()) == 61
    rows = json.loads(trained("predict", "model", "nodes.csv", "edges.csv", "--json").out)["rows"]
    assert [row["label"] for row in rows] == list(expected["label"])


def test_what_was_left_out_is_said(trained):
    pd.read_csv("nodes.csv").assign(extra=1).to_csv("more.csv", index=False)
    edges = pd.read_csv("edges.csv")
    pd.concat([edges, edges.head(2).assign(target="nobody")]).to_csv("links.csv", index=False)
    words = ("more.csv", "links.csv", "--unknown-ids", "drop")
    outcome = trained("predict", "model", *words, "-o", "out.csv")
    assert "warning: 2 edges skipped for an unknown id." in outcome.err
    assert "'extra'" in outcome.err
    outcome = trained("predict", "model", *words, "--json")
    document = json.loads(outcome.out)
    assert any("'extra'" in sentence for sentence in document["warnings"])
    assert "2 edges skipped" in trained("links", "model", *words, "-o", "pairs.csv").err
    assert "2 edges skipped" in trained("denoise", *words, "-o", "clean.csv").err


def test_a_new_graph(trained, forest):
    nodes, edges = forest("new-", nodes=45, seed=4, labelled=1.0)
    truth = pd.read_csv(nodes).set_index("id")["kind"]
    pd.read_csv(nodes).drop(columns="kind").to_csv(nodes, index=False)
    outcome = trained("predict", "model", nodes, edges, "-o", "out.csv")
    assert outcome.code == 0, outcome.err
    out = pd.read_csv("out.csv").set_index("id")["label"]
    assert (out == truth.loc[out.index]).mean() > 0.6


def without(column: str):
    return lambda table: table.drop(columns=column)


def with_gravel(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(soil=["gravel", *table["soil"].iloc[1:]])


def with_words(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{"trait 1": "tall"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (without("soil"), "lacks 'soil'"),
        (lambda table: table.rename(columns={"trait 2": "trait x"}), "'trait 2'.*'trait x'"),
        (with_gravel, "soil.*gravel"),
        (with_words, "trait 1"),
        (without("id"), "id"),
    ],
)
def test_other_columns_are_refused_with_what_differs(trained, change, reason):
    change(pd.read_csv("nodes.csv")).to_csv("other.csv", index=False)
    Path("out.csv").write_text("before")
    assert_refused(trained("predict", "model", "other.csv", "edges.csv", "-o", "out.csv"), reason)


def assert_refused(outcome, reason: str) -> None:
    assert outcome.code == 2, outcome.err
    (line,) = outcome.err.strip().splitlines()
    assert re.search(reason, line), line
    assert line.startswith("bigcn: ")
    assert Path("out.csv").read_text() == "before"


def append(path: str, content: bytes = b"x") -> None:
    with open(path, "ab") as file:
        file.write(content)


def newer(path: str = "model/config.json") -> None:
    config = Path(path)
    config.write_text(config.read_text().replace('"format_version": 1', '"format_version": 7'))


HARMS = {
    "no model": (lambda: shutil.rmtree("model"), "the checkpoint model does not exist"),
    "a file": (lambda: (shutil.rmtree("model"), Path("model").write_text("")), "model is a file"),
    "altered weights": (lambda: append("model/model.safetensors"), "was changed after it was written"),
    "altered split": (lambda: append("model/split.safetensors"), "was changed after it was written"),
    "altered configuration": (lambda: append("model/config.json", b" {}"), "not JSON"),
    "renamed class": (
        lambda: Path("model/config.json").write_text(Path("model/config.json").read_text().replace("beech", "birch")),
        "was changed after it was written",
    ),
    "newer": (newer, "in format 7"),
    "no weights": (lambda: os.unlink("model/model.safetensors"), "model.safetensors is missing"),
    "no configuration": (lambda: os.unlink("model/config.json"), "config.json is missing"),
    "not JSON": (lambda: Path("model/config.json").write_text("junk"), "not JSON"),
    "empty folder": (lambda: (shutil.rmtree("model"), os.mkdir("model")), "config.json is missing"),
    "pickled": (lambda: Path("model/model.safetensors").write_bytes(b"\x80\x04N."), "was changed after"),
}


@pytest.mark.parametrize(("harm", "reason"), HARMS.values(), ids=HARMS)
def test_a_model_that_cannot_be_trusted(trained, harm, reason):
    Path("out.csv").write_text("before")
    harm()
    assert_refused(trained("predict", "model", "nodes.csv", "edges.csv", "-o", "out.csv"), reason)


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("out.xls", "by its ending"),
        ("folder.csv", "a folder"),
        ("no/such/out.csv", "no such folder"),
        ("out", "by its"),
        ("nodes.csv", "which is read"),
        ("./edges.csv", "which is read"),
    ],
)
def test_a_place_that_cannot_be_written(trained, out, reason):
    os.mkdir("folder.csv")
    Path("out.csv").write_text("before")
    assert_refused(trained("predict", "model", "nodes.csv", "edges.csv", "-o", out), reason)


def test_a_full_disk_leaves_the_old_table(trained, monkeypatch):
    import errno

    def refuse(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    Path("out.csv").write_text("before")
    monkeypatch.setattr(os, "fsync", refuse)
    assert_refused(trained("predict", "model", "nodes.csv", "edges.csv", "-o", "out.csv"), "No space left on device")
    assert not [name for name in os.listdir(".") if name.endswith(".tmp")]
