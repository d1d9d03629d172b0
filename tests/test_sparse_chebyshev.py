"""Filters of sparse graphs against polynomials of dense matrices."""

import pytest
import torch

from bigcn.sparse import chebyshev_filter, sparse_from_edges, sparse_from_tensor
from bigcn.sparse_chebyshev import chebyshev, chebyshev_adjoint


def square(size=5, seed=5, symmetric=False, dtype=torch.float64):
    """A contraction, and the same as a sparse matrix."""
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(size, size, generator=generator, dtype=dtype)
    dense = dense * (torch.rand(size, size, generator=generator) < 0.5)
    dense = dense + dense.t() if symmetric else dense
    dense = dense / torch.linalg.matrix_norm(dense, 2)
    return dense, sparse_from_tensor(dense.to_sparse_csr())


def polynomial(dense, coefficients, parts):
    """The sum over degrees and parts, by the three-term recursion on dense matrices."""
    older, newer = torch.eye(dense.size(0), dtype=dense.dtype), dense
    total = 0
    for row in coefficients:
        total = total + older @ sum(c * part for c, part in zip(row, parts, strict=True))
        older, newer = newer, 2 * dense @ newer - older
    return total


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("degree", [0, 1, 2, 7])
def test_chebyshev_filter_with_gradients(degree, count, symmetric):
    dense, matrix = square(symmetric=symmetric)
    assert (matrix.value_t is matrix.value) == symmetric
    coefficients = torch.randn(degree + 1, count, dtype=torch.float64)
    parts = [torch.randn(5, 2, dtype=torch.float64, requires_grad=True) for _ in range(count)]
    expected = polynomial(dense, coefficients, parts)
    direction = torch.randn_like(expected)
    gradients = torch.autograd.grad((expected * direction).sum(), parts)
    for hop in (matrix, matrix.matmul):  # one operator, and step by step
        found = chebyshev_filter(hop, coefficients, parts)
        assert torch.allclose(found, expected, rtol=0, atol=1e-12)
        for a, b in zip(torch.autograd.grad((found * direction).sum(), parts), gradients, strict=True):
            assert torch.allclose(a, b, rtol=0, atol=1e-12)


def test_chebyshev_filter_of_batches():
    dense, matrix = square()
    coefficients, parts = torch.randn(4, 2, dtype=torch.float64), list(torch.randn(2, 3, 5, 2, dtype=torch.float64))
    found = chebyshev_filter(matrix, coefficients, parts)
    for i in range(3):
        expected = polynomial(dense, coefficients, [part[i] for part in parts])
        assert torch.allclose(found[i], expected, rtol=0, atol=1e-12)


def test_chebyshev_filter_knows_when_the_matrix_or_the_coefficients_learn():
    dense, _ = square()
    row, col = dense.nonzero().t()
    value = dense[row, col].requires_grad_()
    coefficients = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    parts = [torch.randn(5, 2, dtype=torch.float64) for _ in range(2)]
    matrix = sparse_from_edges(row, col, value, (5, 5))
    expected = polynomial(torch.zeros_like(dense).index_put((row, col), value), coefficients, parts).square().sum()
    found = chebyshev_filter(matrix, coefficients, parts).square().sum()
    for leaf in (value, coefficients):
        a, b = (torch.autograd.grad(loss, leaf, retain_graph=True)[0] for loss in (found, expected))
        assert torch.allclose(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("own_coefficients", [True, False])
@pytest.mark.parametrize("own_parts", [True, False])
@pytest.mark.parametrize("columns", [1, 2])
def test_chebyshev_filter_of_a_population(own_coefficients, own_parts, columns):
    if not (own_coefficients or own_parts):
        return
    dense, matrix = square()
    coefficients = torch.randn(3, 6, 2, columns, dtype=torch.float64)
    parts = torch.randn(3, 2, 5, 2, dtype=torch.float64, requires_grad=True)
    dims = (0 if own_coefficients else None, 0 if own_parts else None)
    arguments = (coefficients if own_coefficients else coefficients[0], parts if own_parts else parts[0])
    found = torch.func.vmap(lambda c, p: chebyshev_filter(matrix, c, list(p)), in_dims=dims)(*arguments)
    for i in range(3):
        c = coefficients[i if own_coefficients else 0]
        expected = polynomial(dense, c, list(parts[i if own_parts else 0]))
        assert torch.allclose(found[i], expected, rtol=0, atol=1e-12)
        a, b = (torch.autograd.grad(out.square().sum(), parts, retain_graph=True)[0] for out in (found[i], expected))
        assert torch.allclose(a, b, rtol=0, atol=1e-11)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.bfloat16, 5e-2), (torch.float16, 1e-2)])
def test_chebyshev_filter_in_half_precision(dtype, atol):
    dense, matrix = square(dtype=torch.float32)
    coefficients, part = torch.rand(4, 1), torch.randn(5, 2).to(dtype).requires_grad_()
    half = matrix._replace(value=matrix.value.to(dtype), value_t=matrix.value_t.to(dtype))
    out = chebyshev_filter(half, coefficients.to(dtype), [part])
    assert out.dtype == dtype
    assert torch.allclose(out.float(), polynomial(dense, coefficients, [part.detach().float()]), atol=atol)
    out.sum().backward()
    assert part.grad.dtype == dtype


def test_chebyshev_filter_under_autocast():
    dense, matrix = square(dtype=torch.float32)
    coefficients, part = torch.rand(4, 1), torch.randn(5, 2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = chebyshev_filter(matrix, coefficients, [part])
        out.sum().backward()
    assert torch.allclose(out, polynomial(dense, coefficients, [part]), atol=1e-5)


def test_chebyshev_operators_are_well_behaved():
    _, matrix = square()
    coefficients = torch.randn(4, 2, 1, dtype=torch.float64)
    parts = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(chebyshev, (*matrix[:6], coefficients, parts))
    torch.library.opcheck(chebyshev_adjoint, (*matrix[:3], coefficients, torch.randn(5, 3, dtype=torch.float64)))
