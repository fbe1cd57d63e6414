"""Residuals of a model: value, gradient and Gauss-Newton matrix against NumPy and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

import cfgd

T = np.array([0.0, 0.4, 1.1, 1.9, 2.5, 3.6, 4.2])
Y = np.array([3.1, 2.2, 1.5, 0.6, 1.9, 0.1, 0.3])  # the fifth one is an outlier
WEIGHTS = np.array([1.0, 0.5, 2.0, 1.5, 0.3, 0.0, 1.1])
X = np.array([2.3, 0.6, -0.4])


def misfit(p):
    return p[0] * jnp.exp(-p[1] * T) + p[2] - Y


def misfit_in_numpy(p):
    return p[0] * np.exp(-p[1] * T) + p[2] - Y


# SciPy's definitions, as its documentation writes them
RHO = {
    "squared": lambda z: z,
    "soft_l1": lambda z: 2 * ((1 + z) ** 0.5 - 1),
    "huber": lambda z: np.where(z <= 1, z, 2 * z**0.5 - 1),
    "cauchy": lambda z: np.log(1 + z),
}


def value(p, loss, scale=1.0, weights=1.0):
    z = (misfit_in_numpy(p) / scale) ** 2
    return np.sum(weights * scale**2 * RHO[loss](z)) / 2


def differences(f, x, h=1e-6):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("loss", RHO)
@pytest.mark.parametrize(("scale", "weights"), [(1.0, None), (0.4, WEIGHTS), (2.5, 3.0)])
def test_value_and_gradient(loss, scale, weights):
    f = cfgd.Residuals(misfit, loss, scale=scale, weights=weights)
    own = 1.0 if weights is None else weights
    assert f.value(X) == pytest.approx(value(X, loss, scale, own), rel=1e-12)
    expected = differences(lambda p: value(p, loss, scale, own), X)
    np.testing.assert_allclose(f.gradient(X), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("loss", RHO)
def test_the_minimiser_is_scipys(loss):
    name = "linear" if loss == "squared" else loss
    theirs = least_squares(
        misfit_in_numpy, [1.0, 1.0, 0.0], loss=name, f_scale=0.5, xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    ours = cfgd.minimize(cfgd.Residuals(misfit, loss, scale=0.5), [1.0, 1.0, 0.0])
    assert ours.success
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-5)
    assert ours.value == pytest.approx(theirs.cost, rel=1e-9)


@pytest.mark.one_case
@pytest.mark.parametrize("loss", RHO)
def test_curvature_is_the_gauss_newton_matrix(loss):
    """J' diag(w (rho' + 2 rho'' r^2)) J, by differences of the gradient in r with J constant."""
    f = cfgd.Residuals(
        misfit, loss, scale=2.5, weights=WEIGHTS
    )  # rho'' leaves all weights positive
    J = differences(misfit_in_numpy, X).T
    r = misfit_in_numpy(X)

    def slope(r, h=1e-5):
        def rho(r):
            return WEIGHTS * 2.5**2 * RHO[loss]((r / 2.5) ** 2) / 2

        return (rho(r + h) - rho(r - h)) / (2 * h)

    H = J.T @ np.diag((slope(r + 1e-4) - slope(r - 1e-4)) / 2e-4) @ J
    v = np.array([0.3, -1.1, 0.7])
    with jax.enable_x64(True):
        curvature = f.curvature(f.evaluate(jnp.asarray(X)))
        J, r = map(np.asarray, curvature.rows())
        np.testing.assert_allclose(curvature.times(v), H @ v, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(curvature.diagonal(), np.diag(H), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(J.T @ J, H, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(J.T @ r, f.gradient(X), rtol=1e-5, atol=1e-5)
    assert curvature.shape == J.shape == (7, 3)
    assert not curvature.is_exact


def test_pytrees_in_and_out():
    def fn(p):
        return {"curve": p["size"] * jnp.exp(-p["rate"] * T) + p["rest"] - Y, "prior": p["rate"]}

    weights = {"curve": WEIGHTS, "prior": np.array(2.0)}
    f = cfgd.Residuals(fn, weights=weights)
    x = {"size": 2.3, "rate": 0.6, "rest": -0.4}
    assert f.value(x) == pytest.approx(value(X, "squared", 1, WEIGHTS) + 0.6**2, rel=1e-12)
    ends = cfgd.minimize(f, {"size": 1.0, "rate": 1.0, "rest": 0.0})
    assert ends.success
    assert set(ends.x) == {"size", "rate", "rest"}


def test_new_data_of_the_same_shape_compiles_nothing():
    traces = []

    def fn(p, t, y):
        traces.append(1)
        return p[0] * jnp.exp(-p[1] * t) - y

    first = cfgd.minimize(cfgd.Residuals(fn, args=(T, Y)), [1.0, 1.0])
    before = len(traces)
    second = cfgd.minimize(cfgd.Residuals(fn, args=(T, 2 * Y)), [1.0, 1.0])
    assert len(traces) - before <= 2  # shapes are checked, nothing is compiled
    np.testing.assert_allclose(second.x, first.x * [2, 1], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("method", [cfgd.GradientDescent(), cfgd.AdaptiveTerminal(gamma=-0.2)])
def test_the_papers_methods_lower_it(method):
    f = cfgd.Residuals(misfit)
    ends = cfgd.minimize(f, X, method, max_iterations=30)
    assert ends.value < f.value(X)


BAD = {
    "a class": (lambda: cfgd.Residuals(dict), r"`Residuals\(fn=...\)` must be a function of x"),
    "a loss": (lambda: cfgd.Residuals(misfit, "l1"), "be one of squared, soft_l1, huber, cauchy"),
    "a scale": (lambda: cfgd.Residuals(misfit, "huber", scale=0), "scale=.* must be positive"),
    "weights": (
        lambda: cfgd.Residuals(misfit, weights=-WEIGHTS),
        "weights=.* must not be negative",
    ),
    "args": (lambda: cfgd.Residuals(misfit, args=T), r"args=...\)` must be a tuple"),
    "complex": (
        lambda: cfgd.minimize(cfgd.Residuals(lambda p: p + 1j), X),
        "must return real numbers, got dtype complex128",
    ),
    "nothing": (
        lambda: cfgd.minimize(cfgd.Residuals(lambda p: []), X),
        "must return at least one number, got nothing",
    ),
    "other weights": (
        lambda: cfgd.minimize(cfgd.Residuals(misfit, weights=[1.0, 2.0]), X),
        r"be one number or have the shapes \[\(7,\)\] of the residuals, got \[\(2,\)\]",
    ),
    "NumPy": (
        lambda: cfgd.minimize(cfgd.Residuals(misfit_in_numpy), X),
        "must be written in JAX",
    ),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
