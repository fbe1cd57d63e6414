"""How far along its step an exact model leads."""

import jax.numpy as jnp
import numpy as np
import pytest
from cfgd.methods.auto.reach import MOST_DOUBLINGS, reach, searches

import cfgd
from cfgd._core.arrays import to_numpy


def parabola(t):
    """Least squares, and t times Newton's step from a point: the best eta is 1/t."""
    random = np.random.default_rng(3)
    f = cfgd.LinearModel(random.normal(size=(12, 3)), random.normal(size=12), "squared")
    x = np.array([1.0, -2.0, 0.5])
    X = np.asarray(f.X.X)
    return f, x, t * np.linalg.solve(X.T @ X, f.gradient(x))


@pytest.mark.parametrize("t", [0.125, 0.5, 2.0, 64.0])
@pytest.mark.parametrize("host", [True, False], ids=["NumPy", "JAX"])
def test_the_best_of_a_parabola_is_found(t, host):
    f, x, p = parabola(t)
    f = to_numpy(f) if host else f
    point, p = f.evaluate(x if host else jnp.asarray(x)), p if host else jnp.asarray(p)
    value = f.evaluate(point.x - p).value
    gain = (point.value - value) / (point.gradient @ p / 2)
    assert searches(gain)
    found = reach(f, point, p, value, gain)
    assert float(found.eta) == 1 / t
    assert float(found.value) == pytest.approx(
        float(f.evaluate(point.x - p / t).value), rel=1e-12 if host else 1e-5
    )


def test_a_step_that_keeps_its_promise_is_not_searched():
    assert not searches(np.float64(1.05))
    assert searches(np.float64(1.2))
    assert searches(np.float64(np.nan))
    assert searches(np.float64(-np.inf))


def test_it_goes_no_further_than_the_model_can_be_of():
    f, x, p = parabola(1e-3)
    f = to_numpy(f)
    point = f.evaluate(x)
    value = f.evaluate(x - p).value
    gain = (point.value - value) / (point.gradient @ p / 2)
    assert reach(f, point, p, value, gain).eta == 2**MOST_DOUBLINGS


def test_counts_that_are_far_from_one_take_few_matrices():
    """Newton's first step from zero leads to exp(150)."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=(80, 3)), np.ones(80)])
    y = random.poisson(np.exp(5 + X[:, :3] @ [0.3, -0.2, 0.1])).astype(float)
    ends = cfgd.minimize(cfgd.LinearModel(X, y, "poisson"), np.zeros(4))
    assert ends.success
    assert ends.iterations <= 8
    rate = np.exp(X @ ends.x)
    np.testing.assert_allclose(X.T @ rate, X.T @ y, rtol=1e-7)
