import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from bigcn.smoothing import neighbours
from bigcn.smoothing.neighbours import nearest_edges, nearest_neighbours


@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 6), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_exact_neighbours_are_those_of_scikit_learn(seed, rows, columns, k):
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    index, distance = nearest_neighbours(x, k)
    assert index.shape == distance.shape == (rows, min(k, rows - 1))
    if rows > 1:
        expected, order = NearestNeighbors(n_neighbors=min(k, rows - 1)).fit(x.numpy()).kneighbors()
        np.testing.assert_allclose(distance.sqrt().numpy(), expected, atol=1e-6)
        np.testing.assert_array_equal(index.numpy(), order)


def test_equal_rows_are_neighbours_but_never_oneself():
    index, distance = nearest_neighbours(torch.ones(5, 2), 4)
    assert all(sorted([i, *row]) == list(range(5)) for i, row in enumerate(index.tolist()))
    assert float(distance.abs().max()) == 0


@pytest.mark.parametrize("columns", [8, 100])
def test_trees_find_most_neighbours(monkeypatch, columns):
    monkeypatch.setattr(neighbours, "LEAF", 200)
    rng = np.random.default_rng(0)
    # Rows lie near a plane of few dimensions, as those of tables do.
    x = torch.from_numpy(rng.normal(size=(3000, 4)) @ rng.normal(size=(4, columns))).float()
    exact = nearest_neighbours(x, 5)[0]
    found, distance = nearest_neighbours(x, 5, exact_rows=100)
    hits = (found.unsqueeze(2) == exact.unsqueeze(1)).any(dim=2).float().mean()
    assert hits > 0.8
    assert all(len(set(row)) == 5 and i not in row for i, row in enumerate(found.tolist()))
    assert bool((distance.diff(dim=1) >= 0).all())


def test_the_graph_of_nearest_rows_is_undirected():
    x = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    edges = nearest_edges(x, 2)
    pairs = set(zip(*edges.tolist(), strict=True))
    assert len(pairs) == edges.size(1)
    assert all((j, i) in pairs and i != j for i, j in pairs)
    assert all((i, j) in pairs for i, row in enumerate(nearest_neighbours(x, 2)[0].tolist()) for j in row)
    assert nearest_edges(x[:1], 2).shape == (2, 0)
