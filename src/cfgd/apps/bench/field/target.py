"""Every rival on a case, asked with smaller and smaller tolerances until the target is met.

Two questions. Where a problem can be solved: what work and time does it take to reach an error (or
a gradient relative to its start) of 1e-8? For the networks: what loss is reached with equal work?
"""

from __future__ import annotations

import dataclasses
import time
from functools import partial
from typing import Any

import jax
import numpy as np

from cfgd.apps.bench.field.cases import TARGET, Case, Maker
from cfgd.apps.bench.field.instance import Instance, Say
from cfgd.apps.bench.field.rivals import rivals
from cfgd.apps.bench.field.standing import Run
from cfgd.apps.bench.field.work import Outcome, Rival

# seconds beside which the time of compiling does not count
COMPILING = 8.0

# from loose to tight: what a tolerance means differs from solver to solver
TOLERANCES = tuple(10.0**-k for k in range(4, 15))
# decades of it that may change nothing before a solver is given up
IDLE = 4
# seconds of patience where there is little time
HURRY = 0.5


def instance(
    group: str, name: str, make: Maker, seed: int, quick: bool, data: str | None = None
) -> Instance:
    return Instance(group, name, seed, partial(_raced, make, name, seed, quick), data)


def _raced(make: Maker, name: str, seed: int, quick: bool, say: Say) -> list[Run]:
    case = make(seed)
    case = dataclasses.replace(case, patience=HURRY) if quick else case
    found: list[Run] = []
    reference = float("nan")
    # L-BFGS-B before all others: its final loss is what the others are timed to
    solvers = sorted(rivals(case).items(), key=lambda item: item[0] != "L-BFGS-B")
    with jax.enable_x64(True):
        for solver, solve in solvers:
            say(solver)
            one = _measured(case, name, seed, solver, solve, reference)
            reference = one.value if solver == "L-BFGS-B" else reference
            found.append(one)
    return found


def _measured(case: Case, name: str, seed: int, solver: str, solve: Rival, reference: float) -> Run:
    outcome, seconds, met, error, idle, spent = None, float("inf"), False, "", 0, 0.0
    for tolerance in TOLERANCES:
        before, began = outcome, time.perf_counter()
        try:
            outcome = solve(case, tolerance)
        except (ArithmeticError, ValueError, RuntimeError) as caught:  # what solvers raise
            error = f"{type(caught).__name__}: {str(caught)[:80]}"
            break
        seconds = time.perf_counter() - began
        met = case.budget is not None or _distance(case, outcome.x) <= TARGET
        # a solver that was not stopped by its tolerance will not go on for a smaller one; of loose
        # tolerances a fast one may well skip a few
        same = before is not None and before.work == outcome.work and tolerance < TARGET
        idle = idle + 1 if same else 0
        # the first run may have spent its time on compiling
        spent += seconds if before is not None else 0.0
        late = before is not None and (seconds > case.patience or spent > 2 * case.patience)
        if met or idle == IDLE or late:
            break
    if met and seconds < COMPILING:  # once more, now that all is compiled
        began = time.perf_counter()
        outcome = solve(case, tolerance)
        seconds = time.perf_counter() - began
    value = float("inf") if outcome is None else float(case.objective.value(outcome.x))
    value = value if np.isfinite(value) else float("inf")
    return Run(
        name,
        case.group,
        case.unit,
        solver,
        seed,
        outcome.work if outcome is not None and met else float("inf"),
        seconds if met else float("inf"),
        value,
        met,
        _time_to(reference, outcome, value, seconds),
        error,
    )


def _distance(case: Case, x: Any) -> float:
    """Error relative to the minimiser where it is known, else gradient relative to the start."""
    if not np.all(np.isfinite(x)):
        return float("inf")
    if case.minimiser is not None:
        return float(np.linalg.norm(x - case.minimiser) / np.linalg.norm(case.minimiser))
    start, end = case.objective.gradient(case.x0), case.objective.gradient(np.asarray(x))
    return float(np.linalg.norm(end) / np.linalg.norm(start))


def _time_to(reference: float, outcome: Outcome | None, value: float, seconds: float) -> float:
    """Seconds to the reference loss, as the share of the iterations that it took."""
    if outcome is None or not value <= reference:
        return float("nan")
    if outcome.values is None or not np.any(outcome.values <= reference):
        return seconds
    return float(seconds * np.argmax(outcome.values <= reference) / (len(outcome.values) - 1))
