"""Derived quantities and bands against formulas of linear regression and finite differences."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import cfgd

T = np.array([0.0, 0.3, 0.9, 1.4, 2.2, 3.1, 3.3, 4.6])
Y = np.array([2.94, 2.41, 1.62, 1.30, 0.97, 0.83, 0.71, 0.55])
NEW = np.array([-1.0, 0.5, 2.0, 8.0])


def decay(t, size, rate, rest):
    return size * jnp.exp(-rate * t) + rest


def line(t, a, b):
    return a + b * t


@functools.cache
def fitted_line():
    return cfgd.curve_fit(line, T, Y, [0.0, 0.0])


def half_width_of_line(level, more=0.0):
    """Textbook: t s sqrt(more + 1/n + (x - mean)^2 / Sxx)."""
    b, a = np.polyfit(T, Y, 1)
    s = np.sqrt(np.sum((a + b * T - Y) ** 2) / 6)
    Sxx = np.sum((T - T.mean()) ** 2)
    t = scipy.special.stdtrit(6, (1 + level) / 2)
    return t * s * np.sqrt(more + 1 / 8 + (NEW - T.mean()) ** 2 / Sxx), a + b * NEW


@pytest.mark.parametrize(("kind", "more"), [("curve", 0.0), ("observation", 1.0)])
def test_a_band_around_a_line(kind, more):
    fit = fitted_line()
    half, middle = half_width_of_line(0.9, more)
    lower, upper = fit.band(NEW, 0.9, kind)
    np.testing.assert_allclose(lower, middle - half, rtol=1e-7)
    np.testing.assert_allclose(upper, middle + half, rtol=1e-7)


def test_a_band_of_observations_with_a_known_sigma():
    sigma = np.array([0.1, 0.2, 0.1, 0.05, 0.1, 0.3, 0.1, 0.2])
    fit = cfgd.curve_fit(line, T, Y, [0.0, 0.0], sigma, absolute_sigma=True)
    X, W = np.stack([np.ones(8), T], 1), np.diag(sigma**-2.0)
    C = np.linalg.inv(X.T @ W @ X)
    G = np.stack([np.ones(4), NEW], 1)
    new = np.array([0.1, 0.2, 0.3, 0.4])
    width = 2 * scipy.special.ndtri(0.975) * np.sqrt(np.sum(G @ C * G, 1) + new**2)
    lower, upper = fit.band(NEW, kind="observation", sigma=new)
    np.testing.assert_allclose(upper - lower, width, rtol=1e-9)
    with pytest.raises(ValueError, match=r"sigma=.* must be given for new observations"):
        fit.band(NEW, kind="observation")
    relative = cfgd.curve_fit(line, T, Y, [0.0, 0.0], 0.1)
    lower, upper = relative.band(NEW, 0.9, "observation")
    np.testing.assert_allclose(upper - lower, 2 * half_width_of_line(0.9, 1.0)[0], rtol=1e-7)


def test_a_band_around_a_curve():
    """By the delta method with differences in place of derivatives."""
    fit = cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.0])
    lower, upper = fit.band(NEW)
    p, h = fit.parameters, 1e-6

    def curve(p):
        return p[0] * np.exp(-p[1] * NEW) + p[2]

    G = np.stack([(curve(p + h * e) - curve(p - h * e)) / (2 * h) for e in np.eye(3)], 1)
    half = scipy.special.stdtrit(5, 0.975) * np.sqrt(np.sum(G @ fit.covariance * G, 1))
    np.testing.assert_allclose(upper - lower, 2 * half, rtol=1e-6)
    np.testing.assert_allclose((upper + lower) / 2, curve(p), rtol=1e-9)


@pytest.mark.slow
def test_bands_of_complex_curves_and_of_several_data_sets():
    y = Y * np.exp(0.3j * T)
    fit = cfgd.curve_fit(lambda t, a, b: (a + 1j * b) * t, T, y, [1.0, 1.0])
    lower, upper = fit.band(NEW)
    half = scipy.special.stdtrit(14, 0.975) * fit.standard_errors[0] * np.abs(NEW)
    np.testing.assert_allclose(upper - lower, 2 * half * (1 + 1j), rtol=1e-9)
    both = cfgd.curve_fit(
        line, {"u": T, "v": T}, {"u": Y, "v": 2 * Y}, {"a": {"u": 0.0, "v": 0.0}, "b": 0.0}
    )
    first, second = both.band(NEW, data_set="u"), both.band(NEW, data_set=1)
    np.testing.assert_allclose(
        second[0] + second[1] - first[0] - first[1],
        2 * float(both.values["a[v]"] - both.values["a[u]"]) * np.ones(4),
        rtol=1e-9,
    )


def test_derived_quantities():
    fit = cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.0])
    a, b, _ = fit.parameters
    value, error = fit.derived(lambda p: p["size"] / p["rate"])
    g = np.array([1 / b, -a / b**2, 0.0])
    assert value == pytest.approx(a / b)
    assert error == pytest.approx(np.sqrt(g @ fit.covariance @ g), rel=1e-9)
    both = fit.derived(lambda p: jnp.stack([p["size"], p["rest"] * 2]))
    want = fit.covariance[np.ix_([0, 2], [0, 2])] * np.array([[1, 2], [2, 4]])
    np.testing.assert_allclose(both.covariance, want, rtol=1e-9)
    np.testing.assert_allclose(both.error, np.sqrt(np.diag(want)), rtol=1e-9)


BAD = {
    "fn": (lambda fit: fit.derived(3), "fn=.* must be a function of the dict of parameters"),
    "NumPy": (lambda fit: fit.derived(lambda p: np.exp(p["a"])), "fn=.* must be written in JAX"),
    "kind": (lambda fit: fit.band(NEW, kind="x"), "kind=.* must be one of curve, observation"),
    "level": (lambda fit: fit.band(NEW, 2.0), "level=.* must lie in"),
    "data_set": (
        lambda fit: fit.band(NEW, data_set=1),
        "data_set=.* must be 0, the only data set, got 1",
    ),
    "sigma": (
        lambda fit: fit.band(NEW, kind="observation", sigma=[1.0, 2.0]),
        r"sigma=.* must have shape \(4,\)",
    ),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
@pytest.mark.every_case
def test_bad_input(call, message):
    fit = fitted_line()
    with pytest.raises(ValueError, match=message):
        call(fit)
