"""Matrices of a population, filled up to one number of entries."""

import numpy as np
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import GATConv

from bigcn.nn.attention import attend, attention_graph, fill_up
from bigcn.sparse import sparse_from_edges
from bigcn.sparse_diagonal import make_room, row_numbers
from bigcn.training.stacking import _fill_up

seeds = st.integers(0, 2**32 - 1)


def pointers_of(rng, rows):
    return torch.from_numpy(np.concatenate([[0], np.cumsum(rng.integers(0, 4, rows))]))


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 9), st.integers(0, 40))
def test_there_is_room_in_every_row(seed, rows, more):
    crow = pointers_of(np.random.default_rng(seed), rows)
    pointers, row, old = make_room(crow, more)
    added = pointers.diff() - crow.diff()
    assert int(added.sum()) == more
    assert int(added.max() - added.min()) <= 1
    assert torch.equal(row, row_numbers(pointers))
    assert torch.equal(row[old], row_numbers(crow))  # every entry stays in its row
    assert torch.equal(old, old.unique())  # and in its place among the others


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 7), st.integers(1, 7), st.integers(1, 25))
def test_a_matrix_that_is_filled_up_is_the_same(seed, rows, cols, more):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rows, cols)) * (rng.random((rows, cols)) < 0.5)
    entries = scipy.sparse.coo_array(dense)
    row, col = (torch.from_numpy(ends.astype(np.int64)) for ends in entries.coords)
    matrix = sparse_from_edges(row, col, torch.from_numpy(entries.data), (rows, cols))
    filled = _fill_up(matrix, entries.nnz + more)
    assert filled.col.numel() == filled.value_t.numel() == entries.nnz + more
    for arrays, expected in (filled[:3], dense), (filled[3:6], dense.T):
        crow, col, value = (part.numpy() for part in arrays)
        np.testing.assert_array_equal(scipy.sparse.csr_array((value, col, crow), expected.shape).toarray(), expected)


def test_attention_over_a_graph_that_is_filled_up_is_the_same():
    torch.manual_seed(0)
    x, edges = torch.randn(12, 5).double(), torch.randint(12, (2, 30))
    conv = GATConv(5, 3, heads=2).double().eval()
    graph = attention_graph(edges, 12)
    filled = fill_up(graph, graph.source.numel() + 31)
    assert int(filled.crow.diff().max()) <= int(graph.crow.diff().max()) + 3
    torch.testing.assert_close(attend(conv, x, filled), conv(x, edges))
