"""`fractional_gradient` under jit, vmap and grad, and the precision of its data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from directions import CASES, NODES, POINT, TERMINAL, by_definition

import cfgd
from problems import few

# Under jit, vmap and grad it is a plain JAX function.

WEIGHTS = np.array([1.0, -0.7, 0.4, 2.0])
TRANSFORMED = ["quadratic", "smooth"]
transformed = pytest.mark.parametrize("name", TRANSFORMED)


@pytest.mark.one_case
@transformed
def test_jit(name):
    f = CASES[name].objective
    expected = by_definition(CASES[name].f, POINT, TERMINAL, 0.3, 0.2)

    @jax.jit
    def compiled(x, c, alpha, beta):
        return cfgd.fractional_gradient(f, x, c, alpha, beta, NODES)

    with jax.enable_x64(True):
        got = compiled(jnp.asarray(POINT), jnp.asarray(TERMINAL), 0.3, 0.2)
    assert isinstance(got, jax.Array)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@transformed
def test_vmap(name):
    """Over points, terminals, orders and smoothings at once."""
    f = CASES[name].objective
    shift = np.array([[0.0], [0.3], [-0.8]])
    batch = POINT + shift, TERMINAL - shift / 2, np.array([0.3, 0.5, 0.9]), np.array([0, 1, -0.5])
    expected = [
        cfgd.fractional_gradient(f, x, c, alpha, beta, NODES)
        for x, c, alpha, beta in zip(*batch, strict=True)
    ]
    with jax.enable_x64(True):
        got = jax.jit(jax.vmap(lambda *a: cfgd.fractional_gradient(f, *a, NODES)))(*batch)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.one_case
@transformed
def test_grad(name):
    """In the point, the terminal, the order and the smoothing, against central differences."""
    f = CASES[name].objective
    where = POINT, TERMINAL, np.array(0.3), np.array(0.2)

    @jax.jit
    def height(*at):
        return jnp.dot(WEIGHTS, cfgd.fractional_gradient(f, *at, NODES))

    with jax.enable_x64(True):
        got = jax.jit(jax.grad(height, argnums=(0, 1, 2, 3)))(*where)
        h = 1e-5
        for i, of in enumerate(where):
            for j in np.ndindex(of.shape):
                step = np.zeros(of.shape)
                step[j] = h
                upper, lower = (
                    height(*where[:i], of + sign * step, *where[i + 1 :]) for sign in (1, -1)
                )
                np.testing.assert_allclose(got[i][j], (upper - lower) / (2 * h), rtol=1e-7)


# Precision follows the data.


@transformed
def test_numpy_input_is_computed_in_float64_with_x64_off(name):
    """A list is a vector. The values are those of `test_definition`."""
    assert not jax.config.jax_enable_x64
    f = CASES[name].objective
    got = cfgd.fractional_gradient(f, POINT.tolist(), TERMINAL.tolist(), 0.3, 0.2, NODES)
    np.testing.assert_array_equal(
        got, cfgd.fractional_gradient(f, POINT, TERMINAL, 0.3, 0.2, NODES)
    )
    assert type(got) is np.ndarray
    assert got.dtype == np.float64
    assert not jax.config.jax_enable_x64


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("kind", "x64"), few([(np, True), (jnp, False), (np, False), (jnp, True)], 2)
)
@pytest.mark.parametrize("terminal", [TERMINAL, 0.25], ids=["vector", "number"])
def test_float32_stays_float32(kind, x64, terminal):
    """Scalars (alpha, beta, perhaps the terminal) do not promote the arrays."""
    f = CASES["smooth"].objective
    expected = cfgd.fractional_gradient(f, POINT, terminal, 0.3, 0.2, 1)
    with jax.enable_x64(x64):
        x = kind.asarray(POINT, dtype=np.float32)
        c = kind.asarray(terminal, dtype=np.float32) if np.ndim(terminal) else terminal
        got = cfgd.fractional_gradient(f, x, c, 0.3, 0.2, 1)
    assert isinstance(got, jax.Array) == isinstance(x, jax.Array)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.slow
def test_a_terminal_of_higher_precision_does_not_promote_x():
    x, f = np.float32([1.5, -0.5]), cfgd.Smooth(lambda x: jnp.sum(jnp.sin(x)))
    got = cfgd.fractional_gradient(f, jnp.asarray(x), np.array([0.2, 0.3]), 0.3, 0.2)
    assert got.dtype == np.float32
    expected = cfgd.fractional_gradient(f, x.astype(float), np.array([0.2, 0.3]), 0.3, 0.2)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_new_numbers_cause_no_new_trace():
    """One program serves all x, terminals and orders, also in `coordinate_slope`."""
    traces = []

    def f(x):
        traces.append(x.shape)
        return jnp.sum(jnp.cos(x) * x) + x[0] * x[1]

    def directions(x, c, alpha):
        d = cfgd.fractional_gradient(f, x, c, alpha, beta=alpha - 0.3)
        g = cfgd.Smooth(f)
        return d, g.coordinate_slope(x, c), g.coordinate_curvature(x, c), g.gradient(x)

    first = directions([1.0, 2.0, 3.0], [0.0, 0.5, 1.0], 0.3)
    seen = len(traces)
    second = directions([1.5, 2.5, 0.1], [0.3, -0.5, 2.0], 0.6)
    assert seen > 0
    assert len(traces) == seen
    assert not np.allclose(first[0], second[0])
