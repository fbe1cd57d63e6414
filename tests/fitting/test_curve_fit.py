"""`curve_fit` against the one of SciPy on asymmetric data, and the table that it prints."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from curves import P0, SIGMA, T, Y, decay, decay_in_numpy

import cfgd
from problems import few


def correlated():
    A = np.diag(SIGMA) + 0.02 * np.tri(8)
    return A @ A.T


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("sigma", [None, SIGMA, correlated()], ids=["none", "vector", "matrix"])
def test_parameters_and_covariance_are_those_of_scipy(sigma, absolute):
    theirs, covariance = scipy.optimize.curve_fit(
        decay_in_numpy, T, Y, P0, sigma=sigma, absolute_sigma=absolute, xtol=1e-14, ftol=1e-14
    )
    fit = cfgd.curve_fit(decay, T, Y, P0, sigma, absolute_sigma=absolute)
    parameters, own = fit
    np.testing.assert_allclose(parameters, theirs, rtol=1e-6)
    np.testing.assert_allclose(own, covariance, rtol=1e-5)
    np.testing.assert_allclose(fit.standard_errors, np.sqrt(np.diag(covariance)), rtol=1e-5)
    assert fit.dof == 5
    if sigma is None:
        assert fit.residual_std == pytest.approx(
            np.sqrt(np.sum((decay_in_numpy(T, *theirs) - Y) ** 2) / 5), rel=1e-8
        )


@pytest.mark.slow
def test_a_dict_of_parameters_and_names():
    fit = cfgd.curve_fit(decay, T, Y, {"size": 1.0, "rate": 1.0, "rest": 0.0})
    assert fit.names == ["rate", "rest", "size"]
    plain = cfgd.curve_fit(decay, T, Y, P0)
    assert plain.names == ["size", "rate", "rest"]
    assert fit.parameters["rate"] == pytest.approx(plain.parameters[1], rel=1e-8)
    assert fit.standard_errors[0] == pytest.approx(plain.standard_errors[1], rel=1e-6)
    assert cfgd.curve_fit(lambda t, *p: p[0] + p[1] * t, T, Y, [1.0, 1.0]).names == ["p[0]", "p[1]"]


def test_it_prints_a_table():
    head, title, *rows = repr(cfgd.curve_fit(decay, T, Y, P0)).splitlines()
    assert head.startswith("Fit: converged, residual standard deviation 0.0")
    assert head.endswith("with 5 degrees of freedom")
    assert title.split() == ["parameter", "value", "standard", "error", "relative"]
    assert [row.split()[0] for row in rows] == ["size", "rate", "rest"]


@pytest.mark.slow
def test_a_robust_loss_ignores_an_outlier():
    outlier = Y + 5.0 * (np.arange(8) == 4)
    fit = cfgd.curve_fit(decay, T, outlier, P0, loss="cauchy", scale=0.1)
    assert fit.covariance_kind == "sandwich"
    np.testing.assert_allclose(fit.parameters, cfgd.curve_fit(decay, T, Y, P0).parameters, atol=0.1)


def test_new_data_does_not_trace_again():
    traces = []

    def line(t, a, b):
        traces.append(1)
        return a + b * t

    cfgd.curve_fit(line, T, Y, [0.0, 0.0])
    before = len(traces)
    gc.collect()  # the first fit is gone, and what was learnt of the model is kept
    fit = cfgd.curve_fit(line, T, 3 * Y, [0.0, 0.0])
    assert len(traces) == before
    np.testing.assert_allclose(fit.parameters, np.polyfit(T, 3 * Y, 1)[::-1], rtol=1e-8)


def test_maximum_likelihood():
    """The covariance is the inverse of the observed information."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3)) * [1, 2, 0.5]
    y = (rng.random(60) < 1 / (1 + np.exp(-X @ [0.5, -0.3, 0.8]))).astype(float)
    ends = cfgd.minimize(cfgd.LinearModel(X, y), np.zeros(3))
    p = 1 / (1 + np.exp(-X @ ends.x))
    np.testing.assert_allclose(
        ends.covariance(), np.linalg.inv((X.T * (p * (1 - p))) @ X), rtol=1e-6
    )


def linear_model(X, y):
    return cfgd.LinearModel(X, y, "squared")


COVERED = [
    *((cfgd.LeastSquares, None), (linear_model, cfgd.Auto("levenberg_marquardt"))),
    (linear_model, cfgd.AdaptiveTerminal(gamma=-0.2)),
    *((cfgd.LeastSquares, cfgd.Auto("levenberg_marquardt")), (linear_model, None)),
    (cfgd.LeastSquares, cfgd.AdaptiveTerminal(gamma=-0.2)),
]


@pytest.mark.parametrize(("of", "method"), few(COVERED, 3))
def test_least_squares(of, method):
    X = np.stack([np.ones(8), T, np.cos(T)], 1)
    ends = cfgd.minimize(of(X, Y), np.zeros(3), method, max_iterations=5000)
    w = np.linalg.lstsq(X, Y)[0]
    want = np.sum((X @ w - Y) ** 2) / 5 * np.linalg.inv(X.T @ X)
    np.testing.assert_allclose(ends.x, w, rtol=1e-5)
    np.testing.assert_allclose(ends.covariance(), want, rtol=1e-5)


WITHOUT_COVARIANCE = {
    "ridge": lambda: cfgd.minimize(cfgd.LeastSquares(T[:, None], Y, l2=0.1), [0.0]),
    "too few": lambda: cfgd.minimize(cfgd.LeastSquares(np.ones((1, 2)), [1.0]), [0.0, 0.0]),
    "penalty": lambda: cfgd.minimize(cfgd.LinearModel(T[:, None], Y, "huber", l2=0.1), [0.0]),
    "a function": lambda: cfgd.minimize(lambda x: jnp.sum((x - 1) ** 2), [0.0]),
}


@pytest.mark.parametrize("run", WITHOUT_COVARIANCE.values(), ids=WITHOUT_COVARIANCE)
def test_objectives_without_a_covariance(run):
    with pytest.raises(ValueError, match="`covariance` is available for a fit of Residuals"):
        run().covariance()


BAD = {
    "y": (lambda: cfgd.curve_fit(decay, T, Y[:3], P0), r"y=...\)` must have the shape \(8,\)"),
    "p0": (lambda: cfgd.curve_fit(decay, T, Y, [[1.0]]), "p0=.* must be a list of numbers or a"),
    "sigma": (lambda: cfgd.curve_fit(decay, T, Y, P0, sigma=[1.0]), "sigma=.* must have shape"),
    "singular": (
        lambda: cfgd.curve_fit(decay, T, Y, P0, sigma=np.ones((8, 8))),
        "sigma=.* must be positive definite",
    ),
    "model": (lambda: cfgd.curve_fit(3, T, Y, P0), "model=.* must be a function of x and the"),
    "NumPy": (lambda: cfgd.curve_fit(decay_in_numpy, T, Y, P0), "model=.* must be written in JAX"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_corrected_model_is_fitted_in_double_precision():
    """JAX 0.10 keeps the constants of a trace that failed, in the precision of that trace."""
    x = np.linspace(0.1, 3, 14)
    y = 2 * np.exp(-x) + x / 50
    with pytest.raises(ValueError, match="must be written in JAX"):
        cfgd.curve_fit(lambda x, a, b: a * np.exp(-b * x), x, y, [1.0, 1.0])
    with jax.enable_x64(True):
        assert jax.jit(lambda x: 2 * x)(x).dtype == np.float64


def test_an_argument_that_does_not_exist():
    with pytest.raises(TypeError, match=r"no argument `max_iter`: did you mean `max_iterations`\?"):
        cfgd.curve_fit(decay, T, Y, P0, max_iter=3)


def test_a_new_model_compiles_one_program(caplog):
    """Its standard errors come from the program of the solver."""
    x = np.linspace(0, 3, 14)
    y = 2 * np.exp(-x) + x / 50
    with jax.log_compiles():
        fit = cfgd.curve_fit(lambda x, a, b: a * jnp.exp(-b * x), x, y, [1.0, 1.0])
    assert np.isfinite(fit.standard_errors).all()
    programs = [line.split()[1] for line in caplog.messages if line.startswith("Compiling")]
    ours = [name for name in programs if name.startswith("jit(_")]  # not conversions of numbers
    assert ours == ["jit(_linearise)"]
