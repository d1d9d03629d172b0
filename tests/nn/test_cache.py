"""The cache, alone and inside the layer: never an answer for another graph."""

import copy
import pickle

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from bigcn import BiGCN, BiGCNConv
from bigcn.feature_graphs import FEATURE_GRAPHS, SpectralGraph, make_feature_graph
from bigcn.nn.cache import TensorCache
from bigcn.nn.registry import ModelContext, get_model, model_names
from bigcn.node_graphs import normalized_graph


class Counter:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.calls


def test_same_tensors_are_computed_once():
    cache, compute, tensor = TensorCache(), Counter(), torch.zeros(3)
    assert [cache.get((tensor, None), "a", compute) for _ in range(3)] == [1, 1, 1]
    assert cache.get((tensor, None), "b", compute) == 2
    assert cache.get((tensor.clone(), None), "a", compute) == 3  # equal, but another
    assert cache.get((tensor, torch.zeros(1)), "a", compute) == 4


def test_a_change_in_place_is_noticed():
    cache, compute, tensor = TensorCache(), Counter(), torch.zeros(3)
    cache.get((tensor,), None, compute)
    tensor[0] = 1
    assert cache.get((tensor,), None, compute) == 2
    tensor[1:].add_(1)  # through a view
    assert cache.get((tensor,), None, compute) == 3
    assert cache.get((tensor,), None, compute) == 3
    tensor.data = torch.ones(3)  # no new version, but other memory
    assert cache.get((tensor,), None, compute) == 4


def test_the_least_recently_used_goes_first():
    cache, compute = TensorCache(2), Counter()
    first, second, third = (torch.zeros(1) for _ in range(3))
    cache.get((first,), None, compute)
    cache.get((second,), None, compute)
    assert cache.get((first,), None, compute) == 1
    cache.get((third,), None, compute)
    assert len(cache) == 2
    assert cache.get((first,), None, compute) == 1
    assert cache.get((second,), None, compute) == 4


@pytest.mark.parametrize("size", [1, 2, 3])
def test_it_never_outgrows_its_size(size):
    cache = TensorCache(size)
    for _ in range(5):
        cache.get((torch.zeros(1),), None, Counter())
    assert len(cache) == size
    cache.clear()
    assert len(cache) == 0


def test_inference_tensors_are_not_kept():
    cache, compute = TensorCache(), Counter()
    with torch.inference_mode():
        tensor = torch.zeros(2)
        cache.get((tensor,), None, compute)
        tensor[0] = 1  # leaves no trace
        assert cache.get((tensor,), None, compute) == 2
    assert len(cache) == 0


def test_copies_start_empty():
    cache, tensor = TensorCache(3), torch.zeros(1)
    cache.get((tensor,), None, Counter())
    for other in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert len(other) == 0
        assert other.size == 3
    assert len(cache) == 1


# In the layer.

N, D, H = 8, 5, 3


def fresh(conv):
    """The same layer without a cache."""
    other = copy.deepcopy(conv)
    other.cached = False
    return other


def inputs(make_graph):
    return torch.randn(N, D), make_graph(N, 12, isolated=1)


def counting(monkeypatch):
    """Counts how often the layer normalises a graph."""
    counter = Counter()

    def counted(*args, **kwargs):
        counter()
        return normalized_graph(*args, **kwargs)

    monkeypatch.setattr("bigcn.nn.bigcn_conv.normalized_graph", counted)
    return counter


def test_the_graph_is_compressed_once(make_graph, monkeypatch):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, H, cached=True)
    counter = counting(monkeypatch)
    first = conv(x, edge_index)
    assert torch.equal(conv(x, edge_index), first)
    conv(torch.randn(N, D), edge_index)
    assert counter.calls == 1
    conv.reset_parameters()
    conv(x, edge_index)
    assert counter.calls == 2


def test_alternating_graphs_are_both_kept(make_graph, monkeypatch):
    x, edge_index = inputs(make_graph)
    other_x, other = torch.randn(5, D), make_graph(5, 4)
    conv = BiGCNConv(D, H, cached=True)
    counter = counting(monkeypatch)
    for _ in range(3):
        assert torch.allclose(conv(x, edge_index), fresh(conv)(x, edge_index), atol=1e-5)
        assert torch.allclose(conv(other_x, other), fresh(conv)(other_x, other), atol=1e-5)
    assert counter.calls == 2


EDITS = {
    "edge_index": (lambda e, n: e.clone(), lambda e: e[:, 0].copy_(torch.tensor([0, 6]))),
    "EdgeIndex": (lambda e, n: EdgeIndex(e.clone(), sparse_size=(n, n)), lambda e: e[:, 0].copy_(torch.tensor([0, 6]))),
    "inside EdgeIndex": (
        lambda e, n: EdgeIndex(e.clone(), sparse_size=(n, n)),
        lambda e: e.as_tensor()[:, 0].copy_(torch.tensor([0, 6])),
    ),
    "csr": (lambda e, n: dense(e, n).to_sparse_csr(), lambda e: e.values()[:3].mul_(7)),
    "csr columns": (lambda e, n: dense(e, n).to_sparse_csr(), lambda e: e.col_indices()[0].fill_(6)),
    "csc": (lambda e, n: dense(e, n).to_sparse_csc(), lambda e: e.values()[:3].mul_(7)),
    "coo": (lambda e, n: dense(e, n).to_sparse().coalesce(), lambda e: e.values()[:3].mul_(7)),
}


def dense(edge_index, num_nodes):
    return torch.zeros(num_nodes, num_nodes).index_put((edge_index[1], edge_index[0]), torch.tensor(1.0))


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("name", EDITS)
def test_a_graph_edited_in_place_is_another_graph(make_graph, name, inference):
    make, edit = EDITS[name]
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, H, cached=True)
    with torch.inference_mode(inference):
        graph = make(edge_index, N)
        before = conv(x, graph)
        edit(graph)
        after = conv(x, graph)
        assert not torch.allclose(before, after, atol=1e-4)
        assert torch.allclose(after, fresh(conv)(x, graph), atol=1e-5)


def test_edge_weights_are_part_of_the_graph(make_graph):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, H, cached=True)
    weight = torch.rand(edge_index.size(1) // 2).repeat(2)
    for current in (None, weight, weight.clone().add_(1), None):
        assert torch.allclose(conv(x, edge_index, current), fresh(conv)(x, edge_index, current), atol=1e-5)
    before = conv(x, edge_index, weight)
    weight[0] = 10
    assert not torch.allclose(conv(x, edge_index, weight), before, atol=1e-4)
    assert torch.allclose(conv(x, edge_index, weight), fresh(conv)(x, edge_index, weight), atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", FEATURE_GRAPHS)
def test_what_is_kept_under_autocast_has_full_precision(make_graph, name, training):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, 40, feature_graph=name, cached=True).train(training)  # wide: the features are filtered
    with torch.autocast("cpu", torch.bfloat16):
        conv(x, edge_index)
    assert torch.allclose(conv(x, edge_index), fresh(conv)(x, edge_index), rtol=0, atol=1e-5)


def test_a_model_trained_under_autocast_is_the_same_without(make_graph):
    x, edge_index = inputs(make_graph)
    for name in model_names():
        data = get_model(name).prepare(Data(x=x, edge_index=edge_index))
        graph = data.x, data.edge_index, data.edge_weight
        model = get_model(name).build(ModelContext("digits", "clean", "node", D, H, dropout=0.0))
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(*graph).float().sum()
        loss.backward()
        assert torch.allclose(model(*graph), copy.deepcopy(model)(*graph), rtol=0, atol=1e-5), name


def test_another_feature_graph_and_another_normalisation_are_noticed(make_graph):
    x, edge_index = inputs(make_graph)
    for first, second in ((SpectralGraph(D, rank=1), SpectralGraph(D, rank=4)), ("none", SpectralGraph(D, rank=2))):
        conv = BiGCNConv(D, 40, feature_graph=first, feature_filter="exact", cached=True)
        before = conv(x, edge_index)
        conv.feature_graph = second
        assert not torch.allclose(conv(x, edge_index), before, atol=1e-3)
        assert torch.allclose(conv(x, edge_index), fresh(conv)(x, edge_index), atol=1e-5)
    # An exact filter, a series for graphs that are normalised, would be lost in rounding.
    conv = BiGCNConv(D, 40, feature_graph=second, node_filter="taylor", node_strength=0.1, cached=True)
    before = conv(x, edge_index)
    conv.normalize = False
    assert not torch.allclose(conv(x, edge_index), before, atol=1e-3)
    assert torch.allclose(conv(x, edge_index), fresh(conv)(x, edge_index), atol=1e-5)


def test_a_matrix_that_takes_the_place_of_another_is_another(make_graph):
    x, edge_index = inputs(make_graph)
    matrices = [torch.ones(D, D) - torch.eye(D), torch.zeros(D, D)]
    matrices[1][0, 1] = matrices[1][1, 0] = 1.0
    conv = BiGCNConv(D, 40, feature_graph=matrices[0], cached=True)
    for matrix in matrices * 3:  # made anew each time, and maybe where the last one was
        conv.feature_graph = make_feature_graph(matrix.clone(), D)
        assert torch.allclose(conv(x, edge_index), fresh(conv)(x, edge_index), atol=1e-5)


def test_precision_and_size_are_part_of_the_key(make_graph):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, H, cached=True)
    conv(x, edge_index)
    more = torch.cat([x, torch.randn(2, D)])
    assert torch.allclose(conv(more, edge_index), fresh(conv)(more, edge_index), atol=1e-5)
    conv.double()
    assert conv(x.double(), edge_index).dtype == torch.float64


@pytest.mark.parametrize("name", ["correlation", "spectral"])
def test_graphs_of_the_input_follow_the_input(make_graph, name):
    x, edge_index = inputs(make_graph)
    kwargs = {"rank": 2} if name == "spectral" else {}
    conv = BiGCNConv(D, H, feature_graph=name, feature_graph_kwargs=kwargs, cached=True)
    assert torch.equal(conv(x, edge_index), conv(x, edge_index))
    for other in (torch.randn(N, D), x):
        assert torch.allclose(conv(other, edge_index), fresh(conv)(other, edge_index), atol=1e-4)
    x[:, 0] = x[:, 1]
    assert torch.allclose(conv(x, edge_index), fresh(conv)(x, edge_index), atol=1e-4)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_sparse_features_are_compared_too(make_graph, layout):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, H, cached=True)
    sparse = x.to_sparse(layout=layout)
    sparse = sparse.coalesce() if layout == torch.sparse_coo else sparse
    before = conv(sparse, edge_index)
    sparse.values().mul_(2)
    assert not torch.allclose(before, conv(sparse, edge_index), atol=1e-4)
    assert torch.allclose(conv(sparse, edge_index), fresh(conv)(2 * x, edge_index), atol=1e-4)


def test_weights_that_learn_are_never_cached(make_graph):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, H, cached=True)
    weight = torch.ones(edge_index.size(1), requires_grad=True)
    for _ in range(2):
        gradient = torch.autograd.grad(conv(x, edge_index, weight).sum(), weight)[0]
        assert gradient.abs().sum() > 0
    assert len(conv._graphs) == 0


def test_copies_of_a_layer_do_not_take_the_cache_along(make_graph):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, H, cached=True, feature_graph="correlation")
    expected = conv(x.to_sparse_csr(), edge_index)
    for other in (copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        assert sum(len(cache) for cache in (other._graphs, other._operands, other._features)) == 0
        assert torch.allclose(other(x, edge_index), expected, atol=1e-5)
    assert len(conv._graphs) == 1


@pytest.mark.parametrize("gcn_layers", [0, 1])
def test_no_layer_of_a_model_mistakes_another_graph(make_graph, gcn_layers):
    x, edge_index = inputs(make_graph)
    model = BiGCN(D, 6, 2, H, gcn_layers=gcn_layers, cached=True)
    model(x, edge_index)
    other = make_graph(N, 5)
    plain = BiGCN(D, 6, 2, H, gcn_layers=gcn_layers)
    plain.load_state_dict(model.state_dict())
    assert torch.allclose(model(x, other), plain(x, other), atol=1e-5)
