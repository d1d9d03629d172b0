"""The layer against the dense recursion: values, gradients, and the penalty."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bigcn import BiGCNConv
from bigcn.feature_graphs import CorrelationGraph, SpectralGraph
from bigcn.feature_graphs.learnable_packing import unpack

GRAPHS = ["learnable", "correlation", "spectral", "soft", "uniform", "identity", "none", "given", "given sparse"]
SIDES = [("taylor", "laplacian"), ("exact", "laplacian"), ("taylor", "adjacency")]
LAYOUTS = [torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]


def expected_laplacian(oracle, conv, kind, x, logits=None):
    """The dense feature Laplacian of a layer made by :func:`make_layer`, or None where the direction is off."""
    d = x.size(-1)
    if kind == "none" or conv.filter.feature_strength == 0:
        return None
    if kind == "learnable":
        return oracle.learnable_laplacian(logits)
    if kind == "correlation":
        return oracle.correlation_laplacian(x)
    if kind in ("spectral", "soft"):
        return oracle.spectral_laplacian(x, conv.feature_graph.rank, kind == "soft")
    if kind == "uniform":
        return torch.eye(d, dtype=torch.float64) - torch.full((d, d), 1 / d, dtype=torch.float64)
    if kind == "identity":  # the operator itself, whichever is chosen
        return torch.eye(d, dtype=torch.float64) * (conv.filter.feature_operator == "laplacian")
    # The normalised matrix of a given graph is checked elsewhere.
    return torch.eye(d, dtype=torch.float64) - conv.feature_graph.adjacency()


def differentiate(out, direction, leaves):
    # A direction that is off leaves some of them out, which counts as a gradient of zero.
    return torch.autograd.grad(
        (out * direction).sum(), list(leaves.values()), allow_unused=True, materialize_grads=True
    )


def compare(oracle, conv, kind, x, edge_index, edge_weight=None, layout=torch.strided, order=None):
    """Forward and every gradient of the layer against the dense recursion, which is returned."""
    leaves = {"x": x.clone(), "weight": conv.lin.weight.detach().clone(), "bias": conv.bias.detach().clone()}
    if edge_weight is not None:
        leaves["edge_weight"] = edge_weight.clone()
    if kind == "learnable" and conv.filter.feature_strength > 0:
        leaves["logits"] = conv.feature_graph.logits.detach().clone()
    for leaf in leaves.values():
        leaf.requires_grad_()
    n1 = oracle.node_laplacian(edge_index, leaves.get("edge_weight"), x.size(-2))
    l2 = expected_laplacian(oracle, conv, kind, leaves["x"], leaves.get("logits"))
    expected = oracle.layer(conv, leaves["x"], n1, l2, leaves["weight"], leaves["bias"])
    direction = torch.randn_like(expected)
    gradients = dict(zip(leaves, differentiate(expected, direction, leaves), strict=True))

    mine = {"weight": conv.lin.weight, "bias": conv.bias}
    if "logits" in leaves:
        mine["logits"] = conv.feature_graph.packed_logits
    features = x if layout == torch.strided else x.to_sparse(layout=layout)
    if layout == torch.strided:
        features = mine["x"] = x.clone().requires_grad_()
    if edge_weight is not None and not conv.cached:
        edge_weight = mine["edge_weight"] = edge_weight.clone().requires_grad_()
    if order is not None and layout == torch.strided:
        conv._weights_first = lambda *_: order == "weights"
    out = conv(features, edge_index, edge_weight)
    assert oracle.distance(out, expected) < 1e-10
    again = conv(features, edge_index, edge_weight)  # from the cache, if there is one
    assert oracle.distance(again, expected) < 1e-10
    for name, gradient in zip(mine, differentiate(out, direction, mine), strict=True):
        if name == "logits":
            gradient = unpack(gradient, x.size(-1))
        assert oracle.distance(gradient, gradients[name]) < 1e-10, name
    return expected


@pytest.mark.parametrize("order", ["weights", "features"])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("node_filter", ["taylor", "exact"])
@pytest.mark.parametrize("kind", GRAPHS)
def test_layer_is_the_recursion(oracle, make_graph, make_layer, kind, node_filter, side, order):
    conv = make_layer(
        kind,
        4,
        3,
        p=3.0,
        node_strength=1.8,
        feature_strength=0.9,
        node_filter=node_filter,
        feature_filter=side[0],
        feature_operator=side[1],
    )
    x = torch.randn(7, 4, dtype=torch.float64)
    edge_index = make_graph(7, 9, isolated=1)
    weight = torch.rand(9, dtype=torch.float64).repeat(2) + 0.1
    compare(oracle, conv, kind, x, edge_index, weight, order=order)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_layer_is_the_recursion_for_any_setting(oracle, make_graph, make_layer, data):
    draw = data.draw
    kind = draw(st.sampled_from(GRAPHS), label="feature graph")
    n = draw(st.integers(1, 8), label="nodes")
    d = draw(st.integers(1, 6), label="features")
    h = draw(st.sampled_from([1, 2, 5, 40]), label="outputs")
    node_filter = draw(st.sampled_from(["taylor", "exact"]), label="node filter")
    form, operator = draw(st.sampled_from(SIDES), label="feature filter")
    strengths = {"taylor": st.floats(0, 2), "exact": st.floats(0, 12)}
    cached = draw(st.booleans(), label="cached")
    layout = draw(st.sampled_from([torch.strided, *LAYOUTS]), label="layout of x")
    order = draw(st.sampled_from([None, "weights", "features"]), label="order")
    torch.manual_seed(draw(st.integers(0, 2**31), label="seed"))
    conv = make_layer(
        kind,
        d,
        h,
        p=draw(st.floats(-0.5, 8.5), label="p"),
        node_strength=draw(strengths[node_filter] | st.just(0.0), label="node strength"),
        feature_strength=draw(strengths[form] | st.just(0.0), label="feature strength"),
        iterations=draw(st.integers(1, 4), label="rounds"),
        node_filter=node_filter,
        feature_filter=form,
        feature_operator=operator,
        cached=cached,
    )
    pairs = draw(st.integers(0, 10), label="pairs")
    edge_index = make_graph(n, pairs, isolated=draw(st.integers(0, 2), label="isolated"))
    weight = None
    if draw(st.booleans(), label="weighted") and edge_index.size(1) > 0:
        weight = torch.rand(edge_index.size(1) // 2, dtype=torch.float64).repeat(2) + 0.1
    x = torch.randn(n, d, dtype=torch.float64)
    if layout != torch.strided:
        x = x * (torch.rand(n, d) < 0.5)
    if kind in ("spectral", "soft"):  # a tie between eigenvalues leaves the projector open
        values = torch.linalg.eigvalsh(x.t() @ x / n)
        assume(d == 1 or values.diff().min() > 1e-3)
    if kind == "correlation":  # features that are all alike tie with the mean
        unit = torch.nn.functional.normalize(x, dim=0)
        share = (unit.t() @ unit).fill_diagonal_(1).softmax(dim=1)
        assume(d == 1 or (d * share - 1).abs().min() > 1e-4)
    compare(oracle, conv, kind, x, edge_index, weight, layout, order)


def test_given_matrices_are_normalised_once(oracle, exact):
    # The recursion above takes the matrix of a given graph from the graph; here it is made by hand.
    weights = torch.tensor([[0, 1, 0], [1, 0, 2], [0, 2, 0.0]], dtype=torch.float64)
    conv = BiGCNConv(3, 2, feature_graph=weights, **exact).double()
    x, edge_index = torch.randn(4, 3, dtype=torch.float64), torch.tensor([[0, 1, 2, 1], [1, 0, 1, 2]])
    expected = oracle.layer(conv, x, oracle.node_laplacian(edge_index, None, 4), oracle.dense_laplacian(weights))
    assert oracle.distance(conv(x, edge_index), expected) < 1e-10


@pytest.mark.parametrize("h", [2, 60])
@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr])
def test_a_given_graph_may_be_more_precise_than_the_layer(make_graph, layout, h):
    weights = torch.rand(4, 4, dtype=torch.float64)
    weights = weights + weights.t()
    conv = BiGCNConv(4, h, feature_graph=weights if layout == torch.strided else weights.to_sparse(layout=layout))
    out = conv(torch.randn(6, 4), make_graph(6, 8))
    assert out.dtype == torch.float32
    assert conv.penalty().dtype == torch.float32


@pytest.mark.parametrize("make", [CorrelationGraph.from_features, lambda x: SpectralGraph.from_data(x, None, rank=2)])
def test_kept_graphs_filter_other_features(oracle, make_graph, exact, make):
    x, other = torch.randn(6, 4, dtype=torch.float64), torch.randn(6, 4, dtype=torch.float64)
    edge_index = make_graph(6, 8)
    conv = BiGCNConv(4, 2, feature_graph=make(x), **exact).double()
    l2 = oracle.correlation_laplacian(x)
    if isinstance(conv.feature_graph, SpectralGraph):
        l2 = oracle.spectral_laplacian(x, 2)
    expected = oracle.layer(conv, other, oracle.node_laplacian(edge_index, None, 6), l2)
    assert oracle.distance(conv(other, edge_index), expected) < 1e-10


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_entries_can_come_normalised(oracle, make_graph, make_layer, cached, weighted):
    # With normalize=False the weights are the entries of I - L themselves, and a node without any has a row of L = I.
    edge_index = make_graph(5, 6, isolated=1)
    weight = torch.rand(edge_index.size(1) // 2, dtype=torch.float64).repeat(2) / 9
    conv = make_layer("none", 3, 2, normalize=False, cached=cached, node_strength=0.1, node_filter="taylor")
    x = torch.randn(5, 3, dtype=torch.float64)
    entries = weight if weighted else torch.ones_like(weight)
    n1 = torch.zeros(5, 5, dtype=torch.float64).index_put((edge_index[1], edge_index[0]), entries, accumulate=True)
    expected = oracle.layer(conv, x, torch.eye(5, dtype=torch.float64) - n1, None)
    assert oracle.distance(conv(x, edge_index, weight if weighted else None), expected) < 1e-10


class Masked(torch.nn.Module):
    """Dropout that always drops the same."""

    def __init__(self, mask):
        super().__init__()
        self.mask = mask

    def forward(self, x):
        return x * self.mask if self.training else x


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr])
@pytest.mark.parametrize("node_strength", [0.0, 1.8])
@pytest.mark.parametrize("kind", GRAPHS)
def test_filtered_features_are_dropped(oracle, make_graph, make_layer, kind, node_strength, layout, cached):
    conv = make_layer(kind, 4, 3, p=3.0, node_strength=node_strength, dropout=0.4, cached=cached)
    conv.dropout = Masked(2.0 * (torch.rand(7, 4, dtype=torch.float64) < 0.5))
    x, edge_index = torch.randn(7, 4, dtype=torch.float64), make_graph(7, 9, isolated=1)
    trained = compare(oracle, conv, kind, x, edge_index, layout=layout)
    for _ in range(2):  # features that ask for no gradient are filtered once, if anything is kept
        assert oracle.distance(conv(x, edge_index), trained) < 1e-10
    evaluated = conv.eval()(x, edge_index)
    conv.dropout = None
    assert oracle.distance(evaluated, conv(x, edge_index)) < 1e-10
    assert oracle.distance(evaluated, trained) > 1e-3


def test_a_strength_of_zero_switches_a_direction_off(make_graph):
    x, edge_index = torch.randn(6, 4), make_graph(6, 8)
    conv = BiGCNConv(4, 3, node_strength=0, feature_strength=0, feature_graph="learnable")
    assert conv.num_hops == 0
    assert len(list(conv.parameters())) == 2  # nothing to learn about a direction that is off
    assert torch.allclose(conv(x, edge_index), x @ conv.lin.weight.t() + conv.bias, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"feature_graph": "identity", "feature_strength": 0.5}])
def test_default_accuracy_of_exact_filters(oracle, make_graph, options):
    conv = BiGCNConv(5, 3, **options).double()
    x, edge_index = torch.randn(9, 5, dtype=torch.float64), make_graph(9, 14)
    l2 = torch.eye(5, dtype=torch.float64) if options else None
    expected = oracle.layer(conv, x, oracle.node_laplacian(edge_index, None, 9), l2)
    assert oracle.distance(conv(x, edge_index), expected) < 1e-4
    # Not better than it says either: a tight tolerance costs hops.
    assert conv.num_hops < BiGCNConv(5, 3, tolerance=1e-9).num_hops


@pytest.mark.parametrize("options", [{}, {"feature_graph": "identity"}, {"feature_graph": "learnable"}])
def test_bias_can_be_left_out(options):
    conv = BiGCNConv(4, 3, bias=False, **options)
    assert conv.bias is None
    assert torch.equal(conv(torch.zeros(2, 4), torch.tensor([[0, 1], [1, 0]])), torch.zeros(2, 3))


def test_initial_values():
    torch.manual_seed(0)
    glorot = BiGCNConv(100, 50)
    bound = math.sqrt(6 / 150)
    assert bound * 0.95 < glorot.lin.weight.abs().max() <= bound
    assert not glorot.bias.any()
    released = BiGCNConv(100, 50, init="released", feature_graph="learnable")
    for parameter in (released.lin.weight, released.bias):
        assert 0.5 * 50**-0.5 < parameter.abs().max() <= 50**-0.5
    assert set(released.feature_graph.logits.unique().tolist()) == {0.0, 1.0}
    before = released.lin.weight.clone()
    released.reset_parameters()
    assert not torch.equal(before, released.lin.weight)


# The penalty.


@pytest.mark.parametrize("operator", ["laplacian", "adjacency"])
def test_penalty_is_the_norm_of_the_operator(oracle, make_layer, operator):
    conv = make_layer("learnable", 5, 3, feature_filter="taylor", feature_operator=operator)
    l2 = oracle.learnable_laplacian(conv.feature_graph.logits.detach())
    expected = (l2 if operator == "laplacian" else torch.eye(5, dtype=torch.float64) - l2).abs().sum()
    assert conv.penalty().item() == pytest.approx(expected.item(), rel=1e-12)
    conv.penalty().backward()
    assert conv.feature_graph.packed_logits.grad.abs().sum() > 0


@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("order", ["weights", "features"])
def test_penalty_in_the_loss(oracle, make_graph, make_layer, form, order):
    conv = make_layer("learnable", 5, 3, node_filter=form, feature_filter=form, node_strength=0.5)
    conv._weights_first = lambda *_: order == "weights"
    x, edge_index = torch.randn(8, 5, dtype=torch.float64), make_graph(8, 12)
    found = conv(x, edge_index).square().sum() + 0.1 * conv.penalty()
    logits = conv.feature_graph.logits.detach().clone().requires_grad_()
    l2 = oracle.learnable_laplacian(logits)
    out = oracle.layer(conv, x, oracle.node_laplacian(edge_index, None, 8), l2)
    expected = out.square().sum() + 0.1 * l2.abs().sum()
    gradient = unpack(torch.autograd.grad(found, conv.feature_graph.packed_logits)[0], 5)
    assert oracle.distance(gradient, torch.autograd.grad(expected, logits)[0]) < 1e-10


def test_penalty_of_what_is_not_learned():
    for name in ("correlation", "spectral", "none"):
        assert BiGCNConv(4, 3, feature_graph=name).penalty().item() == 0
    assert BiGCNConv(4, 3, feature_graph="identity").penalty().item() == 4
    assert BiGCNConv(4, 3, feature_graph="uniform").double().penalty().dtype == torch.float64
