"""Reading tables, against a reading in plain Python."""

import csv
import gzip
import io
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bigcn
from bigcn.datasets import load_dataset
from bigcn.datasets.own import Encoding, InputError, decode, read_graph, write_graph

LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp"))
TEXT_IDS = st.text(st.one_of(LETTERS, st.sampled_from("01.,;\"' ")), min_size=1, max_size=4).filter(
    lambda text: text.strip() == text
)
IDS = st.one_of(
    st.lists(TEXT_IDS, min_size=1, max_size=8, unique=True),
    st.lists(st.sampled_from(["1", "01", "001", "1.0", "+1", "NA", "nan", "null", "true"]), min_size=1, unique=True),
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=8, unique=True),
)
NUMBERS = st.one_of(st.none(), st.floats(-1e6, 1e6).map(lambda v: round(v, 3)))
WEIGHTS = st.floats(0.001, 1000)
FORMATS = ("csv", "tsv", "csv.gz", "parquet", "frame")


@st.composite
def graphs(draw):
    ids = draw(IDS)
    n = len(ids)
    end = st.integers(0, n - 1)
    return {
        "ids": ids,
        "age": draw(st.lists(NUMBERS, min_size=n, max_size=n)),
        "colour": draw(st.lists(st.sampled_from(["red", "blue", "a,b", 'q"', None]), min_size=n, max_size=n)),
        "member": draw(st.lists(st.sampled_from(["true", "false"]), min_size=n, max_size=n)),
        "kind": draw(st.lists(st.sampled_from(["x", "10", "9", None]), min_size=n, max_size=n)),
        "edges": draw(st.lists(st.tuples(end, end, WEIGHTS), max_size=20)),
        "weighted": draw(st.booleans()),
        "order": draw(st.permutations(["id", "age", "colour", "member", "kind"])),
        "formats": (draw(st.sampled_from(FORMATS)), draw(st.sampled_from(FORMATS))),
    }


def stored(columns: dict, kind: str, path: Path):
    """Writes a table with Python's own means, apart from Parquet."""
    if kind in ("frame", "parquet"):
        frame = pd.DataFrame(columns)
        if kind == "frame":
            return frame
        frame.to_parquet(path.with_suffix(".parquet"))
        return path.with_suffix(".parquet")
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t" if kind == "tsv" else ",")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    path = path.with_name(f"{path.name}.{kind}")
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
    return path


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_agrees_with_plain_python(drawn):
    rows = {"id": drawn["ids"], **{name: drawn[name] for name in ("age", "colour", "member", "kind")}}
    links = {"source": [], "target": [], **({"weight": []} if drawn["weighted"] else {})}
    for u, v, w in drawn["edges"]:
        links["source"].append(drawn["ids"][u])
        links["target"].append(drawn["ids"][v])
        if drawn["weighted"]:
            links["weight"].append(w)
    # Empty columns of a data frame have no type to speak of.
    formats = drawn["formats"] if drawn["edges"] else (drawn["formats"][0], "csv")
    with tempfile.TemporaryDirectory() as folder:
        nodes = stored({name: rows[name] for name in drawn["order"]}, formats[0], Path(folder, "nodes"))
        edges = stored(links, formats[1], Path(folder, "edges"))
        graph = read_graph(nodes, edges, label="kind")

    assert [str(i) for i in graph.ids] == [str(i) for i in drawn["ids"]]
    expected = nx.Graph()
    expected.add_nodes_from(range(len(drawn["ids"])))
    for u, v, w in drawn["edges"]:
        if u != v:
            before = expected.get_edge_data(u, v, {"weight": 0.0})["weight"]
            expected.add_edge(u, v, weight=before + w)
    pairs = [(int(u), int(v)) for u, v in graph.data.edge_index.t()]
    assert pairs == sorted([e for u, v in expected.edges for e in ((u, v), (v, u))])
    if drawn["weighted"]:
        weights = graph.data.edge_weight.tolist()
        assert weights == pytest.approx([expected.edges[pair]["weight"] for pair in pairs], rel=1e-6)
    else:
        assert graph.data.edge_weight is None
    loops = sum(u == v for u, v, _ in drawn["edges"])
    assert graph.summary.self_loops == loops
    assert graph.summary.duplicates == len(drawn["edges"]) - loops - expected.number_of_edges()
    assert graph.summary.components == nx.number_connected_components(expected)
    assert graph.summary.isolated == nx.number_of_isolates(expected)

    found = {kind for kind in drawn["kind"] if kind is not None}
    classes = [kind for kind in ("9", "10", "x") if kind in found]  # numbers by size, before words
    assert list(graph.classes) == classes
    assert graph.data.y.tolist() == [-1 if kind is None else classes.index(kind) for kind in drawn["kind"]]

    assert torch.isfinite(graph.data.x).all()
    x = graph.data.x if graph.missing is None else torch.where(graph.missing, torch.nan, graph.data.x)
    features = dict(zip(graph.feature_names, x.t().tolist(), strict=True))
    for name, values in oracle(drawn).items():
        assert features.pop(name) == pytest.approx(values, rel=1e-4, abs=1e-5, nan_ok=True)
    assert not features
    cells = 3 * len(drawn["ids"])
    columns = [c for c in ("age", "colour", "member") if any(v is not None for v in drawn[c])]
    gone = sum(v is None for c in columns for v in drawn[c])
    assert graph.summary.missing == pytest.approx(gone / (cells / 3 * len(columns)))


def oracle(drawn) -> dict[str, list[float]]:
    """The features as one would compute them by hand."""
    result = {}
    known = [value for value in drawn["age"] if value is not None]
    if known:
        if set(known) <= {0, 1}:
            mean, scale = 0.0, 1.0
        else:
            mean, scale = statistics.fmean(known), statistics.pstdev(known) if len(set(known)) > 1 else 1.0
        result["age"] = [math.nan if v is None else (v - mean) / scale for v in drawn["age"]]
    for category in {v for v in drawn["colour"] if v is not None}:
        result[f"colour={category}"] = [math.nan if v is None else float(v == category) for v in drawn["colour"]]
    result["member"] = [float(v == "true") for v in drawn["member"]]
    return result


def test_the_same_table_in_other_dialects(read):
    plain = read("id,a,b\nx,1.5,red\ny,2.5,blue\nz,-3,red\n", "source,target,weight\nx,y,0.5\n")
    for nodes, edges in (
        ("id;a;b\nx;1,5;red\ny;2,5;blue\nz;-3;red\n", "source;target;weight\nx;y;0,5\n"),
        ("id\ta\tb\nx\t1.5\tred\ny\t2.5\tblue\nz\t-3\tred\n", "source|target|weight\nx|y|.5\n"),
        ("\ufeffid,a,b\r\nx,1.5,red\r\ny,2.5,blue\r\nz,-3,red\r\n", "\ufeffsource,target,weight\r\nx,y,5e-1\r\n"),
        ('\n"id" , a,"b"\n\nx, +1.5 ,red\ny,2.5,"blue"\n\nz,-3.0,red', "weight , target , source\n0.50,x,y"),
        (",id,a,b\n0,x,1.5,red\n1,y,2.5,blue\n2,z,-3,red\n", "source,target,weight\nx,y,0.5\n"),
    ):
        other = read(nodes, edges)
        assert other.ids.tolist() == plain.ids.tolist()
        assert other.encoding.columns == plain.encoding.columns
        assert torch.equal(other.data.x, plain.data.x)
        assert torch.equal(other.data.edge_index, plain.data.edge_index)
        assert torch.equal(other.data.edge_weight, plain.data.edge_weight)
    assert "without a name" in other.summary.warnings[0]


def test_ids_of_different_types_match_by_their_plain_text(read, tmp_path):
    ids = [7, 10**15, -3]
    frame = pd.DataFrame({"id": ids, "x": [0.1, 0.2, 0.4]})
    (tmp_path / "e.csv").write_text("source,target\n7,1000000000000000\n-3,7\n")
    assert read_graph(frame, tmp_path / "e.csv").data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    floats = pd.DataFrame({"source": [7.0, None], "target": [1e15, None]})
    assert read_graph(frame, floats.dropna()).data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert read_graph(frame, tmp_path / "e.csv").ids.dtype == np.int64
    (tmp_path / "e.csv").write_text("source,target\n07,-3\n")
    with pytest.raises(InputError, match="id '07' is not in the node table, where '7' is another id"):
        read_graph(frame, tmp_path / "e.csv")
    # Text is not read as a number.
    with pytest.raises(InputError, match="id '7' is not in"):
        read("id,x\n07,1\n7.0,2\n", "source,target\n7,07\n")


def test_options_name_the_columns(read):
    nodes = "key,size,part,kind,junk\n1,2.5,train,a,q\n2,3.5,val,b,r\n3,1.5,test,a,s\n4,0,,,t\n"
    graph = read(
        nodes, "a,b,w\n1,2,3\n2,3,1\n", id="key", source="a", target="b", weight="w", features=["size"], split="part",
        label="kind", standardize=False, name="mine",
    )  # fmt: skip
    assert graph.name == "mine"
    assert graph.feature_names == ("size",)
    assert graph.data.x.view(-1).tolist() == [2.5, 3.5, 1.5, 0.0]
    assert graph.data.y.tolist() == [0, 1, 0, -1]
    assert [part.tolist() for part in (graph.split.train, graph.split.val, graph.split.test)] == [[0], [1], [2]]
    assert graph.data.edge_weight.tolist() == [3, 3, 1, 1]
    encoding = graph.encoding
    assert (encoding.id, encoding.source, encoding.target, encoding.weight) == ("key", "a", "b", "w")
    assert Encoding.from_dict(encoding.to_dict()) == encoding


def test_a_column_called_split_is_one_if_it_reads_like_one(read):
    nodes = "id,x,kind,split\na,0.5,u,Train\nb,1.5,v,validation\nc,2.5,u,TEST\nd,3.5,,\n"
    graph = read(nodes, label="kind")
    assert graph.feature_names == ("x",)
    assert [graph.split.train.tolist(), graph.split.val.tolist(), graph.split.test.tolist()] == [[0], [1], [2]]
    assert read(nodes, label="kind", features=["x", "split"]).split is None
    other = read(nodes.replace("TEST", "left"), label="kind")
    assert other.split is None
    assert "split=left" in other.feature_names


def test_nodes_of_the_split_without_a_label_are_taken_out(read):
    graph = read("id,x,kind,split\na,0.5,u,train\nb,1.5,v,val\nc,2.5,u,test\nd,3.5,,train\n", label="kind")
    assert graph.split.train.tolist() == [0]
    assert any("1 nodes of the split" in warning for warning in graph.summary.warnings)


def test_unknown_ids_can_be_dropped(read):
    graph = read("id,x\na,1\nb,3\n", "source,target,weight\na,z,1\na,b,2\nz,z,1\n", unknown_ids="drop")
    assert graph.summary.unknown == 2
    assert graph.data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert graph.data.edge_weight.tolist() == [2, 2]


def test_missing_values_are_filled_from_the_neighbours():
    rng = np.random.default_rng(0)
    community = np.repeat([0, 1], 40)
    age = community * 10.0 + rng.normal(0, 0.5, 80)
    colour = np.where(community == 0, "red", "blue").astype(object)
    nodes = pd.DataFrame({"id": np.arange(80), "age": age, "colour": colour})
    hidden = rng.choice(80, 16, replace=False)
    nodes.loc[hidden[:8], "age"] = np.nan
    nodes.loc[hidden[8:], "colour"] = None
    pairs = [(i, j) for i in range(80) for j in rng.choice(np.flatnonzero(community == community[i]), 4)]
    graph = read_graph(nodes, pd.DataFrame(pairs, columns=["source", "target"]))
    table = decode(graph.encoding, graph.data.x)
    assert np.abs(table["age"][hidden[:8]] - community[hidden[:8]] * 10).max() < 4  # the column's mean is 5 off
    assert table["colour"][hidden[8:]].tolist() == colour[hidden[8:]].tolist()
    assert graph.missing.any(dim=0).all()
    assert int(graph.missing.any(dim=1).sum()) == 16


def test_columns_that_cannot_be_features_are_left_out_with_a_word(read):
    rows = "".join(f"n{i},{i % 3}.5,,title {i}\n" for i in range(12))
    graph = read("id,x,nothing,title\n" + rows)
    assert graph.feature_names == ("x",)
    said = " ".join(graph.summary.warnings)
    assert "'nothing': holds no value" in said
    assert "'title': holds another text for each node" in said
    assert read("id,x,nothing,title\n" + rows, features=["title"]).data.x.shape == (12, 12)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_benchmark_graph_survives_shuffled_rows_and_text_ids(ending, benchmark_data, tmp_path, monkeypatch):
    monkeypatch.setenv("BIGCN_DATA", str(benchmark_data))
    monkeypatch.setenv("BIGCN_CACHE", str(tmp_path / "cache"))
    data = load_dataset("cora")
    ids = np.array([f"paper-{i}" for i in range(data.num_nodes)])
    nodes, edges = tmp_path / f"nodes.{ending}", tmp_path / f"edges.{ending}"
    write_graph(data, nodes, edges, ids=ids)
    if ending == "csv":
        rng = np.random.default_rng(0)
        for path in (nodes, edges):
            header, *lines = path.read_text().splitlines()
            path.write_text("\n".join([header, *rng.permutation(np.array(lines, dtype=object))]) + "\n")
    graph = read_graph(nodes, edges, label="label")
    order = torch.tensor([int(name.removeprefix("paper-")) for name in graph.ids])
    assert (ending == "csv") == (order.diff() < 0).any()
    assert torch.equal(graph.data.x, data.x[order])
    assert torch.equal(graph.data.y, data.y[order])
    mine = {(int(order[u]), int(order[v])) for u, v in graph.data.edge_index.t()}
    assert mine == {(int(u), int(v)) for u, v in data.edge_index.t()}
    assert graph.summary.edges == 5278
    assert graph.summary.homophily == pytest.approx(0.81, abs=0.005)


# What the dependencies load on their own account is loaded first; then there is nothing to be had.
WITHOUT_TABLES = """
import sys
import sklearn.datasets, torch_geometric.nn, torch_geometric.datasets
for name in ("pandas", "pyarrow"):
    sys.modules[name] = None
from bigcn import read_graph
from bigcn.datasets.own import InputError, OwnGraph
try:
    read_graph("nodes.csv", "edges.csv")
except InputError as error:
    print(error)
"""


def test_it_is_a_public_name_that_needs_pyarrow_only_when_it_reads():
    assert bigcn.read_graph is read_graph
    assert "read_graph" in bigcn.__all__
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_TABLES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "needs pyarrow" in done.stdout


@pytest.mark.parametrize("name", ["nodes.csv", "nodes.csv.gz"])
def test_threads_that_read_need_no_interpreter(tmp_path, monkeypatch, name):
    # One that waits for the interpreter while it ends aborts the program, whatever its exit code was to be.
    nodes = "id,x\n1,0.5\n2,1.5\n"
    packed = gzip.compress(nodes[:9].encode()) + gzip.compress(nodes[9:].encode())  # two members are one file
    (tmp_path / name).write_bytes(packed if name.endswith(".gz") else nodes.encode())
    (tmp_path / "e.csv").write_text("source,target\n1,2\n")
    taken = []
    real = pa.csv.read_csv
    monkeypatch.setattr(pa.csv, "read_csv", lambda file, **options: taken.append(file) or real(file, **options))
    assert read_graph(tmp_path / name, tmp_path / "e.csv").summary.edges == 1
    assert len(taken) > 1
    assert all(isinstance(file, pa.NativeFile) and not isinstance(file, pa.PythonFile) for file in taken)
