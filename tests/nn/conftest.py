"""The oracle of the layer: dense matrices, inverses, the recursion as the paper prints it; and layers to compare."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bigcn import BiGCNConv
from bigcn.feature_graphs import LearnableGraph

THREADS = torch.get_num_threads()


def pytest_runtest_setup(item):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # matrices this small only wait for each other's threads


def pytest_runtest_teardown(item):
    torch.set_num_threads(THREADS)


def node_laplacian(edge_index, edge_weight, num_nodes):
    """Dense, differentiable in the weights; an isolated node has a zero row."""
    if edge_weight is None:
        edge_weight = torch.ones(edge_index.size(1), dtype=torch.float64)
    adjacency = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    adjacency = adjacency.index_put((edge_index[1], edge_index[0]), edge_weight, accumulate=True)
    return dense_laplacian(adjacency)


def dense_laplacian(adjacency):
    degree = adjacency.sum(dim=1)
    inverse = torch.stack([value**-0.5 if value > 0 else value * 0 for value in degree])
    return torch.diag((degree > 0).to(adjacency.dtype)) - torch.diag(inverse) @ adjacency @ torch.diag(inverse)


def learnable_laplacian(logits, self_loops=True):
    size = logits.size(0)
    row, col = torch.triu_indices(size, size, 1)
    half = torch.zeros(size, size, dtype=logits.dtype).index_put((row, col), 1 / (1 + torch.exp(-logits[row, col])))
    return dense_laplacian(half + half.t() + (torch.eye(size, dtype=logits.dtype) if self_loops else 0))


def correlation_laplacian(x, self_loops=True):
    x = x.detach().reshape(-1, x.size(-1)).numpy()
    length = np.linalg.norm(x, axis=0)
    safe = np.where(length > 0, length, 1)
    similarity = (x / safe).T @ (x / safe)
    np.fill_diagonal(similarity, 1)
    share = np.exp(similarity) / np.exp(similarity).sum(axis=1, keepdims=True)
    above = share > share.mean()
    linked = np.logical_or(above, above.T)
    np.fill_diagonal(linked, self_loops)
    return dense_laplacian(torch.from_numpy(linked.astype(float)))


def spectral_laplacian(x, rank, soft=False):
    """Without smoothing, so that it is exact."""
    x = x.detach().reshape(-1, x.size(-1)).numpy()
    values, vectors = np.linalg.eigh(x.T @ x / len(x))
    values, vectors = values[::-1], vectors[:, ::-1]
    if soft:
        floor = values[len(values) // 2 :].mean()
        weights = np.array([1 - floor / value if value > floor else 0.0 for value in values])
    else:
        weights = (np.arange(len(values)) < rank).astype(float)
    return torch.eye(x.shape[1], dtype=torch.float64) - torch.from_numpy((vectors * weights) @ vectors.T)


def one_sided(operator, strength, form):
    eye = torch.eye(operator.size(0), dtype=operator.dtype)
    return eye - strength * operator if form == "taylor" else torch.linalg.inv(eye + strength * operator)


def recursion(x, a, b, p, iterations):
    y2, z = x, torch.zeros_like(x)
    for _ in range(iterations):
        y1 = a @ (x + p * y2 + z) / (1 + p)
        y2 = (x + p * y1 - z) @ b / (1 + p)
        z = z + p * (y2 - y1)
    return (y1 + y2) / 2


def layer(conv, x, node_laplacian, feature_laplacian, weight=None, bias=None):
    """What a layer must give, from its settings and dense operators; no Laplacian means the direction is left out."""
    f = conv.filter
    a = one_sided(node_laplacian, f.node_strength, f.node_filter)
    b = torch.eye(x.size(-1), dtype=x.dtype)
    if feature_laplacian is not None:
        operator = b - feature_laplacian if f.feature_operator == "adjacency" else feature_laplacian
        b = one_sided(operator, f.feature_strength, f.feature_filter)
    weight = conv.lin.weight if weight is None else weight
    bias = conv.bias if bias is None else bias
    filtered = recursion(x, a, b, f.p, f.iterations)
    if conv.dropout is not None:
        filtered = filtered * conv.dropout.mask
    out = filtered @ weight.t()
    return out if bias is None else out + bias


def distance(found, expected):
    """The largest difference, relative to values beyond one."""
    if expected.numel() == 0:
        return 0.0
    assert found.shape == expected.shape
    return float((found - expected).detach().abs().max()) / max(1.0, float(expected.detach().abs().max()))


@pytest.fixture(autouse=True)
def fresh_compiler():
    """What one test compiled does not count against the limit of recompilations of the next."""
    torch._dynamo.reset()


@pytest.fixture(scope="session")
def oracle():
    return SimpleNamespace(
        node_laplacian=node_laplacian,
        dense_laplacian=dense_laplacian,
        learnable_laplacian=learnable_laplacian,
        correlation_laplacian=correlation_laplacian,
        spectral_laplacian=spectral_laplacian,
        layer=layer,
        distance=distance,
    )


def random_graph(num_nodes, pairs, generator=None, isolated=0):
    """A random undirected graph without loops, the last nodes isolated."""
    reach = max(num_nodes - isolated, 0)
    if reach < 2:
        return torch.empty(2, 0, dtype=torch.long)
    first = torch.randint(reach, (pairs,), generator=generator)
    second = (first + torch.randint(1, reach, (pairs,), generator=generator)) % reach
    half = torch.stack([first, second])
    return torch.cat([half, half.flip(0)], dim=1)


@pytest.fixture(scope="session")
def make_graph():
    return random_graph


@pytest.fixture
def graph():
    """Features and edges of 24 nodes, of which two are isolated and one has a self-loop."""
    edges = random_graph(24, 60, torch.Generator().manual_seed(1), isolated=2).unique(dim=1)
    edges = torch.cat([edges, torch.tensor([[3], [3]])], dim=1)
    return torch.randn(24, 9, generator=torch.Generator().manual_seed(2)), edges


@pytest.fixture(scope="session")
def exact():
    """Settings with which a layer is as exact as the oracle, and silent."""
    return {"tolerance": 1e-13, "check_low_pass": False}


@pytest.fixture(scope="session")
def make_layer(exact):
    """Makes a layer in double precision with any feature graph; spectral ones unsmoothed, as the oracle's are."""

    def make(kind, d, h, **options):
        kwargs = None
        if kind in ("spectral", "soft"):
            kwargs = {"smoothing": 0.0, "rank": max(1, d // 2), "weighting": "soft" if kind == "soft" else "rank"}
            kind = "spectral"
        if kind.startswith("given"):
            weights = torch.rand(d, d, dtype=torch.float64) * (torch.rand(d, d) < 0.6)
            kind = weights + weights.t() if kind == "given" else (weights + weights.t()).to_sparse_csr()
        conv = BiGCNConv(d, h, feature_graph=kind, feature_graph_kwargs=kwargs, **{**exact, **options}).double()
        with torch.no_grad():
            if isinstance(conv.feature_graph, LearnableGraph):
                conv.feature_graph.logits = torch.randn(d, d)
            if conv.bias is not None:
                conv.bias.normal_()
        return conv

    return make


@pytest.fixture(scope="session")
def small_layer():
    """Makes a layer for five features with any feature graph that has a name."""

    def make(name="none", h=3, **options):
        options = {"node_strength": 2.0, **options}
        kwargs = {"rank": 2} if name == "spectral" else None
        return BiGCNConv(5, h, feature_graph=name, feature_graph_kwargs=kwargs, check_low_pass=False, **options)

    return make


@pytest.fixture(scope="session")
def small_inputs():
    """Makes features and edges of nine nodes for the small layer."""

    def make(dtype=torch.float32):
        return torch.randn(9, 5, dtype=dtype), random_graph(9, 13, isolated=1)

    return make
