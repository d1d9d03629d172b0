import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array, random_array

from bigcn.distributed.assign import METHODS, SLACK, DiskGraph, assign


def graph_of(matrix):
    matrix = csr_array(matrix)
    return DiskGraph(matrix.indptr.astype(np.int64), matrix.indices)


def symmetric(nodes, density, seed):
    matrix = random_array((nodes, nodes), density=density, rng=np.random.default_rng(seed)).toarray() > 0
    matrix = matrix | matrix.T
    np.fill_diagonal(matrix, False)
    return matrix


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    nodes=st.integers(1, 60),
    parts=st.integers(1, 8),
    density=st.floats(0, 0.4),
    method=st.sampled_from(METHODS),
)
def test_every_node_has_a_part_and_no_part_is_empty_or_too_large(seed, nodes, parts, density, method):
    graph = graph_of(symmetric(nodes, density, seed))
    if parts > nodes:
        with pytest.raises(ValueError, match="'--parts' must be between 1 and the number of nodes"):
            assign(graph, parts, method)
        return
    owner = assign(graph, parts, method, seed)
    sizes = np.bincount(owner, minlength=parts)
    assert len(owner) == nodes
    assert sizes.min() >= 1
    assert sizes.max() <= np.ceil(SLACK * nodes / parts)
    if method != "neighbours":
        assert sizes.max() - sizes.min() <= 1


def test_neighbours_finds_communities_that_table_order_hides():
    generator = np.random.default_rng(0)
    blocks = [symmetric(50, 0.2, seed) for seed in range(4)]
    matrix = block_diag(blocks).toarray()
    for _ in range(40):  # a few edges between them
        a, b = generator.integers(200, size=2)
        matrix[a, b] = matrix[b, a] = a != b
    order = generator.permutation(200)
    graph = graph_of(matrix[order][:, order])
    row = graph.row_numbers(0, 200)
    share = {m: float((assign(graph, 4, m)[row] != assign(graph, 4, m)[graph.col]).mean()) for m in METHODS}
    assert share["random"] > 0.6
    assert share["neighbours"] < 0.15


def test_random_depends_on_the_seed_alone():
    one, two = graph_of(symmetric(50, 0.1, 0)), graph_of(symmetric(50, 0.3, 1))
    assert np.array_equal(assign(one, 3, "random", 5), assign(two, 3, "random", 5))
    assert not np.array_equal(assign(one, 3, "random", 5), assign(one, 3, "random", 6))
