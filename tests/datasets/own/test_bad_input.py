"""Files that cannot be understood: one sentence each, which says what is wrong and where."""

import gzip
import io
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcn.datasets.own import InputError, read_graph

NODES = b"id,age,kind\na,1.5,x\nb,2.5,y\nc,4,x\n"
EDGES = b"source,target\na,b\nb,c\n"


def table(text: str, count: int) -> bytes:
    """Rows of a pattern with {i} in it, below a header."""
    header, pattern = text.split("\n", 1)
    return (header + "\n" + "".join(pattern.format(i=i) + "\n" for i in range(count))).encode()


def parquet(**columns) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer, index=False)
    return buffer.getvalue()


# What it is: the files, the options, and what the sentence must say.
NODE_TABLES = {
    "empty file": (b"", {}, ["nodes.csv", "empty"]),
    "blank lines alone": (b"\n\n\n", {}, ["nodes.csv", "empty"]),
    "header only": (b"id,age,kind\n", {}, ["nodes.csv", "no rows"]),
    "header without line break": (b"id,age,kind", {}, ["nodes.csv", "no rows"]),
    "binary junk": (bytes(range(256)) * 4, {}, ["nodes.csv", "binary"]),
    "workbook": (b"PK\x03\x04" + b"\x00" * 100, {}, ["nodes.csv", "Excel"]),
    "parquet in disguise": (b"PAR1" + b"\x00" * 100, {}, ["nodes.csv", "Parquet"]),
    "UTF-16": ("id,age\na,1\n".encode("utf-16"), {}, ["nodes.csv", "UTF-16", "UTF-8"]),
    "not UTF-8": ("id,name\na,é\nb,ü\n".encode("latin-1"), {}, ["nodes.csv", "row 2", "byte 10", "0xe9"]),
    "header not UTF-8": ("id,größe\na,1\n".encode("latin-1"), {}, ["nodes.csv", "row 1", "byte 5", "0xf6"]),
    "separated by blanks": (b"id age\na 1\nb 2\n", {}, ["nodes.csv", "'id'", "'id age'", "blanks"]),
    "no header": (b"1,2.5\n2,3.5\n", {}, ["nodes.csv", "'id'", "'1', '2.5'", "header"]),
    "no id column": (b"name,age\na,1\n", {}, ["nodes.csv", "'id'", "--id", "'name', 'age'"]),
    "id column misnamed": (NODES, {"id": "key"}, ["nodes.csv", "'key'", "'id', 'age', 'kind'"]),
    "duplicate id": (b"id,age\na,1\nb,2\n\na,3\n", {}, ["nodes.csv", "row 5", "row 2", "'a'", "column 'id'"]),
    "missing id": (b"id,age\na,1\n,2\n", {}, ["nodes.csv", "row 3", "column 'id'", "missing"]),
    "duplicate column": (b"id,age,age\na,1,2\n", {}, ["nodes.csv", "two columns", "'age'"]),
    "too few cells": (b"id,age,kind\na,1,x\nb,2\n", {}, ["nodes.csv", "row 3", "2 cells", "3"]),
    "too many cells": (b"id,age\na,1\nb,2,3\n", {}, ["nodes.csv", "row 3", "3 cells", "2"]),
    "open quotation mark": (b'id,age,kind\na,1,x\nb,2,"y\nc,3,x\n', {}, ["nodes.csv", "row 3", "quotation mark"]),
    "no label column": (NODES, {"label": "colour"}, ["nodes.csv", "'colour'", "--label", "'kind'"]),
    "no feature columns": (b"id,kind\na,x\nb,y\n", {"label": "kind"}, ["nodes.csv", "no feature columns", "'kind'"]),
    "no usable column": (
        b"id,born,gone,kind\na,2021-01-01,,x\nb,2021-01-02,,y\n", {"label": "kind"},
        ["nodes.csv", "no feature columns", "'id', 'born', 'gone', 'kind'", "(column 'born': holds dates or times",
         "column 'gone': holds no value at all"],
    ),
    "no header, and the same number twice": (b"a,0.5,0.5\nb,1,2\n", {}, ["two columns called '0.5'", "header?"]),
    "unknown feature": (NODES, {"features": ["size"]}, ["nodes.csv", "'size'", "'age'"]),
    "label as feature": (NODES, {"features": ["kind"], "label": "kind"}, ["nodes.csv", "'kind'", "feature"]),
    "infinite feature": (b"id,age\na,1\nb,inf\nc,2\n", {}, ["nodes.csv", "row 3", "column 'age'", "infinite"]),
    "overflowing feature": (b"id,age\na,1\nb,1e400\nc,2\n", {}, ["nodes.csv", "row 3", "column 'age'", "too large"]),
    "too large for single precision": (
        b"id,age\na,1\nb,1e60\nc,2\n", {"standardize": False}, ["nodes.csv", "row 3", "column 'age'", "too large"],
    ),
    "a word among numbers": (
        table("id,age\nn{i},{i}.5", 20) + b"n99,old\n", {}, ["nodes.csv", "row 22", "column 'age'", "'old'", "95.2%"],
    ),
    "missing value": (
        b"id,age,kind\na,1,x\nb,,y\nc,3,\n", {"missing": "error"},
        ["nodes.csv", "row 3", "column 'age'", "missing", "2 such", "'fill' in place of 'error'"],
    ),
    "empty column chosen": (b"id,age,b\na,1,\nb,2,\n", {"features": ["b"]}, ["nodes.csv", "column 'b'", "no value"]),
    "measurements as labels": (table("id,age,y\nn{i},{i},{i}.25", 30), {"label": "y"}, ["column 'y'", "measurements"]),
    "names as labels": (table("id,age,y\nn{i},{i},name{i}", 30), {"label": "y"}, ["column 'y'", "30 different"]),
    "numbers as labels": (table("id,age,y\nn{i},{i},{i}", 30), {"label": "y"}, ["column 'y'", "30 different"]),
    "unknown part": (
        b"id,age,s\na,1,train\nb,2,holdout\n", {"split": "s"}, ["nodes.csv", "row 3", "column 's'", "'holdout'"],
    ),
    "unknown part, as it is spelt": (
        b"id,age,s\na,1,train\nb,2,TsEt\nc,3,x\n", {"split": "s"}, ["row 3", "'TsEt' is none", "1 more are none"],
    ),
    "a slip in the split": (
        b"id,age,kind,split\na,1,x,train\nb,2,y,val\nc,3,x,tset\nd,4,y,test\n", {"label": "kind"},
        ["nodes.csv", "row 4", "column 'split': 'tset' is none of train, val and test", "something else"],
    ),
    "part without nodes": (b"id,age,s\na,1,train\nb,2,test\n", {"split": "s"}, ["nodes.csv", "column 's'", "'val'"]),
    "no split column": (NODES, {"split": "part"}, ["nodes.csv", "'part'", "--split"]),
    "a million columns": (
        ("id," + ",".join(f"c{i}" for i in range(1_000_000)) + "\n").encode(), {},
        ["nodes.csv", "1,000,001 columns", "100,000"],
    ),
    "too many texts chosen": (
        table("id,name\nn{i},name{i}", 1001), {"features": ["name"]}, ["column 'name'", "1,001", "1,000"],
    ),
    "wrong word for missing": (NODES, {"missing": "zero"}, ["'missing'", "fill or error", "'zero'"]),
    "wrong word for unknown ids": (NODES, {"unknown_ids": "keep"}, ["'unknown_ids'", "error or drop", "'keep'"]),
    "features as text": (NODES, {"features": "age"}, ["'features'", "list", "'age'"]),
}  # fmt: skip

EDGE_TABLES = {
    "empty file": (b"", {}, ["edges.csv", "empty"]),
    "no source": (b"from,target\na,b\n", {}, ["edges.csv", "'source'", "--source", "'from', 'target'"]),
    "no target": (b"source,to\na,b\n", {}, ["edges.csv", "'target'", "--target", "'source', 'to'"]),
    "no header": (b"a,1\nb,2\n", {}, ["edges.csv", "'source'", "'a', '1'", "header"]),
    "no weight": (EDGES, {"weight": "w"}, ["edges.csv", "'w'", "--weight"]),
    "unknown source": (
        b"source,target\na,b\nz,b\n", {}, ["edges.csv", "row 3", "column 'source'", "'z'", "nodes.csv", "1 such"],
    ),
    "unknown target": (
        b"source,target\na,b\n\n\nb,q\nb,r\n", {}, ["edges.csv", "row 5", "column 'target'", "'q'", "2 such", "drop"],
    ),
    "missing end": (b"source,target\na,\n", {}, ["edges.csv", "row 2", "column 'target'", "missing"]),
    "negative weight": (
        b"source,target,weight\na,b,1\nb,c,-2\n", {}, ["edges.csv", "row 3", "column 'weight'", "above zero", "-2"],
    ),
    "zero weight": (b"source,target,weight\na,b,0\n", {}, ["edges.csv", "row 2", "column 'weight'", "it is 0"]),
    "infinite weight": (b"source,target,weight\na,b,inf\n", {}, ["edges.csv", "row 2", "column 'weight'", "inf"]),
    "missing weight": (b"source,target,weight\na,b,1\nb,c,\n", {}, ["edges.csv", "row 3", "column 'weight'", "''"]),
    "NaN weight": (b"source,target,weight\na,b,nan\n", {}, ["edges.csv", "row 2", "column 'weight'", "missing"]),
    "word as weight": (b"source,target,w\na,b,big\n", {"weight": "w"}, ["edges.csv", "row 2", "column 'w'", "'big'"]),
    "weight too small for single precision": (
        b"source,target,weight\na,b,1e-60\n", {}, ["edges.csv", "row 2", "column 'weight'", "1e-60 is too small"],
    ),
    "weight too large for single precision": (
        b"source,target,weight\na,b,1\nb,c,1e308\n", {},
        ["edges.csv", "row 3", "column 'weight'", "1e+308 is too large"],
    ),
    "weights that add up to infinity": (
        b"source,target,weight\na,b,3e38\nb,a,3e38\n", {}, ["edges.csv", "add up to infinity"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NODE_TABLES)
def test_node_tables(case, tmp_path, refused):
    content, options, fragments = NODE_TABLES[case]
    (tmp_path / "nodes.csv").write_bytes(content)
    (tmp_path / "edges.csv").write_bytes(b"source,target\n")
    message = refused(tmp_path / "nodes.csv", tmp_path / "edges.csv", **options)
    for fragment in fragments:
        assert fragment in message


@pytest.mark.parametrize("case", EDGE_TABLES)
def test_edge_tables(case, tmp_path, refused):
    content, options, fragments = EDGE_TABLES[case]
    (tmp_path / "nodes.csv").write_bytes(NODES)
    (tmp_path / "edges.csv").write_bytes(content)
    message = refused(tmp_path / "nodes.csv", tmp_path / "edges.csv", **options)
    for fragment in fragments:
        assert fragment in message


def test_paths(tmp_path, monkeypatch, refused):
    (tmp_path / "nodes.csv").write_bytes(NODES)
    (tmp_path / "edges.xlsx").write_bytes(b"x")
    assert "absent.csv" in refused(tmp_path / "absent.csv", tmp_path / "edges.csv")
    assert "folder" in refused(tmp_path, tmp_path / "edges.csv")
    assert ".parquet" in refused(tmp_path / "nodes.csv", tmp_path / "edges.xlsx")
    assert "DataFrame" in refused(3, tmp_path / "edges.csv")
    assert "cannot be read" in refused("a\0b.csv", tmp_path / "edges.csv")

    def forbidden(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", forbidden)
    message = refused(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert "nodes.csv" in message
    assert "Permission denied" in message


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(NODES * 50)[:60],
        b"plain text",
        gzip.compress(NODES)[:-4] + b"abcd",
        gzip.compress(NODES) + b"\0" * 9,
    ],
    ids=["cut", "text", "altered", "padded"],  # the content itself has the time in it
)
def test_damaged_gzip(content, tmp_path, refused):
    (tmp_path / "nodes.csv.gz").write_bytes(content)
    (tmp_path / "edges.csv").write_bytes(EDGES)
    assert "nodes.csv.gz" in refused(tmp_path / "nodes.csv.gz", tmp_path / "edges.csv")


def test_parquet(tmp_path, refused):
    nodes, edges = tmp_path / "nodes.parquet", tmp_path / "edges.csv"
    edges.write_bytes(EDGES)
    nodes.write_bytes(b"junk")
    assert "nodes.parquet" in refused(nodes, edges)
    whole = parquet(id=["a", "b", "c"], age=np.arange(3.0))
    nodes.write_bytes(whole[: len(whole) // 2])
    assert "nodes.parquet" in refused(nodes, edges)
    nodes.write_bytes(whole[:8] + b"\xff" * 40 + whole[48:])
    assert "nodes.parquet" in refused(nodes, edges)
    # Rows of a file without a header count from one.
    nodes.write_bytes(parquet(id=["a", "b", "a"], age=[1.0, 2.0, 3.0]))
    assert "row 3, column 'id': id 'a' stands in row 1" in refused(nodes, edges)
    nodes.write_bytes(parquet(id=["a", "b", "c"], age=[1.0, -np.inf, 3.0]))
    assert "row 2, column 'age'" in refused(nodes, edges)
    nodes.write_bytes(parquet(id=["a", "b", "c"], born=pd.date_range("2020", periods=3)))
    assert "no feature columns" in refused(nodes, edges)
    assert "'born': holds dates" in refused(nodes, edges, features=["born"])
    nodes.write_bytes(parquet(id=["a", "b", "c"], list=[[1.0], [2.0], [3.0]]))
    assert "'list': holds values of type list" in refused(nodes, edges, features=["list"])


def test_frames(refused):
    edges = pd.DataFrame({"source": ["a"], "target": ["b"]})
    assert "the node table, row 2, column 'id'" in refused(pd.DataFrame({"id": ["a", "a"], "x": [1, 2]}), edges)
    message = refused(pd.DataFrame({"id": ["a"], "x": [1]}), edges)
    assert "the edge table, row 1, column 'target': id 'b' is not in the node table" in message
    assert "table of edges" in refused(pd.DataFrame({"id": ["a"], "x": [1]}))


def test_another_spelling_of_an_id_is_pointed_out(refused):
    nodes = pd.DataFrame({"id": ["1", "2"], "x": [0.5, 1.5]})
    message = refused(nodes, pd.DataFrame({"source": ["1"], "target": ["2.0"]}))
    assert "id '2.0'" in message
    assert "'2' is another id" in message
    for spelt, asked in (("2.0", "2"), ("02", "2"), ("2", "02"), ("2.50", "2.5"), ("1e3", "1000")):
        nodes = pd.DataFrame({"id": ["1", spelt], "x": [0.5, 1.5]})
        message = refused(nodes, pd.DataFrame({"source": ["1"], "target": [asked]}))
        assert f"id {asked!r} is not in the node table, where {spelt!r} is another id" in message
    for asked in ("3", "x", "inf", "nan", ""):
        assert "another id" not in refused(nodes, pd.DataFrame({"source": ["1"], "target": [asked]}))


def test_more_features_than_memory(monkeypatch, tmp_path, refused):
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 20}[name])
    (tmp_path / "nodes.csv").write_bytes(NODES)
    (tmp_path / "edges.csv").write_bytes(EDGES)
    message = refused(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert "3 features of 3 nodes" in message
    assert "memory" in message


ROWS = table("id,age,kind,split\nn{i},{i}.5,x,train", 5)
LINKS = table("source,target,weight\nn{i},n0,{i}.25", 5)
PACKED = parquet(id=[f"n{i}" for i in range(5)], age=np.arange(5.0))
PIECES = [
    b",",
    b";",
    b"\n",
    b'"',
    b"\t",
    b"\0",
    b"\xff",
    b"inf",
    b"-1",
    b"1e999",
    b"nan",
    b" ",
    b"\r",
    b"id",
    b"\xef\xbb\xbf",
]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_anywhere_is_understood_or_refused(data):
    kind = data.draw(st.sampled_from(["nodes", "edges", "parquet"]))
    content = {"nodes": ROWS, "edges": LINKS, "parquet": parquet(id=[f"n{i}" for i in range(5)], age=np.arange(5.0))}[
        kind
    ]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        piece = data.draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=3)))
        content = content[:start] + piece + content[start + data.draw(st.integers(0, 6)) :]
    with tempfile.TemporaryDirectory() as folder:
        nodes = Path(folder, "nodes.parquet" if kind == "parquet" else "nodes.csv")
        edges = Path(folder, "edges.csv")
        nodes.write_bytes(ROWS if kind == "edges" else content)
        edges.write_bytes(content if kind == "edges" else LINKS)
        try:
            graph = read_graph(nodes, edges, missing="error", features=["age"])
        except InputError as error:
            assert "nodes." in str(error) or "edges.csv" in str(error)  # noqa: PT017
        else:
            assert torch.isfinite(graph.data.x).all()
            assert graph.data.validate()
