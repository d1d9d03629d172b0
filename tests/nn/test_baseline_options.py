"""What baselines can have that PyG's layers have not, or not by that name."""

import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import add_remaining_self_loops

from bigcn.nn import baselines

SIZES = {"in_channels": 9, "hidden_channels": 16, "num_layers": 2, "out_channels": 4}


def test_sage_with_itself_averages_by_hand():
    model = baselines.GraphSAGE(in_channels=1, hidden_channels=1, num_layers=1, out_channels=1, with_self=True)
    conv = model.convs[0]
    for parameter, value in ((conv.lin_l.weight, 1.0), (conv.lin_l.bias, 0.0)):
        torch.nn.init.constant_(parameter, value)
    assert len(list(model.parameters())) == 2
    # The first has a self-loop already, which does not count twice.
    data = Data(x=torch.tensor([[1.0], [2.0], [6.0]]), edge_index=torch.tensor([[1, 2, 0, 0], [0, 0, 1, 0]]))
    assert model(data.x, data.edge_index).view(-1).tolist() == [3.0, 1.5, 6.0]


@pytest.mark.parametrize("hidden", [4, 20], ids=["narrower", "wider"])
@pytest.mark.parametrize("drops", [False, True])
def test_sage_with_itself_is_the_mean_of_pyg_over_self_loops(hidden, drops, graph):
    x, edges = graph
    sizes = SIZES | {"hidden_channels": hidden}
    model = baselines.GraphSAGE(**sizes, with_self=True, drops_input=drops).eval()
    plain = pyg.models.GraphSAGE(**sizes, root_weight=False).eval()
    plain.load_state_dict(model.state_dict())
    looped = add_remaining_self_loops(edges, num_nodes=len(x))[0]
    for _ in range(2):
        torch.testing.assert_close(model(x, edges), plain(x, looped), rtol=1e-5, atol=1e-5)
    # Where nothing is kept, messages pass along the same edges.
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(x, edges), plain(x, looped), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("drops", [False, True])
def test_gin_has_perceptrons_of_as_many_layers_as_asked_for(layers, drops, graph):
    x, edges = graph
    model = baselines.GIN(**SIZES, perceptron_layers=layers, drops_input=drops).eval()
    adjacency = torch.zeros(len(x), len(x)).index_put((edges[1], edges[0]), torch.ones(edges.size(1)), accumulate=True)
    expected = x
    for number, conv in enumerate(model.convs):
        expected = adjacency @ expected + expected
        assert len(conv.nn.lins) == layers
        for place, linear in enumerate(conv.nn.lins):
            expected = linear(expected.relu() if place else expected)
        expected = expected.relu() if number < len(model.convs) - 1 else expected
    torch.testing.assert_close(model(x, edges), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["GCN", "GraphSAGE", "GIN", "GAT", "APPNP", "MLP"])
def test_rows_are_scaled_as_pyg_does(name, graph):
    x, edges = graph[0].abs(), graph[1]
    x[0, 0] = 0.0  # PyG takes the least of all away first
    model = getattr(baselines, name)(**SIZES, scales_rows=True).eval()
    plain = getattr(baselines, name)(**SIZES).eval()
    plain.load_state_dict(model.state_dict())
    scaled = NormalizeFeatures()(Data(x=x)).x
    for _ in range(2):  # the second time from what was kept
        torch.testing.assert_close(model(x, edges), plain(scaled, edges))
    torch.testing.assert_close(model(x.to_sparse(), edges), plain(scaled, edges))


def test_gin_needs_a_perceptron():
    with pytest.raises(ValueError, match="perceptron_layers"):
        baselines.GIN(**SIZES, perceptron_layers=0)


@pytest.mark.parametrize("share", [0.05, 0.9])
def test_dropout_on_the_input_is_dropout(share):
    model = baselines.GCN(**SIZES, dropout=0.3)
    x = torch.randn(200, 50) * (torch.rand(200, 50) < share)
    for _ in range(2):  # the second time from what was kept
        out = model.drop_input(x, 0.3, True)
        kept = out != 0
        torch.testing.assert_close(out[kept], x[kept] / 0.7)
        assert not (kept & (x == 0)).any()
        assert 0.6 < kept.sum() / (x != 0).sum() < 0.8
    assert not torch.equal(out, model.drop_input(x, 0.3, True))
    assert model.drop_input(x, 0.3, False) is x
    x[:, 0] = 1.0  # in place: what was kept no longer holds
    assert (model.drop_input(x, 0.3, True)[:, 0] != 0).any()


@pytest.mark.parametrize("name", ["GraphSAGE", "GIN", "GCN", "GDC"])
def test_dropout_may_come_before_the_first_layer_or_not(name, graph):
    x, edges = graph
    weight = torch.ones(edges.size(1)) if name == "GDC" else None
    outs = {}
    for drops in (False, True):
        torch.manual_seed(1)
        model = getattr(baselines, name)(9, 8, 1, 4, dropout=0.5, drops_input=drops)
        outs[drops] = [model(x, edges, weight) for _ in range(2)]
        torch.testing.assert_close(model.eval()(x, edges, weight), outs[False][0])
    # A single layer has no other place for dropout.
    torch.testing.assert_close(*outs[False])
    assert not torch.allclose(*outs[True])


def test_gdc_multiplies_features_first_where_that_is_kept(graph):
    x, edges = graph
    weight = torch.rand(edges.size(1), generator=torch.Generator().manual_seed(3))
    model = baselines.GDC(**SIZES)
    products = model.convs[0].products
    expected = model.eval()(x, edges, weight)
    assert len(products) == 0, "who asks once for an answer need not have it kept"
    assert torch.allclose(model.train()(x, edges, weight), expected, atol=1e-5)
    assert len(products) == 1
    (known,) = products._entries
    assert torch.allclose(model.eval()(x, edges, weight), expected, atol=1e-5)
    assert torch.allclose(model.train()(x.clone().requires_grad_(), edges, weight), expected, atol=1e-5)
    assert products._entries == [known], "what is learned changes with every step"
