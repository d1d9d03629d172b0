import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch_geometric.data import Data, HeteroData

from bigcn import BiSmoother, read_graph, smooth
from bigcn.datasets import digits
from bigcn.feature_graphs import CorrelationGraph, LearnableGraph, SpectralGraph
from bigcn.noise import NoiseLevel
from bigcn.smoothing import rank_smoothing


def laplacian(adjacency: np.ndarray) -> np.ndarray:
    degree = adjacency.sum(axis=1)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return np.diag((degree > 0).astype(float)) - scale[:, None] * adjacency * scale


def random_problem(seed: int, n: int, d: int) -> tuple[torch.Tensor, np.ndarray, torch.Tensor, np.ndarray]:
    rng = np.random.default_rng(seed)
    nodes = np.triu(rng.random((n, n)) < 0.3, 1) * rng.uniform(0.1, 2.0, (n, n))
    nodes = nodes + nodes.T
    features = np.triu(rng.random((d, d)) < 0.7) * rng.uniform(0.1, 2.0, (d, d))
    features = features + features.T
    return torch.from_numpy(rng.normal(size=(n, d))), nodes, torch.from_numpy(nodes).to_sparse_csr(), features


problems = st.tuples(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12))
strengths = st.floats(0, 20)


@given(problems, strengths, strengths)
@settings(max_examples=60, deadline=None)
def test_exact_is_sylvester(problem, lambda1, lambda2):
    x, nodes, graph, features = random_problem(*problem)
    expected = scipy.linalg.solve_sylvester(
        np.eye(len(nodes)) + lambda1 * laplacian(nodes), lambda2 * laplacian(features), x.numpy()
    )
    out = smooth(x, graph, torch.from_numpy(features), lambda1, lambda2)
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-8)


@given(problems, st.floats(0.1, 5), st.floats(0.1, 5), st.floats(1, 4))
@settings(max_examples=10, deadline=None)
def test_admm_converges_to_sylvester(problem, lambda1, lambda2, p):
    x, nodes, graph, features = random_problem(*problem)
    out = smooth(x, graph, torch.from_numpy(features), lambda1, lambda2, "admm", p=p, tolerance=1e-8)
    expected = scipy.linalg.solve_sylvester(
        np.eye(len(nodes)) + lambda1 * laplacian(nodes), lambda2 * laplacian(features), x.numpy()
    )
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-6)


@given(problems, st.floats(0.1, 5), st.floats(0, 5), st.floats(0.1, 0.7))
@settings(max_examples=40, deadline=None)
def test_filling_solves_the_masked_equation(problem, lambda1, lambda2, share):
    x, nodes, graph, features = random_problem(*problem)
    n, d = x.shape
    gaps = np.random.default_rng(1).random((n, d)) < share
    incomplete = torch.where(torch.from_numpy(gaps), torch.nan, x)
    operator = (
        np.diag(~gaps.ravel()).astype(float)
        + lambda1 * np.kron(laplacian(nodes), np.eye(d))
        + lambda2 * np.kron(np.eye(n), laplacian(features))
    )
    out = smooth(incomplete, graph, torch.from_numpy(features), lambda1, lambda2, missing="fill")
    assert bool(torch.isfinite(out).all())
    # The equation, not its solution: with unobserved components the solution is not unique.
    residual = operator @ out.numpy().ravel() - np.where(gaps, 0, x.numpy()).ravel()
    np.testing.assert_allclose(residual, 0, atol=1e-7)


def test_two_rounds_are_the_truncated_recursion():
    x, nodes, graph, features = random_problem(0, 9, 5)
    a = np.linalg.inv(np.eye(9) + 2 * 1.5 / 4 * laplacian(nodes))
    b = np.linalg.inv(np.eye(5) + 2 * 0.5 / 4 * laplacian(features))
    f = x.numpy()
    y2, z = f, 0 * f
    for _ in range(2):
        y1 = a @ (f + 3 * y2 + z) / 4
        y2 = (f + 3 * y1 - z) @ b / 4
        z = z + 3 * (y2 - y1)
    out = smooth(x, graph, torch.from_numpy(features), 1.5, 0.5, "admm", p=3, iterations=2)
    np.testing.assert_allclose(out.numpy(), (y1 + y2) / 2, atol=1e-9)


def test_slow_admm_says_so(monkeypatch):
    monkeypatch.setattr("bigcn.smoothing.solvers.MAX_ROUNDS", 20)
    x, _, graph, features = random_problem(0, 9, 5)
    with pytest.warns(ConvergenceWarning, match="larger p"):
        smooth(x, graph, torch.from_numpy(features), 5, 5, "admm", p=0.1)


def test_no_dense_node_matrix_on_a_large_graph():
    n = 20_000
    source = torch.arange(n - 1)
    edge_index = torch.cat([torch.stack([source, source + 1]), torch.stack([source + 1, source])], dim=1)
    x = torch.randn(n, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weights = torch.ones(8, 8, dtype=torch.float64)
    out = smooth(x, edge_index, weights, 2.0, 3.0)
    # The equation itself, with the path's Laplacian applied by hand.
    degree = torch.full((n,), 2.0, dtype=torch.float64)
    degree[[0, -1]] = 1
    scaled = out / degree.sqrt().unsqueeze(1)
    hopped = torch.zeros_like(out)
    hopped[1:] += scaled[:-1]
    hopped[:-1] += scaled[1:]
    along_nodes = out - hopped / degree.sqrt().unsqueeze(1)
    along_features = out - out.mean(dim=1, keepdim=True)
    torch.testing.assert_close(out + 2 * along_nodes + 3 * along_features, x, atol=1e-8, rtol=0)


@pytest.mark.parametrize("graph", ["correlation", "spectral", "uniform"])
def test_named_feature_graphs(graph):
    x, _, edges, _ = random_problem(3, 12, 6)
    out = smooth(x, edges, graph, 1.0, 2.0, rank=3)
    if graph == "correlation":
        same = CorrelationGraph.from_features(x)
    elif graph == "spectral":
        same = SpectralGraph.from_data(x, edges, rank=3)
    else:
        same = torch.ones(6, 6, dtype=torch.float64)
    torch.testing.assert_close(out, smooth(x, edges, same, 1.0, 2.0))


def test_one_direction_alone():
    x, nodes, edges, features = random_problem(5, 8, 4)
    by_nodes = np.linalg.solve(np.eye(8) + 2 * laplacian(nodes), x.numpy())
    by_features = np.linalg.solve(np.eye(4) + 3 * laplacian(features), x.numpy().T).T
    np.testing.assert_allclose(smooth(x, edges, lambda1=2), by_nodes, atol=1e-8)
    np.testing.assert_allclose(smooth(x, edges, torch.from_numpy(features), 2, 0), by_nodes, atol=1e-8)
    np.testing.assert_allclose(smooth(x, None, torch.from_numpy(features), 9, 3), by_features, atol=1e-8)
    np.testing.assert_allclose(smooth(x, edges, torch.from_numpy(features), 0, 3), by_features, atol=1e-8)
    assert torch.equal(smooth(x, edges, lambda1=0), x)


edge = torch.tensor([[0, 1], [1, 0]])
two = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("kwargs", "argument"),
    [
        ({"x": torch.tensor([[float("nan")] * 3] * 2)}, "'x'"),
        ({"x": torch.tensor([[float("inf")] * 3] * 2)}, "'x'"),
        ({"x": torch.zeros(2, 3, dtype=torch.long)}, "'x'"),
        ({"x": torch.zeros(2)}, "'x'"),
        ({"x": [[1.0]]}, "'x'"),
        ({"edge_index": torch.tensor([[0, 5], [5, 0]])}, "'edge_index'"),
        ({"edge_index": torch.tensor([[0, -1], [-1, 0]])}, "'edge_index'"),
        ({"edge_index": torch.tensor([[0], [1]])}, "'edge_index'"),
        ({"edge_index": torch.zeros(3, 2, dtype=torch.long)}, "'edge_index'"),
        ({"edge_weight": torch.tensor([-1.0, -1.0])}, "'edge_weight'"),
        ({"edge_weight": torch.tensor([float("nan")] * 2)}, "'edge_weight'"),
        ({"edge_weight": torch.ones(3)}, "'edge_weight'"),
        ({"feature_adjacency": torch.ones(2, 3)}, "'feature_adjacency'"),
        ({"feature_adjacency": -torch.ones(3, 3)}, "'feature_adjacency'"),
        ({"feature_adjacency": torch.ones(3, 3).triu()}, "'feature_adjacency'"),
        ({"feature_adjacency": torch.full((3, 3), float("nan"))}, "'feature_adjacency'"),
        ({"feature_adjacency": "cosine"}, "'feature_adjacency'"),
        ({"feature_adjacency": 3}, "'feature_adjacency'"),
        ({"feature_adjacency": torch.ones(4, 4)}, "'feature_graph'"),
        ({"lambda1": -1.0}, "'lambda1'"),
        ({"lambda2": float("nan")}, "'lambda2'"),
        ({"lambda2": 1.0}, "'lambda2'"),
        ({"method": "newton"}, "'method'"),
        ({"missing": "guess"}, "'missing'"),
        ({"method": "admm", "p": -1.0}, "'p'"),
        ({"method": "admm", "iterations": 0}, "'iterations'"),
        ({"x": torch.tensor([[float("nan")] * 3] * 2), "missing": "fill", "method": "admm"}, "'method"),
    ],
)
def test_bad_input_is_named(kwargs, argument):
    with pytest.raises(ValueError, match=argument) as caught:
        smooth(**{"x": two, "edge_index": edge, **kwargs})
    assert "\n" not in str(caught.value)


@parametrize_with_checks([BiSmoother(), BiSmoother(missing="fill"), BiSmoother(feature_graph="correlation")])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_estimator_takes_any_graph():
    x, nodes, csr, _ = random_problem(2, 10, 4)
    table, pairs = x.numpy(), np.stack(np.nonzero(nodes))
    unweighted = BiSmoother(feature_graph="none").fit_transform(table, graph=pairs)
    data = Data(edge_index=torch.from_numpy(pairs))
    binary = sp.csr_array((nodes > 0).astype(float))
    adjacency = torch.from_numpy(binary.toarray()).to_sparse_csr()
    for graph in (pairs.tolist(), torch.from_numpy(pairs), data, binary, adjacency, Data(adj_t=adjacency)):
        np.testing.assert_allclose(BiSmoother(feature_graph="none").fit_transform(table, graph=graph), unweighted)
    ids = pd.DataFrame({"id": np.arange(10), "a": np.arange(10.0)})
    read = read_graph(ids, pd.DataFrame(pairs.T, columns=["source", "target"]))
    np.testing.assert_allclose(BiSmoother(feature_graph="none").fit_transform(table, graph=read), unweighted)
    with pytest.raises(ValueError, match="'graph' must have 9 nodes"):
        BiSmoother().fit(table[:9], graph=read)
    weighted = BiSmoother(feature_graph="none").fit_transform(table, graph=sp.coo_matrix(nodes))
    np.testing.assert_allclose(BiSmoother(feature_graph="none").fit_transform(table, graph=csr), weighted)
    assert np.abs(weighted - unweighted).max() > 1e-3


def test_estimator_centres_columns_and_keeps_its_graph():
    x, _, edges, features = random_problem(4, 10, 4)
    shifted = x.numpy() + 100
    smoother = BiSmoother(feature_graph=features, lambda1=2.0, lambda2=1.0)
    out = smoother.fit_transform(shifted, graph=edges)
    mean = shifted.mean(axis=0)
    expected = smooth(torch.from_numpy(shifted - mean), edges, torch.from_numpy(features), 2.0, 1.0).numpy() + mean
    np.testing.assert_allclose(out, expected, atol=1e-6)
    assert len(smoother.feature_graph_.top_edges(2, names=list("abcd"))) == 2
    sparse = BiSmoother(feature_graph=sp.csr_array(features), lambda1=2.0, lambda2=1.0)
    np.testing.assert_allclose(sparse.fit_transform(shifted, graph=edges), out)


def test_estimator_takes_a_learned_graph():
    graph = LearnableGraph(4).double()
    x, _, edges, _ = random_problem(4, 10, 4)
    out = BiSmoother(feature_graph=graph, center=False).fit_transform(x.numpy(), graph=edges)
    expected = smooth(x, edges, graph_adjacency(graph), 1.0, 1.0)
    np.testing.assert_allclose(out, expected.numpy(), atol=1e-7)


def graph_adjacency(graph: LearnableGraph) -> torch.Tensor:
    weights = graph.logits.detach().sigmoid().triu(1)
    return weights + weights.t() + torch.eye(4, dtype=torch.float64)


@pytest.mark.parametrize(
    "graph",
    [
        np.zeros((3, 4), dtype=int), [[0.5, 1.5], [1.5, 0.5]], sp.eye_array(3), torch.eye(3).to_sparse_csr(),
        object(), "edges.csv", Data(), HeteroData(), Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]])),
    ],
)  # fmt: skip
def test_estimator_refuses_what_is_no_graph(graph):
    with pytest.raises(ValueError, match="'graph'"):
        BiSmoother().fit(np.ones((2, 4)), graph=graph)


def test_what_a_graph_may_be_is_said():
    with pytest.raises(ValueError, match=r"a PyG Data or what read_graph returns \(got dict\)"):
        BiSmoother().fit(np.ones((2, 4)), graph={})


def test_missing_values_are_filled_from_both_directions():
    data = digits()
    gaps = torch.rand(data.x.shape, generator=torch.Generator().manual_seed(0)) < 0.3
    table = torch.where(gaps, torch.nan, data.x).numpy()
    column_means = np.where(np.isnan(table), np.nanmean(table, axis=0), table)

    def error(filled: np.ndarray) -> float:
        return float(((filled - data.x.numpy())[gaps.numpy()] ** 2).mean())

    two_way = BiSmoother(1.0, 3.0, missing="fill").fit_transform(table, graph=data)
    one_way = BiSmoother(1.0, feature_graph="none", missing="fill").fit_transform(table, graph=data)
    assert error(two_way) < error(one_way) < error(column_means)


def test_selection_never_sees_what_it_hides():
    data = NoiseLevel(0.5, seed=1)(digits())
    rows = slice(0, 300)
    x = data.x[rows].double()
    kept = (data.edge_index < 300).all(dim=0)
    ranked = rank_smoothing(x, data.edge_index[:, kept], lambda1=(0.0, 1.0), lambda2=(0.0, 3.0), ranks=(8,))
    assert [choice.error for choice in ranked] == sorted(choice.error for choice in ranked)
    assert len(ranked) == 4
    # Filling with column means is the choice without strengths; its error is that of the held-out entries.
    nothing = next(choice for choice in ranked if choice.lambda1 == choice.lambda2 == 0)
    held_out = torch.rand(x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64) < 0.1
    visible = torch.where(held_out, torch.nan, x)
    expected = (visible.nanmean(dim=0) - x)[held_out].square().mean()
    assert nothing.error == pytest.approx(float(expected))
    with pytest.raises(ValueError, match="'hidden'"):
        rank_smoothing(x, None, hidden=1.5)


def test_a_graph_of_other_nodes_is_named_everywhere():
    table = np.ones((2, 4))
    with pytest.raises(ValueError, match="'edge_index' names node 9"):
        BiSmoother().fit(table, graph=[[0, 9], [9, 0]])
    with pytest.raises(ValueError, match="'edge_index' names node 9"):
        rank_smoothing(torch.rand(2, 40), torch.tensor([[0, 9], [9, 0]]))
    with pytest.raises(ValueError, match="'lambda2'"):
        rank_smoothing(torch.rand(2, 40), None, lambda2=(-1.0,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("method", ["exact", "admm"])
def test_half_precision(dtype, method):
    generator = torch.Generator().manual_seed(0)
    x, edges = torch.randn(12, 4, generator=generator), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    found = smooth(x.to(dtype), edges, "spectral", 2.0, rank=2, method=method)
    assert found.dtype == dtype
    assert torch.allclose(found.float(), smooth(x, edges, "spectral", 2.0, rank=2), atol=0.1)


@pytest.mark.parametrize("method", ["exact", "admm"])
def test_no_rows(method):
    assert smooth(torch.ones(0, 3), torch.zeros(2, 0, dtype=torch.long), method=method).shape == (0, 3)


def test_a_table_that_is_not_centred_is_read_as_smooth_reads_it():
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(60, 1, generator=generator)
    x = 5 + base * torch.tensor([1.0, -1.0, 0.5]) + 0.1 * torch.randn(60, 3, generator=generator)
    x[torch.rand(60, 3, generator=generator) < 0.2] = torch.nan
    found = BiSmoother(1.0, 3.0, "correlation", center=False, missing="fill").fit_transform(x.numpy())
    expected = smooth(x, None, "correlation", 1.0, 3.0, missing="fill")
    assert np.allclose(found, expected.numpy(), atol=1e-4)
