"""`gauss_jacobi` against SciPy, 40-digit mpmath, Gauss-Legendre and the moments of U."""

import functools
import re

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.special import digamma, gammaln, roots_jacobi

import cfgd
from problems import few

# SciPy's own weights hold 1e-12 up to 64 nodes for these orders; nearer to one they do not.
SCIPY_IS_ACCURATE = [1e-6, 1e-3, 0.1, 0.3, 0.5, 0.66]
NEAR_ONE = [0.9, 0.99, 0.999]
ALPHAS = np.array(SCIPY_IS_ACCURATE + NEAR_ONE)

alphas = pytest.mark.parametrize("alpha", ALPHAS)
some_nodes = pytest.mark.parametrize("nodes", [1, 2, 5, 10, 20])


@functools.cache
def rules(nodes):
    """All orders in one compiled call: 0.15 s a node number so, and 1.2 s uncompiled."""
    quick = {"xla_backend_optimization_level": 0}
    compiled = jax.jit(cfgd.gauss_jacobi, static_argnums=1, compiler_options=quick)
    with jax.enable_x64(True):
        u, w = compiled(jnp.asarray(ALPHAS), nodes)
    return np.asarray(u), np.asarray(w)


def rule(alpha, nodes):
    u, w = rules(nodes)
    column = int(np.flatnonzero(alpha == ALPHAS)[0])
    return u[:, column], w[:, column]


def scipy_rule(alpha, nodes):
    t, w = roots_jacobi(nodes, -alpha, 0)
    return (1 + t) / 2, w / w.sum()


@functools.cache
def mpmath_rule(alpha, nodes):
    """Golub-Welsch in 40 digits, rounded at the end."""
    with mpmath.workdps(40):
        t, w = mpmath.mp.gauss_quadrature(nodes, "jacobi", -mpmath.mpf(alpha), 0)
        u, w = [(1 + t_l) / 2 for t_l in t], [w_l / mpmath.fsum(w) for w_l in w]
        order = np.argsort(np.array(u, float))
        return np.array(u, float)[order], np.array(w, float)[order]


def moment(alpha, k):
    """E[U^k] = k! Gamma(2 - alpha) / Gamma(k + 2 - alpha)."""
    return np.exp(gammaln(k + 1) + gammaln(2 - alpha) - gammaln(k + 2 - alpha))


# The same rule, computed otherwise.


QUICK = {1, 2, 3, 5, 10, 20, 32, 57, 60, 64}  # those that other tests need too


@pytest.mark.parametrize(
    "nodes",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in range(1, 65)],
)
def test_scipy(nodes):
    for alpha in SCIPY_IS_ACCURATE:
        u, w = rule(alpha, nodes)
        u_scipy, w_scipy = scipy_rule(alpha, nodes)
        np.testing.assert_allclose(u, u_scipy, rtol=0, atol=1e-12)
        np.testing.assert_allclose(w, w_scipy, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", few(reversed(NEAR_ONE)))
@pytest.mark.parametrize("nodes", [2, 10, 57, 60, 64])
def test_forty_digits_near_one(alpha, nodes):
    u, w = rule(alpha, nodes)
    u_exact, w_exact = mpmath_rule(alpha, nodes)
    np.testing.assert_allclose(u, u_exact, rtol=0, atol=5e-15)
    np.testing.assert_allclose(w, w_exact, rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", few(reversed(NEAR_ONE)))
def test_scipy_is_less_accurate_near_one(alpha):
    """This is why SciPy is not the reference of the test above."""

    def worst(candidate):
        return max(
            np.abs(candidate(alpha, nodes)[1] - mpmath_rule(alpha, nodes)[1]).max()
            for nodes in (57, 60, 64)
        )

    assert worst(scipy_rule) > 1e-12
    assert worst(scipy_rule) > 20 * worst(rule)


@pytest.mark.parametrize("nodes", [1, 2, 5, 32, 64])
def test_order_one_half_is_gauss_legendre(nodes):
    """1 - u = v^2 turns (1 - u)^(-1/2) du into 2 dv: the positive half of a rule of 2s nodes."""
    v, w_legendre = np.polynomial.legendre.leggauss(2 * nodes)
    u, w = rule(0.5, nodes)
    np.testing.assert_allclose(u, (1 - v[:nodes] ** 2), rtol=0, atol=1e-13)
    np.testing.assert_allclose(w, w_legendre[:nodes], rtol=0, atol=1e-13)


# What a Gauss rule is.


@alphas
@some_nodes
def test_moments_up_to_degree_2s_minus_1(alpha, nodes):
    u, w = rule(alpha, nodes)
    for k in range(2 * nodes):
        np.testing.assert_allclose(w @ u**k, moment(alpha, k), rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e-6, 0.1, 0.5, 0.66])
@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_degree_2s_is_beyond_the_rule(alpha, nodes):
    """Otherwise the moments above would say nothing about the number of nodes."""
    u, w = rule(alpha, nodes)
    assert w @ u ** (2 * nodes) < moment(alpha, 2 * nodes) * (1 - 1e-6)


@pytest.mark.parametrize("nodes", [1, 2, 3, 10, 32, 64])
def test_nodes_inside_and_weights_positive(nodes):
    u, w = rules(nodes)
    assert u.shape == w.shape == (nodes, len(ALPHAS))
    assert (u > 0).all()
    assert (u < 1).all()
    assert (np.diff(u, axis=0) > 0).all()
    assert (w > 0).all()
    np.testing.assert_allclose(w.sum(axis=0), 1, rtol=0, atol=2e-15)


# Traceable in alpha.


def test_uncompiled_and_compiled_agree():
    u, w = cfgd.gauss_jacobi(0.66, 2)
    np.testing.assert_allclose(u, rule(0.66, 2)[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(w, rule(0.66, 2)[1], rtol=0, atol=1e-14)


def test_vmap():
    with jax.enable_x64(True):
        u, w = jax.jit(jax.vmap(lambda alpha: cfgd.gauss_jacobi(alpha, 10)))(jnp.asarray(ALPHAS))
    np.testing.assert_allclose(u.T, rules(10)[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(w.T, rules(10)[1], rtol=0, atol=1e-14)


@pytest.mark.parametrize("nodes", [1, 6])
def test_derivative_in_alpha(nodes):
    """Of every node and every weight, in both modes, against central differences of SciPy."""
    alpha, h = 0.37, 1e-5
    upper, lower = scipy_rule(alpha + h, nodes), scipy_rule(alpha - h, nodes)
    expected = (np.array(upper) - np.array(lower)) / (2 * h)
    with jax.enable_x64(True):
        forward = jax.jit(jax.jacfwd(cfgd.gauss_jacobi), static_argnums=1)(alpha, nodes)
        reverse = jax.jit(jax.jacrev(cfgd.gauss_jacobi), static_argnums=1)(alpha, nodes)
    np.testing.assert_allclose(forward, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(reverse, expected, rtol=0, atol=1e-9)
    assert np.abs(expected[0]).min() > 1e-3  # nothing here is zero by accident


def test_gradient_of_a_moment_in_alpha():
    """grad against the exact d/dalpha E[U^3] = E[U^3] (digamma(5 - alpha) - digamma(2 - alpha))."""

    def third_moment(alpha):
        u, w = cfgd.gauss_jacobi(alpha, 4)
        return jnp.sum(w * u**3)

    alpha = 0.37
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(third_moment))(alpha)
    expected = moment(alpha, 3) * (digamma(5 - alpha) - digamma(2 - alpha))
    np.testing.assert_allclose(slope, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(9,), (3, 3), (1, 9)], ids=str)
@pytest.mark.parametrize("nodes", [1, 10])
def test_one_order_for_each_coordinate(shape, nodes):
    u, w = cfgd.gauss_jacobi(ALPHAS.reshape(shape), nodes)
    assert u.shape == w.shape == (nodes, *shape)
    np.testing.assert_allclose(u.reshape(nodes, 9), rules(nodes)[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(w.reshape(nodes, 9), rules(nodes)[1], rtol=0, atol=1e-14)


# Precision follows the data.

# order 1/2: the roots of the Legendre polynomials of degree 2 and 4 in closed form
EXACT = {
    1: ([2 / 3], [1]),
    2: ((4 + np.array([-2, 2]) * np.sqrt(6 / 5)) / 7, (18 + np.array([-1, 1]) * np.sqrt(30)) / 36),
}


@pytest.mark.parametrize("alpha", [0.5, np.float64(0.5), np.array([0.5])], ids=repr)
@pytest.mark.parametrize("nodes", EXACT)
def test_numpy_input_is_computed_in_float64_with_x64_off(alpha, nodes):
    assert not jax.config.jax_enable_x64
    for part, exact in zip(cfgd.gauss_jacobi(alpha, nodes), EXACT[nodes], strict=True):
        assert type(part) is np.ndarray
        assert part.dtype == np.float64
        np.testing.assert_allclose(part.ravel(), exact, rtol=4e-15)
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize(
    ("alpha", "x64"),
    [
        (lambda: jnp.float32(0.5), False),
        (lambda: jnp.float32(0.5), True),
        (lambda: np.float32(0.5), False),
        (lambda: np.float32([0.5]), True),
    ],
    ids=["jax", "jax, x64 on", "numpy", "numpy, x64 on"],
)
@pytest.mark.parametrize("nodes", EXACT)
def test_float32_stays_float32(alpha, x64, nodes):
    with jax.enable_x64(x64):
        alpha = alpha()
        parts = cfgd.gauss_jacobi(alpha, nodes)
    for part, exact in zip(parts, EXACT[nodes], strict=True):
        assert isinstance(part, jax.Array) == isinstance(alpha, jax.Array)
        assert part.dtype == np.float32
        np.testing.assert_allclose(np.ravel(part), exact, rtol=1e-6)


# Bad input.


@pytest.mark.parametrize(
    ("alpha", "nodes", "message"),
    [
        (1.0, 3, "`gauss_jacobi(alpha=...)` must lie in (0, 1), got 1.0."),
        (0.0, 3, "`gauss_jacobi(alpha=...)` must lie in (0, 1), got 0.0."),
        ([0.5, 1.5], 3, "`gauss_jacobi(alpha=...)` must lie in (0, 1), got 1.5."),
        (0.5, 0, "`gauss_jacobi(nodes=...)` must be an integer of at least 1, got 0."),
        (0.5, 2.0, "`gauss_jacobi(nodes=...)` must be an integer of at least 1, got 2.0."),
    ],
    ids=["one", "zero", "second of two", "no nodes", "not an integer"],
)
@pytest.mark.usefixtures("unchecked")
def test_message(alpha, nodes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        cfgd.gauss_jacobi(alpha, nodes)
