"""What PyG offers around its models, with the models here: explainers, arguments of layers, samplers, derivatives."""

import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.utils import erdos_renyi_graph

from bigcn import BiGCN
from bigcn.nn import baselines

NODES, CHANNELS = 30, 9
MODELS = {
    "BiGCN": lambda: BiGCN(CHANNELS, 8, 2, 4, feature_graph="none"),
    "GCN above BiGCN": lambda: BiGCN(CHANNELS, 8, 2, 4, feature_graph="none", gcn_layers=1),
    **{
        name: (lambda name=name: getattr(baselines, name)(CHANNELS, 8, 2, 4))
        for name in ("GCN", "GraphSAGE", "GIN", "GAT")
    },
    "APPNP": lambda: baselines.APPNP(CHANNELS, 8, 2, 4),
    "SGC": lambda: baselines.SGC(CHANNELS, 4),
}


@pytest.fixture
def graph():
    torch.manual_seed(0)
    return torch.randn(NODES, CHANNELS), erdos_renyi_graph(NODES, 0.2)


@pytest.mark.parametrize("name", MODELS)
def test_masks_of_explainers_count(name, graph):
    x, edges = graph
    model = MODELS[name]().eval()
    with torch.no_grad():
        plain = model(x, edges)
        set_masks(model, torch.full((edges.size(1),), 30.0), edges)
        torch.testing.assert_close(model(x, edges), plain, rtol=1e-4, atol=1e-4)
        clear_masks(model)
        set_masks(model, torch.full((edges.size(1),), -30.0), edges)
        masked = model(x, edges)
        clear_masks(model)
        torch.testing.assert_close(model(x, edges), plain)
    assert (masked - plain).abs().max() > 1e-2
    if name in ("GraphSAGE", "GIN"):  # no normalisation remembers the edges
        with torch.no_grad():
            torch.testing.assert_close(masked, model(x, edges[:, :0]), rtol=1e-4, atol=1e-4)


def test_a_graph_of_several_kinds_of_nodes(graph):
    x, edges = graph
    kinds = ["paper", "author"], [("paper", "cites", "paper"), ("author", "knows", "author")]
    model = pyg.to_hetero(BiGCN(CHANNELS, 8, 2, 4, feature_graph="none", cached=False), kinds)
    out = model(dict.fromkeys(kinds[0], x), dict.fromkeys(kinds[1], edges))
    assert {kind: tuple(value.shape) for kind, value in out.items()} == {"paper": (NODES, 4), "author": (NODES, 4)}
    with pytest.raises(ValueError, match="layers of one hop"):
        BiGCN(CHANNELS, 8, 2, 4)(x, edges, num_sampled_nodes_per_hop=[1], num_sampled_edges_per_hop=[1])


@pytest.mark.parametrize("name", MODELS)
def test_explainers_find_edges(name, graph):
    x, edges = graph
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    explainer = Explainer(
        MODELS[name](), GNNExplainer(epochs=3), explanation_type="model", edge_mask_type="object", model_config=config
    )
    mask = explainer(x, edges, index=3).edge_mask
    assert mask.shape == (edges.size(1),)
    assert (mask > 0).any()


@pytest.mark.parametrize(
    ("name", "plain", "arguments"),
    [
        ("GraphSAGE", pyg.models.GraphSAGE, {"aggr": "max"}),
        ("GraphSAGE", pyg.models.GraphSAGE, {"normalize": True}),
        ("GraphSAGE", pyg.models.GraphSAGE, {"bias": False}),
        ("GCN", pyg.models.GCN, {"add_self_loops": False}),
        ("GCN", pyg.models.GCN, {"normalize": False}),
        ("GCN", pyg.models.GCN, {"bias": False, "act": "elu"}),
        ("GIN", pyg.models.GIN, {"aggr": "mean"}),
        ("GIN", pyg.models.GIN, {"eps": 0.5}),
    ],
)
def test_arguments_of_layers_count(name, plain, arguments, graph):
    model = getattr(baselines, name)(CHANNELS, 8, 2, 4, **arguments).eval()
    other = plain(CHANNELS, 8, 2, 4, **arguments).eval()
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(*graph), other(*graph), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("arguments", [{"residual": True}, {"add_self_loops": False}, {"negative_slope": 0.5}])
def test_arguments_of_attention_count(arguments, graph):
    x, edges = graph
    model = baselines.GAT(CHANNELS, 8, 1, 4, heads=2, **arguments).eval()
    torch.testing.assert_close(model(x, edges), model.convs[0](x, edges), rtol=1e-5, atol=1e-5)


def test_layers_of_many_hops_refuse_what_goes_hop_by_hop(graph):
    model = BiGCN(CHANNELS, 8, 2, 4, feature_graph="none")
    with pytest.raises(ValueError, match="layers of one hop"):
        model(*graph, num_sampled_nodes_per_hop=[10, 10], num_sampled_edges_per_hop=[10, 10])
    with pytest.raises(NotImplementedError, match=f"within {model.num_hops} hops"):
        model.inference(None)


@pytest.mark.parametrize("arguments", [{}, {"node_filter": "taylor", "node_strength": 0.5}, {"cached": False}], ids=str)
def test_gradients_have_gradients(arguments, graph):
    x, edges = graph[0].double(), graph[1]
    model = BiGCN(CHANNELS, 8, 2, 4, feature_graph="none", act="elu", **arguments).double()
    weight, *_ = parameters = list(model.parameters())

    def squared_gradients() -> torch.Tensor:
        found = torch.autograd.grad(model(x, edges).square().sum(), parameters, create_graph=True)
        return sum(part.square().sum() for part in found)

    (found,) = torch.autograd.grad(squared_gradients(), weight)
    direction = torch.randn_like(weight)
    with torch.no_grad():
        weight += 1e-5 * direction
    ahead = squared_gradients().item()
    with torch.no_grad():
        weight -= 2e-5 * direction
    behind = squared_gradients().item()
    assert (found * direction).sum().item() == pytest.approx((ahead - behind) / 2e-5, rel=1e-4)
