"""The layer as a citizen of PyTorch Geometric and PyTorch."""

import copy
import importlib.util
import io
import pickle
import shutil
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

from bigcn import BiGCN, BiGCNConv
from bigcn.feature_graphs import SpectralGraph

N, D, H = 9, 5, 3
GRAPHS = ["learnable", "correlation", "spectral", "uniform", "identity", "none"]
both = pytest.mark.parametrize("cached", [False, True])
every = pytest.mark.parametrize("name", GRAPHS)
cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def layer(name="none", h=H, **options):
    options = {"node_strength": 2.0, **options}
    kwargs = {"rank": 2} if name == "spectral" else None
    return BiGCNConv(D, h, feature_graph=name, feature_graph_kwargs=kwargs, check_low_pass=False, **options)


def inputs(make_graph, dtype=torch.float32):
    return torch.randn(N, D, dtype=dtype), make_graph(N, 13, isolated=1)


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
def test_every_format_of_a_graph_gives_the_same(make_graph, name, cached, weighted):
    x, edge_index = inputs(make_graph)
    weight = torch.rand(edge_index.size(1) // 2).repeat(2) + 0.1 if weighted else torch.ones(edge_index.size(1))
    conv = layer(name, cached=cached)
    expected = conv(x, edge_index, weight)
    for key, graph in formats(edge_index, weight).items():
        assert torch.allclose(conv(x, *graph), expected, atol=1e-4), key
    if not weighted:
        assert torch.allclose(conv(x, edge_index), expected, atol=1e-4)
    else:
        assert not torch.allclose(conv(x, edge_index), expected, atol=1e-3)


@both
@every
def test_assert_module(make_graph, name, cached):
    x, edge_index = inputs(make_graph)
    edge_index = torch_geometric.utils.coalesce(edge_index)
    conv = layer(name, cached=cached)
    assert_module(conv, x, edge_index, expected_size=(N, H), atol=1e-4)
    assert str(conv) == f"BiGCNConv({D}, {H})"


@both
@pytest.mark.parametrize("h", [2, 50])
def test_directed_graphs_are_taken_as_they_are(oracle, cached, h):
    edge_index = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    # In Taylor form: a polynomial on [-1, 1] is no inverse for the complex spectrum of a directed graph.
    conv = layer(h=h, cached=cached, node_filter="taylor", iterations=3).double()
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
def test_isolated_nodes_and_graphs_without_edges(name, cached):
    conv = layer(name, cached=cached)
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
def test_no_nodes(cached):
    none = torch.empty(2, 0, dtype=torch.long)
    assert layer(cached=cached)(torch.empty(0, D), none).shape == (0, H)


@both
@every
@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("h", [H, 60])
def test_batches_are_their_items(make_graph, name, h, form, cached):
    _, edge_index = inputs(make_graph)
    x = torch.randn(4, N, D)
    if name in ("correlation", "spectral"):  # those look at all items together, so let them all be alike
        x = x[:1].expand(4, N, D).contiguous()
    conv = layer(name, h, node_filter=form, feature_filter=form, cached=cached)
    out = conv(x, edge_index)
    assert out.shape == (4, N, h)
    for i in range(4):
        assert torch.allclose(out[i], conv(x[i], edge_index), atol=1e-4)


def test_random_node_loader(make_graph):
    data = Data(x=torch.randn(40, D), edge_index=make_graph(40, 80), y=torch.randint(H, (40,)))
    conv = layer("learnable", cached=True)
    plain = copy.deepcopy(conv)
    plain.cached = False
    seen = 0
    for batch in RandomNodeLoader(data, num_parts=4):
        out = conv(batch.x, batch.edge_index)
        assert torch.allclose(out, plain(batch.x, batch.edge_index), atol=1e-5)
        seen += out.size(0)
    assert seen == 40


def test_summary(make_graph, monkeypatch):
    if importlib.util.find_spec("tabulate") is None:  # which draws the table, and which PyG does not require
        drawn = SimpleNamespace(tabulate=lambda rows, **_: "\n".join(str(row) for row in rows))
        monkeypatch.setitem(sys.modules, "tabulate", drawn)
    text = torch_geometric.nn.summary(BiGCN(D, 8, 2, H, feature_graph="learnable"), *inputs(make_graph))
    assert "BiGCNConv" in text
    assert f"[{N}, {H}]" in text


# Explanations.


@both
@every
def test_gradient_reaches_an_edge_mask(make_graph, name, cached):
    x, edge_index = inputs(make_graph)
    conv = layer(name, cached=cached)
    conv(x, edge_index)
    mask = torch.nn.Parameter(torch.zeros(edge_index.size(1)))
    set_masks(conv, mask, edge_index)
    conv(x, edge_index).square().sum().backward()
    assert (mask.grad.abs() > 0).all()
    clear_masks(conv)


@both
def test_a_masked_edge_has_no_influence(oracle, make_graph, cached):
    x, edge_index = inputs(make_graph, torch.float64)
    edge_index = torch_geometric.utils.coalesce(edge_index)
    conv = layer("none", cached=cached, tolerance=1e-13).double()
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
def test_an_explanation_leaves_nothing_in_the_cache(make_graph, name):
    x, edge_index = inputs(make_graph)
    conv = layer(name, cached=True)
    set_masks(conv, torch.nn.Parameter(torch.full((edge_index.size(1),), -9.0)), edge_index)
    conv(x, edge_index)
    clear_masks(conv)
    plain = copy.deepcopy(conv)
    plain.cached = False
    assert torch.allclose(conv(x, edge_index), plain(x, edge_index), atol=1e-4)


@both
@pytest.mark.parametrize("name", ["learnable", "none"])
def test_explainer(make_graph, name, cached):
    x, edge_index = inputs(make_graph)
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


# Modules.


@both
@every
def test_lazy(make_graph, name, cached):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(-1, H, feature_graph=name, cached=cached)
    assert str(conv) == f"BiGCNConv(-1, {H})"
    out = conv(x, edge_index)
    assert out.shape == (N, H)
    assert conv.in_channels == conv.feature_graph.num_features == D
    assert torch.equal(conv(x, edge_index), out)
    with pytest.raises(ValueError, match=f"'x' must have {D} features"):
        conv(torch.randn(N, D + 1), edge_index)


@pytest.mark.parametrize("size", [D, -1])
@every
def test_state_dict_round_trip(make_graph, name, size):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, H, feature_graph=name, init="released")
    other = BiGCNConv(size, H, feature_graph=name)
    buffer = io.BytesIO()
    torch.save(conv.state_dict(), buffer)
    buffer.seek(0)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(other(x, edge_index), conv(x, edge_index))
    assert other.in_channels == D


def test_state_dict_of_a_lazy_layer():
    lazy, other = BiGCNConv(-1, H, feature_graph="learnable"), BiGCNConv(-1, H, feature_graph="learnable")
    other.load_state_dict(lazy.state_dict())
    assert other.in_channels == -1
    assert other(torch.randn(N, D), torch.tensor([[0, 1], [1, 0]])).shape == (N, H)


def test_kept_graphs_travel_with_the_state_dict(make_graph):
    x, edge_index = inputs(make_graph)
    conv = BiGCNConv(D, H, feature_graph=SpectralGraph.from_data(x, edge_index, rank=2))
    assert set(conv.state_dict()) == {"bias", "lin.weight", "feature_graph.vectors", "feature_graph.weights"}
    other = BiGCNConv(D, H, feature_graph="spectral", feature_graph_kwargs={"rank": 2})
    other.load_state_dict(conv.state_dict())
    elsewhere = torch.randn(N, D)
    assert torch.equal(other(elsewhere, edge_index), conv(elsewhere, edge_index))


@both
@every
def test_copies_and_pickles(make_graph, name, cached):
    x, edge_index = inputs(make_graph)
    conv = layer(name, cached=cached)
    expected = conv(x, edge_index)
    for other in (copy.deepcopy(conv), copy.deepcopy(copy.deepcopy(conv)), pickle.loads(pickle.dumps(conv))):
        assert torch.equal(other(x, edge_index), expected)
        with torch.no_grad():
            other.lin.weight.zero_()
        assert torch.equal(conv(x, edge_index), expected)


# Precision.


@both
@every
@pytest.mark.parametrize("h", [H, 60])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_precisions(make_graph, name, h, dtype, cached):
    x, edge_index = inputs(make_graph)
    conv = layer(name, h, cached=cached).to(dtype)
    out = conv(x.to(dtype), edge_index)
    assert out.dtype == dtype
    out.sum().backward()
    assert conv.lin.weight.grad.isfinite().all()
    exact = copy.deepcopy(conv).double()(x.to(dtype).double(), edge_index)
    if name == "spectral" and dtype != torch.float64:
        return  # half precision cannot tell eigenvalues this close apart
    atol = {torch.bfloat16: 0.15, torch.float16: 0.02, torch.float64: 1e-12}[dtype]
    assert torch.allclose(out.double(), exact, rtol=0, atol=atol)


@both
@every
@pytest.mark.parametrize("h", [H, 60])
@pytest.mark.parametrize("form", ["taylor", "exact"])
def test_autocast(make_graph, name, h, form, cached):
    x, edge_index = inputs(make_graph)
    conv = layer(name, h, node_filter=form, feature_filter=form, node_strength=0.5, cached=cached)
    expected = conv(x, edge_index)
    for features in (x, x.bfloat16()):  # the latter from a layer before
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = conv(features, edge_index)
        assert torch.allclose(out.float(), expected, atol=0.1)
        out.float().sum().backward()


# Compilation.

COMPILED = {
    "taylor": {"node_filter": "taylor"},
    "exact": {"node_filter": "exact"},
    "learnable taylor": {"node_filter": "taylor", "feature_filter": "taylor", "name": "learnable"},
    "learnable exact": {"name": "learnable"},
    "uniform, features first": {"name": "uniform", "h": 80},
    "cached": {"cached": True},
}


@pytest.mark.parametrize("key", COMPILED)
def test_compiles_without_a_break(make_graph, key):
    x, edge_index = inputs(make_graph)
    conv = layer(**{"tolerance": 1e-2, **COMPILED[key]})
    compiled = torch.compile(conv, fullgraph=True, backend="eager")
    assert torch.allclose(compiled(x, edge_index), conv(x, edge_index), atol=1e-5)


def test_gradients_of_a_compiled_layer(make_graph):
    x, edge_index = inputs(make_graph)
    conv = layer("learnable", node_filter="taylor", tolerance=1e-2)
    expected = conv(x, edge_index)
    gradients = torch.autograd.grad(expected.square().sum(), list(conv.parameters()))
    out = torch.compile(conv, fullgraph=True, backend="aot_eager")(x, edge_index)
    assert torch.allclose(out, expected, atol=1e-5)
    found = torch.autograd.grad(out.square().sum(), list(conv.parameters()))
    for a, b in zip(found, gradients, strict=True):
        assert torch.allclose(a, b, atol=1e-4)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_compiles_to_kernels(make_graph):
    x, edge_index = inputs(make_graph)
    conv = layer("uniform", node_filter="taylor", iterations=1)
    with torch.no_grad():
        out = torch.compile(conv, fullgraph=True)(x, edge_index)
    assert torch.allclose(out, conv(x, edge_index), atol=1e-5)


# Populations.

MEMBERS = {
    "same settings": [{"seed": 0}, {"seed": 1}, {"seed": 2}],
    "own settings": [
        {"p": 3.0, "node_strength": 1.8, "feature_strength": 0.5},
        {"p": 0.1, "node_strength": 0.8, "feature_strength": 1.8},
        {"p": 8.5, "node_strength": 1.2, "feature_strength": 0.01},
    ],
}


def population(kind, name, form, cached):
    models = []
    for options in MEMBERS[kind]:
        options = {key: value for key, value in options.items() if key != "seed"}
        kwargs = {"rank": 2} if name == "spectral" else None
        models.append(
            BiGCN(
                D,
                4,
                2,
                H,
                feature_graph=name,
                feature_graph_kwargs=kwargs,
                node_filter=form,
                feature_filter=form,
                check_low_pass=False,
                cached=cached,
                **options,
            )
            .double()
            .eval()
        )
    params, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0])

    def run(params, buffers, x, edge_index):
        return torch.func.functional_call(base, (params, buffers), (x, edge_index))

    return models, params, buffers, run


@both
@pytest.mark.parametrize("own_features", [False, True])
@pytest.mark.parametrize(
    ("kind", "form"), [("same settings", "taylor"), ("same settings", "exact"), ("own settings", "taylor")]
)
@pytest.mark.parametrize("name", ["learnable", "uniform", "identity", "none", "correlation", "spectral"])
def test_a_population_is_its_members(oracle, make_graph, name, kind, form, own_features, cached):
    x, edge_index = inputs(make_graph, torch.float64)
    models, params, buffers, run = population(kind, name, form, cached)
    features = torch.randn(3, N, D, dtype=torch.float64) if own_features else x
    vmapped = torch.func.vmap(run, in_dims=(0, 0, 0 if own_features else None, None))
    for _ in range(2):  # the second time from the cache
        out = vmapped(params, buffers, features, edge_index)
        for i, model in enumerate(models):
            expected = model(features[i] if own_features else x, edge_index)
            assert oracle.distance(out[i], expected) < 1e-9
    out.square().sum().backward()
    for i, model in enumerate(models):
        expected = model(features[i] if own_features else x, edge_index).square().sum()
        for key, parameter in model.named_parameters():
            gradient = torch.autograd.grad(expected, parameter, retain_graph=True)[0]
            assert oracle.distance(params[key].grad[i], gradient) < 1e-9, key


# CUDA.


@cuda
@both
@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("h", [H, 60])
@every
def test_cuda_agrees_with_the_cpu(oracle, make_graph, name, h, form, cached):
    x, edge_index = inputs(make_graph, torch.float64)
    conv = layer(name, h, node_filter=form, feature_filter=form, cached=cached).double()
    expected = conv(x, edge_index)
    direction = torch.randn_like(expected)
    gradients = torch.autograd.grad((expected * direction).sum(), list(conv.parameters()))
    conv = copy.deepcopy(conv).cuda()
    for features in (x.cuda(), x.to_sparse_csr().cuda()):
        out = conv(features, edge_index.cuda())
        assert oracle.distance(out.cpu(), expected) < 1e-9
        found = torch.autograd.grad((out * direction.cuda()).sum(), list(conv.parameters()))
        for a, b in zip(found, gradients, strict=True):
            assert oracle.distance(a.cpu(), b) < 1e-9


@cuda
@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("name", ["learnable", "uniform", "none"])
def test_cuda_step_neither_synchronises_nor_resists_capture(make_graph, name, form):
    x, edge_index = (tensor.cuda() for tensor in inputs(make_graph))
    conv = layer(name, node_filter=form, feature_filter=form, cached=True).cuda()

    def step():
        conv.zero_grad(set_to_none=False)
        (conv(x, edge_index).square().sum() + conv.penalty()).backward()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    expected = conv.lin.weight.grad.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    conv.lin.weight.grad.fill_(7)
    graph.replay()
    assert torch.allclose(conv.lin.weight.grad, expected, atol=1e-4)


@cuda
def test_cuda_half_precision(make_graph):
    x, edge_index = (tensor.cuda() for tensor in inputs(make_graph))
    for cached in (False, True):
        conv = layer("learnable", cached=cached).cuda()
        expected = conv(x, edge_index)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            assert torch.allclose(conv(x, edge_index).float(), expected, atol=0.1)
        half = copy.deepcopy(conv).bfloat16()
        assert torch.allclose(half(x.bfloat16(), edge_index).float(), expected, atol=0.2)
