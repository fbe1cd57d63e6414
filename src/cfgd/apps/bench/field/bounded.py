"""NIST's regressions with a bound that is active at the solution: Jacobians.

A bound excludes the certified value of one parameter: it lies at a distance of a tenth of this
value, or half-way to the start if that is nearer. A fit is solved if its sum of squares is the
lowest of all solvers to eight digits. cfgd runs with its default settings; SciPy's solvers run with
the exact Jacobian, with and without scaling, and with the loosest of a few tolerances that solves
the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from cfgd.apps.bench.field.instance import AUTO, Instance, ShowStatus, SolverRun
from cfgd.apps.bench.field.nist import TOLERANCES, Fit, auto, scipy_fit
from cfgd.apps.data.nist import regressions

GROUP = "bounds"
SAME_DIGITS = 1e-8  # relative difference of two equal sums of squares
SCIPY = {
    f"SciPy {method}{words}": (method, scale)
    for method in ("trf", "dogbox")
    for words, scale in (("", "jac"), (", unscaled", 1.0))
}


def instances(quick: bool) -> Iterator[Instance]:
    """Yield the 27 regressions, with `quick` every ninth; the seed is the number of the start."""
    for name in list(regressions())[:: 9 if quick else 1]:
        for start in (0, 1):
            yield Instance(GROUP, name, start, partial(run_solvers, name, start))


def active_bounds(certified: Any, x0: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds; one of them excludes a certified value, on the side of the start."""
    lower, upper = np.full(len(certified), -np.inf), np.full(len(certified), np.inf)
    j = len(certified) - 1 if len(certified) % 2 else 0
    away, gap = x0[j] - certified[j], abs(certified[j]) / 10
    gap = min(gap, abs(away) / 2) if away != 0 else gap
    if away >= 0:
        lower[j] = certified[j] + gap
    else:
        upper[j] = certified[j] - gap
    return lower, upper


def run_solvers(name: str, start: int, show_status: ShowStatus) -> list[SolverRun]:
    regression = regressions()[name]
    x0 = np.asarray(regression.starts[start], float)
    bounds = active_bounds(regression.certified, x0)
    x0 = np.clip(x0, *bounds)  # SciPy refuses a start outside
    fits: dict[str, list[Fit]] = {}
    with jax.enable_x64(True):
        show_status(AUTO)
        fits[AUTO] = [auto(regression, x0, bounds)]
        for solver, (method, scale) in SCIPY.items():
            show_status(solver)
            fits[solver] = [
                scipy_fit(method, tolerance, regression, x0, bounds, scale)
                for tolerance in TOLERANCES
            ]

        def value(fit: Fit) -> float:
            r = np.asarray(regression.residuals(fit.x))
            return float(r @ r) / 2

        values = {solver: [value(fit) for fit in some] for solver, some in fits.items()}
    least = min(min(some) for some in values.values())

    def run(solver: str) -> SolverRun:
        is_solved = [one <= least * (1 + SAME_DIGITS) for one in values[solver]]
        chosen = is_solved.index(True) if any(is_solved) else -1
        fit, solved = fits[solver][chosen], any(is_solved)
        return SolverRun(
            problem=name,
            group=GROUP,
            unit="Jacobians",
            solver=solver,
            seed=start,
            work=float(fit.jacobians) if solved else float("inf"),
            seconds=fit.seconds if solved else float("inf"),
            value=values[solver][chosen],
            solved=solved,
            dimension=len(x0),
        )

    return [run(solver) for solver in fits]
