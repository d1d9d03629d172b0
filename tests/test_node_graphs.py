"""Normalised node graphs against dense matrices."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric import EdgeIndex

from bigcn.node_graphs import edges_of, normalized_graph, symmetric_normalization

EDGES = torch.tensor([[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 0, 3]])
WEIGHTS = torch.tensor([1.0, 1.0, 0.5, 0.5, 2.0, 2.0], dtype=torch.float64)


def dense_operator(edge_index, edge_weight, num_nodes):
    """The operator I - L, entry by entry; an isolated node has a zero row in L."""
    adjacency = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    for (source, target), weight in zip(edge_index.t().tolist(), edge_weight, strict=True):
        adjacency[target, source] = adjacency[target, source] + weight
    degree = adjacency.sum(dim=1)
    rows = []
    for i in range(num_nodes):
        row = [
            adjacency[i, j] / (degree[i] * degree[j]).sqrt()
            if degree[i] > 0 and degree[j] > 0
            else degree.new_zeros(())
            for j in range(num_nodes)
        ]
        if degree[i] == 0:
            row[i] = degree.new_ones(())
        rows.append(torch.stack(row))
    return torch.stack(rows)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 8), st.booleans(), st.integers(0, 2**31))
def test_hop_is_the_dense_operator(num_nodes, pairs, weighted, seed):
    generator = torch.Generator().manual_seed(seed)
    half = torch.randint(num_nodes, (2, pairs), generator=generator)
    edge_index = torch.cat([half, half.flip(0)], dim=1)
    weight = torch.rand(pairs, generator=generator, dtype=torch.float64).repeat(2) if weighted else None
    expected = dense_operator(edge_index, torch.ones(2 * pairs) if weight is None else weight, num_nodes)
    graph = normalized_graph(edge_index, weight, num_nodes, torch.float64)
    found = graph(torch.eye(num_nodes, dtype=torch.float64))
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    assert torch.allclose(found, found.t())
    spectrum = torch.linalg.eigvalsh(found)
    assert spectrum.abs().max() <= 1 + 1e-12


def test_gradient_reaches_the_edge_weights():
    weight = WEIGHTS.clone().requires_grad_()
    block = torch.randn(5, 2, dtype=torch.float64)
    expected = torch.autograd.grad((dense_operator(EDGES, weight, 5) @ block).square().sum(), weight)[0]
    graph = normalized_graph(EDGES, weight, 5, torch.float64)
    found = torch.autograd.grad(graph(block).square().sum(), weight)[0]
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)


def formats():
    size = (4, 4)
    coo = torch.sparse_coo_tensor(EDGES.flip(0), WEIGHTS, size).coalesce()
    return {
        "edge_index": (EDGES, WEIGHTS),
        "column of weights": (EDGES, WEIGHTS.view(-1, 1)),
        "int32": (EDGES.int(), WEIGHTS),
        "EdgeIndex": (EdgeIndex(EDGES, sparse_size=size), WEIGHTS),
        "coo": (coo, None),
        "csr": (coo.to_sparse_csr(), None),
        "csc": (coo.to_sparse_csc(), None),
    }


@pytest.mark.parametrize("name", formats())
def test_every_format(name):
    edge_index, edge_weight = formats()[name]
    expected = dense_operator(EDGES, WEIGHTS, 4)
    graph = normalized_graph(edge_index, edge_weight, dtype=torch.float64)  # the size comes from the graph
    assert torch.allclose(graph(torch.eye(4, dtype=torch.float64)), expected)


@pytest.mark.parametrize("name", ["edge_index", "coo", "csr", "csc"])
def test_direction_of_sparse_tensors_is_pygs(name):
    # One edge from 0 to 1; sparse matrices hold targets in rows.
    matrix = torch.zeros(2, 2)
    matrix[1, 0] = 3.0
    graph = {
        "edge_index": (torch.tensor([[0], [1]]), torch.tensor([3.0])),
        "coo": (matrix.to_sparse(), None),
        "csr": (matrix.to_sparse_csr(), None),
        "csc": (matrix.to_sparse_csc(), None),
    }[name]
    edge_index, edge_weight = edges_of(*graph)
    assert edge_index.tolist() == [[0], [1]]
    assert edge_weight.tolist() == [3.0]


def test_isolated_nodes_are_left_alone():
    graph = normalized_graph(EDGES, None, 6)
    _, isolated = symmetric_normalization(EDGES, None, 6, torch.float32)
    assert isolated.view(-1).tolist() == [0, 0, 0, 0, 1, 1]
    block = torch.randn(6, 3)
    assert torch.equal(graph(block)[4:], block[4:])


def test_no_edges_and_no_nodes():
    none = torch.empty(2, 0, dtype=torch.long)
    block = torch.randn(3, 2)
    assert torch.equal(normalized_graph(none, None, 3)(block), block)
    assert normalized_graph(none)(torch.empty(0, 2)).shape == (0, 2)


def test_zero_weights_isolate():
    graph = normalized_graph(torch.tensor([[0, 1], [1, 0]]), torch.zeros(2), 2)
    assert torch.equal(graph(torch.eye(2)), torch.eye(2))


def test_self_loops_and_duplicates_count():
    edge_index = torch.tensor([[0, 0, 1, 0, 1], [0, 1, 0, 1, 0]])
    expected = dense_operator(edge_index, torch.ones(5), 2).float()
    assert torch.allclose(normalized_graph(edge_index)(torch.eye(2)), expected)


def test_integer_weights():
    found = normalized_graph(EDGES, torch.tensor([1, 1, 3, 3, 2, 2]), 4)(torch.eye(4))
    expected = dense_operator(EDGES, torch.tensor([1.0, 1, 3, 3, 2, 2]), 4).float()
    assert torch.allclose(found, expected)


def test_normalization_compiles_without_a_break():
    compiled = torch.compile(symmetric_normalization, fullgraph=True, backend="eager")
    for found, expected in zip(
        compiled(EDGES, WEIGHTS, 5, torch.float64),
        symmetric_normalization(EDGES, WEIGHTS, 5, torch.float64),
        strict=True,
    ):
        assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("edge_index", "edge_weight", "name"),
    [
        ([[0], [1]], None, "'edge_index'"),
        (None, None, "'edge_index'"),
        (torch.zeros(3, 2, dtype=torch.long), None, "'edge_index'"),
        (torch.zeros(2, dtype=torch.long), None, "'edge_index'"),
        (torch.zeros(2, 2), None, "'edge_index'"),
        (torch.zeros(2, 2, dtype=torch.bool), None, "'edge_index'"),
        (EDGES, torch.ones(5), "'edge_weight'"),
        (EDGES, torch.ones(6, 2), "'edge_weight'"),
        (EDGES, torch.ones(2, 3), "'edge_weight'"),
        (EDGES, torch.ones(6, dtype=torch.complex64), "'edge_weight' must be real"),
        (EDGES, [1.0] * 6, "'edge_weight'"),
        (torch.eye(4).to_sparse(), torch.ones(4), "'edge_weight'"),
        (torch.eye(4).to_sparse_csr(), torch.ones(4), "'edge_weight'"),
    ],
)
def test_bad_graphs(edge_index, edge_weight, name):
    with pytest.raises(ValueError, match=name):
        edges_of(edge_index, edge_weight)
