"""Residuals sample by sample, and Jacobians in either mode, against the whole function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd.objectives import jacobian as jacobians
from cfgd.objectives.residuals import Residuals

RNG = np.random.default_rng(5)
T, Y = np.linspace(0.1, 2.0, 9), RNG.normal(size=9)
X = np.array([0.7, -1.3, 0.4])


def one(p, t, y):
    return p[0] * jnp.exp(p[1] * t) + p[2] - y


def whole(p):
    return p[0] * jnp.exp(p[1] * T) + p[2] - Y


def two(p, t, y):
    """Return two kinds of residuals, of different sizes, for a sample."""
    return {"a": jnp.stack([p[0] * t - y, p[1] * y]), "b": p[2] ** 2 * t}


def two_in_numpy(p):
    return np.stack([p[0] * T - Y, p[1] * Y, p[2] ** 2 * T], 1).ravel()


def test_scalar_residuals_are_those_of_the_whole_function():
    by_samples, at_once = Residuals(one, samples=(T, Y)), Residuals(whole)
    assert by_samples.value(X) == pytest.approx(float(at_once.value(X)), rel=1e-14)
    np.testing.assert_allclose(by_samples.gradient(X), at_once.gradient(X), rtol=1e-12)
    with jax.enable_x64(True):
        J = np.asarray(by_samples.jacobian(jnp.asarray(X)))
    E = np.exp(X[1] * T)
    np.testing.assert_allclose(J, np.stack([E, X[0] * T * E, np.ones(9)], 1), rtol=1e-12)


def test_several_residuals_of_a_sample_stand_together():
    f = Residuals(two, samples=(T, Y))
    with jax.enable_x64(True):
        np.testing.assert_allclose(f.vector(jnp.asarray(X)), two_in_numpy(X), rtol=1e-13)
        J = np.asarray(f.jacobian(jnp.asarray(X)))
    h = 1e-6 * np.eye(3)
    expected = [(two_in_numpy(X + e) - two_in_numpy(X - e)) / 2e-6 for e in h]
    np.testing.assert_allclose(J, np.stack(expected, 1), atol=1e-8)


@pytest.mark.parametrize("numbers", [1, 7, 12])
def test_blocks_of_samples_give_the_same_rows(monkeypatch, numbers):
    f, x = Residuals(two, samples=(T, Y)), np.array(X)
    with jax.enable_x64(True):
        expected = np.asarray(f.jacobian(x))
        monkeypatch.setattr(jacobians, "SAMPLED_NUMBERS", numbers)
        np.testing.assert_allclose(f.jacobian(x), expected, rtol=1e-13)


@pytest.mark.parametrize("rows", [2, 9])
def test_blocks_of_either_mode_give_the_same_jacobian(monkeypatch, rows):
    """Two residuals are differentiated in reverse mode, nine in forward mode."""

    def fn(x):
        return whole(x)[:rows]

    with jax.enable_x64(True):
        expected = np.asarray(jax.jacfwd(fn)(jnp.asarray(X)))
        monkeypatch.setattr(jacobians, "BLOCK_NUMBERS", 4)
        np.testing.assert_allclose(jacobians.jacobian(fn, jnp.asarray(X)), expected, rtol=1e-13)


@jax.custom_vjp
def reverse_only(x):
    return x**3


reverse_only.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))


def test_a_function_without_forward_mode_is_fitted():
    """Adjoints of ODE solvers have no forward mode; the cube root of data is the answer."""
    f = cfgd.Residuals(lambda p: reverse_only(p[0]) * T + p[1] - (8 * T + 1))
    found = cfgd.minimize(f, np.array([1.0, 0.0]))
    assert found.success
    np.testing.assert_allclose(found.x, [2.0, 1.0], rtol=1e-6)
    with jax.enable_x64(True):
        v = jnp.array([0.3, -0.5])
        product = jacobians.jacobian_times(f.vector, jnp.array([2.0, 1.0]), v)
    np.testing.assert_allclose(product, 12 * 0.3 * T - 0.5, rtol=1e-13)


def test_other_type_errors_are_raised_as_they_are():
    def broken(x):
        raise TypeError("no such thing")

    with pytest.raises(TypeError, match="no such thing"):
        jacobians.jacobian_times(broken, jnp.ones(2), jnp.ones(2))


@pytest.mark.parametrize("weights", [2.5, np.linspace(0.0, 2.0, 9), "each"])
def test_weights_of_samples(weights):
    each = {"a": RNG.uniform(size=(9, 2)), "b": RNG.uniform(size=9)}
    given = each if isinstance(weights, str) else weights
    full = np.concatenate([each["a"], each["b"][:, None]], 1)
    if not isinstance(weights, str):
        full = np.broadcast_to(np.reshape(weights, (-1, 1)), (9, 3))
    f = Residuals(two, samples=(T, Y), weights=given)
    expected = (full.ravel() * two_in_numpy(X) ** 2).sum() / 2
    assert f.value(X) == pytest.approx(expected, rel=1e-13)


def test_standard_errors_do_not_count_samples_without_weight():
    """A sample without weight is none: all of its residuals are left out."""
    weights = np.array([1.0, 1, 0, 1, 1, 1, 1, 0, 1])
    kept = weights > 0
    some = cfgd.minimize(Residuals(two, samples=(T, Y), weights=weights), X)
    fewer = cfgd.minimize(Residuals(two, samples=(T[kept], Y[kept])), X)
    # p[2] is where the data do not determine it: at zero, or at any number that is small enough
    both = slice(2), slice(2)
    np.testing.assert_allclose(some.covariance()[both], fewer.covariance()[both], rtol=1e-6)


def test_the_fit_by_samples_is_the_fit():
    found = cfgd.minimize(cfgd.Residuals(one, samples=(T, Y)), X)
    expected = cfgd.minimize(cfgd.Residuals(whole), X)
    assert found.success
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)


def test_new_samples_compile_nothing():
    def other(p, t, y):
        return one(p, t, y) + 0.0

    first = cfgd.minimize(cfgd.Residuals(other, samples=(T, Y)), X)
    again = cfgd.minimize(cfgd.Residuals(other, samples=(T + 0.1, Y)), X)
    assert first.compile_seconds > 0
    assert again.compile_seconds == 0


@pytest.mark.parametrize(
    ("samples", "got"),
    [
        ((T, Y[:3]), r"shapes \[\(9,\), \(3,\)\]"),
        ((), r"shapes \[\]"),
        ((3.0,), r"shapes \[\(\)\]"),
        ((np.zeros((0, 2)),), r"shapes \[\(0, 2\)\]"),
        ((np.array([1.0, np.nan]),), "nan at index 1"),
    ],
)
def test_bad_samples_are_refused(samples, got):
    with pytest.raises(ValueError, match=got):
        Residuals(one, samples=samples)


def test_weights_of_another_shape_are_refused():
    f = cfgd.Residuals(two, samples=(T, Y), weights=np.ones(4))
    with pytest.raises(ValueError, match="one for each sample"):
        cfgd.minimize(f, X)
