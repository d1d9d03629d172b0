"""The resolvent as a series of Chebyshev polynomials, against NumPy's."""

import math

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from bigcn.filters import resolvent_coefficients


@pytest.mark.parametrize("strength", [0.0, 1e-3, 0.1, 1.0, 5.0, 10.0])
@pytest.mark.parametrize("power", [1, 2, 4])
def test_resolvent_coefficients_are_the_interpolating_ones(strength, power):
    found = resolvent_coefficients(strength, power, tolerance=1e-13).numpy()
    assert found.shape[1] == power + 1
    for a in range(power + 1):
        expected = chebyshev.chebinterpolate(lambda nu, a=a: (1 + strength * (1 - nu)) ** -a, 300)
        assert found[:, a] == pytest.approx(expected[: len(found)], abs=1e-13)
        assert np.abs(expected[len(found) :]).max() < 1e-13


@pytest.mark.parametrize("strength", [0.0, 1e-9, 1e-3, 0.2, 1.0, 1.8, 5.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("tolerance", [0.3, 1e-2, 1e-5, 1e-10])
def test_resolvent_honours_the_tolerance_and_no_more(strength, tolerance):
    angle = np.linspace(0, math.pi, 300)
    power = 3 if strength < 1e4 else 1
    coefficients = resolvent_coefficients(strength, power, tolerance).numpy()
    values = np.cos(np.outer(angle, np.arange(len(coefficients)))) @ coefficients
    expected = (1 + strength * 2 * np.sin(angle / 2) ** 2)[:, None] ** -np.arange(power + 1.0)
    assert np.abs(values - expected).max() <= tolerance + 1e-12
    if len(coefficients) > 1:
        # One degree less would not do: the coefficients are positive, so the error at the lowest frequency is the tail.
        shorter = coefficients[:-1].sum(axis=0)
        assert np.abs(1 - shorter).max() > tolerance


def test_resolvent_degree_grows_with_strength_and_tolerance():
    degrees = [len(resolvent_coefficients(s)) for s in (0.1, 1, 10, 100)]
    assert degrees == sorted(set(degrees))
    assert len(resolvent_coefficients(5, tolerance=1e-3)) < len(resolvent_coefficients(5, tolerance=1e-9))
    assert resolvent_coefficients(0.0, 2).tolist() == [[1, 1, 1]]
