"""The layer against the dense recursion: values, gradients, cost, and what it refuses."""

import math
import warnings

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from bigcn import BiGCN, BiGCNConv
from bigcn.feature_graphs import CorrelationGraph, GivenGraph, LearnableGraph, SpectralGraph
from bigcn.feature_graphs.learnable_packing import unpack
from bigcn.filters import NotLowPassWarning

GRAPHS = ["learnable", "correlation", "spectral", "soft", "uniform", "identity", "none", "given", "given sparse"]
SIDES = [("taylor", "laplacian"), ("exact", "laplacian"), ("taylor", "adjacency")]
LAYOUTS = [torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]
EXACT = {"tolerance": 1e-13, "check_low_pass": False}


def make_layer(kind, d, h, **options):
    """A layer in double precision with any feature graph; the spectral ones unsmoothed, so that an oracle is exact."""
    kwargs = None
    if kind in ("spectral", "soft"):
        kwargs = {"smoothing": 0.0, "rank": max(1, d // 2), "weighting": "soft" if kind == "soft" else "rank"}
        kind = "spectral"
    if kind.startswith("given"):
        weights = torch.rand(d, d, dtype=torch.float64) * (torch.rand(d, d) < 0.6)
        kind = weights + weights.t() if kind == "given" else (weights + weights.t()).to_sparse_csr()
    conv = BiGCNConv(d, h, feature_graph=kind, feature_graph_kwargs=kwargs, **{**EXACT, **options}).double()
    with torch.no_grad():
        if isinstance(conv.feature_graph, LearnableGraph):
            conv.feature_graph.logits = torch.randn(d, d)
        if conv.bias is not None:
            conv.bias.normal_()
    return conv


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
    """Forward and every gradient of the layer against the dense recursion."""
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


@pytest.mark.parametrize("order", ["weights", "features"])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("node_filter", ["taylor", "exact"])
@pytest.mark.parametrize("kind", GRAPHS)
def test_layer_is_the_recursion(oracle, make_graph, kind, node_filter, side, order):
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
def test_layer_is_the_recursion_for_any_setting(oracle, make_graph, data):
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


def test_given_matrices_are_normalised_once(oracle):
    # The recursion above takes the matrix of a given graph from the graph; here it is made by hand.
    weights = torch.tensor([[0, 1, 0], [1, 0, 2], [0, 2, 0.0]], dtype=torch.float64)
    conv = BiGCNConv(3, 2, feature_graph=weights, **EXACT).double()
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
def test_kept_graphs_filter_other_features(oracle, make_graph, make):
    x, other = torch.randn(6, 4, dtype=torch.float64), torch.randn(6, 4, dtype=torch.float64)
    edge_index = make_graph(6, 8)
    conv = BiGCNConv(4, 2, feature_graph=make(x), **EXACT).double()
    l2 = oracle.correlation_laplacian(x)
    if isinstance(conv.feature_graph, SpectralGraph):
        l2 = oracle.spectral_laplacian(x, 2)
    expected = oracle.layer(conv, other, oracle.node_laplacian(edge_index, None, 6), l2)
    assert oracle.distance(conv(other, edge_index), expected) < 1e-10


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_entries_can_come_normalised(oracle, make_graph, cached, weighted):
    # With normalize=False the weights are the entries of I - L themselves, and a node without any has a row of L = I.
    edge_index = make_graph(5, 6, isolated=1)
    weight = torch.rand(edge_index.size(1) // 2, dtype=torch.float64).repeat(2) / 9
    conv = make_layer("none", 3, 2, normalize=False, cached=cached, node_strength=0.1, node_filter="taylor")
    x = torch.randn(5, 3, dtype=torch.float64)
    entries = weight if weighted else torch.ones_like(weight)
    n1 = torch.zeros(5, 5, dtype=torch.float64).index_put((edge_index[1], edge_index[0]), entries, accumulate=True)
    expected = oracle.layer(conv, x, torch.eye(5, dtype=torch.float64) - n1, None)
    assert oracle.distance(conv(x, edge_index, weight if weighted else None), expected) < 1e-10


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
def test_penalty_is_the_norm_of_the_operator(oracle, operator):
    conv = make_layer("learnable", 5, 3, feature_filter="taylor", feature_operator=operator)
    l2 = oracle.learnable_laplacian(conv.feature_graph.logits.detach())
    expected = (l2 if operator == "laplacian" else torch.eye(5, dtype=torch.float64) - l2).abs().sum()
    assert conv.penalty().item() == pytest.approx(expected.item(), rel=1e-12)
    conv.penalty().backward()
    assert conv.feature_graph.packed_logits.grad.abs().sum() > 0


@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("order", ["weights", "features"])
def test_penalty_in_the_loss(oracle, make_graph, form, order):
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


# Cost.


class Record(TorchDispatchMode):
    """Notes every operation: the shapes it read and the shapes of new memory it wrote."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        read = [a for a in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
        written = [o for o in torch.utils._pytree.tree_leaves(out) if isinstance(o, torch.Tensor)]
        known = {memory(tensor) for tensor in read}
        new = [tuple(o.shape) for o in written if o.layout == torch.strided and memory(o) not in known]
        self.calls.append((func.overloadpacket.__name__, [tuple(a.shape) for a in read], new))
        return out

    @property
    def written(self):
        return [shape for _, _, shapes in self.calls for shape in shapes]

    def products_with(self, shape):
        names = ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "spmm")
        return sum(name in names and shape in read for name, read, _ in self.calls)


def memory(tensor):
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else id(tensor)


N, D, H = 89, 31, 7


def recorded(kind, h=H, layout=torch.strided, **options):
    x = torch.randn(N, D, dtype=torch.float64)
    edge_index = torch.randint(N, (2, 151))
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    if kind == "spectral":  # by name it is computed from smoothed features, which is another matter
        conv = BiGCNConv(D, h, feature_graph=SpectralGraph.from_data(x, None, rank=3), **EXACT, **options).double()
    else:
        conv = make_layer(kind, D, h, **options)
    x = x if layout == torch.strided else x.to_sparse(layout=layout)
    conv(x, edge_index)  # fills the cache
    with Record() as forward:
        out = conv(x, edge_index)
    with Record() as backward:
        out.sum().backward()
    return forward, backward


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr])
@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("kind", ["learnable", "correlation", "spectral", "uniform", "identity", "none", "given"])
def test_the_narrow_side_is_multiplied_first(kind, form, layout, cached):
    options = {"node_filter": form, "feature_filter": form, "node_strength": 1.0, "cached": cached}
    for record in recorded(kind, layout=layout, **options):
        assert not [shape for shape in record.written if shape.count(N) > 1]  # nothing of the size of all pairs
        assert not [shape for shape in record.written if N in shape and D in shape]
    forward, _ = recorded(kind, layout=torch.strided, **options)
    own = 1 if kind == "correlation" and not cached else 0  # the similarity of the columns is a product of its own
    assert forward.products_with((N, D)) == 1 + own


@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("kind", ["learnable", "uniform", "identity", "none"])
def test_the_features_are_filtered_where_that_is_cheaper(kind, form):
    forward, backward = recorded(kind, h=997, node_filter=form, feature_filter=form, node_strength=1.0)
    wide = [shape for shape in forward.written if N in shape and 997 in shape]
    assert len(wide) <= 2  # the product with the weights, and the bias
    for record in (forward, backward):
        assert not [shape for shape in record.written if shape.count(N) > 1]
    if kind in ("identity", "none"):
        assert forward.products_with((N, D)) == 1


# Reach.


@pytest.mark.parametrize(
    "options",
    [
        {"node_filter": "taylor", "iterations": 1},
        {"node_filter": "taylor", "iterations": 3},
        {"node_filter": "exact", "tolerance": 0.05, "node_strength": 2.0},
        {"node_filter": "exact", "tolerance": 1e-3, "node_strength": 0.5},
        {"node_strength": 0.0},
    ],
)
@pytest.mark.parametrize("cached", [False, True])
def test_reach_is_what_num_hops_says(options, cached):
    conv = BiGCNConv(2, 3, cached=cached, p=3.0, check_low_pass=False, **{"node_strength": 0.9, **options}).double()
    reach = conv.num_hops
    size = reach + 3
    path = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
    edge_index = torch.cat([path, path.flip(0)], dim=1)
    x = torch.randn(size, 2, dtype=torch.float64, requires_grad=True)
    influence = torch.autograd.grad(conv(x, edge_index)[0].sum(), x)[0].abs().sum(dim=1)
    assert influence[reach] > 0
    assert not influence[reach + 1 :].any()


# The warning.


def test_settings_that_are_no_low_pass_are_told():
    with pytest.warns(NotLowPassWarning, match=r"node_strength=1\.8 \(taylor\)") as caught:
        BiGCNConv(4, 3, node_strength=1.8, node_filter="taylor")
    assert caught[0].filename == __file__
    with pytest.warns(NotLowPassWarning, match="adjacency"):
        BiGCNConv(4, 3, feature_graph="uniform", feature_filter="taylor", feature_operator="adjacency")


@pytest.mark.filterwarnings("error")
def test_settings_that_are_low_pass_are_silent():
    BiGCNConv(4, 3)
    BiGCNConv(4, 3, node_strength=0, feature_strength=0)
    BiGCNConv(4, 3, feature_graph="learnable")
    # The strength of a direction that is left out does not count.
    BiGCNConv(4, 3, feature_strength=1.8, feature_filter="taylor")


def test_the_warning_can_be_silenced():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        BiGCNConv(4, 3, node_strength=1.8, node_filter="taylor", check_low_pass=False)
        warnings.filterwarnings("ignore", category=NotLowPassWarning)
        BiGCNConv(4, 3, node_strength=1.8, node_filter="taylor")
    assert not caught


# Bad input.


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"p": -1}, "'p'"),
        ({"p": math.nan}, "'p'"),
        ({"p": math.inf}, "'p'"),
        ({"node_strength": -0.1}, "'node_strength'"),
        ({"node_strength": math.nan}, "'node_strength'"),
        ({"feature_strength": -0.1}, "'feature_strength'"),
        ({"feature_strength": math.inf}, "'feature_strength'"),
        ({"iterations": 0}, "'iterations'"),
        ({"iterations": 1.5}, "'iterations'"),
        ({"node_filter": "linear"}, "'node_filter'"),
        ({"feature_filter": "linear"}, "'feature_filter'"),
        ({"feature_operator": "both"}, "'feature_operator'"),
        ({"feature_operator": "adjacency"}, "'feature_operator=\"adjacency\"'"),
        ({"feature_graph": "unknown"}, "'feature_graph'"),
        ({"feature_graph": torch.eye(3)}, "'feature_graph' has 3 features, but the layer has 4"),
        ({"feature_graph": torch.full((4, 4), -1.0)}, "'feature_adjacency'"),
        ({"feature_graph": GivenGraph(torch.eye(4)), "feature_graph_kwargs": {"rank": 3}}, "'feature_graph_kwargs'"),
        ({"tolerance": 0.0}, "'tolerance'"),
        ({"init": "ones"}, "'init'"),
    ],
)
def test_bad_settings(options, name):
    with pytest.raises(ValueError, match=name) as caught:
        BiGCNConv(4, 3, **options)
    assert "\n" not in str(caught.value)


EDGES = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([[1.0] * 4], EDGES), "'x'"),
        ((None, EDGES), "'x'"),
        ((torch.randn(4), EDGES), "'x'"),
        ((torch.randn(1, 1, 5, 4), EDGES), "'x'"),
        ((torch.ones(5, 4, dtype=torch.long), EDGES), "'x'"),
        ((torch.randn(5, 3), EDGES), "'x' must have 4 features"),
        ((torch.randn(5, 4, dtype=torch.float64), EDGES), "'x' must have the precision"),
        ((torch.randn(5, 4, dtype=torch.float64).to_sparse(), EDGES), "'x' must have the precision"),
        ((torch.randn(2, 5, 4).to_sparse(), EDGES), "'x'"),
        ((torch.randn(5, 4), EDGES.float()), "'edge_index'"),
        ((torch.randn(5, 4), EDGES.bool()), "'edge_index'"),
        ((torch.randn(5, 4), torch.zeros(3, 2, dtype=torch.long)), "'edge_index'"),
        ((torch.randn(5, 4), EDGES[0]), "'edge_index'"),
        ((torch.randn(5, 4), [[0], [1]]), "'edge_index'"),
        ((torch.randn(5, 4), torch.eye(4).to_sparse_csr()), "'edge_index'"),
        ((torch.randn(5, 4), torch.eye(5).to_sparse_csr(), torch.ones(5)), "'edge_weight'"),
        ((torch.randn(5, 4), EDGES, torch.ones(3)), "'edge_weight'"),
        ((torch.randn(5, 4), EDGES, [1.0, 1.0]), "'edge_weight'"),
    ],
)
def test_bad_input(arguments, name, cached):
    with pytest.raises(ValueError, match=name):
        BiGCNConv(4, 3, cached=cached)(*arguments)


def test_published_settings_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BiGCN(4, out_channels=2, **BiGCN.published("cora"))
