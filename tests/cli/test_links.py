import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from bigcn import read_graph
from bigcn.cli.links import embedding_of
from bigcn.estimators import BiGCNClassifier
from bigcn.links import LinkScorer

QUICK = ("--quick", "--max-epochs", "10", "--models", "none", "--device", "cpu")
READERS = {
    "out.csv": pd.read_csv,
    "out.tsv": lambda path: pd.read_csv(path, sep="\t"),
    "out.parquet": pd.read_parquet,
}


def wrong_links(seed: int = 3, count: int = 12) -> pd.DataFrame:
    """Adds links between trees of different kinds to the tables, and returns them."""
    edges = pd.read_csv("edges.csv")
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 60, (2, 200))
    pairs = pairs[:, pairs[0] % 3 != pairs[1] % 3][:, :count]
    added = pd.DataFrame([[f"tree-{i:03d}" for i in row] for row in pairs], index=["source", "target"]).T
    pd.concat([edges, added]).to_csv("edges.csv", index=False)
    return added


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("shelf") / "model"


@pytest.fixture
def trained(bigcn, forest, shelf):
    """Trains a model for nodes on the trees, some of whose links are wrong, once, and returns the command."""
    forest()
    wrong_links()
    if not shelf.exists():
        outcome = bigcn("train", "nodes.csv", "edges.csv", "--label", "kind", *QUICK, "--save", str(shelf))
        assert outcome.code == 0, outcome.err
    shutil.copytree(shelf, "model")
    return bigcn


def kinds(ids: pd.Series) -> np.ndarray:
    return ids.str.removeprefix("tree-").astype(int).to_numpy() % 3


@pytest.mark.parametrize("name", READERS)
def test_wrong_links_and_missing_ones_are_listed(trained, name):
    options = ("--missing", "15", "--suspect", "10", "--device", "cpu", "-o", name)
    outcome = trained("links", "model", "nodes.csv", "edges.csv", *options)
    assert outcome.code == 0, outcome.err
    found = READERS[name](name)
    assert list(found.columns) == ["kind", "source", "target", "score"]
    assert found["kind"].tolist() == ["suspect"] * 10 + ["missing"] * 15
    assert found["score"].between(0, 1).all()
    edges = pd.read_csv("edges.csv")
    linked = {frozenset(pair) for pair in edges[["source", "target"]].to_numpy().tolist()}
    pairs = [frozenset(pair) for pair in found[["source", "target"]].to_numpy().tolist()]
    assert all(pair in linked for pair in pairs[:10])
    assert not any(pair in linked for pair in pairs[10:])
    across = kinds(found["source"]) != kinds(found["target"])
    assert across[:10].mean() > 0.5
    assert across[10:].mean() < 0.2
    assert f"25 pairs: {name}" in outcome.err
    assert "probably mistakes" in outcome.out
    assert "tree-" in outcome.out


def test_a_model_for_links(trained):
    words = ("train", "nodes.csv", "edges.csv", "--label", "kind", "--task", "link", *QUICK, "--save", "l")
    assert trained(*words).code == 0
    outcome = trained("links", "l", "nodes.csv", "edges.csv", "--missing", "0", "--suspect", "10", "--json")
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out)["rows"]
    assert [row["kind"] for row in rows] == ["suspect"] * 10
    across = [kinds(pd.Series([row["source"]])) != kinds(pd.Series([row["target"]])) for row in rows]
    assert np.mean(across) > 0.5


def test_scores_are_those_of_the_library(trained):
    outcome = trained("links", "model", "nodes.csv", "edges.csv", "--missing", "0", "--suspect", "9999", "--json")
    rows = json.loads(outcome.out)["rows"]
    graph = read_graph("nodes.csv", "edges.csv", label="kind")
    classifier = BiGCNClassifier.load("model")
    embed = embedding_of(classifier, graph)
    scorer = LinkScorer(graph.data.x, graph.data.edge_index, embed=embed)
    assert len(rows) == scorer.edges.shape[1]
    np.testing.assert_allclose([row["score"] for row in rows], np.sort(1 - scorer.scores)[::-1], atol=1e-5)
    # The cosine of what a model for nodes gives is how much two nodes' classes overlap.
    z = embed(graph.data.edge_index, None)
    torch.testing.assert_close(z.square(), torch.from_numpy(classifier.predict_proba(graph)))


def test_nothing_asked_for(trained):
    outcome = trained("links", "model", "nodes.csv", "edges.csv", "--missing", "0", "--suspect", "0", "-o", "out.csv")
    assert outcome.code == 0, outcome.err
    assert Path("out.csv").read_text().strip() == "kind,source,target,score"


def test_ids_are_written_as_they_stood(trained):
    for name in ("nodes.csv", "edges.csv"):
        Path(name).write_text(Path(name).read_text().replace("tree-", "0"))
    assert trained("links", "model", "nodes.csv", "edges.csv", "--suspect", "5", "-o", "out.csv").code == 0
    assert pd.read_csv("out.csv", dtype=str)["source"].str.fullmatch(r"0\d{3}").all()


def test_markup_in_ids_is_text(trained):
    for name in ("nodes.csv", "edges.csv"):
        Path(name).write_text(Path(name).read_text().replace("tree-", "[red]"))
    outcome = trained("links", "model", "nodes.csv", "edges.csv", "--missing", "3", "--suspect", "3")
    assert outcome.code == 0, outcome.err
    assert "[red]" in outcome.out


def append(name: str, text: str = "x") -> None:
    with open(name, "a") as file:
        file.write(text)


def few_edges() -> None:
    Path("edges.csv").write_text("source,target\ntree-001,tree-002\n")


def punch() -> None:
    nodes = pd.read_csv("nodes.csv")
    nodes.loc[3, "trait 2"] = None
    nodes.to_csv("nodes.csv", index=False)


BAD: dict[str, tuple] = {
    "no model": (lambda: shutil.rmtree("model"), (), "the checkpoint model does not exist"),
    "altered weights": (lambda: append("model/model.safetensors"), (), "was changed after"),
    "no nodes": (lambda: os.unlink("nodes.csv"), (), "nodes.csv"),
    "no edges": (lambda: Path("edges.csv").write_text("source,target\n"), (), "too few"),
    "few edges": (few_edges, (), "1 edges, too few"),
    "other columns": (
        lambda: pd.read_csv("nodes.csv").drop(columns="soil").to_csv("nodes.csv", index=False),
        (),
        "lacks 'soil'",
    ),
    "unknown id": (lambda: append("edges.csv", "tree-000,nobody\n"), (), "nobody"),
    "negative count": (lambda: None, ("--missing", "-1"), "'--missing'"),
    "gaps refused": (punch, ("--gaps", "error"), "'fill' in place of 'error'"),
    "missing for gaps": (lambda: None, ("--missing", "fill"), "for missing feature values there is '--gaps'"),
    "negative seed": (lambda: None, ("--seed", "-1"), "'--seed'"),
    "gaps misspelt": (lambda: None, ("--gaps", "guess"), "'--gaps'"),
    "unknown device": (lambda: None, ("--device", "abacus"), "'--device'"),
    "another ending": (lambda: None, ("-o", "out.docx"), "out.docx"),
    "output is a folder": (lambda: os.mkdir("sub.csv"), ("-o", "sub.csv"), "sub.csv is a folder"),
}


@pytest.mark.parametrize(("harm", "options", "reason"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_a_sentence(trained, harm, options, reason):
    Path("out.csv").write_text("before")
    harm()
    output = () if "-o" in options else ("-o", "out.csv")
    outcome = trained("links", "model", "nodes.csv", "edges.csv", *output, *options)
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    (line,) = outcome.err.strip().splitlines()
    assert line.startswith("bigcn: ")
    assert reason in line
    assert Path("out.csv").read_text() == "before"


def test_help_has_an_example(bigcn):
    outcome = bigcn("links", "--help")
    assert outcome.code == 0
    assert "bigcn links model nodes.csv edges.csv" in outcome.out
