"""A run that is interrupted or fails returns what it has computed."""

import os
import pickle
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fake_clock import fake_clock

import cfgd
from cfgd import Status
from problems import few


class Interrupting:
    """A function that sends Ctrl-C from inside of the compiled loop, at evaluation `at`."""

    def __init__(self):
        self.at, self.evaluations = 0, 0

    def count(self):
        self.evaluations += 1
        if self.evaluations == self.at:
            os.kill(os.getpid(), signal.SIGINT)

    def __call__(self, x):
        jax.debug.callback(self.count)
        return jnp.sum(x**2)

    def run(self, at):
        self.at, self.evaluations = at, 0
        method = cfgd.GradientDescent(cfgd.FixedStep(1e-6))
        return cfgd.minimize(self, [1.0, 2.0], method, tolerance=0, max_iterations=10**6)


@pytest.fixture
def ctrl_c():
    """Install Python's own handler, which a job in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("count", few([2, 200]))
def test_an_interrupt_keeps_what_was_computed(count):
    before = signal.getsignal(signal.SIGINT)
    function = Interrupting()
    for at in np.random.default_rng(0).integers(20, 2000, count):
        with fake_clock():  # chunks, whose lengths depend on the time, are eight times as long each
            ends = function.run(at)
        assert ends.status is Status.interrupted
        # the run ends after the chunk in which the signal came
        assert at - 20 <= ends.iterations <= 9 * at + 20
        assert ends.history["iteration"][-1] == ends.iterations
        assert ends.value == pytest.approx(ends.history["value"].min(), rel=1e-12)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_while_compiling_returns_the_start():
    traces = []

    def fresh(x):
        if not traces:
            os.kill(os.getpid(), signal.SIGINT)
        traces.append(x)
        return jnp.sum(x**2)

    ends = cfgd.minimize(fresh, [0.1, 0.2])
    assert ends.status is Status.interrupted
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


@pytest.mark.slow
def test_a_convergence_error_can_be_pickled():
    f = cfgd.Quadratic(np.diag([1.0, 10.0]), [1.0, 1.0])
    with pytest.raises(cfgd.ConvergenceError) as raised:
        cfgd.minimize(f, [1.0, 2.0], cfgd.GradientDescent(), max_iterations=3, throw=True)
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again) == str(raised.value)
