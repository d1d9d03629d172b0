"""The feature graphs of the model: of its layers, their penalty, and that they learn."""

import pytest
import torch

from bigcn import BiGCN
from bigcn.feature_graphs import FEATURE_GRAPHS, GivenGraph, LearnableGraph, NoGraph, SpectralGraph
from bigcn.filters import NotLowPassWarning, admm
from bigcn.nn.rebuild import build_bigcn, describe_bigcn

D, C = 6, 3


def graphs_of(model):
    return [type(conv.feature_graph) for conv in model.convs]


@pytest.mark.parametrize("name", [name for name in FEATURE_GRAPHS if name != "spectral"])
def test_a_name_holds_for_every_layer(name):
    assert graphs_of(BiGCN(D, 8, 3, C, feature_graph=name)) == [FEATURE_GRAPHS[name]] * 3


def test_a_spectral_graph_belongs_to_the_first_layer():
    assert graphs_of(BiGCN(D, 8, 3, C, feature_graph="spectral")) == [SpectralGraph, NoGraph, NoGraph]
    hidden = BiGCN(D, 8, 2, C, feature_graph="spectral", hidden_feature_graph="spectral")
    assert graphs_of(hidden) == [SpectralGraph, SpectralGraph]


def test_the_default_projects_on_leading_directions(make_graph):
    """Against the definition: smooth, decompose, project, smooth the rest of the way."""
    x, edge_index = torch.randn(50, 64).double(), make_graph(50, 120)
    model = BiGCN(64, 8, 2, C, tolerance=1e-12).double()
    assert graphs_of(model) == [SpectralGraph, NoGraph]
    size = x.size(0)
    adjacency = torch.zeros(size, size).double()
    adjacency.index_put_((edge_index[1], edge_index[0]), torch.ones(()).double(), accumulate=True)
    degree = adjacency.sum(1)
    scale = torch.where(degree > 0, degree.clamp(min=1) ** -0.5, 0)
    laplacian = torch.diag((degree > 0).double()) - scale.view(-1, 1) * adjacency * scale
    smooth = torch.linalg.inv(torch.eye(size) + 10 * laplacian) @ x
    leading = torch.linalg.eigh(smooth.t() @ smooth)[1][:, -16:]
    a, b = torch.linalg.inv(torch.eye(size) + 5 * laplacian), leading @ leading.t()
    conv = model.convs[0]
    expected = admm(x, lambda y: a @ y, lambda y: y @ b, p=1.0, iterations=2) @ conv.lin.weight.t() + conv.bias
    # The leading directions are read off features that are smoothed to one in ten thousand.
    torch.testing.assert_close(conv(x, edge_index), expected, atol=1e-3, rtol=0)


def test_a_finished_spectral_graph_projects_as_well(make_graph):
    x, edge_index = torch.randn(50, 64), make_graph(50, 120)
    by_name = BiGCN(64, 8, 2, C).eval()
    finished = BiGCN(64, 8, 2, C, feature_graph=SpectralGraph.from_data(x, edge_index)).eval()
    finished.load_state_dict(by_name.state_dict(), strict=False)
    torch.testing.assert_close(finished(x, edge_index), by_name(x, edge_index), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("features", [64, 600])
def test_a_graph_without_nodes(features):
    out = BiGCN(features, 8, 2, C)(torch.zeros(0, features), torch.empty(2, 0, dtype=torch.long))
    assert out.shape == (0, C)


def test_a_strength_or_a_form_of_ones_own_stays():
    forms = [{"feature_strength": 3.0}, {"feature_filter": "exact"}]
    for options in forms:
        assert BiGCN(D, 8, 2, C, **options).convs[0].filter.feature_filter == "exact"
    assert BiGCN(D, 8, 2, C, feature_graph="uniform").convs[0].filter.feature_filter == "exact"


@pytest.mark.parametrize("given", [torch.ones(D, D), GivenGraph(torch.ones(D, D))], ids=["tensor", "graph"])
def test_a_finished_graph_belongs_to_the_first_layer(given):
    assert graphs_of(BiGCN(D, 8, 3, C, feature_graph=given)) == [GivenGraph, NoGraph, NoGraph]
    model = BiGCN(D, 8, 3, C, feature_graph=given, hidden_feature_graph="learnable")
    assert graphs_of(model) == [GivenGraph, LearnableGraph, LearnableGraph]


def test_hidden_layers_can_have_another_graph():
    model = BiGCN(D, 8, 3, C, feature_graph="spectral", hidden_feature_graph="none", feature_graph_kwargs={"rank": 2})
    assert graphs_of(model) == [SpectralGraph, NoGraph, NoGraph]
    assert model.convs[0].feature_graph.rank == 2
    assert graphs_of(BiGCN(D, 8, 2, C, hidden_feature_graph="learnable")) == [SpectralGraph, LearnableGraph]


def test_arguments_of_a_named_graph_reach_every_layer():
    model = BiGCN(D, 8, 2, C, feature_graph="learnable", feature_graph_kwargs={"init": "constant", "self_loops": False})
    for conv in model.convs:
        assert not conv.feature_graph.self_loops
        assert not conv.feature_graph.logits.any()


@pytest.mark.parametrize("operator", ["laplacian", "adjacency"])
def test_penalty_of_all_layers_or_the_first(operator):
    options = {"feature_graph": "learnable", "feature_filter": "taylor", "feature_operator": operator}
    model = BiGCN(D, 8, 2, C, check_low_pass=False, **options)
    first, second = (conv.feature_graph.adjacency().detach() for conv in model.convs)
    if operator == "laplacian":
        first, second = torch.eye(D) - first, torch.eye(8) - second
    assert model.penalty().item() == pytest.approx((first.abs().sum() + second.abs().sum()).item(), rel=1e-5)
    model.penalty_layers = "first"
    assert model.penalty().item() == pytest.approx(first.abs().sum().item(), rel=1e-5)
    model.penalty().backward()
    assert model.convs[0].feature_graph.packed_logits.grad is not None
    assert model.convs[1].feature_graph.packed_logits.grad is None


@pytest.mark.parametrize("option", ["last", None])
def test_bad_penalty_layers(option):
    with pytest.raises(ValueError, match="'penalty_layers'"):
        BiGCN(D, 8, 2, C, penalty_layers=option)


@pytest.mark.parametrize("name", [*FEATURE_GRAPHS, "given"])
@pytest.mark.parametrize("form", ["taylor", "exact"])
def test_training_lowers_the_loss(make_graph, name, form):
    x, edge_index = torch.randn(30, D), make_graph(30, 60)
    target = torch.randint(C, (30,))
    feature_graph = torch.ones(D, D) if name == "given" else name
    model = BiGCN(
        D,
        16,
        2,
        C,
        feature_graph=feature_graph,
        node_filter=form,
        feature_filter=form,
        node_strength=0.5,
        feature_strength=0.5,
        check_low_pass=False,
        cached=True,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x, edge_index), target)
        (loss + 1e-4 * model.penalty()).backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    if name == "learnable":  # and the graph learns with it
        assert all(conv.feature_graph.packed_logits.grad.abs().sum() > 0 for conv in model.convs)


@pytest.mark.parametrize("hidden", ["learnable", "uniform"])
def test_another_graph_of_hidden_layers_is_filtered_exactly(hidden):
    model = BiGCN(D, 8, 2, C, hidden_feature_graph=hidden)
    assert [conv.filter.feature_filter for conv in model.convs] == ["taylor", "exact"]
    again = build_bigcn(describe_bigcn(model), model.state_dict())
    assert [str(conv.filter) for conv in again.convs] == [str(conv.filter) for conv in model.convs]


def test_a_hidden_graph_that_is_not_low_pass_is_told():
    with pytest.warns(NotLowPassWarning):
        BiGCN(D, 8, 2, C, feature_filter="taylor", hidden_feature_graph="learnable")
