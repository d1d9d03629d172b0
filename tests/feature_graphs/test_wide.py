"""Tables of many thousand features, where nothing may be d×d."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bigcn import BiGCN
from bigcn.feature_graphs import CorrelationGraph, LearnableGraph, SpectralGraph, UniformGraph

N, D = 400, 20_000


class LargestTensor(TorchDispatchMode):
    """Remembers the most entries that any tensor had."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
                self.entries = max(self.entries, tensor.numel())
        return out


@pytest.fixture(scope="module")
def bag_of_words():
    generator = torch.Generator().manual_seed(0)
    rows, cols = torch.randint(N, (8000,), generator=generator), torch.randint(D, (8000,), generator=generator)
    # A few words that always stand together.
    together = torch.arange(0, N, 7)
    rows = torch.cat([rows, together, together])
    cols = torch.cat([cols, torch.full_like(together, 5), torch.full_like(together, 11)])
    x = torch.sparse_coo_tensor(torch.stack([rows, cols]), torch.ones(len(rows)), (N, D), check_invariants=False)
    source = torch.arange(N)
    edge_index = torch.cat([torch.stack([source, source.roll(1)]), torch.stack([source.roll(1), source])], dim=1)
    return x.coalesce().to_sparse_csr(), edge_index


def test_correlation_is_sparse_and_built_without_a_square(bag_of_words):
    x, _ = bag_of_words
    with LargestTensor() as largest:
        graph = CorrelationGraph.from_features(x)
    assert largest.entries < D * D / 10
    operand = graph.operand()
    assert len(operand) == 3
    assert operand[0].numel() <= D * (1 + 2 * 32)
    unit = torch.zeros(D, 1)
    unit[5] = 1
    assert graph.product(operand, unit)[11] > 0


@pytest.mark.parametrize("name", ["correlation", "spectral", "uniform", "none"])
def test_a_model_trains_on_it(bag_of_words, name):
    x, edge_index = bag_of_words
    model = BiGCN(D, 8, 2, 3, feature_graph=name, cached=True, check_low_pass=False)
    y = torch.arange(N) * 3 // N  # three arcs of the ring, which a low-pass filter keeps
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    with LargestTensor() as largest:
        for _ in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x, edge_index), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert largest.entries < D * D / 10


def test_a_learnable_graph_is_refused_with_its_price():
    for make in (lambda: LearnableGraph(D), lambda: BiGCN(D, 8, 2, 3, feature_graph="learnable")):
        with pytest.raises(
            ValueError, match=r"20,000 features takes 3\.7 GiB.*'correlation', 'spectral' and 'uniform'"
        ):
            make()


def test_top_edges_of_a_wide_graph_are_found_in_pieces():
    x = torch.randn(30, 2500, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    graph = SpectralGraph.from_data(x, None, rank=4)
    weights = graph.adjacency().triu(1)
    best = weights.abs().flatten().topk(5).indices
    expected = [(str(int(i) // 2500), str(int(i) % 2500)) for i in best]
    assert [edge[:2] for edge in graph.top_edges(5)] == expected
    assert len(UniformGraph(2500).top_edges(3)) == 3


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
def test_all_neighbours_make_the_dense_graph(sparse, self_loops):
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(50, 37, generator=generator, dtype=torch.float64)
    x = x * (torch.rand(50, 37, generator=generator) < 0.2)
    x[:, 3] = 0
    dense = CorrelationGraph.from_features(x, self_loops)
    given = x.to_sparse_csr() if sparse else x
    full = CorrelationGraph.from_features(given, self_loops, neighbours=37)
    torch.testing.assert_close(full.adjacency(), dense.adjacency())
    few = CorrelationGraph.from_features(given, self_loops, neighbours=2)
    kept = (few.adjacency() > 0).fill_diagonal_(False)
    assert bool((kept <= (dense.adjacency() > 0)).all())
    assert kept.sum() < (dense.adjacency() > 0).sum()
    with pytest.raises(ValueError, match="'neighbours'"):
        CorrelationGraph(5, neighbours=0)


def test_a_large_graph_with_few_links_is_kept_sparse():
    generator = torch.Generator().manual_seed(3)
    x = (torch.rand(60, 600, generator=generator, dtype=torch.float64) < 0.01).double()
    graph = CorrelationGraph.from_features(x)
    assert len(graph.operand()) == 3
    cosine = torch.nn.functional.normalize(x, dim=0)
    share = (cosine.t() @ cosine).fill_diagonal_(1).softmax(dim=1)
    linked = ((share > 1 / 600) | (share > 1 / 600).t()).double().fill_diagonal_(1)
    scale = linked.sum(dim=1).rsqrt()
    torch.testing.assert_close(graph.adjacency(), scale.unsqueeze(1) * linked * scale)


def test_features_that_are_all_alike_are_not_linked_by_rounding():
    for seed in range(30):
        x = -torch.rand(1, 7, generator=torch.Generator().manual_seed(seed)) - 0.1
        for neighbours in (None, 7):
            graph = CorrelationGraph.from_features(x, neighbours=neighbours)
            torch.testing.assert_close(graph.adjacency(), torch.eye(7))
