"""Runs in blocks of iterations end and report as runs of single iterations do."""

import jax.numpy as jnp
import numpy as np
import pytest
from fake_clock import fake_clock

import cfgd
from cfgd import FixedStep, GradientDescent, Status
from problems import few


def spectrum(d, condition):
    random = np.random.default_rng(d)
    Q = np.linalg.qr(random.normal(size=(d, d)))[0]
    A = (Q * np.geomspace(1 / condition, 1, d)) @ Q.T
    return cfgd.Quadratic((A + A.T) / 2, 1e4 * random.normal(size=d))


def test_a_tolerance_that_rounding_decides_ends_the_run():
    """Two ways of summing |g|^2 may differ in the last digit: the run must end all the same."""
    for seed in range(15, 25):
        random = np.random.default_rng(seed)
        M = random.normal(size=(40, 40))
        A = M @ M.T / 40 + np.eye(40)
        f = cfgd.Quadratic((A + A.T) / 2, random.normal(size=40))
        x0 = random.normal(size=40)
        with fake_clock(tick=1.0):
            end = cfgd.minimize(f, x0, tolerance=1 - 1.2e-16, time_limit=1e4, max_iterations=50)
        assert end.success
        assert end.iterations <= 1


def test_labels_of_rows_after_a_recomputed_gradient():
    """At a tolerance beyond rounding, updated gradients meet it again and again."""
    end = cfgd.minimize(
        spectrum(20, 1e3),
        np.ones(20),
        tolerance=1e-15,
        max_iterations=100,
        every=8,
        record={"k": "k"},
    )
    np.testing.assert_array_equal(end.history["iteration"], end.history["k"])
    assert end.status is cfgd.Status.stalled
    assert end.history["iteration"][-1] == end.iterations > 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", few([cfgd.AdaptiveTerminal(gamma=-0.3), cfgd.Auto()]), ids=["at", "auto"]
)
def test_the_last_row_has_the_numbers_of_the_last_step(method):
    ends = [
        cfgd.minimize(spectrum(20, 1e2), np.ones(20), method, record={"eta": "eta"}, every=every)
        for every in (1, 8)
    ]
    assert ends[0].success
    assert ends[0].history["eta"][-1] == pytest.approx(ends[1].history["eta"][-1], rel=1e-6) != 0


@pytest.mark.parametrize("every", few([7, 1]))
def test_a_run_that_cannot_move_has_made_no_iteration(every):
    end = cfgd.minimize(cfgd.Quadratic(np.zeros((2, 2)), [1.0, 1.0]), np.ones(2), every=every)
    assert end.status is Status.unbounded
    assert end.iterations == 0
    np.testing.assert_array_equal(end.history["iteration"], [0])


@pytest.mark.parametrize("every", few([7, 1]))
def test_a_quadratic_without_a_minimum_gives_a_finite_point(every):
    f = cfgd.Quadratic(np.diag([1.0, 2.0, 0.0]), [1.0, 1.0, 1e-3])
    end = cfgd.minimize(f, np.ones(3), every=every)
    assert np.all(np.isfinite(end.x))
    assert end.value < f.value(np.ones(3))
    assert not end.success


def test_converged_means_the_point_that_is_returned():
    """A run that jumps to a plateau, where the gradient vanishes, returns its best point."""

    def pit(x):
        return jnp.sum(1 - jnp.exp(-(x**2)))

    ends = cfgd.minimize(pit, [0.9, 0.5], GradientDescent(FixedStep(1e3)), max_iterations=200)
    assert ends.history["gradient_norm"][-1] <= 1e-8 * ends.history["gradient_norm"][0]
    assert ends.gradient_norm > 1e-3
    assert not ends.success
    assert ends.value <= ends.history["value"].min()
