"""A run that the callback or Ctrl-C ends returns what it has computed."""

import os
import signal

import numpy as np
import pytest
from bowls import FLAT, HIGH, LONG, bowl, fixed

import cfgd
from cfgd import FixedStep, GradientDescent, Status
from problems import TREE, pytree_bowl


def test_callback_gets_the_solution_so_far_and_stops_the_run():
    solutions = []

    def stop(solution):
        solutions.append(solution)
        return len(solutions) == 3

    solution = cfgd.minimize(
        pytree_bowl, TREE, GradientDescent(FixedStep(0.4)), callback=stop, every=5, tolerance=0
    )
    assert solution.status is Status.callback
    assert [s.iterations for s in solutions] == [5, 10, 15]
    assert solution.iterations == 15
    for so_far in solutions:
        assert isinstance(so_far, cfgd.Solution)
        assert so_far.status is Status.running
        assert set(so_far.x) == {"a", "b"}
        assert so_far.x["a"].shape == (2,)
        assert so_far.x["b"].shape == ()
        np.testing.assert_allclose(so_far.value, pytree_bowl(so_far.x), rtol=1e-6)
        np.testing.assert_array_equal(
            so_far.history["iteration"], np.arange(0, so_far.iterations + 1, 5)
        )
    np.testing.assert_array_equal(solution.x["a"], solutions[-1].x["a"])


@pytest.mark.slow
def test_callback_gets_the_best_point_and_not_the_last():
    """With eta just above 2/lambda the value falls at first and then grows."""
    best = []
    solution = fixed(
        2.05 / HIGH,
        max_iterations=60,
        tolerance=0,
        callback=lambda so_far: best.append((so_far.iterations, so_far.value)) and False,
    )
    values = solution.history["value"]
    assert values.argmin() < 40
    for iterations, value in best:
        np.testing.assert_allclose(value, values[: iterations + 1].min(), rtol=1e-12)


def test_ctrl_c_in_the_callback():
    def interrupt(solution):
        if solution.iterations == 6:
            raise KeyboardInterrupt

    solution = bowl(callback=interrupt)
    assert solution.status is Status.interrupted
    assert solution.message.startswith(Status.interrupted.value)
    assert solution.iterations == 6
    np.testing.assert_array_equal(solution.x, solution.history["x"][-1])


def test_a_signal_during_the_run(monkeypatch):
    """A run reads the clock between chunks: the tenth time, several chunks have been computed."""
    readings = []

    def now():
        readings.append(1)
        if len(readings) == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return 0.0

    monkeypatch.setattr("cfgd.solve.clock.now", now)
    # a process in the background is started with SIGINT ignored
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        solution = fixed(0.1, FLAT, tolerance=0, max_iterations=LONG)
    except KeyboardInterrupt:
        pytest.fail("the run raised KeyboardInterrupt")
    finally:
        signal.signal(signal.SIGINT, usual)
    assert solution.status is Status.interrupted
    assert 0 < solution.iterations < LONG
    assert solution.value < solution.history["value"][0]
