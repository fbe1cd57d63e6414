"""More problems of Moré, Garbow and Hillstrom, and curves of our own: starts, minima and noise."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.optimize

from cfgd.apps.data.curves import CURVES
from cfgd.apps.data.more_standard_problems import MORE_PROBLEMS
from problems import few

# Norms of the residuals at the starts, as the test program of MINPACK's lmder prints them.
START_NORMS = {
    "Jennrich-Sampson": 64.58564981,
    "Meyer": 41153.46655,
    "Osborne 1": 0.9375640210,
    "Osborne 2": 1.446865410,
    "Chebyquad 8": 0.1965138628,
    "Brown almost-linear 10": 16.53021621,
    "Linear, full rank": 5.0,
    "Linear, rank 1": 291.5218688,
    "Linear, rank 1, zeros": 126.0396763,
}


def descend(residuals, x0):
    with jax.enable_x64(True):
        compiled, jacobian = jax.jit(residuals), jax.jit(jax.jacfwd(residuals))
        return scipy.optimize.least_squares(
            lambda x: np.asarray(compiled(x)),
            x0,
            lambda x: np.asarray(jacobian(x)),
            x_scale="jac",
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
            max_nfev=2000,
        )


@pytest.mark.parametrize("name", START_NORMS)
def test_residuals_at_the_start_are_those_of_minpack(name):
    with jax.enable_x64(True):
        norm = np.linalg.norm(MORE_PROBLEMS[name].residuals(MORE_PROBLEMS[name].x0))
    assert norm == pytest.approx(START_NORMS[name], rel=1e-9)


@pytest.mark.parametrize("name", few(MORE_PROBLEMS, 1))
def test_a_problem_has_its_published_minimum(name):
    problem = MORE_PROBLEMS[name]
    least = 2 * descend(problem.residuals, problem.x0).cost
    gaps = [abs(least - published) / max(1e-4, published) for published in problem.minima]
    assert min(gaps) <= 1e-4, (least, problem.minima)


@pytest.mark.parametrize("name", few(CURVES, 1))
def test_a_curve_has_its_noise_and_parameters(name):
    """The minimum near the truth is m - d squares of the noise, up to five deviations."""
    curve = CURVES[name]
    y = curve.y
    np.testing.assert_array_equal(y, curve.y)
    end = descend(lambda p: (curve.model(curve.x, p) - y) / curve.noise, curve.truth)
    freedom = y.size - curve.truth.size
    assert abs(2 * end.cost - freedom) <= 5 * np.sqrt(2 * freedom)
    # the truth is within six standard errors
    covariance = np.linalg.inv(end.jac.T @ end.jac)
    assert np.all(np.abs(end.x - curve.truth) <= 6 * np.sqrt(np.diag(covariance)))
    assert not np.allclose(curve.x0, curve.truth, rtol=0.02)
