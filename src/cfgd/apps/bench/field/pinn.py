"""Physics-informed networks: loss and relative error after equal time from equal starts.

All solvers have the same wall time, without compilation. The result is the relative error of the
solution at the point with the lowest loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from cfgd.apps.bench.field.instance import Instance, ShowStatus, SolverRun, TracePoint
from cfgd.apps.bench.field.pinn_problems import MAKERS, problem
from cfgd.apps.bench.field.pinn_solvers import SOLVERS
from cfgd.apps.bench.field.pinn_trace import Trace
from cfgd.apps.bench.field.timing import TimeLimitError

GROUP = "pinn"
SECONDS = {True: 2.0, False: 30.0}  # time limit of a run, with and without `quick`
QUICK = ("Poisson 1-D",)


def problem_name(name: str, seconds: float) -> str:
    return f"{name}, {seconds:g} s"


def instances(quick: bool, seeds: int, seconds: float | None = None) -> Iterator[Instance]:
    """Yield the instances; `seconds` is the time limit of each run."""
    seconds = seconds or SECONDS[quick]
    for name in QUICK if quick else MAKERS:
        for seed in range(seeds):
            measure = partial(run_solvers, name, seed, seconds)
            yield Instance(GROUP, problem_name(name, seconds), seed, measure)


def run_solvers(name: str, seed: int, seconds: float, show_status: ShowStatus) -> list[SolverRun]:
    one, runs = problem(name), []
    x0 = one.x0(seed)
    one.value_and_gradient(x0), one.residuals(x0), one.residuals_and_jacobian(x0)  # compiles
    for solver, solve in SOLVERS.items():
        show_status(solver)
        trace = Trace(seconds)
        with np.errstate(all="ignore"), suppress(TimeLimitError):
            solve(one, x0, trace)
        history = tuple(TracePoint(at, value, one.error(x)) for at, value, x in trace.points())
        runs.append(
            SolverRun(
                problem=problem_name(name, seconds),
                group=GROUP,
                unit="seconds",
                solver=solver,
                seed=seed,
                work=seconds,
                seconds=seconds,
                value=trace.least,
                solved=True,
                dimension=len(x0),
                relative_error=history[-1].error,
                history=history,
            )
        )
    return runs
