"""The fits of the group `fits`: NIST's, those of Moré, Garbow and Hillstrom, and our own curves."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy.optimize

from cfgd.apps.bench.field.work import compile_residuals
from cfgd.apps.data.curves import CURVES, Curve
from cfgd.apps.data.more_standard_problems import MORE_PROBLEMS
from cfgd.apps.data.nist import regressions
from cfgd.apps.data.standard_problems import PROBLEMS, StandardProblem

PERTURBED = 3  # number of perturbed starts
# Law of the perturbed starts: a parameter is multiplied by exp(0.5 z) and a zero becomes 0.5 z,
# with a standard normal z for each parameter.
DEVIATION = 0.5
# A fit has the best known sum of squares if it is within this relative distance of it, or, if the
# best sum is zero, below this number (times the sum at the start, if that is below one).
SAME_SUM, ZERO_SUM = 1e-6, 1e-12


@dataclasses.dataclass(frozen=True, eq=False)  # hashable: JAX compiles by identity
class FitProblem:
    """Residuals, their given starts, and half of the best known sum of squares."""

    name: str
    residuals: Callable[[Any], Any]
    given: tuple[np.ndarray, ...]
    best: float

    @property
    def starts(self) -> int:
        return len(self.given) + PERTURBED

    def start(self, seed: int) -> np.ndarray:
        """Return a given start, or for larger seeds a perturbation of the last of them."""
        if seed < len(self.given):
            return self.given[seed]
        x0 = self.given[-1]
        z = DEVIATION * np.random.default_rng(seed).normal(size=x0.size)
        return np.where(x0 == 0, z, x0 * np.exp(z))

    def has_best(self, value: float) -> bool:
        """Return whether a value is the best known one."""
        return value <= self.best * (1 + SAME_SUM) + self.negligible

    @functools.cached_property
    def negligible(self) -> float:
        """Return the value that counts as zero."""
        return ZERO_SUM * min(1.0, half_sum(self.residuals, self.given[0]))


def half_sum(residuals: Callable[[Any], Any], x: Any) -> float:
    """Return f(x), or infinity if it is not finite."""
    with jax.enable_x64(True):
        r = np.asarray(compile_residuals(residuals)[0](np.asarray(x, float)))
    value = float(r @ r) / 2
    return value if np.isfinite(value) else float("inf")


def tight_descent(residuals: Callable[[Any], Any], x: Any, share: float = np.inf) -> float:
    """Return the smallest f that SciPy reaches from x with tight tolerances.

    Coordinate x_j may change by `share` times max(|x_j|, 1e-3).
    """
    compiled, jacobian = compile_residuals(residuals)
    values = [half_sum(residuals, x)]
    radius = share * np.maximum(np.abs(x), 1e-3)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        for method in ("lm", "trf") if np.isinf(share) else ("trf", "dogbox"):
            try:
                end = scipy.optimize.least_squares(
                    lambda x: np.asarray(compiled(x)),
                    x,
                    lambda x: np.asarray(jacobian(x)),
                    (x - radius, x + radius),
                    method=method,
                    x_scale="jac",
                    xtol=1e-15,
                    ftol=1e-15,
                    gtol=1e-15,
                    max_nfev=1000,
                )
            except (ValueError, np.linalg.LinAlgError):  # not finite on the way
                continue
            values.append(float(end.cost))
    return float(np.nanmin(values))


def _of_curve(curve: Curve) -> FitProblem:
    y = curve.y

    def residuals(p: Any) -> Any:
        return curve.model(curve.x, p) - y

    return FitProblem(curve.name, residuals, (curve.x0,), tight_descent(residuals, curve.truth))


def _of_standard_problem(problem: StandardProblem) -> FitProblem:
    # The minima are published with six digits, so they are rounded up in the seventh.
    best = min(problem.minima) / 2 * (1 + 1e-5)
    return FitProblem(f"MGH {problem.name}", problem.residuals, (problem.x0,), best)


@functools.lru_cache(maxsize=1)
def fit_problem(name: str) -> FitProblem:
    """Return a problem by name; the last one is kept, so that its starts compile once."""
    return _makers()[name]()


def fit_names() -> dict[str, int]:
    """Return the names of all fits, with the numbers of their given starts."""
    nist = {f"NIST {name}": 2 for name in regressions()}
    return nist | {name: 1 for name in _makers() if name not in nist}


@functools.cache
def _makers() -> dict[str, Callable[[], FitProblem]]:
    makers: dict[str, Callable[[], FitProblem]] = {}
    for name, regression in regressions().items():
        makers[f"NIST {name}"] = functools.partial(
            FitProblem,
            f"NIST {name}",
            regression.residuals,
            tuple(np.asarray(start, float) for start in regression.starts),
            regression.sum_of_squares / 2,
        )
    for problem in (*PROBLEMS.values(), *MORE_PROBLEMS.values()):
        makers[f"MGH {problem.name}"] = functools.partial(_of_standard_problem, problem)
    for curve in CURVES.values():
        makers[curve.name] = functools.partial(_of_curve, curve)
    return makers
