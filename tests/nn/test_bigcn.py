"""The model as a BasicGNN: layers, jumping knowledge, strengths, the published settings."""

import copy
import pickle
import warnings

import pytest
import torch
from torch_geometric.nn import GCNConv
from torch_geometric.nn.models.basic_gnn import BasicGNN

from bigcn import BiGCN, BiGCNConv
from bigcn.feature_graphs import FEATURE_GRAPHS, LearnableGraph
from bigcn.filters import NotLowPassWarning
from bigcn.nn.published import published_settings

N, D, C = 12, 6, 3


@pytest.fixture
def graph(make_graph):
    return torch.randn(N, D), make_graph(N, 20, isolated=1)


# A BasicGNN.


@pytest.mark.parametrize("jk", [None, "last", "cat", "max", "lstm"])
@pytest.mark.parametrize("out_channels", [None, C])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_shapes_with_and_without_jumping_knowledge(graph, jk, out_channels, num_layers):
    model = BiGCN(D, 8, num_layers, out_channels, dropout=0.5, jk=jk)
    assert isinstance(model, BasicGNN)
    out = model(*graph)
    assert out.shape == (N, 8 if out_channels is None else C)
    assert len(model.convs) == num_layers
    assert all(isinstance(conv, BiGCNConv) for conv in model.convs)
    out.sum().backward()
    assert str(model) == f"BiGCN({D}, {8 if out_channels is None else C}, num_layers={num_layers})"


@pytest.mark.parametrize("jk", [None, "last", "cat", "max", "lstm"])
def test_the_model_is_its_layers(graph, jk):
    x, edge_index = graph
    model = BiGCN(D, 8, 3, C, jk=jk, feature_graph="learnable").eval()
    hidden, h = [], x
    for i, conv in enumerate(model.convs):
        h = conv(h, edge_index)
        if i < 2 or jk is not None:
            h = h.relu()
        hidden.append(h)
    if jk == "cat":
        h = model.lin(torch.cat(hidden, dim=-1))
    elif jk == "max":
        h = model.lin(torch.stack(hidden).amax(dim=0))
    elif jk == "lstm":
        h = model.lin(model.jk(hidden))
    elif jk == "last":
        h = model.lin(h)
    assert torch.allclose(model(x, edge_index), h, atol=1e-6)


@pytest.mark.parametrize("norm", ["batch_norm", "layer_norm", "graph_norm"])
def test_norms_and_activations(graph, norm):
    model = BiGCN(D, 8, 2, C, norm=norm, act="elu", act_first=True)
    assert model(*graph).shape == (N, C)


def test_dropout_is_between_the_layers_only(graph):
    x, edge_index = graph
    single = BiGCN(D, 8, 1, C, dropout=0.9)
    assert torch.equal(single(x, edge_index), single.eval()(x, edge_index))
    double = BiGCN(D, 64, 2, C, dropout=0.9)
    assert not torch.equal(double(x, edge_index), double(x, edge_index))
    assert torch.equal(double.eval()(x, edge_index), double(x, edge_index))


def test_edge_weights_are_passed_on(graph):
    x, edge_index = graph
    weight = torch.rand(edge_index.size(1) // 2).repeat(2) + 0.1
    for gcn_layers in (0, 1):
        model = BiGCN(D, 8, 2, C, gcn_layers=gcn_layers)
        expected = model.convs[1](model.convs[0](x, edge_index, weight).relu(), edge_index, weight)
        assert torch.allclose(model(x, edge_index, edge_weight=weight), expected, atol=1e-6)
        assert not torch.allclose(model(x, edge_index), expected, atol=1e-3)


def test_batches(graph):
    _, edge_index = graph
    model, x = BiGCN(D, 8, 2, C, feature_graph="learnable"), torch.randn(3, N, D)
    out = model(x, edge_index)
    for i in range(3):
        assert torch.allclose(out[i], model(x[i], edge_index), atol=1e-5)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_features(graph, layout):
    x, edge_index = graph
    model = BiGCN(D, 4, 2, C, feature_graph="learnable", cached=True)
    sparse = x.to_sparse(layout=layout)
    assert torch.allclose(model(sparse, edge_index), model(x, edge_index), atol=1e-5)


def test_reset_parameters(graph):
    model = BiGCN(D, 8, 2, C, feature_graph="learnable", cached=True, init="released")
    model(*graph)
    before = copy.deepcopy(model.state_dict())
    model.reset_parameters()
    assert not any(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert len(model.convs[0]._graphs) == 0


@pytest.mark.parametrize("name", FEATURE_GRAPHS)
def test_lazy_and_state_dict(graph, name):
    model = BiGCN(D, 8, 2, C, feature_graph=name, init="released")
    expected = model(*graph)
    lazy = BiGCN(-1, 8, 2, C, feature_graph=name)
    lazy.load_state_dict(model.state_dict())
    assert torch.equal(lazy(*graph), expected)
    fresh = BiGCN(-1, 8, 2, C, feature_graph=name)
    assert fresh(*graph).shape == (N, C)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(*graph), expected)
    assert torch.equal(pickle.loads(pickle.dumps(model))(*graph), expected)
    assert torch.equal(copy.deepcopy(model)(*graph), expected)


@pytest.mark.parametrize("cached", [True, False])
def test_the_default_compiles_without_a_break(graph, cached):
    x = torch.randn(N, 64)
    model = BiGCN(64, 4, 2, C, cached=cached)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x, graph[1]), model(x, graph[1]), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["learnable", "none"])
def test_compiles_without_a_break(graph, name):
    model = BiGCN(D, 4, 2, C, feature_graph=name, node_filter="taylor", node_strength=0.5, check_low_pass=False)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    assert torch.allclose(compiled(*graph), model(*graph), atol=1e-5)


# Layers of another kind above.


@pytest.mark.parametrize("gcn_layers", [0, 1, 2])
def test_gcn_layers_are_on_top(graph, gcn_layers):
    model = BiGCN(D, 8, 3, C, gcn_layers=gcn_layers, feature_graph="learnable", cached=True)
    kinds = [isinstance(conv, GCNConv) for conv in model.convs]
    assert kinds == [False] * (3 - gcn_layers) + [True] * gcn_layers
    assert all(isinstance(conv, BiGCNConv) for conv in model.convs[: 3 - gcn_layers])
    assert model(*graph).shape == (N, C)
    assert model.num_hops == sum(conv.num_hops for conv in model.convs[: 3 - gcn_layers]) + gcn_layers
    model.penalty().backward()


def test_gcn_layers_keep_their_graph_and_no_other(graph):
    torch.manual_seed(0)
    model = BiGCN(D, 8, 2, C, gcn_layers=1, cached=True)
    other = BiGCN(D, 8, 2, C, gcn_layers=1)
    other.load_state_dict(model.state_dict())
    x, edges = graph[:2]
    for edge_index in (edges, edges[:, :4], edges):
        assert torch.allclose(model(x, edge_index), other(x, edge_index), atol=1e-6)


@pytest.mark.parametrize("gcn_layers", [-1, 2, 3])
def test_bad_gcn_layers(gcn_layers):
    with pytest.raises(ValueError, match="'gcn_layers'"):
        BiGCN(D, 8, 2, C, gcn_layers=gcn_layers)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_num_hops_adds_up(layers):
    model = BiGCN(D, 8, layers, C, node_filter="taylor", iterations=2, node_strength=0.3, check_low_pass=False)
    assert model.num_hops == 2 * layers
    size = model.num_hops + 3
    path = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
    x = torch.randn(size, D, requires_grad=True)
    model(x, torch.cat([path, path.flip(0)], dim=1))[0].sum().backward()
    assert not x.grad[model.num_hops + 1 :].any()


# Strengths.


def test_hidden_layers_can_have_another_node_strength():
    model = BiGCN(D, 8, 3, C, node_strength=0.0, hidden_node_strength=10.0)
    assert [conv.filter.node_strength for conv in model.convs] == [0.0, 10.0, 10.0]
    assert [conv.filter.node_strength for conv in BiGCN(D, 8, 2, C, node_strength=3.0).convs] == [3.0, 3.0]


def test_without_a_strength_below_a_model_predicts_and_then_smooths():
    torch.manual_seed(0)
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    x = torch.randn(4, D)
    model = BiGCN(D, 8, 2, C, node_strength=0.0, hidden_node_strength=4.0, iterations=1, p=1.0, tolerance=1e-7)
    first, second = model.convs
    adjacency = torch.zeros(4, 4).index_put((edge_index[0], edge_index[1]), torch.ones(6))
    scale = adjacency.sum(0).rsqrt()
    resolvent = torch.linalg.inv(torch.eye(4) + 4.0 * (torch.eye(4) - scale[:, None] * adjacency * scale))
    predicted = first(x, edge_index[:, :0]).relu() @ second.lin.weight.t()
    unchanged, smoothed = second.filter.coefficients.sum(dim=1)  # of the powers of the filter
    expected = (unchanged * torch.eye(4) + smoothed * resolvent) @ predicted + second.bias
    torch.testing.assert_close(model(x, edge_index), expected, rtol=1e-4, atol=1e-5)


def test_the_warning_is_given_once():
    with pytest.warns(NotLowPassWarning) as caught:
        BiGCN(D, 8, 3, C, node_filter="taylor", node_strength=1.8)
    assert len([warning for warning in caught if warning.category is NotLowPassWarning]) == 1


@pytest.mark.parametrize("feature_graph", ["spectral", "learnable", "correlation", "none"])
def test_can_be_made_without_memory_and_filled_later(graph, feature_graph):
    def make():
        return BiGCN(D, 8, 2, C, feature_graph=feature_graph)

    with torch.device("meta"):
        model = make()
    assert all(parameter.is_meta for parameter in model.parameters())
    model.to_empty(device="cpu")
    model.load_state_dict((expected := make()).state_dict())
    torch.testing.assert_close(model(*graph), expected(*graph), rtol=0, atol=0)


# The published settings.

PUBLISHED = {
    ("cora", "clean"): (3, 1.8),
    ("citeseer", "noise-level"): (3, 1.8),
    ("pubmed", "noise-rate"): (3, 1.8),
    ("computers", "clean"): (2.5, 1),
    ("photo", "noise-level"): (1.5, 0.8),
    ("photo", "feature-rate"): (1.5, 0.8),
    ("cora", "structure-mistakes"): (0.1, 0.8),
    ("citeseer", "structure-mistakes"): (0.05, 0.8),
    ("pubmed", "structure-mistakes"): (0.1, 0.8),
    ("computers", "structure-mistakes"): (0.1, 1),
    ("photo", "structure-mistakes"): (0.1, 1),
}


@pytest.mark.parametrize(("dataset", "case"), PUBLISHED)
def test_published_settings_of_node_classification(dataset, case):
    settings = BiGCN.published(dataset, case)
    p, strength = PUBLISHED[dataset, case]
    assert (settings["p"], settings["node_strength"], settings["feature_strength"]) == (p, strength, strength)
    assert settings["hidden_channels"] == 16
    assert BiGCN.published(dataset.upper(), case) == settings


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed", "dblp"])
@pytest.mark.parametrize("case", ["clean", "noise-level", "noise-rate", "feature-rate"])
def test_published_settings_of_link_prediction(dataset, case):
    settings = BiGCN.published(dataset, case, task="link")
    assert (settings["p"], settings["node_strength"], settings["feature_strength"]) == (8.5, 1.2, 1.2)
    assert settings["hidden_channels"] == 32


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("task", ["node", "link"])
def test_published_settings_make_the_released_model_without_a_warning(graph, task):
    model = BiGCN(D, out_channels=C, **BiGCN.published("cora", task=task))
    for conv in model.convs:
        assert isinstance(conv.feature_graph, LearnableGraph)
        assert (conv.filter.node_filter, conv.filter.feature_filter) == ("taylor", "taylor")
        assert conv.filter.feature_operator == "adjacency"
        assert conv.filter.iterations == 2
        assert conv.feature_graph.self_loops
        # Of link prediction there is no code to have them from.
        assert conv.init == {"node": "released", "link": "glorot"}[task]
    assert model.dropout.p == 0.5
    assert model.penalty_layers == "first"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        assert model(*graph).shape == (N, C)


def test_other_graphs_take_the_settings_of_the_citation_graphs():
    assert published_settings("karate") == published_settings("cora")
    assert published_settings("karate", "structure-mistakes") == published_settings("cora", "structure-mistakes")


def test_bad_task():
    with pytest.raises(ValueError, match="'task'"):
        BiGCN.published("cora", task="graph")
