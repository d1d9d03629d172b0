import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def tables(tmp_path):
    generator = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": range(30), "a": generator.normal(size=30), "kind": ["x", "y", "z"] * 10})
    nodes.to_parquet(tmp_path / "nodes.parquet")
    ends = generator.integers(30, size=(2, 80))
    pd.DataFrame({"source": ends[0], "target": ends[1]}).to_parquet(tmp_path / "edges.parquet")


@pytest.mark.usefixtures("tables")
def test_it_writes_shards_and_says_what_it_found(bigcn, tmp_path):
    arguments = ("partition", "nodes.parquet", "edges.parquet", "--parts", "2", "--label", "kind", "-o", "shards")
    done = bigcn(*arguments, "--json")
    document = json.loads(done.out)
    (warning,) = document["warnings"]  # the edges are random
    assert "the graph may not help" in warning
    assert (done.code, done.err) == (0, f"warning: {warning}\n")
    manifest = json.loads((tmp_path / "shards" / "manifest.json").read_text())
    assert document["nodes"] == 30
    assert document["edges"] == manifest["edges"]
    assert document["classes"] == ["x", "y", "z"]
    assert [part["nodes"] for part in document["parts"]] == manifest["sizes"]
    assert [part["halo"] for part in document["parts"]] == manifest["halos"]
    again = bigcn(*arguments)
    assert again.code == 2
    assert again.err == "bigcn: shards already holds shards, and was left as it is ('--overwrite' replaces them)\n"
    people = bigcn(*arguments, "--overwrite", "--method", "random")
    assert people.code == 0
    assert "30 nodes" in people.out
    assert "self-loops" in people.out


@pytest.mark.usefixtures("tables")
def test_it_warns_as_training_does(bigcn, tmp_path):
    nodes = pd.read_parquet(tmp_path / "nodes.parquet")
    nodes["[when]"], nodes["code"], nodes["flat"] = pd.Timestamp("2026-01-01"), ["007", "042", "100"] * 10, 1.5
    nodes.to_parquet(tmp_path / "nodes.parquet")
    tables = ("nodes.parquet", "edges.parquet", "--label", "kind")
    looked = json.loads(bigcn("train", *tables, "--dry-run", "--json").out)
    done = bigcn("partition", *tables, "--parts", "2", "-o", "shards")
    assert done.err.splitlines() == [f"warning: {sentence}" for sentence in looked["graph"]["warnings"]]
    for part in ("'[when]': holds dates", "'code' is read as numbers", "'flat' is constant"):
        assert part in done.err


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("kinds", "parts", "said"),
    [
        (["x"] * 30, None, "all labels of nodes are 'x', and a classifier needs two classes at least"),
        (["x"] * 29 + ["y"], None, "class 'y' has one labelled node, and it takes one to train and another to judge"),
        (["x", "x", "y", "y"] + [None] * 26, None, "4 labels are too few to train, validate and test on"),
        ([None] * 30, None, "no node of nodes has a label, so there is nothing to learn from"),
        (["x"] * 30, ["train", "val", "test"] * 10, "all labels of nodes are 'x'"),
    ],
)
def test_labels_are_refused_as_training_refuses_them(bigcn, tmp_path, kinds, parts, said):
    nodes = pd.read_parquet(tmp_path / "nodes.parquet").assign(kind=pd.Series(kinds, dtype=object))
    (nodes if parts is None else nodes.assign(split=parts)).to_parquet(tmp_path / "nodes.parquet")
    tables = ("nodes.parquet", "edges.parquet", "--label", "kind")
    refused = bigcn("partition", *tables, "--parts", "2", "-o", "shards")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"bigcn: {said}")
    assert refused.err.strip() == bigcn("train", *tables).err.strip().removesuffix("; '--task link' needs no labels")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.parquet", "nodes.parquet"]


@pytest.mark.usefixtures("tables")
def test_a_class_of_one_may_stand_where_a_split_is_given(bigcn, tmp_path):
    nodes = pd.read_parquet(tmp_path / "nodes.parquet").assign(split=["train", "val", "test"] * 10)
    nodes.loc[0, "kind"] = "w"
    nodes.to_parquet(tmp_path / "nodes.parquet")
    assert (
        bigcn("partition", *("nodes.parquet", "edges.parquet"), "--parts", "2", "--label", "kind", "-o", "s").code == 0
    )


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nodes.parquet", "no.parquet", "--parts", "2"), "no.parquet cannot be read: No such file or directory"),
        (("edges.parquet", "nodes.parquet", "--parts", "2"), "nodes.parquet has one: are the two swapped?"),
        (("nodes.parquet", "edges.parquet", "--parts", "31"), "'--parts' must be at most the number of nodes, 30"),
        (("nodes.parquet", "edges.parquet", "--parts", "2", "--method", "metis"), "'--method' must be one of"),
        (("nodes.parquet", "edges.parquet", "--parts", "2", "--label", "no"), "has no column 'no'"),
        (("nodes.parquet", "edges.parquet", "--parts", "2", "--missing", "fill"), "'--missing' must be error or mean"),
    ],
)
def test_bad_input_ends_with_one_sentence(bigcn, tmp_path, arguments, message):
    done = bigcn("partition", *arguments, "-o", "shards")
    assert done.code == 2
    assert done.err.startswith("bigcn: ")
    assert done.err.count("\n") == 1
    assert message in done.err
    assert not done.out
    assert not (tmp_path / "shards").exists()


def test_a_table_without_features_says_why(bigcn, tmp_path):
    (tmp_path / "n.csv").write_text("id,born\na,2021-01-01\nb,2021-01-02\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    done = bigcn("partition", "n.csv", "e.csv", "--parts", "2", "-o", "shards")
    assert done.code == 2
    assert "n.csv has no feature columns: its columns are 'id', 'born' (column 'born': holds dates or times" in done.err


@pytest.mark.parametrize(("named", "hint"), [((), True), (("--split", "split"), False)])
def test_a_slip_in_the_split_is_named_as_in_training(bigcn, named, hint):
    words = ["train", "val", "test", "train", "tset", "train", "val", "test"]
    rows = "".join(f"{'abcdefgh'[i]},{i},{'xy'[i % 2]},{word}\n" for i, word in enumerate(words))
    Path("nodes.csv").write_text("id,size,kind,split\n" + rows)
    Path("edges.csv").write_text("source,target\na,b\nb,c\n")
    files = ("nodes.csv", "edges.csv", "--label", "kind", *named)
    for command in (("train", *files, "--dry-run"), ("partition", *files, "--parts", "2", "-o", "shards")):
        outcome = bigcn(*command)
        assert outcome.code == 2
        assert "row 6, column 'split': 'tset' is none of train, val and test" in outcome.err
        assert ("mend it, or call the column something else" in outcome.err) == hint
