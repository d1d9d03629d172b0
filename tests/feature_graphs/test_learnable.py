import copy
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcn.feature_graphs import FeatureFilter, LearnableGraph
from bigcn.feature_graphs.learnable_packing import packed_numel, unpack
from bigcn.filters import resolvent_coefficients


def gradient_of_logits(graph, loss):
    return unpack(torch.autograd.grad(loss, graph.packed_logits)[0], graph.num_features)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), st.booleans(), st.integers(0, 2**31))
def test_matrices_against_the_definition(oracle, size, self_loops, seed):
    logits = np.random.default_rng(seed).normal(scale=3, size=(size, size))
    graph = LearnableGraph(size, torch.from_numpy(logits), self_loops).double()
    graph.reset_parameters()  # in double precision this time
    expected = oracle.learnable(logits, self_loops)
    assert graph.adjacency().detach().numpy() == pytest.approx(expected, abs=1e-12)
    assert graph.laplacian().detach().numpy() == pytest.approx(np.eye(size) - expected, abs=1e-12)


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("operator", ["laplacian", "adjacency"])
def test_penalty_and_its_gradient_against_the_dense_sum(self_loops, operator):
    graph = LearnableGraph(5, torch.randn(5, 5), self_loops).double()
    found = gradient_of_logits(graph, graph.l1_norm(operator))

    weights = graph.logits.detach().clone().requires_grad_()
    upper = torch.triu_indices(5, 5, 1)
    half = torch.zeros(5, 5, dtype=torch.float64).index_put((upper[0], upper[1]), weights[upper[0], upper[1]].sigmoid())
    adjacency = half + half.t() + (torch.eye(5) if self_loops else 0)
    scale = torch.diag(adjacency.sum(1) ** -0.5)
    n2 = scale @ adjacency @ scale
    norm = (torch.eye(5) - n2 if operator == "laplacian" else n2).abs().sum()
    assert graph.l1_norm(operator).item() == pytest.approx(norm.item(), rel=1e-12)
    assert torch.allclose(found, torch.autograd.grad(norm, weights)[0], rtol=0, atol=1e-12)


def test_only_logits_above_the_diagonal_matter():
    logits = torch.randn(4, 4)
    changed = logits.triu(1) + torch.randn(4, 4).tril()
    assert torch.equal(LearnableGraph(4, logits).adjacency(), LearnableGraph(4, changed).adjacency())


def test_initial_values():
    torch.manual_seed(0)
    drawn = LearnableGraph(40).logits
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.empty(40, 40).bernoulli_(0.5).triu(1))
    assert torch.equal(LearnableGraph(3, "constant").logits, torch.zeros(3, 3))
    logits = torch.randn(3, 3)
    graph = LearnableGraph(3, logits)
    assert torch.equal(graph.logits, logits.triu(1))
    graph.logits = logits + 1
    assert torch.equal(graph.logits, (logits + 1).triu(1))
    graph.reset_parameters()
    assert torch.equal(graph.logits, logits.triu(1))


def test_logits_that_are_given_need_no_size():
    assert LearnableGraph(-1, torch.zeros(3, 3)).num_features == 3


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo, torch.sparse_csr])
def test_from_features_starts_at_the_cosine_similarity(layout):
    x = torch.tensor([[1.0, 1.0, 0.0, -3.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    graph = LearnableGraph.from_features(x if layout == torch.strided else x.to_sparse(layout=layout))
    weights = graph.logits.sigmoid()
    assert weights[0, 1].item() == pytest.approx(1 / math.sqrt(2), abs=1e-6)
    assert weights[0, 3].item() == pytest.approx(0.99, abs=1e-6)  # clamped away from one
    assert weights[0, 2].item() == pytest.approx(0.01, abs=1e-6)  # a column of zeros
    assert graph.self_loops
    assert not LearnableGraph.from_features(x, self_loops=False).self_loops


def test_lazy():
    graph = LearnableGraph(-1, "constant")
    graph.reset_parameters()
    graph.initialize(3)
    assert torch.equal(graph.logits, torch.zeros(3, 3))
    graph.adjacency().sum().backward()
    assert graph.packed_logits.grad is not None


def test_logits_before_the_size_is_known_and_of_another_size():
    with pytest.raises(ValueError, match="before its number of features"):
        LearnableGraph(-1).logits  # noqa: B018
    with pytest.raises(ValueError, match=r"'logits' must have shape \[3, 3\] \(got \[4, 4\]\)"):
        LearnableGraph(3).logits = torch.zeros(4, 4)


def test_logits_are_differentiable():
    graph = LearnableGraph(5, torch.randn(5, 5))
    assert torch.equal(gradient_of_logits(graph, graph.logits.sum()), torch.ones(5, 5).triu(1))


@pytest.mark.parametrize("size", [5, 130])
def test_only_the_triangle_is_trained(size):
    graph = LearnableGraph(size, torch.randn(size, size))
    assert graph.packed_logits.numel() == packed_numel(size)
    optimizer = torch.optim.Adam([graph.packed_logits], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (filtered(graph, torch.randn(size, 2))[-1].square().sum() + graph.l1_norm()).backward()
        gradient = graph.packed_logits.grad
        assert torch.count_nonzero(gradient) <= size * (size - 1) // 2
        assert torch.count_nonzero(gradient) == torch.count_nonzero(unpack(gradient, size))
        optimizer.step()
    assert torch.count_nonzero(graph.packed_logits) == torch.count_nonzero(graph.logits)


@pytest.mark.parametrize("lazy", [True, False])
def test_state_dict_with_all_of_the_square(lazy):
    logits = torch.randn(4, 4)
    graph = LearnableGraph(-1 if lazy else 4)
    saved = {"logits": logits}
    graph.load_state_dict(saved)
    assert torch.equal(graph.logits, logits.triu(1))
    assert list(saved) == ["logits"]


def test_state_dict_into_a_lazy_graph():
    graph, lazy = LearnableGraph(4), LearnableGraph(-1)
    lazy.load_state_dict(graph.state_dict())
    assert lazy.num_features == 4
    assert torch.equal(lazy.adjacency(), graph.adjacency())
    with pytest.raises(RuntimeError, match="logits"):
        LearnableGraph(5).load_state_dict(graph.state_dict())


def test_a_single_feature():
    assert LearnableGraph(1).adjacency().tolist() == [[1.0]]
    alone = LearnableGraph(1, self_loops=False)
    assert alone.laplacian().tolist() == [[0.0]]
    assert alone.l1_norm().item() == 0.0


@pytest.mark.parametrize("form", ["taylor", "exact"])
def test_vanished_weights_do_no_harm(form):
    logits = torch.zeros(3, 3)
    logits[0, 1:] = -200.0  # whose sigmoid is zero in single precision
    graph = LearnableGraph(3, logits, self_loops=False)
    assert graph.laplacian().isfinite().all()
    chebyshev = resolvent_coefficients(0.5, 2).float() if form == "exact" else None
    feature_filter = FeatureFilter(2, form, "laplacian", torch.tensor(0.5), chebyshev)
    blocks, _ = graph.powers(graph.operand(), torch.randn(3, 2), feature_filter)
    (sum(block.sum() for block in blocks) + graph.l1_norm()).backward()
    assert all(block.isfinite().all() for block in blocks)
    assert graph.packed_logits.grad.isfinite().all()


# The powers of a Taylor filter come from one autograd function, which leaves its sums to the penalty.


def filtered(graph, block, rounds=2, operator="laplacian"):
    strength = torch.tensor(0.6, dtype=block.dtype)
    return graph.powers(graph.operand(), block, FeatureFilter(rounds, "taylor", operator, strength))[0]


def dense_powers(logits, block, rounds, operator, self_loops):
    """The same by plain autograd on dense matrices, with the norm of the operator."""
    size = logits.size(0)
    row, col = torch.triu_indices(size, size, 1)
    half = torch.zeros_like(logits).index_put((row, col), logits[row, col].sigmoid())
    eye = torch.eye(size, dtype=logits.dtype)
    adjacency = half + half.t() + (eye if self_loops else 0)
    root = adjacency.sum(dim=1) ** -0.5
    n2 = root[:, None] * adjacency * root
    matrix = n2 if operator == "adjacency" else eye - n2
    blocks = [block]
    for _ in range(rounds):
        blocks.append(blocks[-1] - 0.6 * matrix @ blocks[-1])
    return blocks, matrix.abs().sum()


@pytest.mark.parametrize("size", [5, 290])  # one strip, and a few
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("operator", ["laplacian", "adjacency"])
@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_gradients_of_powers_and_penalty_together(size, self_loops, operator, rounds, weight):
    graph = LearnableGraph(size, self_loops=self_loops).double()
    graph.logits = torch.randn(size, size)
    block = torch.randn(size, 3, dtype=torch.float64, requires_grad=True)
    directions = torch.randn(rounds + 1, size, 3, dtype=torch.float64)
    graph.l1_norm(operator)  # so that the next one is taken from the forward pass
    found = filtered(graph, block, rounds, operator)
    loss = sum((b * d).sum() for b, d in zip(found, directions, strict=True)) + weight * graph.l1_norm(operator)
    logits = graph.logits.detach().clone().requires_grad_()
    expected, norm = dense_powers(logits, block, rounds, operator, self_loops)
    target = sum((b * d).sum() for b, d in zip(expected, directions, strict=True)) + weight * norm
    assert loss.item() == pytest.approx(target.item(), abs=1e-10)
    packed, found_block = torch.autograd.grad(loss, (graph.packed_logits, block))
    expected_logits, expected_block = torch.autograd.grad(target, (logits, block))
    assert torch.allclose(unpack(packed, size), expected_logits, rtol=0, atol=1e-10)
    assert torch.allclose(found_block, expected_block, rtol=0, atol=1e-10)


def fresh_norm(graph):
    return LearnableGraph(graph.num_features, graph.logits.detach().clone()).l1_norm().item()


def test_penalty_is_never_that_of_other_logits():
    graph, block = LearnableGraph(5, torch.randn(5, 5)), torch.randn(5, 2)
    filtered(graph, block)
    with torch.no_grad():
        graph.packed_logits.add_(1)
    assert graph.l1_norm().item() == pytest.approx(fresh_norm(graph), rel=1e-5)
    # Logits that stood in for a moment leave nothing behind.
    other = torch.randn(packed_numel(5), requires_grad=True)
    with torch.no_grad():
        while other._version < graph.packed_logits._version:  # so that nothing but their identity tells them apart
            other.add_(1)
    torch.func.functional_call(_Module(graph), {"graph.packed_logits": other}, (block,))
    assert graph.l1_norm().item() == pytest.approx(fresh_norm(graph), rel=1e-5)
    filtered(graph, block)
    graph.double()
    assert graph.l1_norm().dtype == torch.float64
    filtered(graph, block.double())
    with torch.no_grad():
        assert not graph.l1_norm().requires_grad


class _Module(torch.nn.Module):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def forward(self, block):
        return filtered(self.graph, block)


def test_penalty_after_a_backward_pass():
    graph, block = LearnableGraph(5, torch.randn(5, 5)), torch.randn(5, 2)
    filtered(graph, block)[-1].sum().backward()
    graph.packed_logits.grad = None
    graph.l1_norm().backward()
    first = graph.packed_logits.grad.clone()
    graph.packed_logits.grad = None
    filtered(graph, block)
    graph.l1_norm().backward()
    assert torch.allclose(graph.packed_logits.grad, first, atol=1e-6)
    graph.l1_norm().backward()  # a second time, with nothing left from the forward pass
    assert torch.allclose(graph.packed_logits.grad, 2 * first, atol=1e-6)


def test_copies_between_forward_and_penalty():
    graph = LearnableGraph(5, torch.randn(5, 5))
    filtered(graph, torch.randn(5, 2))
    for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        other.l1_norm().backward()
        assert other.packed_logits.grad is not None
    assert graph.packed_logits.grad is None


def test_second_derivatives_are_refused_rather_than_wrong():
    graph, block = LearnableGraph(4, torch.randn(4, 4)), torch.randn(4, 2, requires_grad=True)
    loss = filtered(graph, block)[-1].square().sum()
    (gradient,) = torch.autograd.grad(loss, graph.packed_logits, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
