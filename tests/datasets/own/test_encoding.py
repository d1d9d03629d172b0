"""Columns to features and back."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bigcn.datasets.own import Column, Encoding, InputError, decode, encode, read_graph

NO_EDGES = pd.DataFrame({"source": pd.Series(dtype=str), "target": pd.Series(dtype=str)})


def test_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(30), "a": rng.normal(1e6, 1e3, 30), "b": rng.choice(["u", "v", "w"], 30)})
    x = read_graph(frame, NO_EDGES).data.x.numpy()
    assert x[:, :1] == pytest.approx(StandardScaler().fit_transform(frame[["a"]]), abs=1e-4)
    assert (x[:, 1:] == OneHotEncoder().fit_transform(frame[["b"]]).toarray()).all()


def test_constant_columns_become_zero():
    graph = read_graph(pd.DataFrame({"id": [1, 2, 3], "a": [0.1, 0.1, 0.1]}), NO_EDGES)
    assert graph.data.x.tolist() == [[0], [0], [0]]
    assert graph.encoding.columns[0].scale == 1


def test_flags_and_categories_are_not_scaled():
    graph = read_graph(pd.DataFrame({"id": range(50), "rare": [1] + [0] * 49}), NO_EDGES)
    assert graph.data.x.view(-1).tolist() == [1] + [0] * 49


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.booleans(), st.data())
def test_decoding_undoes_encoding(rows, standardize, data):
    columns = {
        "n": data.draw(st.lists(st.floats(-1e3, 1e3), min_size=rows, max_size=rows)),
        "c": data.draw(st.lists(st.sampled_from(["x", "y", "z"]), min_size=rows, max_size=rows)),
        "f": data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)),
        "w": data.draw(st.lists(st.sampled_from(["no", "yes"]), min_size=rows, max_size=rows)),
        "z": data.draw(st.lists(st.sampled_from([0, 1]), min_size=rows, max_size=rows)),
    }
    frame = pd.DataFrame({"id": range(rows), **columns})
    graph = read_graph(frame, NO_EDGES, standardize=standardize)
    table = decode(graph.encoding, graph.data.x)
    assert list(table.columns) == list(columns)
    assert table["n"].tolist() == pytest.approx(columns["n"], rel=1e-4, abs=1e-3)
    assert table["c"].tolist() == columns["c"]
    assert table["f"].tolist() == [str(flag) for flag in columns["f"]]
    assert table["w"].tolist() == columns["w"]
    assert table["z"].tolist() == columns["z"]
    assert torch.equal(encode(graph.encoding, frame), graph.data.x)
    shuffled = frame[list(reversed(frame.columns))]
    assert torch.equal(encode(graph.encoding, shuffled), graph.data.x)


def test_decoding_of_what_smoothing_leaves():
    encoding = Encoding(
        (
            Column("n", "number", mean=10, scale=2),
            Column("c", "category", categories=("x", "y")),
            Column("w", "boolean", categories=("no", "yes")),
            Column("z", "boolean"),
        )
    )
    nan = float("nan")
    x = torch.tensor([[0.5, 0.4, 0.3, 0.49, 0.51], [nan, nan, nan, nan, nan]])
    table = decode(encoding, x)
    assert table.iloc[0].tolist() == [11, "x", "no", 1]
    assert table.iloc[1].isna().all()
    soft = decode(encoding, x, hard=False)
    assert list(soft.columns) == ["n", "c=x", "c=y", "w", "z"]
    assert soft.iloc[0].tolist() == pytest.approx([11, 0.4, 0.3, 0.49, 0.51])


def test_mistakes():
    encoding = Encoding((Column("n", "number"),))
    with pytest.raises(ValueError, match="must have 1 features"):
        decode(encoding, torch.ones(2, 3))
    with pytest.raises(InputError, match="'n'"):
        encode(encoding, pd.DataFrame({"m": [1]}))
