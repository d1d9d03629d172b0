import json
from pathlib import Path

import pandas as pd
import pytest
import torch

from bigcn import read_graph
from bigcn.datasets import digits, load_dataset, make_split
from bigcn.noise import CASES, make_noise


def read(folder: str = "tables", **options):
    tables = (f"{folder}/nodes.csv", f"{folder}/edges.csv")
    return read_graph(*tables, label="label", standardize=False, **options)


def check(graph, data):
    assert torch.equal(graph.data.x, data.x.to_dense() if data.x.layout != torch.strided else data.x)
    assert torch.equal(graph.data.y, data.y)
    assert torch.equal(graph.data.edge_index, data.edge_index)
    assert graph.data.edge_weight is None


def test_what_is_written_is_read_as_it_was(bigcn):
    outcome = bigcn("datasets", "export", "Digits", "-o", "new/tables")
    assert outcome.code == 0, outcome.err
    graph = read("new/tables")
    check(graph, digits())
    assert (graph.summary.duplicates, graph.summary.self_loops, graph.split) == (0, 0, None)
    assert (graph.ids[0], graph.ids[-1], len(set(graph.ids))) == ("digits-0001", "digits-1797", 1797)
    assert graph.feature_names[9] == "pixel 1 1"
    assert outcome.out.splitlines() == [
        "new/tables/nodes.csv: 1,797 nodes, 64 features, 10 classes",
        "new/tables/edges.csv: 5,391 edges",
    ]
    assert "bigcn train new/tables/nodes.csv new/tables/edges.csv --label label --save model" in outcome.err


@pytest.mark.parametrize(
    ("case", "value"),
    [
        ("noise-level", 0.5),
        ("noise-rate", 0.3),
        ("column-noise", 0.2),
        ("structure-mistakes", 0.001),
        ("feature-rate", 0.2),
    ],
)
def test_noise_is_that_of_the_transform(bigcn, case, value):
    outcome = bigcn("datasets", "export", "digits", "-o", "t", "--case", case, "--value", str(value), "--seed", "3")
    assert outcome.code == 0, outcome.err
    noise = make_noise(case, value, seed=3)
    graph, clean = read("t"), digits()
    check(graph, noise(clean))
    kept = noise.changes(clean).columns if case == "feature-rate" else range(64)
    assert list(graph.feature_names) == [f"pixel {int(column) // 8} {int(column) % 8}" for column in kept]


def test_every_kind_of_noise_is_named(bigcn):
    said = bigcn("datasets", "export", "--help").out
    assert all(case in said for case in CASES)


def test_a_graph_with_a_split_of_its_own(bigcn, monkeypatch, benchmark_data):
    monkeypatch.setenv("BIGCN_DATA", str(benchmark_data))
    data = load_dataset("cora")
    for words, protocol in (
        ((), "authors"),
        (("--protocol", "public"), "public"),
        (("--protocol", "random"), "random"),
    ):
        options = ("--case", "structure-mistakes", "--value", "0.001", "--seed", "7", "--force", "--json", *words)
        document = json.loads(bigcn("datasets", "export", "cora", "-o", "t", *options).out)
        graph, split = read("t"), make_split(data, "cora", protocol, 7)
        check(graph, make_noise("structure-mistakes", 0.001, seed=7)(data))
        sizes = {}
        for part in ("train", "val", "test"):
            assert getattr(graph.split, part).tolist() == sorted(getattr(split, part).tolist())
            sizes[part] = len(getattr(split, part))
        assert document == {
            "graph": "cora", "files": {"nodes": "t/nodes.csv", "edges": "t/edges.csv"}, "nodes": 2708,
            "edges": graph.summary.edges, "features": 1433, "classes": 7, "protocol": protocol, "split": sizes,
            "case": "structure-mistakes", "value": 0.001, "seed": 7,
        }  # fmt: skip


def test_a_split_of_digits_is_drawn_where_it_is_asked_for(bigcn):
    assert bigcn("datasets", "export", "digits", "-o", "t", "--protocol", "random", "--seed", "2").code == 0
    split = make_split(digits(), "digits", "random", 2)
    assert read("t").split.val.tolist() == sorted(split.val.tolist())


def test_tables_that_are_there_stay_unless_they_are_to_be_replaced(bigcn):
    Path("t").mkdir()
    Path("t/edges.csv").write_text("mine")
    outcome = bigcn("datasets", "export", "digits", "-o", "t")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "bigcn: t/edges.csv is there already and was left as it is ('--force' replaces it)\n"
    assert [path.name for path in Path("t").iterdir()] == ["edges.csv"]
    assert Path("t/edges.csv").read_text() == "mine"
    assert bigcn("datasets", "export", "digits", "-o", "t", "--force").code == 0
    assert len(pd.read_csv("t/edges.csv")) == 5391


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("citsier", "-o", "t"), "did you mean 'citeseer'?"),
        (("digits",), "missing option '--output'"),
        (("digits", "-o", ""), "it names no folder"),
        (("digits", "-o", "taken"), "'--output' names something in taken, which is a file"),
        (("digits", "-o", "taken/t"), "which is a file"),
        (("digits", "-o", "t", "--case", "dust"), "'--case' does not fit: case must be one of clean, noise-level"),
        (("digits", "-o", "t", "--case", "noise-level"), "'--case noise-level' takes an amount of noise: '--value'"),
        (("digits", "-o", "t", "--value", "0.5"), "'--value' is the amount of a kind of noise, which '--case' names"),
        (("digits", "-o", "t", "--case", "noise-rate", "--value", "2"), "'--value' does not fit: rate must be"),
        (("digits", "-o", "t", "--case", "noise-rate", "--value", "nan"), "'--value' does not fit: rate must be"),
        (("digits", "-o", "t", "--protocol", "public"), "protocol 'public' does not exist for Digits"),
        (("digits", "-o", "t", "--seed", "-1"), "'--seed'"),
    ],
)
def test_mistakes_end_with_one_sentence(bigcn, words, said):
    Path("taken").write_text("no folder")
    outcome = bigcn("datasets", "export", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("bigcn: ")
    assert outcome.err.count("\n") == 1
    assert said in outcome.err
    assert [path.name for path in Path().iterdir()] == ["taken"]
