"""NIST's regressions from both starts: correct digits of the parameters, and Jacobians.

cfgd runs with its default settings. SciPy's solvers run with the exact Jacobian, with scaling by
the Jacobian, and with the loosest of a few tolerances that gives six digits, or with the tightest
one if none does. Jacobian evaluations are counted in the callback, including the one at the
solution.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import scipy.optimize

import cfgd
from cfgd._core.types import Rows, Vector
from cfgd.apps.bench.field.instance import AUTO, Instance, ShowStatus, SolverRun
from cfgd.apps.bench.field.timing import time_shortest
from cfgd.apps.bench.field.work import compile_residuals
from cfgd.apps.data.nist import Regression, regressions

DIGITS = 6.0  # correct digits of a solved regression
TOLERANCES = (1e-8, 1e-10, 1e-12, 1e-15)
MAX_EVALUATIONS = 5000  # limit of SciPy's solvers


def instances(quick: bool) -> Iterator[Instance]:
    """Yield the 27 regressions, with `quick` every third; the seed is the number of the start."""
    for name in list(regressions())[:: 3 if quick else 1]:
        for start in (0, 1):
            yield Instance("nist", name, start, partial(run_solvers, name, start))


class Fit(NamedTuple):
    x: Any
    jacobians: int
    seconds: float


class CountedResiduals(cfgd.Residuals):
    """Residuals that call `on_jacobian` whenever their Jacobian is computed."""

    on_jacobian: Callable[[], None] = eqx.field(static=True)

    def __init__(self, fn: Callable[[Any], Any], on_jacobian: Callable[[], None]) -> None:
        super().__init__(fn)
        self.on_jacobian = on_jacobian

    def jacobian(self, x: Vector) -> Rows:
        jax.debug.callback(self.on_jacobian)
        return super().jacobian(x)


class CallCounter:
    """A function that counts its calls."""

    def __init__(self, fn: Callable[..., Any] = lambda: None) -> None:
        self.fn, self.count = fn, 0

    def __call__(self, *args: Any) -> Any:
        self.count += 1
        return self.fn(*args)


def auto(regression: Regression, x0: Any, bounds: Any = None) -> Fit:
    objective, counted, counter = _objectives(regression)
    counter.count = 0
    cfgd.minimize(counted, x0, bounds=bounds)
    jax.effects_barrier()
    solution, seconds = time_shortest(lambda: cfgd.minimize(objective, x0, bounds=bounds))
    return Fit(solution.x, counter.count, seconds)


@functools.lru_cache(maxsize=1)
def _objectives(
    regression: Regression,
) -> tuple[cfgd.Residuals, CountedResiduals, CallCounter]:
    """Return the objective to time and the one to count; cached for the second start."""
    counter, residuals = CallCounter(), regression.residuals
    return cfgd.Residuals(residuals), CountedResiduals(residuals, counter), counter


def scipy_fit(
    method: str,
    tolerance: float,
    regression: Regression,
    x0: Any,
    bounds: Any = (-np.inf, np.inf),
    scale: Any = "jac",
) -> Fit:
    """Return the fit of SciPy with one tolerance, the exact Jacobian and a scaling."""
    residuals, jacobian = compile_residuals(regression.residuals)

    def solve() -> tuple[Any, int]:
        counted_jacobian = CallCounter(lambda x: np.asarray(jacobian(x)))
        with np.errstate(all="ignore"):
            result = scipy.optimize.least_squares(
                lambda x: np.asarray(residuals(x)),
                x0,
                counted_jacobian,
                bounds,
                method=method,
                x_scale=scale,
                xtol=tolerance,
                ftol=tolerance,
                gtol=tolerance,
                max_nfev=MAX_EVALUATIONS,
            )
        return result.x, counted_jacobian.count

    (x, jacobians), seconds = time_shortest(solve)
    return Fit(x, jacobians, seconds)


def loosest_fit(method: str, regression: Regression, x0: Any) -> Fit:
    """Return the fit with the loosest tolerance that gives six digits, or with the tightest."""
    for tolerance in TOLERANCES:
        fit = scipy_fit(method, tolerance, regression, x0)
        if regression.digits(fit.x) >= DIGITS:
            break
    return fit


SOLVERS: dict[str, Callable[[Regression, Any], Fit]] = {
    AUTO: auto,
    "SciPy lm": partial(loosest_fit, "lm"),
    "SciPy trf": partial(loosest_fit, "trf"),
}


def run_solvers(name: str, start: int, show_status: ShowStatus) -> list[SolverRun]:
    regression, runs = regressions()[name], []
    with jax.enable_x64(True):
        for solver, solve in SOLVERS.items():
            show_status(solver)
            fit = solve(regression, regression.starts[start])
            r = np.asarray(regression.residuals(fit.x))
            digits = regression.digits(fit.x)
            solved = digits >= DIGITS
            runs.append(
                SolverRun(
                    problem=name,
                    group="nist",
                    unit="Jacobians",
                    solver=solver,
                    seed=start,
                    work=float(fit.jacobians) if solved else float("inf"),
                    seconds=fit.seconds if solved else float("inf"),
                    value=float(r @ r) / 2,
                    solved=solved,
                    digits=digits,
                    dimension=len(regression.certified),
                )
            )
    return runs
