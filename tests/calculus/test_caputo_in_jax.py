"""`caputo` as a function of JAX: precision, jit, vmap, grad, and orders that are traced."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from definition import (
    CURVES,
    TERMINAL,
    X,
    definition,
    in_digits,
    in_jax,
    sine_and_cube,
)
from mpmath import mp

import cfgd
from problems import few


@pytest.mark.one_case
@pytest.mark.parametrize(("x", "order"), [(-1.6, 0.3), (2.9, 1.7)], ids=["right", "left"])
def test_gradient_of_caputo(order, x):
    """In x and in the terminal, against the definition differentiated by mpmath."""
    curve = CURVES["exponential"]

    def D(x, c):
        return cfgd.caputo(in_jax(curve), order, c)(x)

    with jax.enable_x64(True):
        got = jax.jit(jax.grad(D, argnums=(0, 1)))(x, TERMINAL)
    f = functools.partial(curve, mp)
    expected = in_digits(
        20,
        lambda: [
            mp.diff(lambda x: definition(f, order, TERMINAL, x), x),
            mp.diff(lambda c: definition(f, order, c, x), TERMINAL),
        ],
    )
    np.testing.assert_allclose(got, expected, rtol=1e-11)


def test_gradient_in_the_terminal_at_a_number_x():
    slope = jax.jit(jax.grad(lambda c: cfgd.caputo(lambda t: t**2, 0.5, c)(2.0)))(0.5)
    expected = -2 * 0.5 / math.sqrt(1.5) / math.gamma(0.5)  # -f'(c) (x - c)^(-1/2) / Gamma(1/2)
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_jit_of_the_function_itself():
    D = cfgd.caputo(sine_and_cube, 0.3, TERMINAL)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(D)(X), D(X), rtol=1e-13)


# Orders: many at once, and traced.

SEVERAL = {1: [0.3, 0.9, 1.0, 1e-3], 2: [1.3, 1.7, 2.0, 1.999]}
several = pytest.mark.parametrize(("n", "several"), SEVERAL.items(), ids=SEVERAL)


@pytest.mark.slow
@several
def test_one_order_for_each_x(n, several):
    """The integer among them is exact."""
    got = cfgd.caputo(sine_and_cube, several, TERMINAL)(X)
    expected = [cfgd.caputo(sine_and_cube, a, TERMINAL)(X)[j] for j, a in enumerate(several)]
    np.testing.assert_allclose(got, expected, rtol=1e-13)
    assert got[2] == expected[2]


def test_orders_broadcast_with_x_and_terminal():
    orders = np.array([0.3, 0.5, 0.9]).reshape(3, 1, 1)
    terminals = np.array([[0.7], [-2.0]])
    got = cfgd.caputo(sine_and_cube, orders, terminals)(X)
    assert got.shape == (3, 2, 4)
    expected = [[cfgd.caputo(sine_and_cube, a, c)(X) for c in terminals.flat] for a in orders.flat]
    np.testing.assert_allclose(got, expected, rtol=1e-13)


@pytest.mark.slow
@several
def test_traced_order(n, several):
    """Under jit and vmap, with the number of derivatives that belongs to it."""

    def D(order, x):
        return cfgd.caputo(sine_and_cube, order, TERMINAL, derivatives=n)(x)

    expected = cfgd.caputo(sine_and_cube, several, TERMINAL)(X)
    with jax.enable_x64(True):
        orders, x = jnp.asarray(several), jnp.asarray(X)
        np.testing.assert_allclose(jax.jit(D)(orders, x), expected, rtol=1e-13)
        np.testing.assert_allclose(jax.vmap(D)(orders, x), expected, rtol=1e-13)


def test_a_traced_order_is_of_one_derivative():
    """Outside (0, 1] there is no number, and no slope."""
    orders = np.array([-0.5, 0.0, 0.5, 1.0, 1.5])

    def D(order):
        return cfgd.caputo(sine_and_cube, order, TERMINAL)(2.9)

    with jax.enable_x64(True):
        value, slope = jax.jit(jax.vmap(jax.value_and_grad(D)))(jnp.asarray(orders))
    outside = [True, True, False, False, True]
    np.testing.assert_array_equal(np.isnan(value), outside)
    np.testing.assert_array_equal(np.isnan(slope), outside)


@functools.cache
def value_and_slope_in_the_order(n):
    curve = in_jax(CURVES["exponential"])
    return jax.jit(
        jax.value_and_grad(lambda order, x: cfgd.caputo(curve, order, TERMINAL, derivatives=n)(x))
    )


@pytest.mark.slow
@pytest.mark.parametrize("x", [-1.6, 2.9], ids=["right", "left"])
@pytest.mark.parametrize("order", few([0.3, 0.999999, 1.7, 1e-6, 0.9], 3))
def test_gradient_in_the_order(order, x):
    """Against the definition differentiated by mpmath."""
    curve = CURVES["exponential"]
    with jax.enable_x64(True):
        _, got = value_and_slope_in_the_order(math.ceil(order))(order, x)
    expected = in_digits(25, lambda: slope_in_order(functools.partial(curve, mp), order, x, 0))
    np.testing.assert_allclose(got, expected, rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("x", [-1.6, 2.9], ids=["right", "left"])
@pytest.mark.parametrize("order", [1, 2])
def test_gradient_at_an_integer_order(order, x):
    """From below, where the order is the limit."""
    curve, at = CURVES["exponential"], float(order)
    with jax.enable_x64(True):
        value, got = value_and_slope_in_the_order(order)(at, x)
    expected = in_digits(
        25, lambda: slope_in_order(functools.partial(curve, mp), order - mp.mpf(10) ** -9, x, -1)
    )
    np.testing.assert_allclose(got, expected, rtol=1e-7)
    assert float(value) == cfgd.caputo(in_jax(curve), at, TERMINAL)(x)


def slope_in_order(f, order, x, direction):
    def derivative(f, t, n):  # of exp(t / 2)
        return f(t) / 2**n

    def D(order):
        return definition(f, order, TERMINAL, x, derivative)

    return mp.diff(D, mp.mpf(order), h=mp.mpf(10) ** -8, direction=direction)
