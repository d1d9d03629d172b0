import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch

from bigcn.links import evidence
from bigcn.links.evidence import FeatureEvidence, GraphEvidence, leading_directions, thinned


def weighted_graph(seed: int = 0, nodes: int = 30) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((nodes, nodes)) < 0.2, 1) * rng.uniform(0.5, 2, (nodes, nodes))
    return sp.csr_array((upper + upper.T).astype(np.float32))


def directions(nodes: int = 30) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(nodes, 5)).astype(np.float32)


def test_an_edge_is_judged_as_if_it_were_not_there():
    graph, features = weighted_graph(), directions()
    whole = GraphEvidence(graph, features)
    rows, columns = sp.triu(graph).nonzero()
    for i, j in list(zip(rows, columns, strict=True))[:20]:
        rest = graph.toarray()
        rest[i, j] = rest[j, i] = 0
        pair = np.array([[i], [j]])
        without = GraphEvidence(sp.csr_array(rest), features)
        # Allocation divides by the degrees of common neighbours, which are not among the two ends.
        np.testing.assert_allclose(whole(pair), without(pair), rtol=2e-3, atol=2e-4)


def test_both_ways_round_are_the_same():
    whole = GraphEvidence(weighted_graph(), directions())
    pairs = np.random.default_rng(2).integers(30, size=(2, 50))
    np.testing.assert_allclose(whole(pairs), whole(pairs[::-1]), rtol=1e-4, atol=1e-5)


def test_common_neighbours_are_those_of_networkx():
    graph = nx.gnp_random_graph(25, 0.3, seed=3)
    found = GraphEvidence(sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=np.float32)), directions(25))
    pairs = np.array([(i, j) for i in range(25) for j in range(i + 1, 25)]).T
    values = found(pairs)
    for column, index in (
        (4, lambda g, p: [(a, b, len(list(nx.common_neighbors(g, a, b)))) for a, b in p]),
        (5, nx.resource_allocation_index),
    ):
        expected = [value for _, _, value in index(graph, list(zip(*pairs, strict=True)))]
        np.testing.assert_allclose(np.expm1(values[:, column]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("share", [1.0, 0.05])
def test_features_are_compared_by_their_cosine(share):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 60)) * (rng.random((40, 60)) < share)
    found = FeatureEvidence(torch.from_numpy(x))
    assert sp.issparse(found.rows) == (share < 0.1)
    if share < 0.1:  # what few nodes have counts for more
        x = x * np.log(np.maximum(40 / (1 + (x != 0).sum(axis=0)), 1))
    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    pairs = rng.integers(40, size=(2, 30))
    np.testing.assert_allclose(found(pairs)[:, 0], (unit @ unit.T)[pairs[0], pairs[1]], atol=1e-5)
    sparse = FeatureEvidence(torch.from_numpy(rng.normal(size=(9, 3))).to_sparse())
    assert sparse(np.array([[0], [0]]))[0, 0] == pytest.approx(1)


def test_wide_features_keep_their_leading_directions():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(50, 3)) @ rng.normal(size=(3, 400))).float()
    narrow = leading_directions(x)
    assert narrow.shape == (50, 128)
    centred = (x - x.mean(dim=0)).numpy()
    np.testing.assert_allclose(narrow @ narrow.T, centred @ centred.T, rtol=1e-2, atol=1.0)


def test_hubs_are_thinned_to_their_heaviest_neighbours(monkeypatch):
    star = np.zeros((21, 21), dtype=np.float32)
    star[0, 1:] = star[1:, 0] = np.arange(1, 21)
    thin = thinned(sp.csr_array(star), 5).toarray()
    assert thin[0].nonzero()[0].tolist() == [16, 17, 18, 19, 20]
    np.testing.assert_array_equal(thin[1:], star[1:])
    monkeypatch.setattr(evidence, "NEIGHBOURS", 5)
    assert GraphEvidence(sp.csr_array(star), directions(21))(np.array([[1], [2]])).shape == (1, 6)
