"""Warnings about a fit, and which of its parameters are at a bound."""

from __future__ import annotations

import numpy as np

from cfgd._core import checks
from cfgd._core.box import Box
from cfgd.fitting.problem import FitProblem
from cfgd.fitting.uncertainty import Uncertainty
from cfgd.solve.solution import Solution


def at_bound(problem: FitProblem, solution: Solution) -> np.ndarray:
    """Return which free parameters are at a bound."""
    return Box(problem.lower, problem.upper).mask(np.asarray(solution.x)) != 0


def warnings_of(
    problem: FitProblem,
    solution: Solution,
    freedom: int,
    around: Uncertainty,
    at_bound: list[str],
) -> list[str]:
    """Return the warnings about a fit; issue a Python warning where standard errors are missing."""
    found = [] if solution.success else [f"The fit did not converge: {solution.message}"]
    for name in at_bound:
        z = float(solution.x[problem.free.index(name)])
        found.append(
            f"{name} is at its bound {z:.6g}: it has no standard error, and those of the other "
            "parameters are computed with it fixed there."
        )
    if around.factor.shape[1] == 0:
        if freedom < 0:
            missing = (
                "There are fewer points than free parameters: there are no standard errors. Fix "
                "some parameters (fixed=)."
            )
        elif freedom == 0 and not problem.absolute_sigma:
            missing = (
                "There are as many points as free parameters: the residuals have no variance, and "
                "there are no standard errors."
            )
        else:
            missing = "The data do not determine the parameters: their covariance is infinite."
        found.append(missing)
        checks.warn(missing)
        return found
    errors_of_x = [f"error of x[{i}]" for i in range(problem.n_unknown_x)]
    combinations = around.warnings(problem.free + errors_of_x)
    if around.undetermined.size:
        checks.warn(combinations[0])
    return found + combinations
