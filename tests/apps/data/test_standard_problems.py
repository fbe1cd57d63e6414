"""The standard problems have their published minima and starts."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.optimize

from cfgd.apps.data.standard_problems import PROBLEMS
from problems import few


@pytest.mark.parametrize("name", few(PROBLEMS, 8))
def test_a_problem_has_its_published_minimum(name):
    """SciPy finds it from the published start."""
    problem = PROBLEMS[name]
    with jax.enable_x64(True):
        residuals = jax.jit(problem.residuals)
        jacobian = jax.jit(jax.jacfwd(problem.residuals))
        solution = scipy.optimize.least_squares(
            lambda x: np.asarray(residuals(x)),
            problem.x0,
            lambda x: np.asarray(jacobian(x)),
            method="lm" if len(residuals(problem.x0)) >= problem.x0.size else "trf",
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
            max_nfev=5000,
        )
        assert float(problem(solution.x)) == pytest.approx(2 * solution.cost, rel=1e-9, abs=1e-25)
    gaps = [abs(2 * solution.cost - minimum) / max(1e-4, minimum) for minimum in problem.minima]
    assert min(gaps) <= 1e-4, (2 * solution.cost, problem.minima)


def test_seed_0_is_the_published_start_and_others_are_near_it():
    problem = PROBLEMS["Wood"]
    np.testing.assert_array_equal(problem.start(0), [-3, -1, -3, -1])
    moved = problem.start(1) - problem.x0
    np.testing.assert_array_equal(moved, problem.start(1) - problem.x0)
    assert 0 < np.abs(moved).max() < 0.5
