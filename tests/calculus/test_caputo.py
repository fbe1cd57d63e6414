"""`caputo` against Definition 2.1 by mpmath, closed forms, and pycaputo."""

import functools
import math

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from definition import (
    TERMINAL,
    Polynomial,
    X,
    Z,
    curves,
    definition,
    in_digits,
    in_jax,
    orders,
    sine_and_cube,
)
from mpmath import mp

import cfgd

# By definition.


@pytest.mark.one_case
@curves
@orders
def test_definition(curve, order):
    got = cfgd.caputo(in_jax(curve), order, TERMINAL)(X)
    f = functools.partial(curve, mp)
    expected = in_digits(20, lambda: [definition(f, order, TERMINAL, x) for x in X])
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def test_definition_is_evaluated_accurately():
    """Check the reference itself, with and without the substitution."""
    with mpmath.workdps(30):
        direct = mp.quad(lambda t: mp.cos(t) * (mp.mpf(2) - t) ** mp.mpf("-0.125"), [1, 2])
        assert mp.almosteq(
            direct / mp.gamma(mp.mpf("0.875")), definition(mp.sin, 0.125, 1, 2), rel_eps=1e-20
        )


def test_errata_2_and_3():
    """The signs of Theorem 2: its nodes and its beta term hold with x - c, not with |x - c|."""
    alpha, c, x = 0.3, 1.7, 0.5

    def ratio(order):
        D, identity = cfgd.caputo(sine_and_cube, order, c), cfgd.caputo(lambda t: t, alpha, c)
        return (D(np.full(4, x)) / identity(np.full(4, x)))[0]

    np.testing.assert_allclose(ratio(alpha), 3.86507930795, rtol=1e-11)
    np.testing.assert_allclose(abs(x - c) * ratio(1 + alpha), -6.21697907199, rtol=1e-11)

    # the text of the theorem, literally: Delta = |x - c| / 2
    def as_printed(g):
        Delta, power = abs(x - c) / 2, 1 / mp.mpf(1 - alpha)
        # with u = 1 - 2 v^power, against the singularity, C_alpha (1 - u)^(-alpha) du is -dv
        return mp.quad(lambda v: g(Delta * (2 - 2 * v**power) + c), [0, 1])

    first = in_digits(20, lambda: as_printed(lambda t: mp.cos(t) + 3 * t**2))
    second = in_digits(20, lambda: abs(x - c) * as_printed(lambda t: -mp.sin(t) + 6 * t))
    np.testing.assert_allclose([first, second], [17.056, 16.57], rtol=3e-4)


# In closed form.


@orders
@pytest.mark.parametrize("power", [1, 2, 3, 4, 7])
def test_powers(order, power):
    """(t - c)^p: on the right it is (-1)^p (c - t)^p, and the right derivative sees c - t."""
    got = cfgd.caputo(Polynomial.of([0.0] * power + [1.0]), order, TERMINAL)(X)
    h = np.abs(X - TERMINAL)
    side = np.where(X > TERMINAL, 1, (-1) ** power)
    expected = side * math.gamma(power + 1) / math.gamma(power + 1 - order) * h ** (power - order)
    if power < order:  # f^(n) is zero
        expected = np.zeros(4)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def mittag_leffler(a, b, z):
    return mp.nsum(lambda k: z**k / mp.gamma(a * k + b), [0, mp.inf])


def exponential(order, h, side):
    """Of exp(1.4 (t - c)), at distance h: k-th terms with k >= n survive."""
    n, rate = math.ceil(order), side * mp.mpf(1.4)
    return rate**n * h ** (n - order) * mittag_leffler(1, n + 1 - order, rate * h)


def sine(order, h, side):
    """Of sin(1.4 (t - c)), an odd function of t - c: odd terms with 2j + 1 >= n survive."""
    j, rate = math.ceil(order) // 2, side * mp.mpf(1.4)
    first = (-1) ** j * rate ** (2 * j + 1) * h ** (2 * j + 1 - order)
    return first * mittag_leffler(2, 2 * j + 2 - order, -((rate * h) ** 2))


CLOSED_FORMS = {
    "exponential": (lambda t: jnp.exp(1.4 * (t - TERMINAL)), exponential),
    "sine": (lambda t: jnp.sin(1.4 * (t - TERMINAL)), sine),
}


@orders
@pytest.mark.parametrize(("curve", "closed_form"), CLOSED_FORMS.values(), ids=CLOSED_FORMS)
def test_mittag_leffler(curve, closed_form, order):
    got = cfgd.caputo(curve, order, TERMINAL)(X)
    expected = in_digits(
        25, lambda: [closed_form(order, abs(x - TERMINAL), np.sign(x - TERMINAL)) for x in X]
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12)


# Integer orders are limits.

DERIVATIVES = {  # of sin t + t^3, and the sign of its limit on the right
    1: (lambda t: np.cos(t) + 3 * t**2, -1),
    2: (lambda t: -np.sin(t) + 6 * t, +1),
    3: (lambda t: -np.cos(t) + 6, -1),
}


@pytest.mark.parametrize("order", DERIVATIVES)
@pytest.mark.parametrize("kind", [int, float, np.float64], ids=lambda k: k.__name__)
def test_integer_order(order, kind):
    derivative, right = DERIVATIVES[order]
    got = cfgd.caputo(sine_and_cube, kind(order), TERMINAL)(X)
    np.testing.assert_allclose(got, np.where(X > TERMINAL, 1, right) * derivative(X), rtol=1e-13)


@pytest.mark.parametrize("order", DERIVATIVES)
def test_integer_order_at_the_terminal(order):
    """At the terminal it is the left derivative: f^(n) itself."""
    got = cfgd.caputo(sine_and_cube, order, TERMINAL)(Z)
    np.testing.assert_allclose(got[2], DERIVATIVES[order][0](TERMINAL), rtol=1e-13)


@pytest.mark.parametrize("order", DERIVATIVES)
def test_integer_order_is_the_limit_from_below(order):
    exactly = cfgd.caputo(sine_and_cube, order, TERMINAL)(X)
    below = cfgd.caputo(sine_and_cube, order - 1e-7, TERMINAL)(X)
    np.testing.assert_allclose(below, exactly, rtol=0, atol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_the_limit_from_above_differs(order):
    """There n = order + 1, and the integral of f^(n) is f^(n-1)(x) - f^(n-1)(c)."""
    derivative, right = DERIVATIVES[order]
    expected = np.where(X > TERMINAL, 1, right) * (derivative(X) - derivative(TERMINAL))
    above = cfgd.caputo(sine_and_cube, order + 1e-7, TERMINAL)(X)
    np.testing.assert_allclose(above, expected, rtol=0, atol=1e-5)


# A second library, for x > c.


@pytest.mark.slow
@curves
@pytest.mark.parametrize("alpha", [0.1, 0.9, 0.5])
def test_pycaputo(curve, alpha):
    """Its spectral method, 16 points: rounding there leaves it 1e-11 to 1e-12 away."""
    from pycaputo.differentiation import diff
    from pycaputo.differentiation.caputo import Jacobi
    from pycaputo.grid import make_jacobi_gauss_lobatto_points

    grid = make_jacobi_gauss_lobatto_points(16, a=TERMINAL, b=2.9)
    expected = diff(Jacobi(alpha), lambda t: curve(np, t), grid)
    got = cfgd.caputo(in_jax(curve), alpha, TERMINAL)(grid.x)
    np.testing.assert_allclose(got[1:], expected[1:], rtol=0, atol=5e-11)


# Broadcasting, and the terminal itself.


def cubic(order, terminal, x):
    """The derivative of (t - 0.7)^3 + 2 (t - 0.7)^2 where the terminal is 0.7."""
    h, side = np.abs(x - terminal), np.where(x > terminal, 1, -1)
    third, second = 6 / math.gamma(4 - order), 4 / math.gamma(3 - order)
    return side * third * h ** (3 - order) + second * h ** (2 - order)


@pytest.mark.parametrize("shape", [(), (4,), (1, 3, 2), (0,)], ids=str)
def test_every_shape_of_x(shape):
    order = 1.3
    x = np.array([2.9, -1.6, 0.7, 0.1, 0.71, 5.0])[: math.prod(shape)].reshape(shape)
    got = cfgd.caputo(lambda t: (t - 0.7) ** 3 + 2 * (t - 0.7) ** 2, order, 0.7)(x)
    assert got.shape == shape
    np.testing.assert_allclose(got, cubic(order, 0.7, x), rtol=1e-12, atol=0)


def test_an_array_of_terminals():
    """t^2 = (t - c)^2 + 2c (t - c) + c^2, each power as above."""
    x, c = np.array([[2.0], [-1.0], [0.5]]), np.array([-1.5, 0.5, 3.0, 0.25])
    got = cfgd.caputo(lambda t: t**2, 0.5, c)(x)
    h, side = np.abs(x - c), np.sign(x - c)
    expected = 2 * h**1.5 / math.gamma(2.5) + side * 2 * c * h**0.5 / math.gamma(1.5)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@orders
def test_a_fractional_order_is_zero_at_the_terminal(order):
    got = cfgd.caputo(sine_and_cube, order, TERMINAL)(Z)
    assert got[2] == 0
    assert np.isfinite(got).all()
    assert np.count_nonzero(got) == 3
