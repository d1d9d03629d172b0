"""The layer as a citizen of PyTorch: modules, precisions, compilation, CUDA."""

import copy
import io
import pickle
import shutil

import pytest
import torch

from bigcn import BiGCNConv
from bigcn.feature_graphs import FEATURE_GRAPHS, SpectralGraph

N, D, H = 9, 5, 3  # nodes, features and outputs of the small layer
both = pytest.mark.parametrize("cached", [False, True])
every = pytest.mark.parametrize("name", FEATURE_GRAPHS)
cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


# Modules.


@both
@every
def test_lazy(small_inputs, name, cached):
    x, edge_index = small_inputs()
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
def test_state_dict_round_trip(small_inputs, name, size):
    x, edge_index = small_inputs()
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


def test_kept_graphs_travel_with_the_state_dict(small_inputs):
    x, edge_index = small_inputs()
    conv = BiGCNConv(D, H, feature_graph=SpectralGraph.from_data(x, edge_index, rank=2))
    assert set(conv.state_dict()) == {"bias", "lin.weight", "feature_graph.vectors", "feature_graph.weights"}
    other = BiGCNConv(D, H, feature_graph="spectral", feature_graph_kwargs={"rank": 2})
    other.load_state_dict(conv.state_dict())
    elsewhere = torch.randn(N, D)
    assert torch.equal(other(elsewhere, edge_index), conv(elsewhere, edge_index))


@both
@every
def test_copies_and_pickles(small_layer, small_inputs, name, cached):
    x, edge_index = small_inputs()
    conv = small_layer(name, cached=cached)
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
def test_precisions(small_layer, small_inputs, name, h, dtype, cached):
    x, edge_index = small_inputs()
    conv = small_layer(name, h, cached=cached).to(dtype)
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
def test_autocast(small_layer, small_inputs, name, h, form, cached):
    x, edge_index = small_inputs()
    conv = small_layer(name, h, node_filter=form, feature_filter=form, node_strength=0.5, cached=cached)
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
def test_compiles_without_a_break(small_layer, small_inputs, key):
    x, edge_index = small_inputs()
    conv = small_layer(**{"tolerance": 1e-2, **COMPILED[key]})
    compiled = torch.compile(conv, fullgraph=True, backend="eager")
    assert torch.allclose(compiled(x, edge_index), conv(x, edge_index), atol=1e-5)


def test_gradients_of_a_compiled_layer(small_layer, small_inputs):
    x, edge_index = small_inputs()
    conv = small_layer("learnable", node_filter="taylor", tolerance=1e-2)
    expected = conv(x, edge_index)
    gradients = torch.autograd.grad(expected.square().sum(), list(conv.parameters()))
    out = torch.compile(conv, fullgraph=True, backend="aot_eager")(x, edge_index)
    assert torch.allclose(out, expected, atol=1e-5)
    found = torch.autograd.grad(out.square().sum(), list(conv.parameters()))
    for a, b in zip(found, gradients, strict=True):
        assert torch.allclose(a, b, atol=1e-4)


@pytest.mark.parametrize("key", ["taylor", "exact", "learnable exact", "cached"])
def test_exports_for_graphs_of_any_size(small_layer, small_inputs, key):
    x, edge_index = small_inputs()
    conv = small_layer(**{"tolerance": 1e-2, **COMPILED[key]})
    nodes, edges = (torch.export.Dim(name, min=2) for name in ("nodes", "edges"))
    sizes = {"x": {0: nodes}, "edge_index": {1: edges}, "edge_weight": None}
    exported = torch.export.export(conv, (x, edge_index), {"edge_weight": None}, dynamic_shapes=sizes).module()
    ring = torch.arange(31)
    other = torch.cat([torch.stack([ring, ring.roll(1)]), torch.stack([ring.roll(1), ring])], dim=1)
    for features, graph in ((x, edge_index), (torch.randn(31, x.size(1)), other)):
        assert torch.allclose(exported(features, graph, edge_weight=None), conv(features, graph), atol=1e-5)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_compiles_to_kernels(small_layer, small_inputs):
    x, edge_index = small_inputs()
    conv = small_layer("uniform", node_filter="taylor", iterations=1)
    with torch.no_grad():
        out = torch.compile(conv, fullgraph=True)(x, edge_index)
    assert torch.allclose(out, conv(x, edge_index), atol=1e-5)


# CUDA.


@cuda
@both
@pytest.mark.parametrize("form", ["taylor", "exact"])
@pytest.mark.parametrize("h", [H, 60])
@every
def test_cuda_agrees_with_the_cpu(oracle, small_layer, small_inputs, name, h, form, cached):
    x, edge_index = small_inputs(torch.float64)
    # A GPU may have the exact filter as a dense matrix, which no polynomial of the usual tolerance comes so close to.
    conv = small_layer(name, h, node_filter=form, feature_filter=form, cached=cached, tolerance=1e-12).double()
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
def test_cuda_step_neither_synchronises_nor_resists_capture(small_layer, small_inputs, name, form):
    x, edge_index = (tensor.cuda() for tensor in small_inputs())
    conv = small_layer(name, node_filter=form, feature_filter=form, cached=True).cuda()

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
def test_cuda_half_precision(small_layer, small_inputs):
    x, edge_index = (tensor.cuda() for tensor in small_inputs())
    for cached in (False, True):
        conv = small_layer("learnable", cached=cached).cuda()
        expected = conv(x, edge_index)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            assert torch.allclose(conv(x, edge_index).float(), expected, atol=0.1)
        half = copy.deepcopy(conv).bfloat16()
        assert torch.allclose(half(x.bfloat16(), edge_index).float(), expected, atol=0.2)
