"""Whatever ends a run, what was computed is kept."""

import os
import pickle
import signal
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd import Status
from problems import few


def slow_function(x):
    """About a millisecond."""
    y = jax.lax.fori_loop(0, 400, lambda _, y: jnp.sin(y) + x[0] * 1e-9, jnp.ones(200) * x[1])
    return jnp.sum(x**2) + 1e-12 * jnp.sum(y)


SLOW_METHOD = cfgd.GradientDescent(cfgd.FixedStep(1e-6))


def long_run(**options):
    options = {"tolerance": 0, "max_iterations": 10**6, "time_limit": 20} | options
    return cfgd.minimize(slow_function, [1.0, 2.0], SLOW_METHOD, **options)


def interrupted(after):
    timer = threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        return long_run()
    finally:
        timer.cancel()
        timer.join()


@pytest.fixture
def ctrl_c():
    """Python's own handler, also in a background job, whose shell has Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("count", few([2, 200]))
def test_an_interrupt_keeps_what_was_computed(count):
    before = signal.getsignal(signal.SIGINT)
    long_run(max_iterations=3)  # compiles
    random = np.random.default_rng(0)
    for after in random.uniform(0.1, 0.6, count):  # not before the run has begun
        began = time.perf_counter()
        ends = interrupted(after)
        assert ends.status is Status.interrupted
        assert time.perf_counter() - began - after < 2.0  # 0.3 s, on a machine that others use
        assert ends.history["iteration"][-1] == ends.iterations
        assert ends.value == pytest.approx(ends.history["value"].min(), rel=1e-12)
        if after > 0.4:
            assert ends.iterations > 5
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_while_compiling_returns_the_start():
    def fresh(x):
        for _ in range(200):
            x = jnp.sin(x) + x**2 / 10
        return jnp.sum(x**2)

    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    ends = cfgd.minimize(fresh, [0.1, 0.2])
    if ends.status is Status.interrupted:  # unless the compilation was over by then
        assert ends.iterations == 0
        np.testing.assert_array_equal(ends.x, [0.1, 0.2])


def test_the_error_of_a_callback_carries_the_best_point():
    def callback(solution):
        if solution.iterations == 4:
            raise RuntimeError("mine")

    f = cfgd.Quadratic(np.diag([1.0, 10.0, 100.0]), [1.0, 1.0, 1.0])
    with pytest.raises(RuntimeError, match="mine") as raised:
        cfgd.minimize(f, [1.0, 2.0, 3.0], cfgd.GradientDescent(), callback=callback)
    assert raised.value.solution.iterations == 4
    assert raised.value.solution.value < f.value([1.0, 2.0, 3.0])

    def stops(solution):
        raise StopIteration

    ends = cfgd.minimize(f, [1.0, 2.0, 3.0], cfgd.GradientDescent(), callback=stops)
    assert ends.status is Status.callback


def test_a_convergence_error_can_be_pickled():
    f = cfgd.Quadratic(np.diag([1.0, 10.0]), [1.0, 1.0])
    with pytest.raises(cfgd.ConvergenceError) as raised:
        cfgd.minimize(f, [1.0, 2.0], cfgd.GradientDescent(), max_iterations=3, throw=True)
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again) == str(raised.value)
