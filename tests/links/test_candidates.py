import networkx as nx
import numpy as np
import scipy.sparse as sp

from bigcn.links import candidates as module
from bigcn.links.candidates import all_pairs, candidates, likely_pairs


def as_set(blocks) -> set[tuple[int, int]]:
    found = [tuple(pair) for block in blocks for pair in block.T.tolist()]
    assert all(i < j for i, j in found)
    return set(found)


def test_all_pairs_once(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 7)
    blocks = list(all_pairs(9))
    assert len(blocks) > 1
    assert sum(block.shape[1] for block in blocks) == 36
    assert as_set(blocks) == {(i, j) for i in range(9) for j in range(i + 1, 9)}


def test_friends_of_friends_and_near_nodes():
    graph = nx.random_regular_graph(3, 200, seed=0)
    adjacency = sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=np.float32, nodelist=range(200)))
    table = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    found = as_set(likely_pairs(adjacency, [table]))
    two_steps = {(i, j) for i in graph for k in graph[i] for j in graph[k] if i < j}
    assert two_steps <= found
    nearest = np.linalg.norm(table[:, None] - table, axis=2) + 1e9 * np.eye(200)
    closest = {(min(i, j), max(i, j)) for i, j in enumerate(nearest.argmin(axis=1).tolist())}
    assert closest <= found
    assert len(found) < 0.4 * 200 * 199 / 2


def test_a_hub_does_not_make_everyone_a_candidate(monkeypatch):
    monkeypatch.setattr(module, "ROWS", 64)
    star = nx.star_graph(499)
    adjacency = sp.csr_array(nx.to_scipy_sparse_array(star, dtype=np.float32, nodelist=range(500)))
    found = as_set(likely_pairs(adjacency, []))
    assert 0 < len(found) <= 500 * module.REACHED


def test_small_graphs_are_looked_at_in_full():
    adjacency = sp.csr_array((10, 10), dtype=np.float32)
    assert len(as_set(candidates(adjacency, [], exact_nodes=10))) == 45
    assert len(as_set(candidates(adjacency, [], exact_nodes=9))) == 0
