"""Attention with its gradients written out: against PyG, finite differences, and the kernels against both."""

import importlib.util
import os

import pytest
import torch
from torch_geometric.nn import GATConv

from bigcn.nn import attention
from bigcn.nn.attention import attend, attention_graph, fill_up

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
TRITON = importlib.util.find_spec("triton") is not None and (torch.cuda.is_available() or INTERPRETED)
DEVICE = "cuda" if TRITON and not INTERPRETED else "cpu"
#: The plain path, and the kernels where there is a GPU or Triton's interpreter.
KERNELS = [False, pytest.param(True, marks=pytest.mark.skipif(not TRITON, reason="needs a GPU with Triton"))]
NODES = 12


@pytest.fixture(autouse=True)
def _kernels(request, monkeypatch):
    """Lets attention take the kernels, or not."""
    fused = request.node.callspec.params["fused"]
    found = importlib.import_module("bigcn.attention_triton") if fused else None
    monkeypatch.setattr(attention, "_fused", lambda *_: found)


def problem(channels, heads, fillers=0):
    generator = torch.Generator().manual_seed(channels)
    x = torch.randn(NODES, 5, generator=generator, dtype=torch.float64).to(DEVICE)
    edges = torch.randint(NODES, (2, 30), generator=generator)
    edges = torch.cat([edges, torch.stack([torch.arange(40) % NODES, torch.full((40,), 3)])], dim=1)  # a long row
    edges = edges.unique(dim=1).to(DEVICE)
    graph = attention_graph(edges, NODES)
    if fillers:
        graph = fill_up(graph, graph.source.numel() + fillers)
    torch.manual_seed(0)
    conv = GATConv(5, channels, heads=heads, dropout=0.5, negative_slope=0.25).double().to(DEVICE)
    return conv, x.requires_grad_(), edges, graph


@pytest.mark.parametrize("fused", KERNELS)
@pytest.mark.parametrize(
    ("channels", "heads", "fillers"), [(3, 2, 0), (8, 1, 0), (17, 2, 0), (40, 1, 0), (8, 2, 29), (2, 3, 7)]
)
def test_it_is_the_layer_of_pyg(fused, channels, heads, fillers):
    conv, x, edges, graph = problem(channels, heads, fillers)
    conv.eval()
    outs = []
    for run in (lambda: attend(conv, x, graph), lambda: conv(x, edges)):
        out = run()
        outs.append([out, *torch.autograd.grad((out * out.cos()).sum(), [x, *conv.parameters()])])
    for found, expected in zip(*outs, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("fused", KERNELS)
@pytest.mark.parametrize("fillers", [0, 29])
def test_gradients_are_those_of_what_dropout_has_left(fused, fillers):
    conv, x, _, graph = problem(4, 2, fillers)

    def run(x):
        torch.manual_seed(7)
        return attend(conv, x, graph)

    assert torch.autograd.gradcheck(run, (x,), nondet_tol=0.0, fast_mode=True)


@pytest.mark.parametrize("fused", KERNELS)
def test_dropout_takes_the_share_it_should_and_keeps_the_mean(fused):
    conv, x, edges, graph = problem(8, 4)
    rounds = 64 if INTERPRETED and fused else 400  # the interpreter takes its time
    with torch.no_grad():
        many = torch.stack([attend(conv, x, graph) for _ in range(rounds)])
        assert (many[0] != many[1]).any()
        expected = conv.eval()(x, edges)
    error = (many.mean(0) - expected).abs() / (many.std(0) / rounds**0.5 + 1e-9)
    assert error.mean() < 1.2  # about 0.8 for a normal distribution
    assert error.max() < 6


@pytest.mark.parametrize("fused", KERNELS)
def test_members_draw_for_themselves(fused):
    conv, x, _, graph = problem(4, 2)
    run = torch.func.vmap(lambda x: attend(conv, x, graph), randomness="different")
    out = run(x.detach().expand(3, -1, -1))
    assert (out[0] != out[1]).any()
    assert (out[1] != out[2]).any()
    conv.eval()
    torch.testing.assert_close(run(torch.stack([x, 2 * x]))[1], attend(conv, 2 * x, graph))
