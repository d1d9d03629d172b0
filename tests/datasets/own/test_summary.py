"""The first look, and what it frowns at."""

import numpy as np
import pandas as pd
import pytest
from torch_geometric.utils import homophily

from bigcn.datasets.own import look, read_graph

RNG = np.random.default_rng(0)
N = 60
KIND = np.array(["u", "v"])[RNG.permutation(np.arange(N) % 2)]


def graph(edges=None, **columns):
    frame = pd.DataFrame({"id": range(N), "size": RNG.normal(size=N), "kind": KIND, **columns})
    if edges is None:
        same = [(i, j) for i in range(N) for j in RNG.permutation(np.flatnonzero(KIND[i] == KIND))[:3]]
        edges = pd.DataFrame(same, columns=["source", "target"])
    return read_graph(frame, edges, label="kind")


def warnings(*args, **columns) -> str:
    return " ".join(graph(*args, **columns).summary.warnings)


def test_a_good_graph_raises_no_eyebrow():
    assert warnings(other=RNG.normal(size=N), flag=RNG.random(N) < 0.5, colour=RNG.choice(["r", "g"], N)) == ""


GONE = np.where(np.arange(N) < 40, np.nan, RNG.normal(size=N))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"c": 5.0}, "Column 'c' is constant."),
        ({"c": "x"}, "Column 'c' is constant."),
        ({"c": 5.0, "d": True}, "2 columns are constant: 'c', 'd'."),
        ({"row": np.arange(N) * 3 + 7}, "Column 'row' looks like an id"),
        ({"row": RNG.permutation(N) + 100}, "Column 'row' looks like an id"),
        ({"leak": np.where(KIND == "u", 3.5, -2)}, "Column 'leak' gives the label away"),
        ({"leak": np.where(KIND == "u", "one", "two")}, "Column 'leak' gives the label away"),
        ({"leak": np.where(np.arange(len(KIND)) % 3 == 1, "", KIND)}, "Column 'leak' gives the label away"),
        ({"share": [f"{place % 7}%" for place in range(len(KIND))]}, "but '0%' is none"),
        ({"cost": [("?", "€1,000", "€7")[place % 3] for place in range(len(KIND))]}, "but '?' is none"),
        ({"seen": [f"2021-01-{place % 5 + 1:02}" for place in range(len(KIND))]}, "dates or times (as '2021-01-01')"),
        ({"zip": [f"0{place % 9}1" for place in range(N)]}, "'001' looks like a code"),
        ({"split": ["train", "tram", "bus"] * (N // 3)}, "for the split: it holds 'train', but 'bus' is none of train"),
        ({"gone": GONE}, "Column 'gone' is missing in more than half of the rows."),
        ({"gone": GONE}, "33% of all feature values are missing."),
        ({"kind": ["w", "w", *KIND[2:]]}, "Class 'w' has 2 labels only."),
        ({"kind": [None] * N}, "No node has a label."),
        ({"kind": ["u"] * N}, "All labelled nodes are of one class, 'u'."),
    ],
)
def test_sentences(columns, sentence):
    assert sentence in warnings(**columns)


def test_a_split_that_is_a_feature_by_choice():
    frame = pd.DataFrame({"id": range(N), "size": RNG.normal(size=N), "split": ["train", "val", "test"] * (N // 3)})
    edges = pd.DataFrame({"source": [0], "target": [1]})
    assert "split" not in " ".join(read_graph(frame, edges, features=["size", "split"]).summary.warnings)


def test_what_is_no_id():
    assert "looks like" not in warnings(year=RNG.integers(1990, 2020, N), real=np.sort(RNG.normal(size=N)))


def test_edges():
    none = pd.DataFrame({"source": [], "target": []}, dtype=int)
    assert "There are no edges" in warnings(none)
    few = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    assert "57 of 60 nodes have no edge" in warnings(few)
    pairs = RNG.integers(0, N, (300, 2))
    mixed = graph(pd.DataFrame(pairs, columns=["source", "target"]))
    assert "the graph may not help" in " ".join(mixed.summary.warnings)
    expected = homophily(mixed.data.edge_index, mixed.data.y, method="edge")
    assert mixed.summary.homophily == pytest.approx(expected)


def test_homophily_counts_labelled_edges_alone():
    edges = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3]})
    found = graph(edges, kind=["u", "u", "v", None] + [None] * (N - 4))
    assert found.summary.homophily == 0.5
    assert graph(edges, kind=["u"] + [None] * (N - 1)).summary.homophily is None


def test_look():
    edges = pd.DataFrame({"source": [0, 1, 1, 5, 2], "target": [1, 0, 2, 5, 99], "weight": 1.0})
    frame = pd.DataFrame({"id": range(N), "size": RNG.normal(size=N), "flag": RNG.random(N) < 0.5, "kind": KIND})
    frame.loc[0, "size"] = np.nan
    found = read_graph(frame, edges, label="kind", unknown_ids="drop")
    lines = look(found.summary)
    assert "60 (57 isolated, 58 components)" in lines[0]
    assert "2, weighted (1 duplicates merged, 1 self-loops removed, 1 skipped for an unknown id)" in lines[1]
    assert "1 number, 1 boolean; 0.8% of the values missing" in lines[2]
    assert "2 classes, 60 labelled, 0 to predict" in lines[3]
    assert lines[4].split() == ["30", "u"]
    assert any(line.startswith("warning") and "57 of 60" in line for line in lines)
    divided = look(found.summary, split="as it was told")
    assert [line for line in divided if line not in lines] == ["split      as it was told"]
    assert divided.index("split      as it was told") < next(i for i, line in enumerate(divided) if "57 of" in line)
    many = look(read_graph(frame.assign(kind=np.arange(N) % 25), edges, label="kind", unknown_ids="drop").summary)
    assert any("5 more classes" in line for line in many)
