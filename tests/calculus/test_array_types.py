"""`caputo` and `smoothing` on numbers, NumPy and JAX arrays: types, precision, jit and vmap."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from definition import X, in_float32

import cfgd

FUNCTIONS = {  # at the terminal 0.7, each with its exact value at x = 2.9
    "caputo": (
        lambda: cfgd.caputo(lambda t: (t - 0.7) ** 2, 0.5, 0.7),
        2 / math.gamma(2.5) * 2.2**1.5,
    ),
    "caputo of order 2": (lambda: cfgd.caputo(lambda t: (t - 0.7) ** 3, 2, 0.7), 6 * 2.2),
    "smoothing": (
        lambda: cfgd.smoothing(lambda t: (t - 0.7) ** 2, 0.5, 0.25, 0.7),
        (2 / 3 + 0.25) * 2.2**2,
    ),
    "smoothing slope": (
        lambda: cfgd.smoothing(lambda t: (t - 0.7) ** 2, 0.5, 0.25, 0.7).slope,
        2 * (2 / 3 + 0.25) * 2.2,
    ),
}
functions = pytest.mark.parametrize(("make", "exact"), FUNCTIONS.values(), ids=FUNCTIONS)


@functions
@pytest.mark.parametrize("x", [2.9, np.float64(2.9), np.full(4, 2.9)], ids=repr)
def test_numpy_input_is_computed_in_float64_with_x64_off(make, exact, x):
    assert not jax.config.jax_enable_x64
    got = make()(x)
    assert type(got) is np.ndarray
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, np.full(np.shape(x), exact), rtol=1e-13)
    assert not jax.config.jax_enable_x64


@pytest.mark.slow
@functions
def test_integers_are_numbers(make, exact):
    got = make()(np.array([3, 2, -1, 0]))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, make()(np.array([3.0, 2.0, -1.0, 0.0])))


@pytest.mark.slow
@functions
@in_float32
def test_float32_stays_float32(make, exact, kind, x64):
    """The terminal, alpha and beta are numbers: they have no precision of their own."""
    with jax.enable_x64(x64):
        x = kind.full(4, 2.9, np.float32)
        got = make()(x)
    assert isinstance(got, jax.Array) == isinstance(x, jax.Array)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, [exact] * 4, rtol=1e-5)


@functions
def test_jit_and_vmap(make, exact):
    fn = make()
    with jax.enable_x64(True):
        got = jax.jit(jax.vmap(fn))(jnp.asarray(X))
    np.testing.assert_allclose(got, fn(X), rtol=1e-13)
    np.testing.assert_allclose(got[-1], exact, rtol=1e-13)
