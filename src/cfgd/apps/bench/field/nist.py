"""NIST's regressions, both starts: how many digits of the parameters, for how many Jacobians.

cfgd has its default settings. SciPy's solvers have the exact Jacobian, its scaling, and the loosest
of some tolerances that gives six digits; if none does, the tightest. Calls are counted, not what a
solver says of itself; the one that a solver makes of the solution at its end counts for everyone.
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
from cfgd.apps.bench.field.clock import timed
from cfgd.apps.bench.field.instance import Instance, Say
from cfgd.apps.bench.field.standing import OURS, Run
from cfgd.apps.bench.field.work import residuals_of
from cfgd.apps.data.nist import Regression, regressions
from cfgd.objectives.curvature import Model
from cfgd.objectives.evaluation import Evaluation

DIGITS = 6.0
TOLERANCES = (1e-8, 1e-10, 1e-12, 1e-15)
MOST = 5000  # looks


def instances(quick: bool) -> Iterator[Instance]:
    """All 27, of which `quick` takes every third; the seed is the start."""
    for name in list(regressions())[:: 3 if quick else 1]:
        for start in (0, 1):
            yield Instance("nist", name, start, partial(measured, name, start))


class End(NamedTuple):
    x: Any
    jacobians: int
    seconds: float


class Watched(cfgd.Residuals):
    """Tells whenever its matrix is made."""

    seen: Callable[[], None] = eqx.field(static=True)

    def __init__(self, fn: Callable[[Any], Any], seen: Callable[[], None]) -> None:
        super().__init__(fn)
        self.seen = seen

    def model(self, point: Evaluation) -> Model:
        jax.debug.callback(self.seen)
        return super().model(point)


class Tally:
    """A function that counts its calls."""

    def __init__(self, fn: Callable[..., Any] = lambda: None) -> None:
        self.fn, self.count = fn, 0

    def __call__(self, *args: Any) -> Any:
        self.count += 1
        return self.fn(*args)


def auto(one: Regression, x0: Any) -> End:
    objective, watched, tally = _ours(one)
    tally.count = 0
    cfgd.minimize(watched, x0)
    jax.effects_barrier()
    ends, seconds = timed(lambda: cfgd.minimize(objective, x0))
    return End(ends.x, tally.count, seconds)


@functools.lru_cache(maxsize=1)
def _ours(one: Regression) -> tuple[cfgd.Residuals, Watched, Tally]:
    """Kept for the second start."""
    tally = Tally()
    return cfgd.Residuals(one.residuals), Watched(one.residuals, tally), tally


def scipys(method: str, one: Regression, x0: Any) -> End:
    residuals, jacobian = residuals_of(one.residuals)

    def solve(tolerance: float) -> tuple[Any, int]:
        of, by = Tally(lambda x: np.asarray(residuals(x))), Tally(lambda x: np.asarray(jacobian(x)))
        limits = {"xtol": tolerance, "ftol": tolerance, "gtol": tolerance, "max_nfev": MOST}
        with np.errstate(all="ignore"):
            ends = scipy.optimize.least_squares(of, x0, by, method=method, x_scale="jac", **limits)
        return ends.x, by.count

    for tolerance in TOLERANCES:
        if one.digits(solve(tolerance)[0]) >= DIGITS:
            break
    (x, jacobians), seconds = timed(lambda: solve(tolerance))
    return End(x, jacobians, seconds)


SOLVERS: dict[str, Callable[[Regression, Any], End]] = {
    OURS: auto,
    "SciPy lm": partial(scipys, "lm"),
    "SciPy trf": partial(scipys, "trf"),
}


def measured(name: str, start: int, say: Say) -> list[Run]:
    one, found = regressions()[name], []
    with jax.enable_x64(True):
        for solver, solve in SOLVERS.items():
            say(solver)
            end = solve(one, one.starts[start])
            r = np.asarray(one.residuals(end.x))
            digits = one.digits(end.x)
            solved = digits >= DIGITS
            found.append(
                Run(
                    problem=name,
                    group="nist",
                    unit="Jacobians",
                    solver=solver,
                    seed=start,
                    work=float(end.jacobians) if solved else float("inf"),
                    seconds=end.seconds if solved else float("inf"),
                    value=float(r @ r) / 2,
                    solved=solved,
                    digits=digits,
                    dimension=len(one.certified),
                )
            )
    return found
