"""Products of features and weights, with full lines and for populations."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, jvp, vmap

from bigcn import BiGCNConv
from bigcn.nn import bigcn_conv, feature_product, kept_input
from bigcn.nn.baselines import GCN, MLP, takes_filled
from bigcn.nn.feature_product import filled
from bigcn.nn.registry import ModelContext, get_model, model_names
from bigcn.precision import fast_products

N, D = 30, 13


@pytest.fixture
def filling(monkeypatch):
    for module in (bigcn_conv, kept_input):
        monkeypatch.setattr(module, "filling_pays", lambda x: x.dim() == 2 and x.size(1) == D)


@pytest.fixture
def edges():
    one = torch.randint(N, (2, 60), generator=torch.Generator().manual_seed(0))
    return torch.cat([one, one.flip(0)], dim=1).unique(dim=1)


def features():
    return torch.randn(N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_lines_are_filled_up_on_a_gpu_alone():
    class OnGPU:
        is_cuda, dtype, layout = True, torch.float32, torch.strided

        def __init__(self, *shape):
            self.shape = shape

        def dim(self):
            return len(self.shape)

        def size(self, dim):
            return self.shape[dim]

    assert not feature_product.filling_pays(torch.ones(N, D))
    assert not feature_product.filling_pays(OnGPU(N, D)), "single precision in full is no work for tensor cores"
    with fast_products():
        assert feature_product.filling_pays(OnGPU(N, 1433))
        assert not feature_product.filling_pays(OnGPU(N, 500)), "lines of 2000 bytes are full"
        assert not feature_product.filling_pays(OnGPU(2, N, 1433))
        OnGPU.layout = torch.sparse_csr
        assert not feature_product.filling_pays(OnGPU(N, 1433))


def test_what_fills_up_counts_nothing():
    x, weight = features(), torch.randn(4, D, dtype=torch.float64)
    full = filled(x)
    assert full.shape == (N, 16)
    assert torch.equal(full[:, :D], x)
    assert not full[:, D:].any()
    for given in (x, full):
        torch.testing.assert_close(feature_product.feature_product(given, weight), x @ weight.t())
    with pytest.raises(RuntimeError, match="shapes"):
        feature_product.feature_product(x[:, 1:], weight)
    eight = torch.ones(3, 8)
    assert filled(eight).shape == (3, 8)
    assert torch.equal(feature_product.feature_product(eight, eight), torch.full((3, 3), 8.0))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("own", [(True, True), (False, True), (True, False)])
def test_members_multiply_as_each_alone(own, full):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(5, N, D, dtype=torch.float64, generator=generator)
    weight = torch.randn(5, 4, D, dtype=torch.float64, generator=generator)
    x, weight = x if own[0] else x[0], weight if own[1] else weight[0]
    dims = tuple(0 if mine else None for mine in own)
    given = filled(x) if full else x

    def loss(product, x, weight):
        return product(x, weight).sin().square().sum()

    def both(product, x, weight):
        mapped = vmap(lambda x, weight: (product(x, weight), grad(lambda w: loss(product, x, w))(weight)), dims)
        return mapped(x, weight)

    torch.testing.assert_close(both(feature_product.feature_product, given, weight), both(F.linear, x, weight))
    # Differentiated from outside, as a population is.
    found = []
    for product, asked in ((feature_product.feature_product, given), (F.linear, x)):
        inputs = [part.clone().requires_grad_() for part in (asked, weight)]
        vmap(product, dims)(*inputs).sin().square().sum().backward()
        found.append((inputs[0].grad[..., :D], inputs[1].grad))
    torch.testing.assert_close(*found)


@pytest.mark.usefixtures("filling")
@pytest.mark.parametrize("graph", ["learnable", "none"])
def test_a_layer_keeps_features_with_full_lines(monkeypatch, edges, graph):
    x = features()
    torch.manual_seed(2)
    conv = BiGCNConv(D, 3, feature_graph=graph, cached=True).double()

    def outcome():
        out = conv(x, edges)
        return out, *torch.autograd.grad(out.square().sum(), list(conv.parameters()))

    found = outcome()
    kept = conv._filled if graph == "learnable" else conv._filtered
    assert len(kept) == 1
    assert kept.last()[1].shape == (N, 16)
    torch.testing.assert_close(outcome(), found)
    assert len(kept) == 1, "they are kept"
    for module in (bigcn_conv, kept_input):
        monkeypatch.setattr(module, "filling_pays", lambda x: False)
    conv._forget()
    torch.testing.assert_close(found, outcome(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in model_names() if not name.startswith("bigcn")])
def test_baselines_take_features_with_full_lines(name, edges):
    x, weight = features(), torch.ones(edges.size(1), dtype=torch.float64) if name == "gdc" else None
    model = get_model(name).build(ModelContext("cora", "clean", "node", D, 4, dropout=0.0)).double().train()
    assert takes_filled(model)

    def outcome(x):
        out = model(x, edges, weight)
        return out, *torch.autograd.grad(out.square().sum(), list(model.parameters()))

    expected = outcome(x)
    with feature_product.FeatureProducts(D):
        torch.testing.assert_close(outcome(filled(x)), expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(outcome(x), expected, rtol=1e-12, atol=1e-12)
        with pytest.raises(RuntimeError, match="shapes"):
            model(x[:, 1:].contiguous(), edges, weight)
    with pytest.raises(RuntimeError, match="shapes"):
        model(filled(x), edges, weight)


def test_of_other_models_nothing_is_known():
    class Centred(GCN):
        def forward(self, x, edge_index, edge_weight=None):
            return super().forward(x - x.mean(dim=1, keepdim=True), edge_index, edge_weight)

    assert takes_filled(GCN(D, 4, 2, 3))
    assert not takes_filled(Centred(D, 4, 2, 3))
    assert not takes_filled(GCN(D, 4, 2, 3, improved=True))
    assert not takes_filled(torch.nn.Linear(D, 3))


MODELS = {
    "mlp": lambda: MLP(D, 8, 2, 3),
    "layer": lambda: BiGCNConv(D, 3, feature_graph="uniform"),
}


@pytest.fixture(params=MODELS)
def called(request, edges):
    """A model as a function of parameters and features, and its parameters."""
    torch.manual_seed(0)
    model = MODELS[request.param]().double()
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return lambda parameters, x: functional_call(model, parameters, (x, edges)), parameters


def test_maps_within_maps(called):
    call, parameters = called
    twice = {name: torch.stack([value, 2 * value]) for name, value in parameters.items()}
    x = torch.stack([features(), features().flip(0)])
    found = vmap(lambda parameters: vmap(lambda x: call(parameters, x))(x))(twice)
    for place in range(2):
        own = {name: value[place] for name, value in twice.items()}
        for number in range(2):
            torch.testing.assert_close(found[place, number], call(own, x[number]))


def test_forward_differentiation(called):
    call, parameters = called
    x, direction = features(), torch.ones(N, D, dtype=torch.float64)
    _, found = jvp(lambda x: call(parameters, x), (x,), (direction,))
    step = 1e-6
    expected = (call(parameters, x + step * direction) - call(parameters, x - step * direction)) / (2 * step)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_members_under_autocast(name, edges):
    torch.manual_seed(0)
    model = MODELS[name]()
    members = {n: torch.stack([p, 2 * p]).detach().requires_grad_() for n, p in model.named_parameters()}
    with torch.autocast("cpu", torch.bfloat16):
        out = vmap(lambda own, x: functional_call(model, own, (x, edges)), (0, None))(members, features().float())
    out.float().square().sum().backward()
    assert all(value.grad is not None and value.grad.isfinite().all() for value in members.values())


def test_either_name_of_the_setting_is_understood():
    code = """
import torch
from bigcn.precision import fast_products, fast_products_allowed
torch.backends.cuda.matmul.fp32_precision = "ieee"
assert not fast_products_allowed()
with fast_products():
    assert fast_products_allowed()
assert not fast_products_allowed()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
