"""Objectives in extreme units, which a run rescales."""

import numpy as np
import pytest

import cfgd
from cfgd.objectives.rescaled import SAFE, safe_factor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
Y = (X @ [1.0, -2.0, 0.5, 0.3] + RNG.logistic(size=60) > 0).astype(np.float32)


def fit(unit):
    model = cfgd.LinearModel(np.float32(unit) * X, Y)
    return cfgd.minimize(model, np.zeros(4, np.float32))


def assert_same_fit(unit):
    """Compare a fit in another unit of X: the same minimum in about as many iterations."""
    solution, reference = fit(unit), fit(1.0)
    assert solution.success
    assert solution.x.dtype == np.float32
    assert solution.value == pytest.approx(reference.value, rel=1e-6)
    np.testing.assert_allclose(solution.x * np.float32(unit), reference.x, rtol=1e-4)
    assert solution.iterations <= reference.iterations + 3


@pytest.mark.parametrize("unit", [1e-10, 1e6, 1e10])
def test_units_in_which_gradients_are_rescaled(unit):
    """Regression: 1e-10 raised "a LinearModel has no model", 1e6 took 80 iterations."""
    assert_same_fit(unit)


@pytest.mark.slow
def test_units_in_between():
    for power in range(-6, 9):
        assert_same_fit(10.0**power)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_safe_factor_is_a_power_of_two_that_brings_the_gradient_to_a_safe_size(dtype):
    least, most = SAFE[np.dtype(dtype)]
    for inside in (0.0, least, 1.0, most):
        assert safe_factor(inside, np.dtype(dtype)) == 1.0
    small, large = least / 3, 3 * most
    for outside, may_grow, wanted in (
        (small, False, 1.0),
        (large, False, 1.0),
        (large, True, 1.0),
        (small, True, least**0.5),
    ):
        factor = safe_factor(outside, np.dtype(dtype), may_grow)
        assert 0.5 <= outside * factor / wanted <= 2
        assert np.log2(factor) == np.round(np.log2(factor))
