"""Layers with a local node filter, against the recursion with a dense one."""

import pytest
import torch
from torch_geometric.explain import Explainer, GNNExplainer

from bigcn import BiGCN, BiGCNConv
from bigcn.filters import admm
from bigcn.local_filter import local_resolvent
from bigcn.nn import kept_input
from bigcn.node_graphs import normalized_graph
from bigcn.sparse_diagonal import row_numbers

N, STRENGTH, TOP = 30, 5.0, 6


@pytest.fixture
def graph(make_graph):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(N, 7, generator=generator, dtype=torch.float64), make_graph(N, 80, generator, isolated=2)


def dense_filter(edge_index):
    matrix = local_resolvent(normalized_graph(edge_index, None, N, torch.float64), STRENGTH, TOP, 1e-5)
    out = torch.zeros(N, N, dtype=torch.float64)
    return out.index_put_((row_numbers(matrix.crow), matrix.col), matrix.value, accumulate=True)


def make(cached, **options):
    return BiGCNConv(7, 3, node_strength=STRENGTH, top=TOP, cached=cached, **options).double()


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize(("p", "rounds"), [(1.0, 2), (30.0, 1), (0.1, 3)])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_layer_is_the_recursion_with_the_local_filter(graph, cached, p, rounds, dropout):
    x, edges = graph
    conv = make(cached, p=p, iterations=rounds, dropout=dropout).eval()
    a = dense_filter(edges)
    expected = admm(x, lambda block: a @ block, lambda block: block, p, rounds) @ conv.lin.weight.t() + conv.bias
    for training in (False, True):  # where a layer keeps filtered features
        conv.train(training and not dropout)
        for _ in range(2):
            torch.testing.assert_close(conv(x, edges), expected)


@pytest.mark.parametrize("cached", [False, True])
def test_gradients_go_through_the_filter_of_a_hidden_layer(graph, cached):
    x, edges = graph
    x.requires_grad_()
    conv = make(cached, p=30.0, iterations=1)
    weight = torch.linspace(-1, 1, N * 3, dtype=torch.float64).view(N, 3)
    (found,) = torch.autograd.grad((conv(x, edges) * weight).sum(), x)
    a = dense_filter(edges)
    out = admm(x, lambda block: a @ block, lambda block: block, 30.0, 1) @ conv.lin.weight.t()
    torch.testing.assert_close(found, torch.autograd.grad((out * weight).sum(), x)[0])


def test_batches_of_features(graph):
    x, edges = graph
    conv = make(True).eval()
    torch.testing.assert_close(conv(torch.stack([x, 2 * x]), edges), torch.stack([conv(x, edges), conv(2 * x, edges)]))


def test_another_graph_is_never_mistaken_for_the_first(graph):
    x, edges = graph
    conv = make(True).eval()
    conv(x, edges)
    other = torch.tensor([[4, 9], [9, 4]])
    torch.testing.assert_close(conv(x, other), make_like(conv)(x, other))
    assert not torch.allclose(conv(x, other), conv(x, edges))


def make_like(conv):
    other = make(False).eval()
    other.load_state_dict(conv.state_dict())
    return other


def test_a_model_has_it_in_every_layer_that_filters(graph):
    x, edges = graph
    model = BiGCN(7, 4, 2, 3, feature_graph="none", node_strength=0.0, hidden_node_strength=5.0, top=TOP).double()
    assert [conv.top for conv in model.convs] == [TOP, TOP]
    assert model(x, edges).shape == (N, 3)
    assert [conv.num_hops > 0 for conv in model.convs] == [False, True]


@pytest.mark.parametrize(("options", "match"), [({"top": 0}, "positive"), ({"top": 2.5}, "positive")])
def test_numbers_that_are_no_numbers_of_weights(options, match):
    with pytest.raises(ValueError, match=match):
        BiGCNConv(7, 3, **options)


def test_the_taylor_form_has_no_local_one():
    with pytest.raises(ValueError, match="node_filter"):
        BiGCNConv(7, 3, node_filter="taylor", node_strength=0.5, top=5)


@pytest.mark.filterwarnings("ignore:the node graph is directed")
@pytest.mark.parametrize("cached", [False, True])
def test_directed_graphs_are_refused(graph, cached):
    x, _ = graph
    with pytest.raises(ValueError, match="undirected"):
        make(cached)(x, torch.tensor([[0, 1], [1, 2]]))


def test_explainers_are_told(graph):
    x, edges = graph
    model = BiGCN(7, 4, 2, 3, feature_graph="none", top=TOP).double()
    explainer = Explainer(
        model,
        algorithm=GNNExplainer(epochs=2),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    with pytest.raises(ValueError, match="explainer"):
        explainer(x, edges)


@pytest.mark.parametrize("cached", [False, True])
def test_in_inference_mode_the_filter_is_made_once_if_anything_is_kept(graph, cached, monkeypatch):
    x, edges = graph
    expected = (conv := make(cached, feature_graph="none").eval())(x, edges.clone()).detach()
    made = []
    monkeypatch.setattr(kept_input, "local_resolvent", lambda *args: made.append(args) or local_resolvent(*args))
    with torch.inference_mode():
        for _ in range(2):
            torch.testing.assert_close(conv(x, edges), expected)
    assert len(made) == (1 if cached else 2)
    with torch.inference_mode():
        torch.testing.assert_close(conv(x, edges.clone()), expected)
    conv.train()(x, edges).sum().backward()  # with what was made in that mode


def test_gradients_of_weights_are_refused_rather_than_lost(graph):
    x, edges = graph
    with pytest.raises(ValueError, match="gradient of 'edge_weight'"):
        make(False)(x, edges, torch.ones(edges.size(1), dtype=torch.float64, requires_grad=True))


def test_another_number_of_weights_is_another_filter(graph):
    x, edges = graph
    conv = make(True).train()
    before = conv(x, edges)
    conv.top = 2
    expected = make_like(conv)
    expected.top = 2
    torch.testing.assert_close(conv(x, edges), expected(x, edges))
    assert not torch.allclose(conv(x, edges), before)


def test_a_graph_without_nodes():
    assert make(True)(torch.empty(0, 7, dtype=torch.float64), torch.empty(2, 0, dtype=torch.long)).shape == (0, 3)
