import numpy as np
import pytest
import torch

from bigcn.feature_graphs import SpectralGraph
from bigcn.node_graphs import normalized_graph


def planted(num_nodes, num_features, rank, seed=0, noise=0.05):
    """Features whose second moment has a clear gap after the leading directions."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(num_nodes, rank)) * np.linspace(3, 2, rank)
    noises = noise * rng.normal(size=(num_nodes, num_features))
    return torch.from_numpy(factors @ rng.normal(size=(rank, num_features)) + noises)


def leading(moment, rank):
    values, vectors = np.linalg.eigh(moment)
    return values[::-1][:rank], vectors[:, ::-1][:, :rank]


@pytest.mark.parametrize("smoothing", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo, torch.sparse_csr])
def test_projector_on_the_leading_directions_of_the_smoothed_features(oracle, make_ring, smoothing, layout):
    x, edges = torch.randn(30, 8, dtype=torch.float64), make_ring(30, 20)
    smoothed = oracle.smoothed(x.numpy(), edges.numpy(), smoothing)
    values, vectors = leading(smoothed.T @ smoothed / 30, 4)
    features = x if layout == torch.strided else x.to_sparse(layout=layout)
    graph = SpectralGraph.from_data(features, edges, rank=3, smoothing=smoothing)
    tolerance = 1e-12 if smoothing == 0 else 1e-3 * values[0] / (values[2] - values[3])  # of the polynomial smoothing
    expected = vectors[:, :3] @ vectors[:, :3].T
    assert graph.adjacency().numpy() == pytest.approx(expected, abs=max(tolerance, 1e-9))
    assert torch.equal(graph.weights, torch.ones(3, dtype=torch.float64))
    hop = normalized_graph(edges, None, 30, torch.float64)
    by_name = SpectralGraph(8, rank=3, smoothing=smoothing).adjacency(features, hop)
    assert torch.allclose(by_name, graph.adjacency(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo])
def test_soft_weighting_is_wieners_rule(layout):
    x = torch.randn(40, 8, dtype=torch.float64) * torch.linspace(3, 0.5, 8)
    values, vectors = leading(x.numpy().T @ x.numpy() / 40, 8)
    floor = values[4:].mean()
    expected = vectors * np.maximum(0, 1 - floor / values) @ vectors.T
    features = x if layout == torch.strided else x.to_sparse(layout=layout)
    graph = SpectralGraph.from_data(features, None, weighting="soft")
    assert graph.adjacency().numpy() == pytest.approx(expected, abs=1e-9)
    assert 0 <= graph.weights.min() <= graph.weights.max() < 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "columns"), [(20, 64), (5, 40), (7, 33), (60, 128), (1, 2)])
def test_soft_weights_of_fewer_rows_than_columns(make_ring, rows, columns, dtype):
    """Directions that the features do not have are rounding of either sign, and nothing is measured by them."""
    for seed in range(20):
        x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=dtype)
        graph = SpectralGraph.from_data(x, make_ring(rows, 1) if rows > 2 else None, weighting="soft")
        assert 0 <= graph.weights.min() <= graph.weights.max() <= 1
        filtered = x @ graph.adjacency().to(dtype)
        assert filtered.norm() <= x.norm() * 1.0001
    assert float(SpectralGraph.from_data(torch.zeros(5, 4), None, weighting="soft").weights.abs().sum()) == 0


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr])
@pytest.mark.parametrize("smoothing", [0.0, 5.0])
def test_many_features_by_subspace_iteration(oracle, make_ring, layout, smoothing):
    x, edges = planted(60, 530, rank=5), make_ring(60, 30)
    smoothed = oracle.smoothed(x.numpy(), edges.numpy(), smoothing)
    vectors = np.linalg.svd(smoothed, full_matrices=False)[2][:5].T
    features = x if layout == torch.strided else x.to_sparse(layout=layout)
    graph = SpectralGraph.from_data(features, edges, rank=5, smoothing=smoothing)
    assert graph.vectors.shape == (530, 5)
    # The smoothing is a polynomial of tolerance 1e-4.
    assert graph.adjacency().numpy() == pytest.approx(vectors @ vectors.T, abs=1e-9 if smoothing == 0 else 1e-3)
    orthogonal = graph.vectors.t() @ graph.vectors
    assert torch.allclose(orthogonal, torch.eye(5, dtype=torch.float64), rtol=0, atol=1e-10)


def test_many_features_soft():
    x = planted(60, 530, rank=5)
    values = np.linalg.svd(x.numpy(), compute_uv=False)[:8] ** 2 / 60
    graph = SpectralGraph.from_data(x, None, rank=8, weighting="soft")
    expected = np.maximum(0, 1 - values[4:].mean() / values)
    assert graph.weights.numpy() == pytest.approx(expected, abs=1e-6)


def test_it_is_the_same_every_time():
    x = planted(40, 520, rank=4).float()
    first, second = (SpectralGraph.from_data(x, None, rank=4) for _ in range(2))
    assert torch.equal(first.vectors, second.vectors)


@pytest.mark.parametrize("num_features", [6, 520])
def test_batches_count_as_one_set_of_rows(make_ring, num_features):
    x, edges = planted(24, num_features, rank=3, noise=0), make_ring(12, 5)
    double = torch.cat([edges, edges + 12], dim=1)
    hop = normalized_graph(edges, None, 12, torch.float64)
    hop_joined = normalized_graph(double, None, 24, torch.float64)
    graph = SpectralGraph(num_features, rank=3)
    joined = graph.adjacency(x, hop_joined)
    assert torch.allclose(graph.adjacency(x.view(2, 12, num_features), hop), joined, rtol=0, atol=1e-8)


def test_edge_weights_count(make_ring):
    x, edges = torch.randn(10, 4, dtype=torch.float64), make_ring(10)
    weight = torch.rand(edges.size(1) // 2, dtype=torch.float64).repeat(2)
    weighted = SpectralGraph.from_data(x, edges, weight, rank=2).adjacency()
    hop = normalized_graph(edges, weight, 10, torch.float64)
    assert torch.allclose(weighted, SpectralGraph(4, rank=2).adjacency(x, hop))
    assert not torch.allclose(weighted, SpectralGraph.from_data(x, edges, rank=2).adjacency(), atol=1e-3)


@pytest.mark.parametrize("weighting", ["rank", "soft"])
def test_rank_is_at_most_the_number_of_features(weighting):
    graph = SpectralGraph.from_data(torch.randn(9, 3), None, weighting=weighting)
    assert graph.vectors.shape == (3, 3)
    if weighting == "rank":  # all directions alike: the graph is the identity
        assert torch.allclose(graph.adjacency(), torch.eye(3), atol=1e-5)


def test_by_name_it_is_computed_from_the_input_without_gradient():
    graph = SpectralGraph(4, rank=2)
    assert graph.from_input
    assert not graph.state_dict()
    with pytest.raises(ValueError, match="'x'"):
        graph.operand()
    assert not any(tensor.requires_grad for tensor in graph.operand(torch.randn(5, 4, requires_grad=True)))
    kept = SpectralGraph.from_data(torch.randn(5, 4), None, rank=2)
    assert not kept.from_input
    assert sorted(kept.state_dict()) == ["vectors", "weights"]


@pytest.mark.parametrize("num_features", [5, 520])
def test_half_precision(num_features):
    x = planted(40, num_features, rank=2).bfloat16()
    graph = SpectralGraph.from_data(x, None, rank=2)
    assert graph.vectors.dtype == torch.bfloat16
    exact = SpectralGraph.from_data(x.double(), None, rank=2)
    assert torch.allclose(graph.adjacency().double(), exact.adjacency(), atol=0.05)


@pytest.mark.parametrize("operator", ["laplacian", "adjacency"])
def test_norm_of_many_rows(operator):
    graph = SpectralGraph.from_data(planted(20, 1030, rank=2), None, rank=2)
    n2 = graph.vectors @ graph.vectors.t()
    matrix = torch.eye(1030, dtype=torch.float64) - n2 if operator == "laplacian" else n2
    assert graph.l1_norm(operator).item() == pytest.approx(matrix.abs().sum().item(), rel=1e-10)
