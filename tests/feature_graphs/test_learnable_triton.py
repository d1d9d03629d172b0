"""The kernels against strips and against plain autograd: on a GPU, or with TRITON_INTERPRET=1 on a CPU."""

import os

import pytest
import torch
from torch.func import functional_call, grad, vmap

from bigcn.feature_graphs import FeatureFilter, FeatureGraph, LearnableGraph, learnable_ops, learnable_strips
from bigcn.feature_graphs.learnable_packing import pack, unpack

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs a GPU or TRITON_INTERPRET=1", allow_module_level=True)

from bigcn.feature_graphs import learnable_triton  # noqa: E402

cuda = pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
# The interpreter takes its time.
SIZES = [1, 5, 70, 130] if DEVICE == "cpu" else [1, 5, 70, 130, 300, 1433]


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    """Takes the kernels for single precision, and notes that they were called."""
    torch.manual_seed(0)
    calls = []

    def passes(tensor):
        calls.append(tensor.dtype)
        return learnable_triton if tensor.dtype == torch.float32 else learnable_strips

    monkeypatch.setattr(learnable_ops, "_passes", passes)
    return calls


def close(found, expected, tolerance=3e-6):
    """Relative to the largest entry, as rounding is."""
    assert found.shape == expected.shape
    error = (found.double() - expected.double()).abs().max() / expected.double().abs().max().clamp(min=1e-30)
    assert error < tolerance


def packed_logits(*shape):
    """Logits with something in the places that must not matter."""
    square = torch.randn(*shape, device=DEVICE, dtype=torch.float64) * 2
    packed = pack(square)
    rubbish = pack(torch.ones_like(square)) == 0
    return torch.where(rubbish, torch.full_like(packed, 3.0), packed)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("members", [(), (1,), (3,)])
def test_triangle(size, members):
    packed = packed_logits(*members, size, size)
    upper, degree = learnable_triton.triangle(packed.float(), size)
    expected = unpack(packed, size).sigmoid().triu(1)
    close(unpack(upper, size), expected)
    assert torch.count_nonzero(upper) == torch.count_nonzero(expected)
    close(degree, expected.sum(-1) + expected.sum(-2))


def random_product(members, height, size, self_loops):
    """The arguments of a product, and the matrix that it multiplies with."""
    upper, _ = learnable_strips.triangle(packed_logits(*members, size, size), size)
    scale = torch.rand(*members, 1, size, device=DEVICE, dtype=torch.float64)
    block = torch.randn(*members, height, size, device=DEVICE, dtype=torch.float64)
    matrix = unpack(upper, size)
    matrix = scale.mT * (matrix + matrix.mT + (torch.eye(size, device=DEVICE) if self_loops else 0)) * scale
    return upper, scale, block, matrix


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("members", [(), (3,)])
@pytest.mark.parametrize("height", [1, 17, 140])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("tiles", ["PRODUCT", "PRODUCT_OF_FEW"])
def test_product(monkeypatch, size, members, height, self_loops, tiles):
    monkeypatch.setattr(learnable_triton, "FEW_TILES", 0 if tiles == "PRODUCT" else 10**9)
    upper, scale, block, matrix = random_product(members, height, size, self_loops)
    expected = block @ matrix
    close(learnable_triton.product(upper.float(), scale.float(), block.float(), self_loops), expected)
    tilted = block.float().mT.contiguous().mT  # not in the order of memory
    close(learnable_triton.product(upper.float(), scale.float(), tilted, self_loops), expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("members", [(), (1,), (3,)])
@pytest.mark.parametrize("height", [1, 16, 140])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("tiles", ["PRODUCT", "PRODUCT_OF_FEW"])
def test_product_with_row_sums(monkeypatch, size, members, height, self_loops, tiles):
    monkeypatch.setattr(learnable_triton, "FEW_TILES", 0 if tiles == "PRODUCT" else 10**9)
    upper, scale, block, matrix = random_product(members, height, size, self_loops)
    arguments = upper.float(), scale.float(), block.float(), self_loops
    found = learnable_triton.product(*arguments, row_sums=True)
    close(found[..., -1, :], matrix.sum(-1))
    assert torch.equal(found, learnable_triton.product(*arguments, row_sums=True))
    close(found[..., :-1, :], block @ matrix)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("members", [(), (3,)])
@pytest.mark.parametrize("rank", [1, 16, 67])
@pytest.mark.parametrize("at_once", [16, 32])
def test_gradient(monkeypatch, size, members, rank, at_once):
    monkeypatch.setattr(learnable_triton, "GRADIENT_RANK", at_once)
    upper, _ = learnable_strips.triangle(packed_logits(*members, size, size), size)
    first, second = torch.randn(2, *members, rank, size, device=DEVICE, dtype=torch.float64)
    found = learnable_triton.gradient(first.float(), second.float(), upper.float())
    weights = unpack(upper, size)
    expected = (first.mT @ second) * weights * (1 - weights)
    close(unpack(found, size), expected)
    assert torch.count_nonzero(found) <= torch.count_nonzero(weights)


def loss_of(graph, block, rounds, operator="laplacian"):
    strength = torch.full((), 0.6, dtype=block.dtype, device=block.device)  # made on the GPU, where it is captured
    blocks, _ = graph.powers(graph.operand(), block, FeatureFilter(rounds, "taylor", operator, strength))
    return sum((b + 1) * part.square().sum() for b, part in enumerate(blocks)) + 0.3 * graph.l1_norm(operator)


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("operator", ["laplacian", "adjacency"])
@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("size", [3, 70, 150])
def test_powers_penalty_and_gradients(kernels, monkeypatch, self_loops, operator, rounds, size):
    graph = LearnableGraph(size, torch.randn(size, size), self_loops).to(DEVICE)
    block = torch.randn(size, 16, device=DEVICE, requires_grad=True)
    graph.l1_norm()  # so that the next penalty is taken from the forward pass
    found = loss_of(graph, block, rounds, operator)
    gradients = torch.autograd.grad(found, (graph.packed_logits, block))
    assert set(kernels) == {torch.float32}

    monkeypatch.setattr(LearnableGraph, "powers", FeatureGraph.powers)
    exact = LearnableGraph(size, graph.logits.detach().double(), self_loops).double().to(DEVICE)
    exact.logits = graph.logits.detach().double()
    wide = block.detach().double().requires_grad_()
    expected = loss_of(exact, wide, rounds, operator)
    close(found, expected)
    for a, b in zip(gradients, torch.autograd.grad(expected, (exact.packed_logits, wide)), strict=True):
        close(a, b, 1e-5)


class Loss(torch.nn.Module):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def forward(self, block):
        return loss_of(self.graph, block, 2)


@pytest.mark.parametrize("own_blocks", [True, False])
def test_a_population_is_its_members(kernels, own_blocks):
    size, graphs = 75, [LearnableGraph(75, torch.randn(75, 75)).to(DEVICE) for _ in range(3)]
    stacked = {"graph.packed_logits": torch.stack([g.packed_logits.detach() for g in graphs]).requires_grad_()}
    blocks = torch.randn(*([3] if own_blocks else []), size, 16, device=DEVICE)
    base = Loss(LearnableGraph(75).to(DEVICE))

    def run(parameters, block):
        return functional_call(base, parameters, (block,))

    dims = (0, 0 if own_blocks else None)
    kernels.clear()
    vmap(run, in_dims=dims)(stacked, blocks).sum().backward()
    assert len(kernels) < 10  # all of them at once
    inside = vmap(grad(run), in_dims=dims)({key: value.detach() for key, value in stacked.items()}, blocks)
    for i, graph in enumerate(graphs):
        alone = Loss(graph)(blocks[i] if own_blocks else blocks)
        expected = torch.autograd.grad(alone, graph.packed_logits)[0]
        close(stacked["graph.packed_logits"].grad[i], expected)
        close(inside["graph.packed_logits"][i], expected)


@cuda
def test_a_step_is_captured_and_the_same_each_time():
    graph = LearnableGraph(300).cuda()
    block = torch.randn(300, 16, device="cuda")

    def step():
        graph.packed_logits.grad = None
        loss_of(graph, block, 2).backward()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    expected = graph.packed_logits.grad.clone()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        step()
    for _ in range(3):
        graph.packed_logits.grad.fill_(7)
        captured.replay()
        assert torch.equal(graph.packed_logits.grad, expected)


@cuda
def test_kernels_are_what_a_gpu_takes(monkeypatch):
    monkeypatch.undo()
    tensor = torch.zeros(1, device="cuda")
    assert learnable_ops._passes(tensor) is learnable_triton
    assert learnable_ops._passes(tensor.double()) is learnable_strips
    monkeypatch.setattr(learnable_ops, "USE_TRITON", False)
    assert learnable_ops._passes(tensor) is learnable_strips


def test_a_machine_where_kernels_fail_does_without(monkeypatch):
    def fail(*args):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(learnable_triton, "triangle", fail)
    with pytest.warns(UserWarning, match="do without Triton on this machine"):
        assert not learnable_triton.works()
