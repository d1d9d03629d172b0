"""Sparse products against dense ones."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcn.sparse import (
    SparseMatrix,
    chebyshev_filter,
    coordinates,
    damped_hop,
    is_sparse,
    sparse_from_edges,
    sparse_from_tensor,
)
from bigcn.sparse_ops import spmm

LAYOUTS = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]


def random_matrix(rows, cols, entries, seed, dtype=torch.float64):
    """Coordinates with repetitions, and the dense matrix that they add up to."""
    generator = torch.Generator().manual_seed(seed)
    row = torch.randint(rows, (entries,), generator=generator)
    col = torch.randint(cols, (entries,), generator=generator)
    value = torch.randn(entries, generator=generator, dtype=dtype)
    dense = torch.zeros(rows, cols, dtype=dtype).index_put((row, col), value, accumulate=True)
    return row, col, value, dense


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 20), st.integers(1, 4), st.integers(0, 2**31))
def test_products_with_values_and_gradients(rows, cols, entries, width, seed):
    row, col, value, _ = random_matrix(rows, cols, entries, seed)
    value.requires_grad_()
    dense = torch.zeros(rows, cols, dtype=torch.float64).index_put((row, col), value, accumulate=True)
    block = torch.randn(cols, width, dtype=torch.float64, requires_grad=True)
    block_t = torch.randn(rows, width, dtype=torch.float64, requires_grad=True)
    matrix = sparse_from_edges(row, col, value, (rows, cols))
    for found, expected, variables in (
        (matrix.matmul(block), dense @ block, (value, block)),
        (matrix.transpose_matmul(block_t), dense.t() @ block_t, (value, block_t)),
    ):
        assert torch.allclose(found, expected, rtol=0, atol=1e-12)
        weights = torch.randn_like(expected)
        options = {"grad_outputs": weights, "retain_graph": True}
        for a, b in zip(
            torch.autograd.grad(found, variables, **options),
            torch.autograd.grad(expected, variables, **options),
            strict=True,
        ):
            assert torch.allclose(a, b, rtol=0, atol=1e-12)


def test_second_derivatives():
    row, col, value, _ = random_matrix(4, 3, 9, 0)
    block = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)

    def product(value, block):
        return sparse_from_edges(row, col, value, (4, 3)).matmul(block).square()

    assert torch.autograd.gradgradcheck(product, (value.requires_grad_(), block))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(0, 30), st.integers(1, 4), st.floats(-1, 3), st.integers(0, 2**31))
def test_a_damped_hop_is_the_hop_and_its_steps(size, entries, width, strength, seed):
    row, col, value, dense = random_matrix(size, size, entries, seed)
    matrix = sparse_from_edges(row, col, value, (size, size))
    block, rest = (torch.randn(size, width, dtype=torch.float64, requires_grad=True) for _ in range(2))
    how_far = torch.tensor(strength, dtype=torch.float64)
    expected = (1 - strength) * block + strength * dense @ block + rest
    for _ in range(4):  # from the third product on the matrix is another
        found = damped_hop(matrix, block, rest, how_far)
        torch.testing.assert_close(found, expected)
        grads = torch.autograd.grad(found.square().sum(), (block, rest))
        torch.testing.assert_close(
            grads, torch.autograd.grad(expected.square().sum(), (block, rest), retain_graph=True)
        )


def test_damped_hops_have_second_derivatives_map_and_take_batches():
    matrix = sparse_from_edges(*random_matrix(5, 5, 12, 3)[:3], (5, 5))
    block, rest = (torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    strength = torch.tensor(1.8, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(lambda *args: damped_hop(matrix, *args, strength).square(), (block[0], rest[0]))
    alone = torch.stack([damped_hop(matrix, block[i], rest[i], strength) for i in range(2)])
    torch.testing.assert_close(damped_hop(matrix, block, rest, strength), alone)
    mapped = torch.func.vmap(partial(damped_hop, matrix), (0, 0, None))(block, rest, strength)
    torch.testing.assert_close(mapped, alone)
    learned = strength.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: damped_hop(matrix, block[0].detach(), rest[0].detach(), s), learned)


def test_batches_of_blocks():
    row, col, value, dense = random_matrix(5, 4, 11, 1)
    block = torch.randn(3, 4, 2, dtype=torch.float64)
    assert torch.allclose(sparse_from_edges(row, col, value, (5, 4)).matmul(block), dense @ block)


def test_blocks_need_not_be_contiguous():
    row, col, value, dense = random_matrix(5, 4, 11, 1)
    block = torch.randn(2, 4, dtype=torch.float64).t()
    assert torch.allclose(sparse_from_edges(row, col, value, (5, 4)).matmul(block), dense @ block)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(layout):
    *_, dense = random_matrix(5, 4, 11, 2)
    sparse = dense.to_sparse(layout=layout)
    assert is_sparse(sparse)
    assert not is_sparse(dense)
    row, col, value = coordinates(sparse)
    again = torch.zeros(5, 4, dtype=torch.float64).index_put((row, col), value, accumulate=True)
    assert torch.equal(again, dense)
    block = torch.randn(4, 3, dtype=torch.float64)
    assert torch.allclose(sparse_from_tensor(sparse).matmul(block), dense @ block)


def test_repeated_coordinates_of_a_coo_tensor_add_up():
    matrix = torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.tensor([1.0, 2.0]), (2, 2))
    assert sparse_from_tensor(matrix).matmul(torch.eye(2)).tolist() == [[0, 3], [0, 0]]


def test_blocked_layout_is_refused():
    with pytest.raises(ValueError, match="COO, CSR or CSC"):
        coordinates(torch.eye(4).to_sparse_bsr((2, 2)))


def test_symmetric_matrices_share_their_transpose():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    symmetric = sparse_from_edges(*edges, torch.tensor([3.0, 3.0, 5.0, 5.0]), (3, 3))
    assert symmetric.value_t is symmetric.value
    assert symmetric.col_t is symmetric.col
    skew = sparse_from_edges(*edges, torch.tensor([3.0, 4.0, 5.0, 5.0]), (3, 3))
    assert skew.value_t is not skew.value
    dense = torch.tensor([[0, 3.0, 0], [4, 0, 5], [0, 5, 0]])
    assert torch.equal(skew.matmul(torch.eye(3)), dense)
    assert torch.equal(skew.transpose_matmul(torch.eye(3)), dense.t())


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(0, 20), st.integers(0, 2**31))
def test_repeated_coordinates_may_come_in_any_order(size, entries, seed):
    row, col, value, dense = random_matrix(size, size, entries, seed)
    value.requires_grad_()
    row, col, both = torch.cat([row, col]), torch.cat([col, row]), torch.cat([value, value])
    matrix = sparse_from_edges(row, col, both, (size, size))
    assert matrix.value_t is matrix.value
    block = torch.randn(size, 3, dtype=torch.float64)
    symmetric = torch.zeros_like(dense).index_put((row, col), both, accumulate=True)
    assert torch.allclose(matrix.matmul(block), symmetric @ block, rtol=0, atol=1e-12)
    (found,) = torch.autograd.grad(matrix.matmul(block).square().sum(), value)
    (expected,) = torch.autograd.grad((symmetric @ block).square().sum(), value)
    assert torch.allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (1, 1)])
def test_no_entries(shape):
    none = torch.zeros(0, dtype=torch.long)
    matrix = sparse_from_edges(none, none, torch.zeros(0), shape)
    assert torch.equal(matrix.matmul(torch.ones(shape[1], 4)), torch.zeros(shape[0], 4))


@pytest.mark.parametrize(("dtype", "atol"), [(torch.bfloat16, 5e-2), (torch.float16, 5e-3), (torch.float64, 1e-12)])
def test_precisions(dtype, atol):
    row, col, value, dense = random_matrix(6, 6, 14, 3)
    block = torch.randn(6, 3, dtype=torch.float64).to(dtype).requires_grad_()
    out = sparse_from_edges(row, col, value.to(dtype), (6, 6)).matmul(block)
    assert out.dtype == dtype
    assert torch.allclose(out.double(), dense @ block.detach().double(), atol=atol)
    out.sum().backward()
    assert block.grad.dtype == dtype


def test_autocast():
    row, col, value, dense = random_matrix(6, 6, 14, 3, torch.float32)
    block = torch.randn(6, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = sparse_from_edges(row, col, value, (6, 6)).matmul(block)
    assert torch.allclose(out, dense @ block, atol=1e-5)


def operands(rows=5, cols=4):
    row, col, value, dense = random_matrix(rows, cols, 11, 4)
    return sparse_from_edges(row, col, value, (rows, cols)), dense


def test_vmap_over_blocks():
    matrix, dense = operands()
    blocks = torch.randn(3, 4, 2, dtype=torch.float64)
    assert torch.allclose(torch.func.vmap(matrix.matmul)(blocks), dense @ blocks)
    moved = torch.func.vmap(matrix.matmul, in_dims=2, out_dims=2)(blocks.permute(1, 2, 0))
    assert torch.allclose(moved, (dense @ blocks).permute(1, 2, 0))


def test_gradients_through_vmap():
    matrix, dense = operands()
    blocks = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)
    torch.func.vmap(lambda block: matrix.matmul(block).square().sum())(blocks).sum().backward()
    assert torch.allclose(blocks.grad, 2 * dense.t() @ (dense @ blocks.detach()))


def members_of_a_population(symmetric, count=3, size=5, entries=8):
    """Matrices of equal size and number of entries, with arrays stacked as vmap takes them."""
    out = []
    for seed in range(count):
        row, col, value, _ = random_matrix(size, size, entries, seed)
        if symmetric:
            row, col, value = torch.cat([row, col]), torch.cat([col, row]), torch.cat([value, value]) / 4
        out.append(sparse_from_edges(row, col, value, (size, size)))
    return out, [torch.stack(arrays) for arrays in zip(*(matrix[:6] for matrix in out), strict=True)]


@pytest.mark.parametrize("shared_block", [False, True])
def test_vmap_over_matrices(shared_block):
    matrices, arrays = members_of_a_population(symmetric=False)
    blocks = torch.randn(*(() if shared_block else (3,)), 5, 2, dtype=torch.float64, requires_grad=True)

    def product(*args):
        return SparseMatrix(*args[:6], 5, 5).matmul(args[6])

    dims = (0,) * 6 + (None if shared_block else 0,)
    out = torch.func.vmap(product, in_dims=dims)(*arrays, blocks)
    expected = torch.stack([m.matmul(blocks if shared_block else blocks[i]) for i, m in enumerate(matrices)])
    assert torch.allclose(out, expected)
    weights = torch.randn_like(out)
    got, wanted = (torch.autograd.grad((value * weights).sum(), blocks)[0] for value in (out, expected))
    assert torch.allclose(got, wanted)


def test_vmap_over_values_of_one_pattern():
    matrix, _ = operands()
    values = torch.stack([matrix.value, 2 * matrix.value])
    values_t = torch.stack([matrix.value_t, 2 * matrix.value_t])
    block = torch.randn(4, 3, dtype=torch.float64)

    def product(value, value_t):
        return SparseMatrix(*matrix[:2], value, *matrix[3:5], value_t, *matrix[6:]).matmul(block)

    out = torch.func.vmap(product)(values, values_t)
    assert torch.allclose(out, torch.stack([matrix.matmul(block), 2 * matrix.matmul(block)]))


@pytest.mark.parametrize("own_matrix", [False, True])
@pytest.mark.parametrize("own_coefficients", [False, True])
@pytest.mark.parametrize("num_parts", [1, 2])
def test_vmap_over_filters(own_matrix, own_coefficients, num_parts):
    matrices, arrays = members_of_a_population(symmetric=True)
    if not own_matrix:
        matrices, arrays = [matrices[0]] * 3, list(matrices[0][:6])
    coefficients = torch.randn(*((3,) if own_coefficients else ()), 4, num_parts, dtype=torch.float64)
    parts = torch.randn(3, num_parts, 5, 2, dtype=torch.float64, requires_grad=True)

    def filtered(*args):
        return chebyshev_filter(SparseMatrix(*args[:6], 5, 5), args[6], list(args[7].unbind(0)))

    dims = ((0 if own_matrix else None),) * 6 + (0 if own_coefficients else None, 0)
    out = torch.func.vmap(filtered, in_dims=dims)(*arrays, coefficients, parts)
    expected = torch.stack(
        [
            chebyshev_filter(matrix, coefficients[i] if own_coefficients else coefficients, list(parts[i].unbind(0)))
            for i, matrix in enumerate(matrices)
        ]
    )
    assert torch.allclose(out, expected)
    weights = torch.randn_like(out)
    got, wanted = (torch.autograd.grad((value * weights).sum(), parts)[0] for value in (out, expected))
    assert torch.allclose(got, wanted)


def test_arrays_edited_in_place_are_joined_anew():
    matrices, arrays = members_of_a_population(symmetric=False)
    block = torch.eye(5, dtype=torch.float64)

    def product(*args):
        return SparseMatrix(*args, 5, 5).matmul(block)

    torch.func.vmap(product)(*arrays)
    for array in arrays:
        array.copy_(array.flip(0))
    expected = torch.stack([matrix.matmul(block) for matrix in reversed(matrices)])
    assert torch.allclose(torch.func.vmap(product)(*arrays), expected)


def test_operator_is_well_behaved():
    matrix, _ = operands()
    block = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(spmm, (*matrix[:6], block))


def test_compiles_without_a_break():
    matrix, dense = operands()
    block = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    out = torch.compile(lambda b: 2 * matrix.matmul(b), fullgraph=True, backend="aot_eager")(block)
    assert torch.allclose(out, 2 * dense @ block)
    out.sum().backward()
    assert torch.allclose(block.grad, 2 * dense.t() @ torch.ones_like(out))


# Chebyshev polynomials of a matrix, as one operator.


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_deterministic_products_on_a_gpu():
    generator = torch.Generator().manual_seed(0)
    row, col = torch.randint(300, (2, 40_000), generator=generator)
    matrix = sparse_from_edges(row.cuda(), col.cuda(), torch.rand(40_000, generator=generator).cuda(), (300, 300))
    block = torch.randn(300, 7, generator=generator).cuda()
    coefficients = torch.rand(5, 1, generator=generator).cuda() / 1000
    usual = matrix.matmul(block), chebyshev_filter(matrix, coefficients, [block])
    torch.use_deterministic_algorithms(True)
    try:
        strict = [(matrix.matmul(block), chebyshev_filter(matrix, coefficients, [block])) for _ in range(5)]
    finally:
        torch.use_deterministic_algorithms(False)
    for product, filtered in strict:
        torch.testing.assert_close(product, usual[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(filtered, usual[1], rtol=1e-3, atol=1e-3)
        assert torch.equal(product, strict[0][0])
        assert torch.equal(filtered, strict[0][1])
