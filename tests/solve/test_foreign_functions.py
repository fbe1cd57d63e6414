"""Functions with data as arguments, and functions in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd


def test_new_data_does_not_trace_again():
    traces = []

    def f(x, data, power):
        traces.append(1)
        return jnp.sum(jnp.abs(x - data) ** power) + jnp.sum(x**2)

    for data, power in ((np.ones(3), 2.0), (np.arange(3.0), 4.0), (np.zeros(3), 3.0)):
        assert cfgd.minimize(f, np.array([0.3, 0.1, 0.5]), args=(data, power)).success
        if data[0] == 1:
            first = len(traces)
    assert len(traces) - first <= 2  # no program, only the checks of what f returns


def test_a_numpy_function():
    def value(x):
        return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))

    def gradient(x):
        g = np.zeros_like(x)
        g[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
        g[1:] += 200 * (x[1:] - x[:-1] ** 2)
        return g

    calls = []

    def both(x):
        calls.append(x.dtype)
        return value(x), gradient(x)

    ends = cfgd.minimize(cfgd.External(both), np.array([-1.2, 1.0]))
    again = cfgd.minimize(cfgd.External(value, gradient), np.array([-1.2, 1.0]))
    assert ends.success
    np.testing.assert_allclose(ends.x, 1, rtol=1e-7)
    np.testing.assert_array_equal(ends.x, again.x)
    assert set(calls) == {np.dtype(np.float64)}
    assert ends.value == value(ends.x)
    descent = cfgd.GradientDescent(cfgd.ArmijoStep())
    assert cfgd.minimize(cfgd.External(both), [0.9, 0.8], descent, max_iterations=20).value < 0.02
    method = cfgd.AdaptiveTerminal(gamma=-0.2, step=cfgd.ArmijoStep())
    local = cfgd.Local(cfgd.External(both), "exact")
    assert cfgd.minimize(local, [0.9, 0.8], method, max_iterations=20).value < 0.02


def test_an_error_of_a_numpy_function_is_raised_with_the_best_point():
    calls = []

    def both(x):
        calls.append(1)
        if len(calls) > 9:
            raise ZeroDivisionError("mine")
        return np.sum(x**4), 4 * x**3

    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        cfgd.minimize(cfgd.External(both), [3.0, 1.0])
    assert raised.value.solution.value < 82
    with pytest.raises(ValueError, match="return a gradient of 2 numbers, got 3"):
        cfgd.minimize(cfgd.External(lambda x: (0.0, np.zeros(3))), [3.0, 1.0])
