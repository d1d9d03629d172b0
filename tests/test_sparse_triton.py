"""The fused hop against the plain filter; needs a GPU, or Triton's interpreter (TRITON_INTERPRET=1)."""

import importlib.util
import os

import pytest
import torch

from bigcn.sparse import chebyshev_filter, sparse_from_edges
from bigcn.sparse_chebyshev import chebyshev, chebyshev_adjoint

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or not (torch.cuda.is_available() or INTERPRETED),
    reason="needs a GPU with Triton",
)
DEVICE = "cpu" if INTERPRETED else "cuda"


def problem(nodes, width, count, degree, groups, own_columns, dtype, seed=0, longest=40):
    generator = torch.Generator().manual_seed(seed)
    row, col = (torch.randint(nodes, (4 * nodes,), generator=generator) for _ in range(2))
    row = torch.cat([row, torch.full((longest,), 1)])  # one row longer than what is fetched at once
    col = torch.cat([col, torch.randint(nodes, (longest,), generator=generator)])
    value = torch.rand(row.numel(), generator=generator, dtype=torch.float64) / 12
    matrix = sparse_from_edges(row, col, value.to(dtype), (nodes, nodes))
    matrix = type(matrix)(*(t.to(DEVICE) for t in matrix[:6]), *matrix[6:])
    shape = (degree + 1, count, groups, width if own_columns else 1)
    scales = torch.randn(shape, generator=generator, dtype=torch.float64).to(DEVICE, dtype)
    parts = torch.randn(count, nodes, width, generator=generator, dtype=torch.float64).to(DEVICE, dtype)
    return matrix, scales, parts


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("width", "count", "degree", "groups", "own_columns"),
    [(1, 1, 0, 1, False), (7, 1, 1, 1, False), (16, 3, 2, 3, False), (24, 2, 5, 1, True), (150, 1, 6, 2, False)],
)
def test_fused_hops_are_the_plain_ones(width, count, degree, groups, own_columns, dtype):
    from bigcn import sparse_triton

    matrix, scales, parts = problem(12, width, count, degree, groups, own_columns, dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    plain = [t.cpu() for t in matrix[:6]], scales.cpu(), parts.cpu()
    expected = chebyshev(*plain[0], plain[1], plain[2])
    found = sparse_triton.clenshaw(*matrix[:3], scales, parts).cpu()
    assert torch.allclose(found, expected, rtol=tolerance, atol=tolerance)
    grad = parts[0].contiguous()
    kept = grad.clone()
    expected = chebyshev_adjoint(*plain[0][:3], plain[1], grad.cpu())
    found = sparse_triton.clenshaw_adjoint(*matrix[:3], scales, grad).cpu()
    assert torch.allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert torch.equal(grad, kept)


@pytest.mark.skipif(INTERPRETED, reason="needs a GPU")
def test_filters_on_a_gpu_take_them_and_repeat_themselves():
    matrix, scales, parts = problem(300, 48, 2, 9, 1, False, torch.float32)
    parts.requires_grad_()
    outs = []
    for _ in range(2):
        out = chebyshev_filter(matrix, scales[:, :, 0, 0], list(parts.unbind(0)))
        (grad,) = torch.autograd.grad(out.square().sum(), parts)
        outs.append((out, grad))
    assert torch.equal(outs[0][0], outs[1][0])
    assert torch.equal(outs[0][1], outs[1][1])
    matrix_cpu = type(matrix)(*(t.cpu() for t in matrix[:6]), *matrix[6:])
    on_cpu = parts.detach().cpu().requires_grad_()
    expected = chebyshev_filter(matrix_cpu, scales[:, :, 0, 0].cpu(), list(on_cpu.unbind(0)))
    assert torch.allclose(outs[0][0].cpu(), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 7, 8, 16, 30, 64, 70])
def test_plain_products_are_those_of_dense_matrices(width, dtype):
    from bigcn import sparse_triton

    matrix, _, parts = problem(12, width, 2, 0, 1, False, dtype)
    x, rest = parts
    dense = torch.zeros(12, 12, dtype=dtype, device=DEVICE)
    rows = torch.repeat_interleave(torch.arange(12, device=DEVICE), matrix.crow.diff())
    dense.index_put_((rows, matrix.col), matrix.value, accumulate=True)
    near = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    assert torch.allclose(sparse_triton.multiply(*matrix[:3], x), dense @ x, **near)
    added = sparse_triton.multiply(*matrix[:3], x, rest, -1, 2)
    assert torch.allclose(added, 2 * dense @ x - rest, **near)
    # An empty row, and blocks that do not lie in one piece.
    crow = torch.tensor([0, 0, 2], device=DEVICE)
    few = crow, matrix.col[:2], matrix.value[:2]
    apart = torch.stack([x, rest], dim=-1)[..., 0]
    assert torch.allclose(sparse_triton.multiply(*few, apart)[1], matrix.value[:2] @ x[matrix.col[:2]], **near)
    assert sparse_triton.multiply(*few, x)[0].abs().sum() == 0
    found = sparse_triton.sampled(matrix.crow, matrix.col, x, rest)
    assert torch.allclose(found, (x[rows] * rest[matrix.col]).sum(-1), **near)


@pytest.mark.skipif(INTERPRETED, reason="needs a GPU")
@pytest.mark.parametrize(("width", "longest", "taken"), [(16, 40, 2), (70, 40, 2), (16, 400, 2), (70, 400, 1)], ids=str)
def test_products_on_a_gpu_take_them_unless_long_rows_meet_wide_blocks(monkeypatch, width, longest, taken):
    """The backward pass multiplies by the transpose, whose rows are short."""
    from bigcn import sparse_triton

    asked = []
    plain = sparse_triton.multiply
    monkeypatch.setattr(sparse_triton, "multiply", lambda *args: asked.append(args[3].size(1)) or plain(*args))
    matrix, _, parts = problem(300, width, 1, 0, 1, False, torch.float32, longest=longest)
    block = parts[0].requires_grad_()
    matrix.matmul(block).sum().backward()
    assert asked == [width] * taken
    assert torch.allclose(block.grad, matrix.transpose_matmul(torch.ones_like(block)), atol=1e-5)
