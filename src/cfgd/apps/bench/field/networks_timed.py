"""The paper's networks: the loss after half a second, and the time to the loss of the paper.

All solvers have the same wall time, without compilation. SciPy's lm requires at least as many
residuals as variables; zeros are appended. optimistix has no time limit: its number of steps is the
smallest of a grid (by factors of 1.4) that takes at least this time, and the time of all steps
counts as its time to the paper's loss.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import cfgd
from cfgd.apps.bench.field.cases import Case, network
from cfgd.apps.bench.field.instance import AUTO, Instance, ShowStatus, SolverRun
from cfgd.apps.bench.field.solvers_jax import optimistix_lm_steps
from cfgd.apps.bench.field.timing import TimedBest, TimeLimitError, time_shortest
from cfgd.apps.bench.field.variable_projection import ProjectedNetwork
from cfgd.apps.bench.field.work import compile_derivatives, compile_residuals
from cfgd.apps.data.network_functions import FUNCTIONS, SAMPLES, STARTS, Start

SECONDS = 0.5
# the loss of the paper on h1 after 1e5 iterations: a mean squared error of 2e-4
PAPER_LOSS = 2e-4 * SAMPLES / 2
STEP_GRID = tuple(int(16 * 2 ** (k / 2)) for k in range(20))  # numbers of steps of optimistix
NO_LIMIT = 1_000_000  # iterations: every run ends earlier, at its time limit


def problem_name(function: str, start: Start) -> str:
    return f"{function}, {start.short}, {SECONDS:g} s"


def instances(quick: bool, seeds: int) -> Iterator[Instance]:
    """Yield the instances; `quick` has h1 only."""
    for function in ("h1",) if quick else tuple(FUNCTIONS):
        for start in STARTS.values():
            for seed in range(seeds):
                measure = partial(run_solvers, function, start, seed)
                yield Instance("networks", problem_name(function, start), seed, measure)


# Each solver returns the final loss and the seconds to `PAPER_LOSS` (NaN if it is not reached).


def auto(case: Case) -> tuple[float, float]:
    def solve(seconds: float) -> Any:
        return cfgd.minimize(
            case.objective, case.x0, tolerance=0.0, time_limit=seconds, max_iterations=NO_LIMIT
        )

    solve(SECONDS / 10)  # compiles
    solution = solve(SECONDS)
    below = np.flatnonzero(solution.history["value"] <= PAPER_LOSS)
    share = below[0] / max(1, solution.iterations) if len(below) else float("nan")
    return float(solution.value), float(share * solution.seconds)


def _run_timed(
    case: Case, solve: Callable[[TimedBest], Any], weights: Callable[[Any], Any] = lambda x: x
) -> tuple[float, float]:
    """Run `solve` for a short time, which compiles, and then for the measured time."""
    for seconds in (SECONDS / 10, SECONDS):
        best = TimedBest(seconds, PAPER_LOSS)
        with contextlib.suppress(TimeLimitError):
            solve(best)
    # The loss by the network itself, in which large weights cancel less exactly.
    return float(case.objective.value(weights(best.x))), best.reached


def bfgs(case: Case) -> tuple[float, float]:
    """Run SciPy's BFGS, which stores a dense matrix."""
    compiled = compile_derivatives(case.fn)[0]

    def solve(best: TimedBest) -> None:
        def value_and_gradient(x: Any) -> tuple[float, Any]:
            value, gradient = compiled(x)
            best.record(float(value), x)
            return float(value), np.asarray(gradient)

        scipy.optimize.minimize(
            value_and_gradient,
            case.x0,
            jac=True,
            method="BFGS",
            options={"gtol": 0.0, "maxiter": NO_LIMIT},
        )

    compiled(case.x0)
    return _run_timed(case, solve)


def _minpack_lm(best: TimedBest, residuals: Any, jacobian: Any, x0: Any) -> None:
    """Run MINPACK's lm with its tightest tolerances, with zeros for the missing residuals."""

    def padded(rows: Any) -> Any:
        missing = max(0, x0.size - len(rows))
        return np.concatenate([rows, np.zeros((missing, *rows.shape[1:]))])

    def recorded_residuals(x: Any) -> Any:
        r = np.asarray(residuals(x))
        best.record(float(r @ r) / 2, x)
        return padded(r)

    scipy.optimize.least_squares(
        recorded_residuals,
        x0,
        lambda x: padded(np.asarray(jacobian(x))),
        method="lm",
        x_scale="jac",
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=NO_LIMIT,
    )


def scipy_lm(case: Case) -> tuple[float, float]:
    residuals, jacobian = compile_residuals(case.residuals)
    residuals(case.x0), jacobian(case.x0)
    return _run_timed(case, lambda best: _minpack_lm(best, residuals, jacobian, case.x0))


def optimistix_lm(case: Case) -> tuple[float, float]:
    x0 = jnp.asarray(case.x0)

    def solve(steps: int) -> tuple[float, float]:
        x, seconds = time_shortest(
            lambda: np.asarray(optimistix_lm_steps(case.residuals, x0, steps))
        )
        return float(case.objective.value(x)), seconds

    trial = STEP_GRID[4]
    _, seconds = solve(trial)
    # all steps take about as long
    enough = [steps for steps in STEP_GRID if steps * seconds / trial >= SECONDS]
    value, seconds = solve(enough[0])
    return value, seconds if value <= PAPER_LOSS else float("nan")


def projected_lbfgs(case: Case) -> tuple[float, float]:
    projected = ProjectedNetwork(case.objective)

    def solve(best: TimedBest) -> None:
        def value_and_gradient(w: Any) -> tuple[float, Any]:
            value, gradient = projected.value_and_gradient(w)
            best.record(value, w)
            return value, gradient

        options = {"maxiter": NO_LIMIT, "maxfun": NO_LIMIT, "gtol": 0.0, "ftol": 0.0}
        x0 = case.x0[: case.objective.hidden]
        scipy.optimize.minimize(
            value_and_gradient, x0, jac=True, method="L-BFGS-B", options=options
        )

    return _run_timed(case, solve, projected.all_weights)


def projected_lm(case: Case) -> tuple[float, float]:
    projected, x0 = ProjectedNetwork(case.objective), case.x0[: case.objective.hidden]
    return _run_timed(
        case,
        lambda best: _minpack_lm(best, projected.residuals, projected.jacobian, x0),
        projected.all_weights,
    )


SOLVERS: dict[str, Callable[[Case], tuple[float, float]]] = {
    AUTO: auto,
    "SciPy BFGS": bfgs,
    "SciPy lm": scipy_lm,
    "optimistix LM": optimistix_lm,
    "variable projection": projected_lbfgs,
    "variable projection LM": projected_lm,
}


def run_solvers(function: str, start: Start, seed: int, show_status: ShowStatus) -> list[SolverRun]:
    case, runs = network(function, start, NO_LIMIT, seed), []
    with jax.enable_x64(True), np.errstate(all="ignore"):
        for solver, solve in SOLVERS.items():
            show_status(solver)
            value, reached = solve(case)
            runs.append(
                SolverRun(
                    problem=problem_name(function, start),
                    group="networks",
                    unit="seconds",
                    solver=solver,
                    seed=seed,
                    work=SECONDS,
                    seconds=SECONDS,
                    value=value,
                    solved=True,
                    to_reference=reached,
                )
            )
    return runs
