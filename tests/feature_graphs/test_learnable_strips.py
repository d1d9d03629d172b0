import pytest
import torch

from bigcn.feature_graphs import learnable_ops, learnable_strips
from bigcn.feature_graphs.learnable_packing import pack, unpack

SIZES = [1, 5, 128, 150, 290]


def graph(*shape):
    torch.manual_seed(0)
    packed = pack(torch.randn(*shape, dtype=torch.float64))
    # What is not above the diagonal must not matter.
    return torch.where(pack(torch.ones(shape)) == 0, torch.tensor(3.0, dtype=torch.float64), packed)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("members", [(), (3,)])
def test_triangle(size, members):
    packed = graph(*members, size, size)
    upper, degree = learnable_strips.triangle(packed, size)
    expected = unpack(packed, size).sigmoid().triu(1)
    assert torch.equal(upper, pack(expected))
    torch.testing.assert_close(degree, expected.sum(-1) + expected.sum(-2), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("members", [(), (3,)])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("passes", ["product", "_product"])  # members one by one, and together as on a GPU
def test_product(size, members, self_loops, passes):
    upper, _ = learnable_strips.triangle(graph(*members, size, size), size)
    scale = torch.rand(*members, 1, size, dtype=torch.float64)
    block = torch.randn(*members, 3, size, dtype=torch.float64)
    matrix = unpack(upper, size)
    matrix = matrix + matrix.mT + (torch.eye(size) if self_loops else 0)
    normalized = scale.mT * matrix * scale
    found = getattr(learnable_strips, passes)(upper, scale, block, self_loops)
    torch.testing.assert_close(found, block @ normalized, rtol=1e-12, atol=1e-12)
    found = getattr(learnable_strips, passes)(upper, scale, block, self_loops, row_sums=True)
    expected = torch.cat([block @ normalized, normalized.sum(dim=-2, keepdim=True)], dim=-2)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("members", [(), (3,)])
@pytest.mark.parametrize("together", [False, True])
def test_gradient(size, members, together):
    upper, _ = learnable_strips.triangle(graph(*members, size, size), size)
    first, second = torch.randn(2, *members, 4, size, dtype=torch.float64)
    if together:
        found = torch.empty_like(upper)
        learnable_strips._gradient(first, second, upper, found)
    else:
        found = learnable_strips.gradient(first, second, upper)
    weights = unpack(upper, size)
    expected = pack((first.mT @ second) * weights * (1 - weights))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("members", [(), (2,)])
def test_operators_keep_their_promises(members):
    """What a compiler and a mapper rely on: shapes without computing, nothing changed in place, no shared memory."""
    size = 20
    packed = graph(*members, size, size)
    upper, degree = learnable_strips.triangle(packed, size)
    scale, block = degree.rsqrt().unsqueeze(-2), torch.randn(*members, 3, size, dtype=torch.float64)
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(learnable_ops._triangle_op, (packed, size), test_utils=tests)
    torch.library.opcheck(learnable_ops._product_op, (upper, scale, block, True), test_utils=tests)
    torch.library.opcheck(learnable_ops._product_op, (upper, scale, block, True, True), test_utils=tests)
    torch.library.opcheck(learnable_ops._gradient_op, (block, block, upper), test_utils=tests)


@pytest.mark.parametrize("dims", [(0, 0, 0), (0, None, None), (None, 0, None), (None, None, 2), (1, 2, 1)])
@pytest.mark.parametrize("row_sums", [False, True])
def test_mapped_products(dims, row_sums):
    size, members = 20, 3
    arguments = [
        learnable_strips.triangle(graph(members, size, size), size)[0],
        torch.rand(members, 1, size, dtype=torch.float64),
        torch.randn(members, 4, size, dtype=torch.float64),
    ]
    arguments = [a[0] if dim is None else a.movedim(0, dim) for a, dim in zip(arguments, dims, strict=True)]
    found = torch.func.vmap(lambda *args: learnable_ops._product(*args, True, row_sums), in_dims=dims)(*arguments)
    for member in range(members):
        own = [a if dim is None else a.select(dim, member) for a, dim in zip(arguments, dims, strict=True)]
        expected = learnable_strips.product(*(a.contiguous() for a in own), True, row_sums)
        torch.testing.assert_close(found[member], expected)
