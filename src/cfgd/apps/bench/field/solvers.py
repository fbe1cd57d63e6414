"""The solvers of a case, and those of them that are methods of cfgd."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import cfgd
from cfgd.apps.bench.field import solvers_jax, solvers_scipy
from cfgd.apps.bench.field.cases import Case
from cfgd.apps.bench.field.instance import AUTO
from cfgd.apps.bench.field.work import MAX_ITERATIONS, Solver, SolverResult


def solvers_for(case: Case) -> dict[str, Solver]:
    """Return the solvers of a case by name, Auto first."""
    if case.group == "least-squares":
        linear: dict[str, Solver] = {
            AUTO: auto,
            "LSQR": solvers_scipy.lsqr,
            "LSMR": solvers_scipy.lsmr,
            "CG, Jacobi": solvers_scipy.cg,
            "L-BFGS-B": solvers_scipy.lbfgsb,
            "Barzilai-Borwein": solvers_scipy.barzilai_borwein,
            "best constants": heavy_ball,
            "gradient descent": gradient_descent,
            "the paper": paper,
        }
        is_dense = isinstance(case.matrix, np.ndarray)
        return linear | ({"direct": solvers_scipy.direct} if is_dense else {})
    solvers: dict[str, Solver] = {
        AUTO: auto,
        "L-BFGS-B": solvers_scipy.lbfgsb,
        "trust-ncg": solvers_scipy.trust_ncg,
    }
    if case.residuals is not None:
        solvers |= {
            "least_squares": solvers_scipy.least_squares,
            "optimistix LM": solvers_jax.optimistix_lm,
        }
    solvers |= {
        "optimistix BFGS": solvers_jax.optimistix_bfgs,
        "optax L-BFGS": solvers_jax.optax_lbfgs,
        "optax Adam": solvers_jax.adam,
    }
    if case.budget is None:
        return solvers | {"Newton-CG": solvers_scipy.newton_cg}
    return solvers | {
        "variable projection": solvers_scipy.variable_projection,
        "gradient descent": gradient_descent,
        "the paper": paper,
    }


# ---------------------------------------------------------------------- methods of cfgd


def cfgd_solver(method_for: Callable[[Case], Any]) -> Solver:
    """Return a solver that runs `cfgd.minimize` with the method of a case."""

    def solve(case: Case, tolerance: float) -> SolverResult:
        limit = MAX_ITERATIONS if case.budget is None else _iterations_in_budget(case, method_for)
        solution = cfgd.minimize(
            case.objective,
            case.x0,
            method_for(case),
            tolerance=tolerance if case.budget is None else 0.0,
            max_iterations=limit,
            time_limit=case.time_limit if case.budget is None else None,
            every=10,
        )
        # an evaluation of a least-squares problem takes a product with X and one with X'
        work = solution.evaluations * (2 if case.group == "least-squares" else 1)
        return SolverResult(solution.x, work, solution.history["value"])

    return solve


@functools.lru_cache(maxsize=8)
def _iterations_in_budget(case: Case, method_for: Callable[[Case], Any]) -> int:
    """Return the number of iterations within the budget; their cost depends on the line search."""
    assert case.budget is not None
    limit = case.budget
    while True:
        solution = cfgd.minimize(
            case.objective, case.x0, method_for(case), tolerance=0.0, max_iterations=limit, every=10
        )
        if solution.evaluations <= case.budget or limit <= 1:
            return limit
        # in proportion, with a margin of 2 % so that the next run is likely within the budget
        limit = max(1, int(0.98 * solution.iterations * case.budget / solution.evaluations))


def _gradient_descent_method(case: Case) -> Any:
    """Return gradient descent with the exact step, or for networks with the paper's line search."""
    return cfgd.GradientDescent(
        cfgd.NetworkStep() if case.group == "networks" else cfgd.ExactStep()
    )


auto = cfgd_solver(lambda case: cfgd.Auto())
paper = cfgd_solver(lambda case: case.paper)
gradient_descent = cfgd_solver(_gradient_descent_method)
heavy_ball = cfgd_solver(
    lambda case: cfgd.AdaptiveTerminal(gamma="best", step=cfgd.FixedStep("best"))
)
