import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcn.feature_graphs import CorrelationGraph
from bigcn.feature_graphs.correlation import cosine_similarity

LAYOUTS = [torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]


def stored(x, layout):
    return x if layout == torch.strided else x.to_sparse(layout=layout)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 7), st.booleans(), st.sampled_from(LAYOUTS), st.integers(0, 2**31))
def test_against_the_definition(oracle, size, self_loops, layout, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(6, size)) * (rng.random((6, size)) < 0.6) * (rng.random(size) < 0.8)  # some columns empty
    expected = oracle.correlation(x, self_loops)
    features = stored(torch.from_numpy(x), layout)
    for graph, arguments in (
        (CorrelationGraph(size, self_loops), (features,)),
        (CorrelationGraph.from_features(features, self_loops), ()),
    ):
        assert graph.adjacency(*arguments).numpy() == pytest.approx(expected, abs=1e-12)
        assert graph.laplacian(*arguments).numpy() == pytest.approx(np.eye(size) - expected, abs=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cosine_similarity(layout):
    x = torch.tensor([[3.0, 0.0, -1.0], [4.0, 0.0, 0.0]])
    expected = [[1, 0, -0.6], [0, 1, 0], [-0.6, 0, 1]]
    assert cosine_similarity(stored(x, layout)).numpy() == pytest.approx(np.array(expected), abs=1e-6)


def test_zero_columns_link_to_nothing():
    x = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    assert CorrelationGraph(3).adjacency(x)[2].tolist() == [0, 0, 1]
    # Without self-loops the feature is isolated, and its Laplacian row is zero.
    assert CorrelationGraph(3, self_loops=False).laplacian(x)[2].tolist() == [0, 0, 0]


def test_batches_count_as_one_set_of_rows():
    x = torch.randn(2, 5, 4)
    assert torch.equal(CorrelationGraph(4).adjacency(x), CorrelationGraph(4).adjacency(x.view(10, 4)))


def test_by_name_it_is_computed_from_the_input_without_gradient():
    graph = CorrelationGraph(4)
    assert graph.from_input
    assert not graph.state_dict()
    with pytest.raises(ValueError, match="'x'"):
        graph.operand()
    assert not graph.operand(torch.randn(5, 4, requires_grad=True))[0].requires_grad
    kept = CorrelationGraph.from_features(torch.randn(5, 4))
    assert not kept.from_input
    assert list(kept.state_dict()) == ["matrix"]
