"""The filter as mathematics, against recursions and decompositions written here in NumPy."""

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bigcn.filters import (
    RIPPLE,
    admm,
    admm_coefficients,
    chebyshev_sum,
    frequency_response,
    is_low_pass,
    one_sided_response,
)

penalties = st.floats(-0.6, 9, allow_nan=False)
rounds = st.integers(1, 5)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def laplacian(size, rng, density=0.5):
    """A normalised Laplacian of a random weighted graph; isolated vertices have zero rows."""
    weights = np.triu(rng.random((size, size)) * (rng.random((size, size)) < density), 1)
    weights = weights + weights.T
    degree = weights.sum(1)
    scale = np.array([0.0 if value == 0 else value**-0.5 for value in degree])
    return np.diag((degree > 0).astype(float)) - scale[:, None] * weights * scale


def one_sided(matrix, strength, form):
    eye = np.eye(len(matrix))
    return np.linalg.inv(eye + strength * matrix) if form == "exact" else eye - strength * matrix


def recursion(f, a, b, p, k):
    """The updates as the paper prints them, from dense matrices."""
    y2, z = f, 0 * f
    for _ in range(k):
        y1 = a @ (f + p * y2 + z) / (1 + p)
        y2 = (f + p * y1 - z) @ b / (1 + p)
        z = z + p * (y2 - y1)
    return (y1 + y2) / 2


def run_admm(f, a, b, p, k, tolerance=0.0):
    a, b = torch.from_numpy(a), torch.from_numpy(b)
    return admm(torch.from_numpy(f), lambda y: a @ y, lambda y: y @ b, p, k, tolerance).numpy()


@few
@given(penalties, rounds, seeds)
def test_recursion_is_the_papers(p, k, seed):
    rng = np.random.default_rng(seed)
    f, a, b = rng.normal(size=(5, 3)), rng.normal(size=(5, 5)) / 3, rng.normal(size=(3, 3)) / 3
    expected = recursion(f, a, b, p, k)
    assert run_admm(f, a, b, p, k) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@few
@given(penalties, rounds, seeds)
def test_polynomial_is_the_recursion(p, k, seed):
    rng = np.random.default_rng(seed)
    f, a, b = rng.normal(size=(5, 3)), rng.normal(size=(5, 5)) / 3, rng.normal(size=(3, 3)) / 3
    c = admm_coefficients(p, k).numpy()
    assert c.shape == (k + 1, k + 1)
    polynomial = sum(
        c[i, j] * np.linalg.matrix_power(a, i) @ f @ np.linalg.matrix_power(b, j)
        for i in range(k + 1)
        for j in range(k + 1)
    )
    scale = max(1, np.abs(c).sum())
    assert polynomial == pytest.approx(recursion(f, a, b, p, k), rel=1e-11, abs=1e-11 * scale)


def test_coefficients_of_the_published_setting():
    table = [[0, 0.125, -0.09375], [0.125, 0.65625, -0.140625], [-0.375, 0.28125, 0.421875]]
    assert admm_coefficients(3, 2).tolist() == table
    assert admm_coefficients(3, 2).dtype == torch.float64


@few
@given(penalties, rounds)
def test_coefficients_sum_to_one(p, k):
    c = admm_coefficients(p, k)
    assert float(c.sum()) == pytest.approx(1, abs=1e-13 * float(c.abs().sum()))


@pytest.mark.parametrize(("k", "total"), [(4, 15), (8, 1723)])
def test_coefficients_grow_with_the_rounds(k, total):
    assert float(admm_coefficients(3, k).abs().sum()) == pytest.approx(total, abs=0.5)


@few
@given(penalties, st.floats(0, 3), st.floats(0, 3), seeds)
def test_one_round_is_the_papers_closed_form(p, lambda1, lambda2, seed):
    rng = np.random.default_rng(seed)
    l1, l2, f = laplacian(6, rng), laplacian(4, rng), rng.normal(size=(6, 4))
    y1 = f - 2 * lambda1 / (1 + p) * l1 @ f
    y2 = (f - 2 * p * lambda1 / (1 + p) ** 2 * l1 @ f) @ (np.eye(4) - 2 * lambda2 / (1 + p) * l2)
    a = one_sided(l1, 2 * lambda1 / (1 + p), "taylor")
    b = one_sided(l2, 2 * lambda2 / (1 + p), "taylor")
    assert run_admm(f, a, b, p, 1) == pytest.approx((y1 + y2) / 2, rel=1e-10, abs=1e-10)
    expected = [[0, 1 / (2 * (1 + p))], [0.5, p / (2 * (1 + p))]]
    assert admm_coefficients(p, 1).numpy() == pytest.approx(np.array(expected), abs=1e-14)


@pytest.mark.parametrize("p", [0.5, 1, 3])
@pytest.mark.parametrize(("lambda1", "lambda2"), [(1.0, 2.0), (4.0, 0.5), (0.0, 1.0), (1.0, 0.0)])
def test_converges_to_the_sylvester_equation(p, lambda1, lambda2):
    rng = np.random.default_rng(7)
    l1, l2, f = laplacian(8, rng), laplacian(5, rng), rng.normal(size=(8, 5))
    a, b = one_sided(l1, 2 * lambda1 / (1 + p), "exact"), one_sided(l2, 2 * lambda2 / (1 + p), "exact")
    expected = scipy.linalg.solve_sylvester(np.eye(8) + lambda1 * l1, lambda2 * l2, f)
    assert run_admm(f, a, b, p, 2000, tolerance=1e-12) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("p", [0.5, 3])
def test_identity_converges_to_the_one_directional_filter(p):
    rng = np.random.default_rng(1)
    l1, f, lambda1, lambda2 = laplacian(8, rng), rng.normal(size=(8, 3)), 1.5, 0.7
    a, b = one_sided(l1, 2 * lambda1 / (1 + p), "exact"), one_sided(np.eye(3), 2 * lambda2 / (1 + p), "exact")
    expected = np.linalg.inv((1 + lambda2) * np.eye(8) + lambda1 * l1) @ f
    assert run_admm(f, a, b, p, 2000, tolerance=1e-12) == pytest.approx(expected, abs=1e-9)


def test_no_feature_graph_converges_to_the_node_filter():
    rng = np.random.default_rng(2)
    l1, f, p, lambda1 = laplacian(8, rng), rng.normal(size=(8, 3)), 1.0, 2.0
    expected = np.linalg.inv(np.eye(8) + lambda1 * l1) @ f
    found = run_admm(f, one_sided(l1, 2 * lambda1 / (1 + p), "exact"), np.eye(3), p, 2000, tolerance=1e-12)
    assert found == pytest.approx(expected, abs=1e-9)


def test_tolerance_stops_the_recursion():
    calls = []

    def node_filter(y):
        calls.append(1)
        return 0.5 * y

    admm(torch.ones(2, 2, dtype=torch.float64), node_filter, lambda y: 0.25 * y, 1.0, 10_000, tolerance=1e-8)
    assert 5 < len(calls) < 200


@few
@given(
    penalties,
    st.floats(0, 4),
    st.floats(0, 4),
    rounds,
    st.sampled_from(["taylor", "exact"]),
    st.sampled_from([("taylor", "laplacian"), ("exact", "laplacian"), ("taylor", "adjacency")]),
    seeds,
)
def test_frequency_response_is_the_filter_in_the_eigenbasis(p, s1, s2, k, node_form, feature, seed):
    rng = np.random.default_rng(seed)
    l1, l2, f = laplacian(6, rng), laplacian(4, rng), rng.normal(size=(6, 4))
    form, operator = feature
    mu1, u1 = np.linalg.eigh(l1)
    mu2, u2 = np.linalg.eigh(l2)
    b = one_sided(l2 if operator == "laplacian" else np.eye(4) - l2, s2, form)
    y = recursion(f, one_sided(l1, s1, node_form), b, p, k)
    response = frequency_response(mu1[:, None], mu2[None, :], p, s1, s2, k, node_form, form, operator).numpy()
    assert response.shape == (6, 4)
    expected = u1 @ (response * (u1.T @ f @ u2)) @ u2.T
    scale = max(1, np.abs(expected).max())
    assert y == pytest.approx(expected, abs=1e-9 * scale)


def test_frequency_response_defaults_and_shapes():
    assert float(frequency_response(0.0, 0.0, 1, 5, 1)) == pytest.approx(1)
    explicit = frequency_response([0.3], [0.9], 1, 5, 1, 2, "exact", "exact", "laplacian")
    assert torch.equal(frequency_response(np.array([0.3]), [0.9], p=1, node_strength=5, feature_strength=1), explicit)


@pytest.mark.parametrize(("form", "expected"), [("taylor", 1 - 3 * 0.5), ("exact", 1 / (1 + 3 * 0.5))])
def test_one_sided_response(form, expected):
    assert float(one_sided_response(torch.tensor(0.5), 3.0, form)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("expected", "p", "s1", "s2", "options"),
    [
        (False, 3, 1.8, 1.8, {"node_filter": "taylor", "feature_filter": "taylor"}),
        (False, 3, 1.8, 0, {"node_filter": "taylor", "feature_filter": "taylor"}),
        (False, 3, 0, 1.8, {"node_filter": "taylor", "feature_filter": "taylor"}),
        (True, 3, 0, 0, {"node_filter": "taylor", "feature_filter": "taylor"}),
        (True, 3, 0.5, 0.5, {"node_filter": "taylor", "feature_filter": "taylor", "iterations": 1}),
        (False, 3, 0.5, 0.5, {"node_filter": "taylor", "feature_filter": "taylor", "iterations": 2}),
        (True, 1, 5, 0, {}),
        (True, 1, 5, 1, {}),
        (True, 1, 10, 0, {"iterations": 1}),
        # The projector of a spectral graph, which has no frequencies above one.
        (True, 1, 5, 1, {"feature_filter": "taylor", "highest_feature": 1.0}),
        (False, 1, 5, 1, {"feature_filter": "taylor"}),
        # The released code's operator lets high feature frequencies through and stops the low ones.
        (False, 3, 0.5, 0.8, {"node_filter": "taylor", "feature_filter": "taylor", "feature_operator": "adjacency"}),
    ],
)
def test_is_low_pass(expected, p, s1, s2, options):
    assert is_low_pass(p, s1, s2, **options) is expected


@settings(max_examples=60, deadline=None)
@given(
    penalties,
    st.floats(0, 3),
    st.floats(0, 3),
    st.integers(1, 3),
    st.sampled_from(["taylor", "exact"]),
    st.sampled_from([("taylor", "laplacian"), ("exact", "laplacian"), ("taylor", "adjacency")]),
    st.sampled_from([1.0, 2.0]),
)
def test_is_low_pass_by_its_definition(p, s1, s2, k, node_form, feature, highest):
    form, operator = feature
    grid = np.linspace(0, 2, 41)
    a = np.array([one_sided(np.array([[mu]]), s1, node_form)[0, 0] for mu in grid])[:, None]
    along = grid * (highest / 2)
    axis = along if operator == "laplacian" else 1 - along
    b = np.array([one_sided(np.array([[mu]]), s2, form)[0, 0] for mu in axis])[None, :]
    y2, z = np.ones((41, 41)), np.zeros((41, 41))
    for _ in range(k):
        y1 = a * (1 + p * y2 + z) / (1 + p)
        y2 = (1 + p * y1 - z) * b / (1 + p)
        z = z + p * (y2 - y1)
    response = (y1 + y2) / 2
    pairs = [(i, j) for j in range(41) for i in range(j)]
    rise = max(max((response[j] - response[i]).max(), (response[:, j] - response[:, i]).max()) for i, j in pairs)
    worst = max(-response.min(), response.max() - 1, rise)
    assume(abs(worst - RIPPLE) > 1e-6)
    assert is_low_pass(p, s1, s2, k, node_form, form, operator, highest_feature=highest) == (worst <= RIPPLE)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 7])
def test_chebyshev_sum_against_dense_polynomials(degree):
    rng = np.random.default_rng(degree)
    matrix = np.eye(6) - laplacian(6, rng)
    blocks = rng.normal(size=(degree + 1, 6, 2))
    powers = [np.eye(6), matrix]
    for _ in range(degree):
        powers.append(2 * matrix @ powers[-1] - powers[-2])
    expected = sum(powers[j] @ blocks[j] for j in range(degree + 1))
    hops, terms = [], []

    def hop(block):
        hops.append(1)
        return torch.from_numpy(matrix) @ block

    def term(j):
        terms.append(j)
        return torch.from_numpy(blocks[j])

    assert chebyshev_sum(hop, term, degree).numpy() == pytest.approx(expected, abs=1e-12)
    assert len(hops) == degree
    assert sorted(terms) == list(range(degree + 1))
