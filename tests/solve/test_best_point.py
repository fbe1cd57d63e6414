"""The best point is the best of those that were evaluated, at no cost in evaluations."""

import jax
import numpy as np
import pytest

import cfgd
from problems import few, identity

NOISE, EVALUATED = np.random.default_rng(0), []


def noisy(x):
    """Return 10 x^2 with a noise that differs at every evaluation, even at the same point.

    In float32: a callback of JAX runs in a thread of its own, where float64 is not enabled.
    """

    def evaluate(x):
        EVALUATED.append(float(x[0]))
        return np.float32(1e-3 * NOISE.normal())

    shape = jax.ShapeDtypeStruct((), x.dtype)
    return 10 * x[0] ** 2 + jax.pure_callback(evaluate, shape, jax.lax.stop_gradient(x))


@pytest.mark.parametrize("seed", few(range(4)))
def test_a_worse_second_evaluation_does_not_change_the_best_point(seed):
    """The noise is as large as the decrease of the value."""
    random = np.random.default_rng(seed)

    def very_noisy(x):
        shape = jax.ShapeDtypeStruct((), x.dtype)
        noise = jax.pure_callback(lambda x: np.float32(random.normal()), shape, x)
        return x[0] ** 2 + jax.lax.stop_gradient(noise)

    wrapped = jax.custom_jvp(very_noisy)
    wrapped.defjvp(lambda x, dx: (very_noisy(*x), 2 * x[0][0] * dx[0][0]))
    method = cfgd.GradientDescent(cfgd.FixedStep(0.1))
    options = {"max_iterations": 8, "tolerance": 0.0, "record": {"x": lambda x: x[0]}}
    end = cfgd.minimize(wrapped, np.full(1, 0.5, np.float32), method, **options)
    assert end.x[0] == end.history["x"][np.argmin(end.history["value"])]


@pytest.mark.parametrize("iterations", few([23, 7]))
def test_the_best_point_is_one_that_was_evaluated(iterations):
    """The step is slightly too long, so that x changes its sign and the value grows slowly."""
    EVALUATED.clear()
    method = cfgd.GradientDescent(cfgd.FixedStep(0.1 + 1e-3))
    options = {"max_iterations": iterations, "record": {"x": lambda x: x[0]}}
    end = cfgd.minimize(noisy, np.ones(1, np.float32), method, tolerance=0.0, **options)
    jax.effects_barrier()
    best = np.argmin(end.history["value"])
    assert end.x[0] == end.history["x"][best]
    # the start, the iterations, and once more the point that is returned
    assert len(EVALUATED) == end.evaluations + 1
    assert EVALUATED[-1] == end.x[0]
    assert end.value == pytest.approx(end.history["value"][best], abs=1e-2)


@pytest.mark.slow
def test_the_best_of_a_block_is_in_its_middle():
    """Heavy ball on a quadratic goes up and down within the iterations of a block."""
    f = cfgd.Quadratic([[20.0, 3.0], [3.0, 2.0]], [1.0, -4.0])
    method = cfgd.AdaptiveTerminal(gamma=-0.9, step=cfgd.FixedStep(0.05))
    found = {}
    for iterations in range(9, 17):
        end = cfgd.minimize(
            f,
            [3.0, -4.0],
            method,
            max_iterations=iterations,
            tolerance=0.0,
            record={"x": identity},
        )
        best = np.argmin(end.history["value"])
        found[iterations] = best
        np.testing.assert_array_equal(end.x, end.history["x"][best])
    assert any(best < iterations for iterations, best in found.items())
