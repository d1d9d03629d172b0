"""The layer as a citizen of PyTorch Geometric: graphs in every format, loaders, explanations."""

import copy
import importlib.util
import sys
from types import SimpleNamespace

import pytest
import torch
import torch_geometric
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.loader import RandomNodeLoader
from torch_geometric.testing import assert_module

from bigcn import BiGCN
from bigcn.feature_graphs import FEATURE_GRAPHS

N, D, H = 9, 5, 3  # nodes, features and outputs of the small layer
both = pytest.mark.parametrize("cached", [False, True])
every = pytest.mark.parametrize("name", FEATURE_GRAPHS)


# Graphs.


def formats(edge_index, edge_weight):
    adjacency = torch.zeros(N, N).index_put((edge_index[1], edge_index[0]), edge_weight, accumulate=True)
    order = (edge_index[1] * N + edge_index[0]).argsort()
    by_column = EdgeIndex(edge_index[:, order], sparse_size=(N, N), sort_order="col")
    return {
        "edge_index": (edge_index, edge_weight),
        "shuffled": (edge_index.flip(1), edge_weight.flip(0)),
        "column of weights": (edge_index, edge_weight.view(-1, 1)),
        "EdgeIndex": (EdgeIndex(edge_index, sparse_size=(N, N)), edge_weight),
        "sorted EdgeIndex": (by_column, edge_weight[order]),
        "csr": (adjacency.to_sparse_csr(),),
        "csc": (adjacency.to_sparse_csc(),),
        "coo": (adjacency.to_sparse(),),
    }


@both
@every
@pytest.mark.parametrize("weighted", [False, True])
def test_every_format_of_a_graph_gives_the_same(small_layer, small_inputs, name, cached, weighted):
    x, edge_index = small_inputs()
    weight = torch.rand(edge_index.size(1) // 2).repeat(2) + 0.1 if weighted else torch.ones(edge_index.size(1))
    conv = small_layer(name, cached=cached)
    expected = conv(x, edge_index, weight)
    for key, graph in formats(edge_index, weight).items():
        assert torch.allclose(conv(x, *graph), expected, atol=1e-4), key
    if not weighted:
        assert torch.allclose(conv(x, edge_index), expected, atol=1e-4)
    else:
        assert not torch.allclose(conv(x, edge_index), expected, atol=1e-3)


@both
@every
def test_assert_module(small_layer, small_inputs, name, cached):
    x, edge_index = small_inputs()
    edge_index = torch_geometric.utils.coalesce(edge_index)
    conv = small_layer(name, cached=cached)
    assert_module(conv, x, edge_index, expected_size=(N, H), atol=1e-4)
    assert str(conv) == f"BiGCNConv({D}, {H})"


@both
@pytest.mark.parametrize("h", [2, 50])
def test_directed_graphs_are_taken_as_they_are(oracle, small_layer, cached, h):
    edge_index = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    # In Taylor form: a polynomial on [-1, 1] is no inverse for the complex spectrum of a directed graph.
    conv = small_layer(h=h, cached=cached, node_filter="taylor", iterations=3).double()
    x = torch.randn(5, D, dtype=torch.float64)
    expected_x, found_x = x.clone().requires_grad_(), x.clone().requires_grad_()
    expected = oracle.layer(conv, expected_x, oracle.node_laplacian(edge_index, None, 5), None)
    found = conv(found_x, edge_index)
    # The operator is not symmetric here, so the gradient shows whether it was transposed.
    expected.square().sum().backward()
    found.square().sum().backward()
    assert oracle.distance(found, expected) < 1e-9
    assert oracle.distance(found_x.grad, expected_x.grad) < 1e-9


@both
@every
def test_isolated_nodes_and_graphs_without_edges(small_layer, name, cached):
    conv = small_layer(name, cached=cached)
    none = torch.empty(2, 0, dtype=torch.long)
    x = torch.randn(N, D)
    out = conv(x, none)
    assert out.isfinite().all()
    assert conv(x[:1], none).shape == (1, H)
    if name == "none":  # nothing is filtered at all
        assert torch.allclose(out, x @ conv.lin.weight.t() + conv.bias, atol=1e-5)
        edge_index = torch.tensor([[0, 1], [1, 0]])
        assert torch.allclose(conv(x, edge_index)[2:], out[2:], atol=1e-5)
    assert conv(x, torch.tensor([[0, 1], [1, 0]])).isfinite().all()


@both
def test_no_nodes(small_layer, cached):
    none = torch.empty(2, 0, dtype=torch.long)
    assert small_layer(cached=cached)(torch.empty(0, D), none).shape == (0, H)


@both
@every
@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("h", [H, 60])
def test_batches_are_their_items(small_layer, small_inputs, name, h, form, cached):
    _, edge_index = small_inputs()
    x = torch.randn(4, N, D)
    if name in ("correlation", "spectral"):  # those look at all items together, so let them all be alike
        x = x[:1].expand(4, N, D).contiguous()
    conv = small_layer(name, h, node_filter=form, feature_filter=form, cached=cached)
    out = conv(x, edge_index)
    assert out.shape == (4, N, h)
    for i in range(4):
        assert torch.allclose(out[i], conv(x[i], edge_index), atol=1e-4)


def test_random_node_loader(make_graph, small_layer):
    data = Data(x=torch.randn(40, D), edge_index=make_graph(40, 80), y=torch.randint(H, (40,)))
    conv = small_layer("learnable", cached=True)
    plain = copy.deepcopy(conv)
    plain.cached = False
    seen = 0
    for batch in RandomNodeLoader(data, num_parts=4):
        out = conv(batch.x, batch.edge_index)
        assert torch.allclose(out, plain(batch.x, batch.edge_index), atol=1e-5)
        seen += out.size(0)
    assert seen == 40


def test_summary(small_inputs, monkeypatch):
    if importlib.util.find_spec("tabulate") is None:  # which draws the table, and which PyG does not require
        drawn = SimpleNamespace(tabulate=lambda rows, **_: "\n".join(str(row) for row in rows))
        monkeypatch.setitem(sys.modules, "tabulate", drawn)
    text = torch_geometric.nn.summary(BiGCN(D, 8, 2, H, feature_graph="learnable"), *small_inputs())
    assert "BiGCNConv" in text
    assert f"[{N}, {H}]" in text


# Explanations.


@both
@every
def test_gradient_reaches_an_edge_mask(small_layer, small_inputs, name, cached):
    x, edge_index = small_inputs()
    conv = small_layer(name, cached=cached)
    conv(x, edge_index)
    mask = torch.nn.Parameter(torch.zeros(edge_index.size(1)))
    set_masks(conv, mask, edge_index)
    conv(x, edge_index).square().sum().backward()
    assert (mask.grad.abs() > 0).all()
    clear_masks(conv)


@both
def test_a_masked_edge_has_no_influence(oracle, small_layer, small_inputs, cached):
    x, edge_index = small_inputs(torch.float64)
    edge_index = torch_geometric.utils.coalesce(edge_index)
    conv = small_layer("none", cached=cached, tolerance=1e-13).double()
    laplacian = oracle.node_laplacian(edge_index, None, N)
    plain = oracle.layer(conv, x, laplacian, None)
    source, target = edge_index[:, 0].tolist()
    hidden = ((edge_index[0] == source) & (edge_index[1] == target)) | (
        (edge_index[0] == target) & (edge_index[1] == source)
    )
    laplacian = laplacian.clone()
    laplacian[source, target] = laplacian[target, source] = 0  # the message is gone, the normalisation stays
    expected = oracle.layer(conv, x, laplacian, None)
    assert oracle.distance(conv(x, edge_index), plain) < 1e-10
    set_masks(conv, torch.nn.Parameter((~hidden).double()), edge_index, apply_sigmoid=False)
    assert oracle.distance(conv(x, edge_index), expected) < 1e-10
    clear_masks(conv)
    assert oracle.distance(conv(x, edge_index), plain) < 1e-10
    assert oracle.distance(plain, expected) > 1e-3


@pytest.mark.parametrize("name", ["correlation", "spectral"])
def test_an_explanation_leaves_nothing_in_the_cache(small_layer, small_inputs, name):
    x, edge_index = small_inputs()
    conv = small_layer(name, cached=True)
    set_masks(conv, torch.nn.Parameter(torch.full((edge_index.size(1),), -9.0)), edge_index)
    conv(x, edge_index)
    clear_masks(conv)
    plain = copy.deepcopy(conv)
    plain.cached = False
    assert torch.allclose(conv(x, edge_index), plain(x, edge_index), atol=1e-4)


@both
@pytest.mark.parametrize("name", ["learnable", "none"])
def test_explainer(small_inputs, name, cached):
    x, edge_index = small_inputs()
    model = BiGCN(D, 8, 2, H, feature_graph=name, cached=cached)
    before = model(x, edge_index)
    explainer = Explainer(
        model,
        GNNExplainer(epochs=3),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    explanation = explainer(x, edge_index, index=0)
    assert explanation.validate()
    assert explanation.edge_mask.shape == (edge_index.size(1),)
    assert explanation.edge_mask.max() > 0
    assert explanation.node_mask.shape == x.shape
    assert torch.allclose(model(x, edge_index), before, atol=1e-6)
