"""New numbers neither compile nor trace again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bowls import X0, F

import cfgd
from cfgd import AdaptiveTerminal, FixedStep, NonAdaptive
from problems import PAST, A, B, do_nothing


def compilations(caplog, run):
    caplog.clear()
    with jax.log_compiles():
        run()
    return [r for r in caplog.messages if r.startswith("Compiling")]


def test_new_numbers_do_not_compile_again(caplog):
    record = {"x": lambda x: 2 * x}  # a function of its own, so that the first run must compile

    def run(method, f=F, x0=X0, tolerance=0.0):
        cfgd.minimize(
            f,
            x0,
            method,
            max_iterations=20,
            tolerance=tolerance,
            record=record,
            callback=do_nothing,
        )

    def method(shift, **numbers):
        return AdaptiveTerminal(past=PAST[:1] + shift, step=FixedStep(0.1 - shift / 9), **numbers)

    assert compilations(caplog, lambda: run(method(0.0, gamma=-0.25)))
    other = cfgd.Quadratic(1.1 * A, B + 0.3)
    new = method(0.3, alpha=0.3, gamma=0.2)
    assert not compilations(caplog, lambda: run(new, other, X0 + 0.3, 1e-4))
    # by which name the smoothing is given does not matter either
    assert not compilations(caplog, lambda: run(method(0.2, alpha=0.9, beta=0.1)))


@pytest.mark.slow
def test_new_numbers_of_a_sweep_do_not_compile_again(caplog):
    record = {"x": lambda x: 2 * x}

    def run(gammas, x0=X0):
        methods = AdaptiveTerminal(gamma=gammas)
        cfgd.sweep(F, x0, methods, max_iterations=20, record=record, callback=do_nothing)

    assert compilations(caplog, lambda: run([-0.3, -0.2, 0.0, 0.1]))
    assert not compilations(caplog, lambda: run([0.4, 0.3, 0.2, -0.1]))
    starts = X0 + np.arange(12.0).reshape(4, 3) / 10
    assert not compilations(caplog, lambda: run([0.4, 0.3, 0.2, -0.1], starts))


def test_new_numbers_do_not_trace_a_function_again():
    traces = []

    def fn(x):
        traces.append(x.shape)
        return jnp.sum((x - 2.0) ** 4) + x[0] * x[1]

    f = cfgd.Smooth(fn)

    def traced(alpha, gamma, eta, x0, terminal):
        traces.clear()
        cfgd.minimize(
            f,
            x0,
            NonAdaptive(terminal, alpha, gamma=gamma, nodes=2, step=FixedStep(eta)),
            max_iterations=5,
        )
        return len(traces)

    x0, c = np.array([1.0, 0.5]), np.array([0.0, 1.0])
    assert traced(0.5, 0.1, 0.01, x0, c) > 1
    # the function is traced once for x0, to check that it returns a number
    assert traced(0.3, 0.2, 0.02, x0 + 1, c - 1) <= 1
