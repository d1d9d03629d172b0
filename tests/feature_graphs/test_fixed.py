import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcn.feature_graphs import GivenGraph, IdentityGraph, NoGraph, UniformGraph

LAYOUTS = [torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]


def stored(matrix, layout):
    return matrix if layout == torch.strided else matrix.to_sparse(layout=layout)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 7), st.floats(0, 1), st.booleans(), st.integers(0, 2**31))
def test_given_against_the_definition_dense_and_sparse(oracle, size, density, loops, seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((size, size)) * (rng.random((size, size)) < density), 0 if loops else 1)
    weights = weights + weights.T
    expected = oracle.normalized(weights)
    for layout in LAYOUTS:
        graph = GivenGraph(stored(torch.from_numpy(weights), layout))
        assert graph.sparse == (layout != torch.strided)
        assert graph.adjacency().numpy() == pytest.approx(expected, abs=1e-12)
        for operator, matrix in (("adjacency", expected), ("laplacian", np.eye(size) - expected)):
            assert graph.l1_norm(operator).item() == pytest.approx(np.abs(matrix).sum(), abs=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_isolated_features_are_left_alone(layout):
    weights = torch.zeros(4, 4)
    weights[0, 2] = weights[2, 0] = 2.0
    graph = GivenGraph(stored(weights, layout))
    laplacian = graph.laplacian()
    assert not laplacian[1].any()
    assert not laplacian[:, 3].any()
    assert laplacian[0].tolist() == pytest.approx([1, 0, -1, 0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_edges_at_all(layout):
    graph = GivenGraph(stored(torch.zeros(3, 3), layout))
    assert torch.equal(graph.adjacency(), torch.eye(3))
    assert graph.l1_norm().item() == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float64])
def test_number_types(layout, dtype):
    weights = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).to(dtype)
    graph = GivenGraph(stored(weights, layout))
    expected = GivenGraph(weights.float()).adjacency()
    assert graph.adjacency().dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert torch.allclose(graph.adjacency().float(), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_given_is_part_of_the_state_dict_and_moves(layout):
    graph = GivenGraph(stored(torch.ones(3, 3), layout))
    assert set(graph.state_dict()) == ({"matrix"} if layout == torch.strided else {"crow", "col", "value"})
    assert graph.double().adjacency().dtype == torch.float64
    assert graph.product_cost() == 9


def test_a_sparse_graph_costs_its_edges():
    assert GivenGraph(torch.eye(100).to_sparse_csr()).product_cost() == 100


def test_rounding_does_not_break_symmetry():
    weights = torch.rand(5, 5)
    weights = weights + weights.t()
    weights[0, 1] *= 1 + 1e-7
    GivenGraph(weights)


def test_uniform():
    assert torch.allclose(UniformGraph(4).adjacency(), torch.full((4, 4), 0.25))
    assert UniformGraph(4).l1_norm("adjacency").item() == pytest.approx(4)
    assert UniformGraph(4).l1_norm("laplacian").item() == pytest.approx(4 * (0.75 + 3 * 0.25))


def test_identity_and_none():
    assert torch.equal(IdentityGraph(3).laplacian(), torch.eye(3))
    assert IdentityGraph(3).filters
    assert torch.equal(NoGraph(3).laplacian(), torch.zeros(3, 3))
    assert not NoGraph(3).filters


@pytest.mark.parametrize("graph", [UniformGraph(3), IdentityGraph(3), NoGraph(3)], ids=repr)
def test_parameter_free_graphs_have_no_state(graph):
    assert not graph.state_dict()
    assert not graph.from_input
