"""`caputo` and `smoothing`: the choice of nodes, warnings and compilations."""

import math
import warnings
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from definition import in_digits
from mpmath import mp, workdps

import cfgd
from problems import few, quick

pytestmark = pytest.mark.slow

# The automatic number of nodes.


class Sine(eqx.Module):
    """sin(rate t): one compilation for all rates."""

    rate: np.ndarray

    def __call__(self, t):
        return jnp.sin(self.rate * t)


def of_sine(rate, x):
    """The derivative of sin(rate t) of order 1/2 from 0, by Fresnel's integrals of x - t = s^2."""
    rate, x = mp.mpf(rate), mp.mpf(x)
    a = mp.sqrt(2 * rate * x / mp.pi)
    wave = mp.cos(rate * x) * mp.fresnelc(a) + mp.sin(rate * x) * mp.fresnels(a)
    return mp.sqrt(2 * rate) * wave


def test_fresnel():
    """The closed form against the definition."""
    with workdps(20):
        integral = mp.quad(lambda s: mp.cos(30 * (3 - s * s)), mp.linspace(0, mp.sqrt(3), 30))
        assert mp.almosteq(60 / mp.sqrt(mp.pi) * integral, of_sine(30, 3), rel_eps=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "rtol"), few([(900, 1e-9), (30, 1e-11), (200, 1e-11)], 2))
def test_oscillations_are_resolved(rate, rtol):
    """900 and [0, 3]: 430 periods, for which 256 nodes are not enough and 1024 are."""
    got = cfgd.caputo(Sine(np.array(rate, float)), 0.5, 0.0)(3.0)
    np.testing.assert_allclose(got, in_digits(20, lambda: of_sine(rate, 3)), rtol=rtol)


@pytest.mark.slow
def test_smoothing_of_oscillations():
    """F of sin(rate t) at alpha = 1/2, beta = 0: its slope is the scaled derivative."""
    rate, x = 200, 3.0
    F = cfgd.smoothing(lambda t: jnp.sin(rate * t), 0.5, 0.0, 0.0)
    scale = math.gamma(1.5) / math.sqrt(x)
    expected = in_digits(20, lambda: of_sine(rate, 3) * scale)
    np.testing.assert_allclose(F.slope(x), expected, rtol=1e-11)
    h = 1e-5
    np.testing.assert_allclose((F(x + h) - F(x - h)) / (2 * h), expected, rtol=1e-4)


def test_many_nodes_in_blocks():
    """100 is no multiple of a block."""
    got = cfgd.caputo(jnp.sin, 0.5, 0.0, nodes=100)(np.array([1.0, 2.0]))
    np.testing.assert_allclose(
        got, cfgd.caputo(jnp.sin, 0.5, 0.0)(np.array([1.0, 2.0])), rtol=1e-13
    )


# Warnings.

KINK = r"with 1024 nodes the estimated error is \de-0\d of the mean size of the integrand; split"


def root_of_cube(t):
    return jnp.abs(t) ** 1.5


def test_a_kink_warns():
    D = cfgd.caputo(root_of_cube, 0.5, -1.0)
    with pytest.warns(UserWarning, match=r"^`caputo\(root_of_cube, ...\)`: " + KINK) as caught:
        value = D(1.0)
    assert caught[0].filename == __file__
    # f' = 3/2 sign(t) sqrt|t|, t = 1 - 2 v^2
    pieces = [0, math.sqrt(0.5), 1]
    expected = in_digits(
        20,
        lambda: (
            3
            * mp.sqrt(2)
            / mp.gamma(0.5)
            * mp.quad(lambda v: mp.sign(1 - 2 * v * v) * mp.sqrt(abs(1 - 2 * v * v)), pieces)
        ),
    )
    assert 1e-6 < abs(value - expected) < 1e-3


KINKED = cfgd.smoothing(root_of_cube, 0.5, 0.3, -1.0)


@pytest.mark.slow
@pytest.mark.parametrize("fn", [KINKED, KINKED.slope], ids=["value", "slope"])
def test_a_kink_of_the_smoothing_warns(fn):
    with pytest.warns(UserWarning, match=r"^`smoothing\(root_of_cube, ...\)`: " + KINK) as caught:
        fn(1.0)
    assert caught[0].filename == __file__


def test_a_given_number_of_nodes_is_used_and_checked():
    """3 nodes are exact for degree 5, so for the slope of t^6; 2 are not."""
    x, exact = 2.0, math.gamma(7) / math.gamma(6.5) * 2.0**5.5
    np.testing.assert_allclose(cfgd.caputo(lambda t: t**6, 0.5, 0.0, 3)(x), exact, rtol=1e-13)
    with pytest.warns(UserWarning, match="with 2 nodes the estimated error is 5e-02"):
        got = cfgd.caputo(lambda t: t**6, 0.5, 0.0, 2)(x)
    u, w = cfgd.gauss_jacobi(0.5, 2)
    assert 0.04 < 1 - got / exact < 0.06
    by_hand = math.sqrt(x) / math.gamma(1.5) * np.sum(w * 6 * (u * x) ** 5)
    np.testing.assert_allclose(got, by_hand, rtol=1e-13)


def test_no_warning_under_a_transformation():
    D = cfgd.caputo(root_of_cube, 0.5, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(D)(1.0)
        jax.vmap(D)(jnp.ones(2))
        jax.grad(D)(1.0)


class Sum(eqx.Module):
    """Of five functions, most of them times 0: one compilation for all tests."""

    times: np.ndarray

    def __call__(self, t):
        a, b, c, d, e = self.times
        return a * jnp.sin(t) + b * (t - 0.7) ** 3 + c * jnp.exp(-t * t) + d * jnp.tanh(3 * t) + e


SMOOTH = {
    "sine": [1, 0, 0, 0, 0],
    "power of the distance": [0, 1, 0, 0, 0],
    "bell": [0, 0, 1, 0, 0],
    "large constant": [1, 0, 0, 0, 1e6],
    "constant": [0, 0, 0, 0, 0],
    "step": [0, 0, 0, 1, 0],
}


EACH = {
    f"{name}-{dtype.__name__}": (times, dtype)
    for name, times in SMOOTH.items()
    for dtype in (np.float32, np.float64)
}
QUICK = ["sine-float32", "sine-float64", "bell-float32", "large constant-float32", "step-float64"]


@pytest.mark.slow
@pytest.mark.parametrize(("times", "dtype"), quick(EACH, QUICK))
def test_no_false_warning(times, dtype):
    """Also next to the terminal, at zeros of f', next to an integer order, and in float32."""
    f = Sum(np.array(times, np.float32))
    near = 0.7 + np.geomspace(1e-14 if dtype == np.float64 else 1e-6, 1, 8)
    x = np.concatenate([near, np.linspace(-3, 3, 25)]).astype(dtype)
    for order in (0.3, 1.5, 1 - 1e-9):
        cfgd.caputo(f, order, 0.7)(x)
    F = cfgd.smoothing(f, 0.6, 0.5, 0.7)
    F(x)
    F.slope(x)


# Compiled once for each function, whatever the numbers are.


def test_new_numbers_cause_no_new_trace():
    traces = []

    def f(t):
        traces.append(t)
        return jnp.sin(t)

    def traced(run):
        traces.clear()
        run()
        return len(traces)

    def caputo(order, terminal, x):
        return lambda: cfgd.caputo(f, order, terminal)(x)

    def smoothing(alpha, beta, terminal, z):
        F = cfgd.smoothing(f, alpha, beta, terminal)
        return lambda: (F(z), F.slope(z))

    assert traced(caputo(0.3, 0.0, 1.0))
    assert not traced(caputo(0.31, 0.1, 1.5))
    assert not traced(caputo(np.float64(0.9), np.float64(-1.0), np.float64(-2)))
    assert traced(caputo(1.3, 0.0, 1.0))  # another number of derivatives
    assert not traced(caputo(1.4, 0.1, 1.5))
    assert traced(smoothing(0.3, 0.1, 0.0, 1.0))
    assert not traced(smoothing(0.4, 0, -0.5, 1.5))


def test_nothing_runs_outside_of_compiled_programs(caplog):
    """The rules, and one program for each function: a new shape compiles that one alone."""

    def compiled(run):
        caplog.clear()
        with jax.log_compiles():
            run()
        return [m.split()[1] for m in caplog.messages if m.startswith("Compiling")]

    D = cfgd.caputo(lambda t: jnp.cos(t), 0.3, 0.0)
    F = cfgd.smoothing(lambda t: jnp.cos(t), 0.3, 0.2, 0.0)
    assert set(compiled(lambda: D(np.ones((3, 1))))) <= {
        "jit(nodes_and_weights)",
        "jit(_fractional_orders)",
    }
    assert compiled(lambda: D(np.ones((1, 3)))) == ["jit(_fractional_orders)"]
    assert compiled(lambda: F(np.ones((1, 3)))) == ["jit(_value)"]
    assert compiled(lambda: F.slope(np.ones((1, 3)))) == ["jit(_slope)"]
    cfgd.gauss_jacobi(0.3, 7)
    assert not compiled(lambda: cfgd.gauss_jacobi(0.4, 7))


def test_a_function_that_cannot_be_hashed():
    @dataclass
    class Wave:
        rate: float

        def __call__(self, t):
            return jnp.sin(self.rate * t)

    got = cfgd.caputo(Wave(2.0), 0.3, 0.0)(1.0)
    np.testing.assert_allclose(got, cfgd.caputo(lambda t: jnp.sin(2 * t), 0.3, 0.0)(1.0))


def test_a_function_of_traced_numbers():
    def D(rate):
        return cfgd.caputo(lambda t: rate * t**2, 0.5, 0.0)(jnp.float32(2.0))

    expected = math.gamma(3) / math.gamma(2.5) * 2**1.5
    np.testing.assert_allclose(jax.jit(D)(3.0), 3 * expected, rtol=1e-5)
    np.testing.assert_allclose(jax.grad(D)(3.0), expected, rtol=1e-5)
