"""Products block by block, against whole ones."""

import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcn import sparse_blocks
from bigcn.sparse import sparse_from_edges
from bigcn.sparse_blocks import WORTH_FROM, column_blocks, cut, multiply, num_blocks
from bigcn.sparse_ops import multiply as product_of


def matrix_of(rows, cols, entries, seed=0):
    generator = torch.Generator().manual_seed(seed)
    row = torch.randint(rows, (entries,), generator=generator)
    col = torch.randint(cols, (entries,), generator=generator)
    value = torch.randn(entries, generator=generator, dtype=torch.float64)
    return sparse_from_edges(row, col, value, (rows, cols))


def dense(matrix):
    return torch.sparse_csr_tensor(*matrix[:3], (matrix.num_rows, matrix.num_cols)).to_dense()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 40), st.integers(1, 5), st.integers(0, 2**31))
def test_blocks_add_up_to_the_product(rows, cols, entries, count, seed):
    matrix = matrix_of(rows, cols, entries, seed)
    blocks = cut(*matrix[:3], cols, count)
    assert [first for _, first, _ in blocks[1:]] == [last for *_, last in blocks[:-1]]
    x, rest = torch.randn(cols, 3, dtype=torch.float64), torch.randn(rows, 3, dtype=torch.float64)
    expected = dense(matrix) @ x
    torch.testing.assert_close(multiply(blocks, x), expected)
    torch.testing.assert_close(multiply(blocks, x, rest, -1, 2), 2 * expected - rest)


@pytest.fixture
def small_cache(monkeypatch):
    """So little cache that small matrices are cut; how often they are."""
    cuts = []

    def counted(*args):
        cuts.append(args[-1])
        return cut(*args)

    monkeypatch.setattr(sparse_blocks, "CACHE_BYTES", 256)
    monkeypatch.setattr(sparse_blocks, "cut", counted)
    return cuts


def test_a_matrix_is_cut_once_and_only_if_it_is_used_often(small_cache):
    matrix, x = matrix_of(40, 40, 1000), torch.randn(40, 4, dtype=torch.float64, requires_grad=True)
    expected = dense(matrix) @ x
    for products in range(1, 8):
        torch.testing.assert_close(matrix.matmul(x), expected)
        assert len(small_cache) == (products >= WORTH_FROM)


def test_gradients_go_through_blocks(small_cache):
    matrix, x = matrix_of(40, 40, 1000), torch.randn(40, 4, dtype=torch.float64, requires_grad=True)
    for _ in range(6):
        (grad,) = torch.autograd.grad(matrix.matmul(x).square().sum(), x)
        torch.testing.assert_close(grad, 2 * dense(matrix).t() @ (dense(matrix) @ x))
    assert len(small_cache) == 2, "the matrix and its transpose"


def test_edited_or_other_values_are_cut_anew(small_cache):
    matrix, x = matrix_of(40, 40, 1000), torch.randn(40, 4, dtype=torch.float64)
    for _ in range(WORTH_FROM):
        matrix.matmul(x)
    matrix.value.mul_(2)
    for _ in range(WORTH_FROM):
        torch.testing.assert_close(matrix.matmul(x), dense(matrix) @ x)
    other = matrix._replace(value=matrix.value + 1)
    for _ in range(WORTH_FROM):
        torch.testing.assert_close(other.matmul(x), dense(other) @ x)
    assert len(small_cache) == 3


def test_blocks_of_several_widths_cut_once_for_each(small_cache):
    matrix = matrix_of(40, 40, 1000)
    wide, narrow = torch.randn(40, 4, dtype=torch.float64), torch.randn(40, 1, dtype=torch.float64)
    for _ in range(5):
        for x in (wide, narrow):
            torch.testing.assert_close(matrix.matmul(x), dense(matrix) @ x)
    assert len(small_cache) == len(set(small_cache)) == 2


def test_values_of_a_step_are_not_kept_alive():
    matrix, x = matrix_of(40, 40, 1000), torch.randn(40, 4, dtype=torch.float64)
    value = matrix.value * torch.ones((), dtype=torch.float64, requires_grad=True)
    gone = weakref.ref(value)
    product_of(matrix.crow, matrix.col, value, x)
    assert matrix.col in sparse_blocks._known
    del value
    assert gone() is None


def test_values_that_were_edited_often_are_cut_once(small_cache):
    matrix, x = matrix_of(40, 40, 1000), torch.randn(40, 4, dtype=torch.float64)
    for _ in range(300):
        matrix.value.mul_(1)
    for _ in range(WORTH_FROM + 3):
        matrix.matmul(x)
    assert len(small_cache) == 1


def test_cutting_follows_the_cache_and_the_rows():
    def wanted(nodes, width, degree):
        return num_blocks(nodes, nodes * degree, torch.empty(nodes, width, device="cpu"))

    assert wanted(100_000, 10, 20) == 1, "4 MB"
    assert wanted(300_000, 10, 20) == 2, "12 MB"
    assert wanted(1_000_000, 10, 20) == 4, "40 MB"
    assert wanted(1_000_000, 10, 8) == 2, "few entries in a row"
    assert wanted(1_000_000, 10, 3) == 1


def test_small_matrices_stay_whole_and_get_short_indices():
    matrix, x = matrix_of(40, 40, 1000), torch.randn(40, 4, dtype=torch.float64)
    for _ in range(WORTH_FROM - 1):
        assert column_blocks(*matrix[:3], x) is None
    ((whole, first, last),) = column_blocks(*matrix[:3], x)
    assert (first, last) == (0, 40)
    assert whole.crow_indices().dtype == whole.col_indices().dtype == torch.int32
    assert whole.values().data_ptr() == matrix.value.data_ptr(), "no second copy of the values"


def test_others_are_left_alone(monkeypatch):
    matrix = matrix_of(40, 40, 1000)
    for _ in range(WORTH_FROM + 1):
        assert column_blocks(*matrix[:3], torch.empty(40, 4, device="meta")) is None
    monkeypatch.setattr(sparse_blocks, "MOST_ENTRIES", 999)
    for _ in range(WORTH_FROM + 1):
        assert column_blocks(*matrix[:3], torch.empty(40, 4)) is None
    assert matrix.col not in sparse_blocks._known
