"""The local filter against the dense inverse."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import to_undirected

from bigcn import local_filter
from bigcn.local_filter import is_undirected, local_resolvent
from bigcn.node_graphs import normalized_graph
from bigcn.sparse_diagonal import row_numbers


def random_graph(nodes, edges, seed):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes, (2, edges), generator=generator)
    return to_undirected(pairs[:, pairs[0] != pairs[1]], num_nodes=nodes)


def dense(matrix):
    out = torch.zeros(matrix.num_rows, matrix.num_cols, dtype=matrix.value.dtype)
    return out.index_put_((row_numbers(matrix.crow), matrix.col), matrix.value, accumulate=True)


def oracle(edge_index, nodes, strength, top):
    """Inverts the matrix, sorts every row and keeps its largest entries."""
    adjacency = np.zeros((nodes, nodes))
    adjacency[edge_index[1], edge_index[0]] = 1
    degree = adjacency.sum(axis=1)
    scale = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0)
    laplacian = np.diag((degree > 0).astype(float)) - scale[:, None] * adjacency * scale
    inverse = np.linalg.inv(np.eye(nodes) + strength * laplacian)
    threshold = np.sort(inverse, axis=1)[:, [-min(top, nodes)]]
    # Of equal entries any may be kept; these tests have none at the threshold that matter.
    kept = np.where(inverse >= threshold - 1e-9, inverse, 0)
    return kept / kept.sum(axis=1, keepdims=True), (kept > 0).sum(axis=1)


@given(st.integers(2, 25), st.integers(1, 60), st.integers(0, 99), st.floats(0.1, 30), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_rows_are_the_largest_entries_of_the_inverse(nodes, edges, seed, strength, top):
    edge_index = random_graph(nodes, edges, seed)
    graph = normalized_graph(edge_index, None, nodes, torch.float64)
    found = dense(local_resolvent(graph, strength, top, tolerance=1e-12)).numpy()
    expected, counts = oracle(edge_index, nodes, strength, top)
    ties = counts > top  # which of them are kept is a matter of chance
    np.testing.assert_allclose(found[~ties], expected[~ties], atol=1e-8)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert ((found > 0).sum(axis=1) <= top).all()


def test_a_node_without_edges_keeps_itself():
    graph = normalized_graph(torch.tensor([[0, 1], [1, 0]]), None, 3)
    assert dense(local_resolvent(graph, 5.0, 2))[2].tolist() == [0.0, 0.0, 1.0]


def test_nodes_in_chunks_are_nodes_at_once(monkeypatch):
    graph = normalized_graph(random_graph(40, 120, 1), None, 40, torch.float64)
    whole = dense(local_resolvent(graph, 5.0, 6))
    monkeypatch.setattr(local_filter, "BLOCK_ENTRIES", 40 * 7)
    torch.testing.assert_close(dense(local_resolvent(graph, 5.0, 6)), whole)


@pytest.mark.parametrize(
    ("edges", "weight", "expected"),
    [
        ([[0, 1], [1, 0]], None, True),
        ([[0, 1], [1, 2]], None, False),
        ([[0, 1, 0], [1, 0, 1]], None, False),
        ([[0, 1], [1, 0]], [1.0, 2.0], False),
        ([[0, 0, 1], [1, 1, 0]], [0.5, 0.5, 1.0], True),
    ],
)
def test_directions(edges, weight, expected):
    weight = None if weight is None else torch.tensor(weight)
    assert is_undirected(torch.tensor(edges), weight, 3) == expected
