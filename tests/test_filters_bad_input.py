"""What the filter refuses."""

import math

import pytest
import torch

from bigcn.filters import (
    admm,
    admm_coefficients,
    check_forms,
    frequency_response,
    is_low_pass,
    resolvent_coefficients,
)


@pytest.mark.parametrize("p", [-1, -2.5, math.nan, math.inf, -math.inf, "3", None])
def test_bad_penalty(p):
    with pytest.raises(ValueError, match="'p'"):
        admm_coefficients(p, 2)
    with pytest.raises(ValueError, match="'p'"):
        admm(torch.ones(2, 2), lambda y: y, lambda y: y, p, 2)
    with pytest.raises(ValueError, match="'p'"):
        frequency_response(0, 0, p, 1, 1)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2", None])
def test_bad_rounds(k):
    with pytest.raises(ValueError, match="'iterations'"):
        admm_coefficients(1.0, k)
    with pytest.raises(ValueError, match="'iterations'"):
        admm(torch.ones(2, 2), lambda y: y, lambda y: y, 1.0, k)
    with pytest.raises(ValueError, match="'iterations'"):
        frequency_response(0, 0, 1.0, 1, 1, iterations=k)


@pytest.mark.parametrize("strength", [-1e-9, math.nan, math.inf, "1"])
def test_bad_strength(strength):
    with pytest.raises(ValueError, match="'node_strength'"):
        frequency_response(0, 0, 1, strength, 1)
    with pytest.raises(ValueError, match="'feature_strength'"):
        is_low_pass(1, 1, strength)
    with pytest.raises(ValueError, match="'strength'"):
        resolvent_coefficients(strength)


@pytest.mark.parametrize("tolerance", [0, -1, 1, math.nan])
def test_bad_tolerance(tolerance):
    with pytest.raises(ValueError, match="'tolerance'"):
        resolvent_coefficients(1.0, tolerance=tolerance)


@pytest.mark.parametrize(
    ("forms", "name"),
    [
        (("fourier", "exact", "laplacian"), "'node_filter'"),
        (("exact", "", "laplacian"), "'feature_filter'"),
        (("exact", "taylor", "both"), "'feature_operator'"),
        (("exact", "exact", "adjacency"), "'feature_operator=\"adjacency\"' needs 'feature_filter=\"taylor\"'"),
    ],
)
def test_bad_forms(forms, name):
    with pytest.raises(ValueError, match=name):
        check_forms(*forms)
