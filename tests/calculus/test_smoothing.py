"""`smoothing` against Theorem 1 and the scaled Caputo slope, evaluated by mpmath."""

import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from definition import (
    TERMINAL,
    Polynomial,
    X,
    Z,
    curves,
    in_digits,
    in_jax,
    scaled_slope,
    sine_and_cube,
)
from mpmath import mp

import cfgd
from problems import few

# Smoothing: Theorem 1.

SETTINGS = [(0.66, 1.0), (0.9, -0.4), (0.3, 0.0)]
settings = pytest.mark.parametrize(("alpha", "beta"), few(SETTINGS, 2))
POLYNOMIALS = {  # coefficients in powers of z - TERMINAL, the constant first
    "line": [2.0, -3.0],
    "cubic": [1.0, -0.5, 0.25, 2.0],
    "degree 6": [-1.0, 2.0, 0.3, -0.7, 0.11, 0.05, -0.02],
}


def theorem_1(taylor, alpha, beta, z):
    """Value and slope by the theorem's series; taylor[k] is f^(k)(c) / k!."""
    value, slope, h = mp.mpf(taylor[0]), mp.mpf(0), mp.mpf(z) - TERMINAL
    for k in range(1, len(taylor)):
        C = (
            mp.gamma(2 - alpha)
            * mp.gamma(k)
            * (1 / mp.gamma(k + 1 - alpha) + beta / mp.gamma(k - alpha))
        )
        C = C if k > 1 else 1
        value += C * taylor[k] * h**k
        slope += C * taylor[k] * k * h ** (k - 1)
    return value, slope


def value_and_slope(F, z):
    return np.stack([F(z), F.slope(z)], axis=-1)


@pytest.mark.slow
@settings
@pytest.mark.parametrize("taylor", POLYNOMIALS.values(), ids=POLYNOMIALS)
def test_smoothing_of_polynomials(taylor, alpha, beta):
    F = cfgd.smoothing(Polynomial.of(taylor), alpha, beta, TERMINAL)
    expected = in_digits(25, lambda: [theorem_1(taylor, alpha, beta, z) for z in Z])
    np.testing.assert_allclose(value_and_slope(F, Z), expected, rtol=1e-12, atol=1e-12)


def exponential(z):
    return jnp.exp(1.3 * (z - TERMINAL))


@settings
def test_smoothing_of_the_exponential(alpha, beta):
    F = cfgd.smoothing(exponential, alpha, beta, TERMINAL)
    taylor = [1.3**k / math.factorial(k) for k in range(50)]
    expected = in_digits(25, lambda: [theorem_1(taylor, alpha, beta, z) for z in Z])
    np.testing.assert_allclose(value_and_slope(F, Z), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_smoothing_figure():
    def f(z):
        return (z - 6) * (z + 4) * (7 * z**2 + 10 * z + 24)

    F, z = cfgd.smoothing(f, 0.66, 1.0, -1.0), np.array([-2.7, 0.7, -1.0, -1.0])
    np.testing.assert_allclose(
        F.slope(z)[:2], [-279.98780395580843, -902.1139947430053], rtol=1e-13
    )
    np.testing.assert_allclose(cfgd.caputo(f, 1, -9.0)(z)[:2], [-41.004, -513.876], rtol=1e-13)
    np.testing.assert_array_equal(F(z)[2:], f(-1.0))


@pytest.mark.one_case
@settings
@curves
def test_smoothing_slope_is_the_scaled_caputo_slope(curve, alpha, beta):
    F = cfgd.smoothing(in_jax(curve), alpha, beta, TERMINAL)
    f = functools.partial(curve, mp)
    expected = in_digits(20, lambda: [scaled_slope(f, alpha, beta, TERMINAL, x) for x in X])
    np.testing.assert_allclose(F.slope(X), expected, rtol=1e-11)


@pytest.mark.one_case
@curves
def test_smoothing_slope_is_the_slope_of_its_value(curve):
    F = cfgd.smoothing(in_jax(curve), 0.3, -0.4, TERMINAL)
    h = 2e-3  # five points: an error of order h^4
    difference = F(X - 2 * h) - 8 * F(X - h) + 8 * F(X + h) - F(X + 2 * h)
    np.testing.assert_allclose(difference / (12 * h), F.slope(X), rtol=1e-9)


@settings
@curves
def test_smoothing_starts_at_the_terminal(curve, alpha, beta):
    """F(c) = f(c) and F'(c) = f'(c), whatever alpha and beta are."""
    F = cfgd.smoothing(in_jax(curve), alpha, beta, TERMINAL)
    f = functools.partial(curve, mp)
    expected = in_digits(20, lambda: [f(mp.mpf(TERMINAL)), mp.diff(f, mp.mpf(TERMINAL))])
    np.testing.assert_allclose(value_and_slope(F, Z)[2], expected, rtol=1e-13)


@curves
def test_smoothing_vanishes_at_order_one(curve):
    """alpha = 1 and beta = 0 recover f itself."""
    F = cfgd.smoothing(in_jax(curve), 1 - 1e-9, 0.0, TERMINAL)
    f = functools.partial(curve, mp)
    expected = in_digits(20, lambda: [(f(x), mp.diff(f, x)) for x in map(mp.mpf, X)])
    np.testing.assert_allclose(value_and_slope(F, X), expected, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "z", [pytest.param(-0.2, id="right"), pytest.param(0.8, id="left", marks=pytest.mark.slow)]
)
def test_smoothing_beyond_the_radius_of_convergence(z):
    """1 / (1 + 25 z^2) has poles at +-0.2i, 0.36 from the terminal 0.3; z is 0.5 away."""
    alpha, beta, c = 0.4, 0.5, 0.3

    def f(z):
        return 1 / (1 + 25 * z**2)

    def derivative(f, z, n):  # four times as fast as mp.diff
        q = 1 + 25 * z**2
        return -50 * z / q**2 if n == 1 else (5000 * z**2 / q - 50) / q**2

    def slope(z):
        return scaled_slope(f, alpha, beta, c, z, derivative)

    def value(z):
        halves = [c, (c + z) / 2, z]
        return f(mp.mpf(c)) + mp.quad(slope, halves, method="gauss-legendre", maxdegree=4)

    F = cfgd.smoothing(f, alpha, beta, c)
    expected = in_digits(12, lambda: (value(z), slope(z)))
    np.testing.assert_allclose(value_and_slope(F, np.full(4, z))[0], expected, rtol=1e-11)


# Under jit, vmap and grad it is a plain JAX function.


def test_gradient_of_smoothing_is_its_slope():
    F = cfgd.smoothing(sine_and_cube, 0.66, 1.0, TERMINAL)
    with jax.enable_x64(True):
        slope = jax.jit(jax.vmap(jax.grad(F)))(jnp.asarray(X))
    np.testing.assert_allclose(slope, F.slope(X), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("of", [lambda F: F, lambda F: F.slope], ids=["value", "slope"])
def test_jax_transformations_of_the_smoothing_itself(of):
    """jit, grad and vmap of F and of F.slope, without a function around them."""
    F = cfgd.smoothing(sine_and_cube, 0.66, 1.0, TERMINAL)
    with jax.enable_x64(True):
        got = jax.jit(of(F))(X)
        one_by_one = jax.vmap(of(F))(X)
        slope = [jax.grad(of(F))(x) for x in X]
    np.testing.assert_allclose(got, of(F)(X), rtol=1e-13)
    np.testing.assert_allclose(one_by_one, of(F)(X), rtol=1e-13)
    h = 1e-5
    np.testing.assert_allclose(slope, (of(F)(X + h) - of(F)(X - h)) / (2 * h), rtol=1e-7)


def test_gradient_in_the_numbers():
    """In terminal, alpha and beta, against central differences."""

    def F(c, alpha, beta):
        return cfgd.smoothing(sine_and_cube, alpha, beta, c)(2.3)

    at = np.array([0.7, 0.4, -0.5])
    with jax.enable_x64(True):
        got = jax.jit(jax.grad(F, argnums=(0, 1, 2)))(*at)
    steps = 1e-5 * np.eye(3)
    expected = [(F(*(at + step)) - F(*(at - step))) / 2e-5 for step in steps]
    np.testing.assert_allclose(got, expected, rtol=1e-8)


# Bad input.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: cfgd.smoothing(jnp.sin, 1.0, 0.0, 0.0),
            "`smoothing(alpha=...)` must lie in (0, 1), got 1.0.",
        ),
        (
            lambda: cfgd.smoothing(jnp.sin, 0.5, math.inf, 0.0),
            "`smoothing(beta=...)` must be finite, got inf.",
        ),
        (
            lambda: cfgd.smoothing(jnp.sin, np.array([0.5, 0.6]), 0.0, 0.0),
            "`smoothing(alpha=...)` must be one number, got shape (2,).",
        ),
        (
            lambda: cfgd.smoothing(jnp.sin, 0.5, 0.0, 0.0, nodes=0),
            "`smoothing(nodes=...)` must be an integer of at least 1, got 0.",
        ),
    ],
    ids=["alpha", "beta", "two alphas", "nodes"],
)
@pytest.mark.usefixtures("unchecked")
def test_message(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


def test_the_slope_at_the_terminal():
    """F'(c) = f'(c): by the derivative of F, and not only by its slope."""
    F = cfgd.smoothing(lambda t: t**2 + jnp.sin(t), 0.5, 0.3, 1.0)
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(F))(jnp.asarray(1.0))
    np.testing.assert_allclose(slope, 2 + np.cos(1.0), rtol=1e-9)
    np.testing.assert_allclose(F.slope(1.0), 2 + np.cos(1.0), rtol=1e-12)
