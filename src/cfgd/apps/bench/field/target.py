"""Every solver on a case, run with smaller and smaller tolerances until the target is met.

For most problems the results are the work and the time to a relative error of 1e-8, or to a
gradient norm of 1e-8 of its initial value. For networks the result is the loss at equal work.
"""

from __future__ import annotations

import dataclasses
import time
from functools import partial
from typing import Any

import jax
import numpy as np

from cfgd.apps.bench.field.cases import TARGET, Case, CaseMaker
from cfgd.apps.bench.field.instance import Instance, ShowStatus, SolverRun
from cfgd.apps.bench.field.solvers import solvers_for
from cfgd.apps.bench.field.work import Solver, SolverResult

# From loose to tight: the meaning of a tolerance differs from solver to solver.
TOLERANCES = tuple(10.0**-k for k in range(4, 15))
# A solver is stopped if this many decades of the tolerance do not change its work.
MAX_UNCHANGED = 4
# A run of more seconds is not repeated: its compilation time is small in comparison.
REPEAT_BELOW = 8.0
QUICK_TIME_LIMIT = 0.5  # seconds for each solver with --quick
REFERENCE = "L-BFGS-B"  # the other solvers are timed to its final loss


def make_instance(
    group: str, name: str, make: CaseMaker, seed: int, quick: bool, data: str | None = None
) -> Instance:
    return Instance(group, name, seed, partial(_run_all_solvers, make, name, seed, quick), data)


def _run_all_solvers(
    make: CaseMaker, name: str, seed: int, quick: bool, show_status: ShowStatus
) -> list[SolverRun]:
    case = make(seed)
    case = dataclasses.replace(case, time_limit=QUICK_TIME_LIMIT) if quick else case
    runs: list[SolverRun] = []
    reference = float("nan")
    solvers = sorted(solvers_for(case).items(), key=lambda item: item[0] != REFERENCE)
    with jax.enable_x64(True):
        for solver, solve in solvers:
            show_status(solver)
            run = _run_solver(case, name, seed, solver, solve, reference)
            reference = run.value if solver == REFERENCE else reference
            runs.append(run)
    return runs


def _run_solver(
    case: Case, name: str, seed: int, solver: str, solve: Solver, reference: float
) -> SolverRun:
    result, seconds, met, error, unchanged, spent = None, float("inf"), False, "", 0, 0.0
    for tolerance in TOLERANCES:
        previous, began = result, time.perf_counter()
        try:
            result = solve(case, tolerance)
        except (ArithmeticError, ValueError, RuntimeError) as raised:  # what solvers raise
            error = f"{type(raised).__name__}: {str(raised)[:80]}"
            break
        seconds = time.perf_counter() - began
        met = case.budget is not None or _relative_error(case, result.x) <= TARGET
        # A solver that its tolerance did not stop will not go further for a smaller one. A fast
        # solver may take the same steps for several loose tolerances: these do not count.
        same = previous is not None and previous.work == result.work and tolerance < TARGET
        unchanged = unchanged + 1 if same else 0
        # the first run may have spent its time on compiling
        spent += seconds if previous is not None else 0.0
        late = previous is not None and (seconds > case.time_limit or spent > 2 * case.time_limit)
        if met or unchanged == MAX_UNCHANGED or late:
            break
    if met and seconds < REPEAT_BELOW:  # again, without compiling
        began = time.perf_counter()
        result = solve(case, tolerance)
        seconds = time.perf_counter() - began
    value = float("inf") if result is None else float(case.objective.value(result.x))
    value = value if np.isfinite(value) else float("inf")
    return SolverRun(
        problem=name,
        group=case.group,
        unit=case.unit,
        solver=solver,
        seed=seed,
        work=result.work if result is not None and met else float("inf"),
        seconds=seconds if met else float("inf"),
        value=value,
        solved=met,
        to_reference=_seconds_to(reference, result, value, seconds),
        error=error,
    )


def _relative_error(case: Case, x: Any) -> float:
    """Return the error relative to a known minimiser, else the gradient relative to the start."""
    if not np.all(np.isfinite(x)):
        return float("inf")
    if case.minimiser is not None:
        return float(np.linalg.norm(x - case.minimiser) / np.linalg.norm(case.minimiser))
    start, end = case.objective.gradient(case.x0), case.objective.gradient(np.asarray(x))
    return float(np.linalg.norm(end) / np.linalg.norm(start))


def _seconds_to(
    reference: float, result: SolverResult | None, value: float, seconds: float
) -> float:
    """Return the seconds to the reference loss, in proportion to the iterations that it took."""
    if result is None or not value <= reference:
        return float("nan")
    if result.values is None or not np.any(result.values <= reference):
        return seconds
    return float(seconds * np.argmax(result.values <= reference) / (len(result.values) - 1))
