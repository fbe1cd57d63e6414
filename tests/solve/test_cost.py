"""Rounding errors do not accumulate, and `evaluations` is what a run costs."""

import numpy as np
import pytest
from bowls import FLAT, RECORD, X0

import cfgd
from cfgd import AdaptiveTerminal, FixedStep, GradientDescent, Status
from problems import FIGURE1, NODES, SMOOTH_METHODS, WAVE_X0, do_nothing, fixed_gd, wave


def well_conditioned(d=20):
    """Return a quadratic, its minimiser, its largest eigenvalue and the eigenvector."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, d))
    f = cfgd.Quadratic(X.T @ X / 60, rng.normal(size=d))
    eigenvalues, vectors = np.linalg.eigh(f.A)
    assert eigenvalues[-1] < 30 * eigenvalues[0]
    return f, -np.linalg.solve(f.A, f.b), eigenvalues[-1], vectors[:, -1]


@pytest.mark.slow
def test_errors_of_the_updated_gradient_do_not_accumulate():
    """In 2e4 iterations the first half oscillates with size 1e6, the second is rounding.

    In a gradient that is only updated, errors of the oscillations, about 1e-9, would remain.
    """
    f, minimiser, high, swing = well_conditioned()
    solution = cfgd.minimize(
        f,
        minimiser + 1e6 * swing,
        GradientDescent(FixedStep((2 - 5e-3) / high)),
        max_iterations=20_000,
        tolerance=0,
        every=1000,
    )
    true = np.linalg.norm(f.A @ solution.x + f.b)
    assert true <= 50 * np.finfo(float).eps * np.linalg.norm(f.b)
    np.testing.assert_allclose(solution.gradient_norm, true, atol=1e-14)
    np.testing.assert_allclose(solution.x, minimiser, rtol=1e-12)


@pytest.mark.one_case
@pytest.mark.parametrize(("scale", "tolerance"), [(1e6, 1e-18), (1e12, 1e-20)])
def test_converged_means_by_a_computed_gradient(scale, tolerance):
    """A distant start leaves rounding errors of 1e-16 of its size in an updated gradient."""
    f, minimiser, high, _ = well_conditioned()
    x0 = minimiser + scale * np.random.default_rng(2).normal(size=20)
    method = GradientDescent(FixedStep(1 / high))
    solution = cfgd.minimize(f, x0, method, tolerance=tolerance, every=10_000)
    first, last = (np.linalg.norm(f.A @ x + f.b) for x in (x0, solution.x))
    assert solution.status is Status.converged
    assert last <= tolerance * first * (1 + 1e-3)


def test_evaluations_on_a_quadratic():
    """An iteration costs one product, and there are few recomputations."""
    for method in (GradientDescent(FixedStep(0.1)), AdaptiveTerminal(gamma=-0.2)):
        solution = cfgd.minimize(FLAT, X0, method, max_iterations=5000, tolerance=0, record=RECORD)
        n = solution.iterations
        assert n > 1000  # and then stalled
        assert n < solution.evaluations <= 1.01 * n + 2


@pytest.mark.slow
def test_evaluations_on_a_function():
    """An iteration costs one gradient, a direction with s nodes s d of them."""
    run = cfgd.minimize(
        wave, WAVE_X0, fixed_gd(0.05), max_iterations=10, tolerance=0, record=RECORD
    )
    assert run.evaluations == 11
    method = SMOOTH_METHODS["adaptive terminal"].make(FixedStep(0.05))
    run = cfgd.minimize(wave, WAVE_X0, method, max_iterations=10, tolerance=0, record=RECORD)
    assert run.evaluations == 1 + 10 * (1 + NODES * 2)


def test_evaluations_of_figure_1():
    method = AdaptiveTerminal(gamma=-1.0, past=[[-1.0, -1.0]])
    solution = cfgd.minimize(
        FIGURE1.objective, FIGURE1.x0, method, record=RECORD, callback=do_nothing
    )
    assert solution.status is Status.converged
    assert solution.iterations == 4
    assert 4 <= solution.evaluations <= 8
