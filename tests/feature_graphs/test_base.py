"""What all feature graphs share, and the registry that makes them."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch

from bigcn.feature_graphs import (
    FEATURE_GRAPHS,
    CorrelationGraph,
    FeatureFilter,
    FeatureGraph,
    GivenGraph,
    IdentityGraph,
    LearnableGraph,
    NoGraph,
    SpectralGraph,
    UniformGraph,
    make_feature_graph,
)
from bigcn.filters import resolvent_coefficients

D = 6


def symmetric(size=D, seed=0):
    weights = torch.rand(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (weights + weights.t()).fill_diagonal_(0)


def every_graph(make_ring):
    x = torch.randn(9, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return {
        "learnable": LearnableGraph(D).double(),
        "learnable without loops": LearnableGraph(D, self_loops=False).double(),
        "correlation": CorrelationGraph.from_features(x),
        "correlation sparse": CorrelationGraph.from_features(x, neighbours=2),
        "spectral": SpectralGraph.from_data(x, make_ring(9), rank=2),
        "spectral soft": SpectralGraph.from_data(x, make_ring(9), weighting="soft"),
        "uniform": UniformGraph(D),
        "identity": IdentityGraph(D),
        "none": NoGraph(D),
        "given": GivenGraph(symmetric()),
        "given sparse": GivenGraph(symmetric().to_sparse_csr()),
    }


def dense(graph):
    """The normalised adjacency in double precision."""
    if isinstance(graph, UniformGraph):
        return torch.full((D, D), 1 / D, dtype=torch.float64)
    return graph.adjacency().detach().double()


NAMES = list(every_graph(lambda size: torch.tensor([[0, 1], [1, 0]])))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(D, 3), (2, D, 3)])
@pytest.mark.parametrize(
    ("form", "operator"), [("taylor", "laplacian"), ("exact", "laplacian"), ("taylor", "adjacency")]
)
def test_powers_of_the_filter_against_dense_matrices(make_ring, name, shape, form, operator):
    graph, strength, rounds = every_graph(make_ring)[name], 0.7, 3
    n2 = dense(graph)
    eye = torch.eye(D, dtype=torch.float64)
    m = eye if name == "identity" else eye - n2 if operator == "laplacian" or name == "none" else n2
    b = eye - strength * m if form == "taylor" else torch.linalg.inv(eye + strength * m)
    chebyshev = resolvent_coefficients(strength, rounds, 1e-13) if form == "exact" else None
    block = torch.randn(shape, dtype=torch.float64)
    feature_filter = FeatureFilter(rounds, form, operator, torch.tensor(strength, dtype=torch.float64), chebyshev)
    blocks, weights = graph.powers(graph.operand(), block, feature_filter)
    assert len(blocks) == graph.num_blocks(rounds)
    if weights is not None:
        blocks = [sum(weights[power, m] * part for m, part in enumerate(blocks)) for power in range(rounds + 1)]
    assert len(blocks) == rounds + 1
    for power, found in enumerate(blocks):
        assert torch.allclose(found, torch.linalg.matrix_power(b, power) @ block, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("operator", ["laplacian", "adjacency"])
def test_l1_norm_is_the_sum_over_the_dense_matrix(make_ring, name, operator):
    graph = every_graph(make_ring)[name]
    n2 = dense(graph)
    matrix = torch.eye(D, dtype=torch.float64) - n2 if operator == "laplacian" else n2
    # The identity stands in for either operator; where the direction is left out nothing is penalised.
    expected = {"identity": float(D), "none": 0.0}.get(name, float(matrix.abs().sum()))
    assert graph.l1_norm(operator).item() == pytest.approx(expected, rel=1e-6)
    assert graph.l1_norm(operator, graph.operand()).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_laplacian_product_and_diagonal_belong_together(make_ring, name):
    graph = every_graph(make_ring)[name]
    n2 = dense(graph)
    eye = torch.eye(D, dtype=torch.float64)
    assert torch.allclose(graph.laplacian().detach().double(), eye - n2, atol=1e-7)
    assert torch.allclose(n2, n2.t())
    assert torch.linalg.eigvalsh(n2).abs().max() <= 1 + 1e-9
    assert torch.allclose(graph.diagonal(graph.operand()).detach().double(), n2.diagonal(), atol=1e-7)
    block = torch.randn(D, 2, dtype=torch.float64)
    assert torch.allclose(graph.product(graph.operand(), block).detach(), n2 @ block, atol=1e-7)
    assert graph.product_cost() >= 0


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_state_dicts(make_ring, name):
    graph = every_graph(make_ring)[name]
    expected = graph.adjacency()
    assert torch.equal(copy.deepcopy(graph).adjacency(), expected)
    assert torch.equal(pickle.loads(pickle.dumps(graph)).adjacency(), expected)
    other = copy.deepcopy(graph)
    for tensor in [*other.parameters(), *other.buffers()]:
        tensor.data.zero_()
    other.load_state_dict(graph.state_dict())
    assert torch.equal(other.adjacency(), expected)
    assert str(D) in repr(graph)


@pytest.mark.parametrize("name", ["correlation", "correlation sparse", "spectral", "spectral soft"])
def test_a_kept_graph_is_restored_into_one_made_by_name(make_ring, name):
    graph = every_graph(make_ring)[name]
    kwargs = {"weighting": "soft"} if name == "spectral soft" else {}
    other = make_feature_graph(name.split()[0], D, **kwargs)
    assert other.from_input
    other.load_state_dict(graph.state_dict())
    assert not other.from_input
    assert torch.equal(other.adjacency(), graph.adjacency())


def test_top_edges_with_names():
    weights = torch.zeros(4, 4)
    weights[0, 1] = weights[1, 0] = 1.0
    weights[2, 3] = weights[3, 2] = 5.0
    weights[1, 2] = weights[2, 1] = 0.25
    graph = GivenGraph(weights + torch.eye(4))
    n2 = graph.adjacency()
    names = ["red", "green", "blue", "grey"]
    edges = graph.top_edges(10, names)
    assert [edge[:2] for edge in edges] == [("blue", "grey"), ("red", "green"), ("green", "blue")]
    assert [edge[2] for edge in edges] == pytest.approx([float(n2[2, 3]), float(n2[0, 1]), float(n2[1, 2])])
    assert graph.top_edges(1) == [("2", "3", pytest.approx(float(n2[2, 3])))]
    assert [edge[:2] for edge in graph.top_edges(2)] == [("2", "3"), ("0", "1")]
    with pytest.raises(ValueError, match="'names'"):
        graph.top_edges(2, names[:3])


def test_top_edges_of_a_graph_from_its_input():
    x = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.1, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    assert [edge[:2] for edge in CorrelationGraph(4).top_edges(1, x=x)] == [("0", "1")]
    # Signed weights rank by their size and keep their sign.
    mirrored = torch.tensor([[2.0, -2.0, 0.1], [1.0, -1.0, 0.0]])
    (first, second, weight), *_ = SpectralGraph(3, rank=1).top_edges(1, "abc", mirrored)
    assert (first, second) == ("a", "b")
    assert weight == pytest.approx(-0.5, abs=0.01)


def test_top_edges_of_graphs_without_any():
    assert IdentityGraph(3).top_edges() == []
    assert NoGraph(3).top_edges() == []


@pytest.mark.parametrize("name", FEATURE_GRAPHS)
def test_lazy_graphs_take_their_size_once(name):
    graph = make_feature_graph(name, -1)
    assert graph.num_features == -1
    graph.initialize(3)
    assert graph.num_features == 3
    graph.initialize(3)
    with pytest.raises(ValueError, match="'feature_graph' has 3 features, but the layer has 4"):
        graph.initialize(4)


def test_make_feature_graph_by_name_tensor_or_finished():
    for name, kind in FEATURE_GRAPHS.items():
        assert type(make_feature_graph(name, 4)) is kind
    graph = LearnableGraph(4)
    assert make_feature_graph(graph, 4) is graph
    assert make_feature_graph(graph, -1) is graph
    assert torch.equal(make_feature_graph(symmetric(4), 4).adjacency(), GivenGraph(symmetric(4)).adjacency())
    assert not make_feature_graph("learnable", 4, self_loops=False).self_loops


@pytest.mark.parametrize(
    ("spec", "kwargs", "name"),
    [
        ("cosine", {}, "'feature_graph'"),
        ("", {}, "'feature_graph'"),
        (3, {}, "'feature_graph'"),
        (None, {}, "'feature_graph'"),
        (np.eye(4), {}, "'feature_graph'"),
        (LearnableGraph(5), {}, "'feature_graph'"),
        (torch.eye(5), {}, "'feature_graph'"),
        (LearnableGraph(4), {"init": "constant"}, "'feature_graph_kwargs'"),
        (torch.eye(4), {"self_loops": False}, "'feature_graph_kwargs'"),
        (torch.ones(4, 3), {}, "'feature_graph' must be a square matrix"),
        (torch.ones(4), {}, "'feature_graph' must be a square matrix"),
        (-torch.eye(4), {}, "'feature_graph' must not have negative weights"),
        (torch.full((4, 4), math.nan), {}, "'feature_graph' must be finite"),
        (torch.full((4, 4), math.inf), {}, "'feature_graph' must be finite"),
        (torch.ones(4, 4).triu(), {}, "'feature_graph' must be symmetric"),
        ((-torch.eye(4)).to_sparse_csr(), {}, "'feature_graph' must not have negative weights"),
        (torch.full((4, 4), math.nan).to_sparse(), {}, "'feature_graph' must be finite"),
        (torch.ones(4, 4).triu().to_sparse_csc(), {}, "'feature_graph' must be symmetric"),
        ("spectral", {"rank": 0}, "'rank'"),
        ("spectral", {"weighting": "hard"}, "'weighting'"),
        ("spectral", {"smoothing": -1.0}, "'smoothing'"),
        ("learnable", {"init": "zeros"}, "'init'"),
        ("learnable", {"init": torch.zeros(3, 3)}, "'init'"),
    ],
)
def test_bad_graphs_are_refused_in_one_sentence(spec, kwargs, name):
    with pytest.raises(ValueError, match=name) as caught:
        make_feature_graph(spec, 4, **kwargs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [0, -2])
def test_bad_sizes(size):
    with pytest.raises(ValueError, match="'num_features'"):
        UniformGraph(size)


def test_a_new_graph_is_one_class():
    class Shift(FeatureGraph):
        """A ring of features."""

        def product(self, operand, block):
            return (block.roll(1, -2) + block.roll(-1, -2)) / 2

        def diagonal(self, operand):
            return torch.zeros(self.num_features)

    graph = Shift(5)
    n2 = graph.adjacency()
    assert torch.equal(n2.sum(1), torch.ones(5))
    assert float(graph.l1_norm("adjacency")) == pytest.approx(5)
    assert float(graph.l1_norm("laplacian")) == pytest.approx(10)
    assert len(graph.top_edges(99)) == 5
