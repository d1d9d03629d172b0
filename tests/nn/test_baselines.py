"""Each baseline against the same architecture built from PyG alone, with the same weights."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric import EdgeIndex
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.utils import to_torch_csr_tensor

from bigcn.nn import baselines

SIZES = {"in_channels": 9, "hidden_channels": 16, "num_layers": 2, "out_channels": 4}
N = 24


class PlainGAT(torch.nn.Module):
    """As its paper prints it, with PyG's layers."""

    def __init__(self, in_channels, hidden_channels, num_layers, out_channels, dropout=0.0):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            [
                pyg.GATConv(in_channels, hidden_channels // 8, heads=8, dropout=dropout),
                pyg.GATConv(hidden_channels, out_channels, heads=1, dropout=dropout),
            ]
        )

    def forward(self, x, edge_index, edge_weight=None):
        return self.convs[1](F.elu(self.convs[0](x, edge_index)), edge_index)


class PlainAPPNP(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, num_layers, out_channels, dropout=0.0):
        super().__init__()
        self.mlp = pyg.MLP([in_channels, hidden_channels, out_channels], norm=None, dropout=dropout)
        self.propagation = pyg.APPNP(K=10, alpha=0.1)

    def forward(self, x, edge_index, edge_weight=None):
        return self.propagation(self.mlp(x), edge_index, edge_weight)


class PlainSGC(torch.nn.Module):
    def __init__(self, in_channels, out_channels, num_layers=2):
        super().__init__()
        self.conv = pyg.SGConv(in_channels, out_channels, K=num_layers)

    def forward(self, x, edge_index, edge_weight=None):
        return self.conv(x, edge_index, edge_weight)


PLAIN = {
    "GCN": (pyg.models.GCN, SIZES),
    "GraphSAGE": (pyg.models.GraphSAGE, SIZES),
    "GIN": (pyg.models.GIN, SIZES),
    "GAT": (PlainGAT, SIZES),
    "APPNP": (PlainAPPNP, SIZES),
    "SGC": (PlainSGC, {"in_channels": 9, "out_channels": 4}),
}
WEIGHTED = ("GCN", "APPNP", "SGC")


def pair_of_models(name, **kwargs):
    plain_class, sizes = PLAIN[name]
    model, plain = getattr(baselines, name)(**sizes, **kwargs), plain_class(**sizes, **kwargs)
    plain.load_state_dict(model.state_dict())
    return model.eval(), plain.eval()


def gradients(model, *args):
    model.zero_grad()
    weight = torch.linspace(-1, 1, N * 4).view(N, 4)
    (model(*args) * weight).sum().backward()
    return torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])


@pytest.mark.parametrize("name", PLAIN)
def test_outputs_and_gradients_are_those_of_pyg(name, graph):
    model, plain = pair_of_models(name)
    for _ in range(2):  # the second time from what was kept
        torch.testing.assert_close(model(*graph), plain(*graph), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(gradients(model, *graph), gradients(plain, *graph), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["GraphSAGE", "GIN"])
@pytest.mark.parametrize("hidden", [4, 20], ids=["narrower", "wider"])
def test_weights_before_or_after_the_product_give_the_same(name, hidden, graph):
    sizes = SIZES | {"hidden_channels": hidden}
    # With dropout on the input its products are not kept, and a layer may choose what comes first.
    model = getattr(baselines, name)(**sizes, drops_input=True).eval()
    plain = PLAIN[name][0](**sizes).eval()
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(*graph), plain(*graph), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients(model, *graph), gradients(plain, *graph), rtol=1e-4, atol=1e-4)


def test_another_number_in_a_layer_is_not_mistaken_for_the_first(graph):
    model, plain = pair_of_models("GIN")
    model(*graph)
    for gin in (model, plain):
        gin.convs[0].eps.fill_(0.5)
    torch.testing.assert_close(model(*graph), plain(*graph), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", WEIGHTED)
def test_edge_weights_count(name, graph):
    x, edges = graph
    weight = 1 + (edges.sum(dim=0) % 5).float()  # symmetric
    model, plain = pair_of_models(name)
    torch.testing.assert_close(model(x, edges, weight), plain(x, edges, weight), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(model(x, edges, weight), model(x, edges), atol=1e-3)


@pytest.mark.parametrize("name", PLAIN)
def test_another_graph_is_never_mistaken_for_the_first(name, graph):
    x, edges = graph
    model, plain = pair_of_models(name)
    model(x, edges)
    other, other_x = edges[:, :40].clone(), x + 1
    torch.testing.assert_close(model(x, other), plain(x, other), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(model(other_x, edges), plain(other_x, edges), rtol=1e-5, atol=1e-5)
    x.mul_(2)  # in place: the same tensor, another content
    torch.testing.assert_close(model(x, edges), plain(x, edges), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PLAIN)
def test_directed_graphs(name, graph):
    x, edges = graph
    directed = edges[:, edges[0] < edges[1]]
    model, plain = pair_of_models(name)
    torch.testing.assert_close(model(x, directed), plain(x, directed), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients(model, x, directed), gradients(plain, x, directed), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PLAIN)
def test_every_format_of_a_graph(name, graph):
    x, edges = graph
    model, _ = pair_of_models(name)
    expected = model(x, edges)
    csr = to_torch_csr_tensor(edges.flip(0), size=(N, N))
    for adjacency in (csr, csr.to_sparse_coo(), EdgeIndex(edges, sparse_size=(N, N))):
        torch.testing.assert_close(model(x, adjacency), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PLAIN)
def test_a_graph_without_edges(name):
    model, plain = pair_of_models(name)
    x, edges = torch.randn(N, 9), torch.empty(2, 0, dtype=torch.long)
    out = model(x, edges)
    assert torch.isfinite(out).all()
    torch.testing.assert_close(out, plain(x, edges), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PLAIN)
def test_features_that_need_gradients(name, graph):
    x, edges = graph
    model, plain = pair_of_models(name)
    model(x, edges)
    found, expected = (m_x.requires_grad_() for m_x in (x.clone(), x.clone()))
    model(found, edges).square().sum().backward()
    plain(expected, edges).square().sum().backward()
    torch.testing.assert_close(found.grad, expected.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", WEIGHTED)
def test_edge_weights_that_need_gradients(name, graph):
    x, edges = graph
    model, plain = pair_of_models(name)
    found, expected = (torch.ones(edges.size(1), requires_grad=True) for _ in range(2))
    model(x, edges, found).square().sum().backward()
    plain(x, edges, expected).square().sum().backward()
    torch.testing.assert_close(found.grad, expected.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [*PLAIN, "MLP"])
def test_training_after_inference_mode(name, graph):
    model = getattr(baselines, name)(**PLAIN.get(name, (None, SIZES))[1])
    with torch.inference_mode():
        model(*graph)
    assert torch.isfinite(gradients(model, *graph)).all()


@pytest.mark.parametrize("name", [*PLAIN, "MLP"])
def test_copies_and_pickles_compute_the_same(name, graph):
    model = getattr(baselines, name)(**PLAIN.get(name, (None, SIZES))[1]).eval()
    expected = model(*graph)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(twin(*graph), expected)


@pytest.mark.parametrize("name", [name for name in (*PLAIN, "MLP") if name != "SGC"])
def test_dropout_is_for_training_alone(name, graph):
    model = getattr(baselines, name)(**SIZES, dropout=0.5)
    assert not torch.equal(model(*graph), model(*graph))
    model.eval()
    assert torch.equal(model(*graph), model(*graph))


def dense_propagation(edges):
    adjacency = np.zeros((N, N))
    for source, target in edges.t().tolist():
        adjacency[target, source] = 1
    np.fill_diagonal(adjacency, 1)
    scale = np.diag(adjacency.sum(axis=1) ** -0.5)
    return scale @ adjacency @ scale


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_sgc_is_a_linear_map_of_a_dense_power(steps, graph):
    model = baselines.SGC(9, 4, num_layers=steps)
    power = np.linalg.matrix_power(dense_propagation(graph[1]), steps) @ graph[0].numpy()
    expected = torch.from_numpy(power).float() @ model.conv.lin.weight.t() + model.conv.lin.bias
    torch.testing.assert_close(model(*graph), expected, rtol=1e-4, atol=1e-5)


def test_appnp_is_a_dense_series(graph):
    model = baselines.APPNP(**SIZES).eval()
    hop, first = dense_propagation(graph[1]), model.mlp(graph[0]).detach().numpy()
    expected = first
    for _ in range(10):
        expected = 0.9 * hop @ expected + 0.1 * first
    np.testing.assert_allclose(model(*graph).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_mlp_does_not_look_at_the_graph(graph):
    x, edges = graph
    model = baselines.MLP(**SIZES).eval()
    first, second = model.mlp.lins
    torch.testing.assert_close(model(x, edges), second(F.relu(first(x))))
    torch.testing.assert_close(model(x, edges), model(x, edges[:, :2]))


def test_gin_has_two_layer_perceptrons_without_batch_normalisation():
    model = baselines.GIN(**SIZES)
    for conv in model.convs:
        assert [type(norm) for norm in conv.nn.norms] == [torch.nn.Identity]
        assert len(conv.nn.lins) == 2


def test_gat_has_eight_heads_and_one_at_the_output():
    model = baselines.GAT(9, 64, 2, 7)
    assert [(conv.heads, conv.out_channels) for conv in model.convs] == [(8, 8), (1, 7)]
    deep = baselines.GAT(9, 64, 3, 7)
    assert [(conv.heads, conv.out_channels) for conv in deep.convs] == [(8, 8), (8, 8), (1, 7)]
    with pytest.raises(ValueError, match="'hidden_channels'"):
        baselines.GAT(9, 20, 2, 7)


def test_gat_attention_survives_large_scores(graph):
    model, plain = pair_of_models("GAT")
    for each in (model, plain):
        for conv in each.convs:
            conv.att_src.data.mul_(500)
            conv.att_dst.data.mul_(500)
    torch.testing.assert_close(model(*graph), plain(*graph), rtol=1e-4, atol=1e-4)


def test_gdc_takes_weights_as_they_are(graph):
    x, edges = graph
    weight = torch.rand(edges.size(1))
    model = baselines.GDC(**SIZES).eval()
    plain = pyg.models.GCN(**SIZES, normalize=False).eval()
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(x, edges, weight), plain(x, edges, weight), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="'edge_weight'"):
        model(x, edges)


def test_baselines_compile_to_the_same_function(graph):
    model = baselines.GCN(**SIZES).eval()
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(*graph), model(*graph), rtol=1e-5, atol=1e-5)


def test_sage_averages_by_hand():
    model = baselines.GraphSAGE(in_channels=1, hidden_channels=1, num_layers=1, out_channels=1)
    conv = model.convs[0]
    for parameter, value in ((conv.lin_l.weight, 1.0), (conv.lin_l.bias, 0.0), (conv.lin_r.weight, 10.0)):
        torch.nn.init.constant_(parameter, value)
    data = Data(x=torch.tensor([[1.0], [2.0], [4.0]]), edge_index=torch.tensor([[1, 2, 0], [0, 0, 1]]))
    assert model(data.x, data.edge_index).view(-1).tolist() == [13.0, 21.0, 40.0]
