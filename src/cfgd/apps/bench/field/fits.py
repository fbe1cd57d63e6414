"""Curve fits from given and perturbed starts: runs that reach the best sum of squares, and cost.

All solvers run with their default tolerances. The time is the shortest of several calls of compiled
functions, in turns. A `converged` of cfgd is false if a descent with tight tolerances from its end
finds a smaller sum of squares.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

import cfgd
from cfgd.apps.bench.field.fit_problems import (
    PERTURBED,
    SAME_SUM,
    FitProblem,
    fit_names,
    fit_problem,
    half_sum,
    tight_descent,
)
from cfgd.apps.bench.field.fit_solvers import FitEnd, auto, end_of, installed_solvers
from cfgd.apps.bench.field.instance import AUTO, Instance, ShowStatus, SolverRun
from cfgd.apps.bench.field.timing import time_shortest_interleaved

GROUP = "fits"
QUICK_EVERY = 25  # `quick` has every 25th fit
FALSE = "false converged"
TIMING_SECONDS = 1.0  # limit for the repeats of all solvers on one start together
# The check of `converged` may change x by this fraction: farther away there may be another minimum.
NEAR = 0.1


def instances(quick: bool) -> Iterator[Instance]:
    """Yield the fits; seeds number the given starts, then the perturbed ones (`quick`: one)."""
    for name, given in list(fit_names().items())[:: QUICK_EVERY if quick else 1]:
        for seed in range(given + (1 if quick else PERTURBED)):
            yield Instance(GROUP, name, seed, partial(run_solvers, name, seed))


@functools.lru_cache(maxsize=1)
def _objective(problem: FitProblem) -> cfgd.Residuals:
    return cfgd.Residuals(problem.residuals)


def run_solvers(name: str, seed: int, show_status: ShowStatus) -> list[SolverRun]:
    problem = fit_problem(name)
    x0 = problem.start(seed)
    calls: dict[str, Callable[[], FitEnd]] = {AUTO: partial(auto, _objective(problem), x0)}
    for solver, solve in installed_solvers().items():
        calls[solver] = partial(solve, problem.residuals, x0)
    show_status(", ".join(calls))
    with jax.enable_x64(True), np.errstate(all="ignore"):
        guarded = [partial(end_of, call) for call in calls.values()]
        timed = time_shortest_interleaved(*guarded, seconds=TIMING_SECONDS)
    return [
        _run(problem, seed, solver, end, seconds)
        for solver, (end, seconds) in zip(calls, timed, strict=True)
    ]


def _run(problem: FitProblem, seed: int, solver: str, end: FitEnd, seconds: float) -> SolverRun:
    value = half_sum(problem.residuals, end.x) if end.x is not None else float("inf")
    solved = problem.has_best(value)
    status = end.status
    if status == "converged" and _can_fall(problem, end.x, value):
        status = FALSE
    return SolverRun(
        problem=problem.name,
        group=GROUP,
        unit="gradients",
        solver=solver,
        seed=seed,
        work=end.work if solved else float("inf"),
        seconds=seconds if solved else float("inf"),
        value=value,
        solved=solved,
        error=end.error,
        dimension=problem.given[0].size,
        status=status,
    )


def _can_fall(problem: FitProblem, x: Any, value: float) -> bool:
    """Return whether a tight descent from x finds a smaller sum of squares near x."""
    if problem.has_best(value):
        return False
    least = tight_descent(problem.residuals, x, NEAR)
    return least < value * (1 - SAME_SUM) - problem.negligible
