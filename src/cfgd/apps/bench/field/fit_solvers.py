"""The solvers of the group `fits`, each with its default tolerances and the exact Jacobian.

Work is counted in gradients, as in the other groups: residuals count a half, a Jacobian min(m, d).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.optimize

import cfgd
from cfgd.apps.bench.field.nist import CallCounter
from cfgd.apps.bench.field.solvers_jax import optimistix_lm_with_steps
from cfgd.apps.bench.field.work import compile_residuals

MAX_EVALUATIONS = 5000
OPTIMISTIX_TOLERANCE = 1e-8  # SciPy's default; optimistix has none


class FitEnd(NamedTuple):
    """The end of a run; `x` is None if the solver raised the exception `error`."""

    x: Any
    work: float
    status: str = ""  # of cfgd alone
    error: str = ""


FitSolver = Callable[[Any, np.ndarray], FitEnd]  # of the residuals and the start


class CountedFit:
    """Compiled residuals and Jacobian as NumPy functions that count their calls."""

    def __init__(self, residuals: Any, x0: np.ndarray) -> None:
        compiled, jacobian = compile_residuals(residuals)
        self.residuals = CallCounter(lambda x: np.asarray(compiled(x)))
        self.jacobian = CallCounter(lambda x: np.asarray(jacobian(x)))
        self.size = x0.size

    def work(self, rows: int) -> float:
        return self.residuals.count / 2 + min(rows, self.size) * self.jacobian.count


def auto(objective: cfgd.Residuals, x0: np.ndarray) -> FitEnd:
    solution = cfgd.minimize(objective, x0)
    return FitEnd(np.asarray(solution.x), float(solution.evaluations), solution.status.name)


def scipy_solver(method: str) -> FitSolver:
    def solve(residuals: Any, x0: np.ndarray) -> FitEnd:
        counted = CountedFit(residuals, x0)
        result = scipy.optimize.least_squares(
            counted.residuals,
            x0,
            counted.jacobian,
            method=method,
            x_scale="jac",
            max_nfev=MAX_EVALUATIONS,
        )
        return FitEnd(result.x, counted.work(len(result.fun)))

    return solve


def lmfit_leastsq(residuals: Any, x0: np.ndarray) -> FitEnd:
    lmfit: Any = importlib.import_module("lmfit")
    counted = CountedFit(residuals, x0)
    parameters = lmfit.Parameters()
    for j, value in enumerate(x0):
        parameters.add(f"p{j}", float(value))

    def vector(parameters: Any) -> np.ndarray:
        return np.array([parameters[f"p{j}"].value for j in range(len(x0))])

    result = lmfit.minimize(
        lambda parameters: counted.residuals(vector(parameters)),
        parameters,
        Dfun=lambda parameters: counted.jacobian(vector(parameters)).copy(),  # it writes into it
        col_deriv=False,
        max_nfev=MAX_EVALUATIONS,
    )
    return FitEnd(vector(result.params), counted.work(len(result.residual)))


# Number of runs of Migrad, and its tolerance: it stops at an estimated distance to the minimum of
# 0.002 times this tolerance, in units of chi-square. This is five digits of a chi-square of tens;
# two runs are needed to estimate the errors of the data.
MIGRAD_RUNS, MIGRAD_TOLERANCE = 3, 1e-3


def iminuit_migrad(residuals: Any, x0: np.ndarray) -> FitEnd:
    """Run Migrad on chi-square, with the gradient from the Jacobian.

    Its stopping test is in units of chi-square, so it needs the errors of the data. They are
    estimated from the residuals of the previous run, for the first run from those at the start.
    """
    iminuit: Any = importlib.import_module("iminuit")
    counted, x = CountedFit(residuals, x0), x0
    rows = len(counted.residuals.fn(x0))
    variance = 1.0

    def chi_square(x: np.ndarray) -> float:
        r = counted.residuals(x)
        return float(r @ r) / variance

    def gradient(x: np.ndarray) -> np.ndarray:
        return 2 * counted.jacobian(x).T @ counted.residuals.fn(x) / variance

    for _ in range(MIGRAD_RUNS):
        r = counted.residuals.fn(x)
        variance = float(r @ r) / max(rows - x0.size, 1) or 1.0
        minuit = iminuit.Minuit(chi_square, x, grad=gradient)
        minuit.errordef = iminuit.Minuit.LEAST_SQUARES
        minuit.tol = MIGRAD_TOLERANCE
        minuit.migrad(ncall=MAX_EVALUATIONS)
        x = np.array(minuit.values)
    return FitEnd(x, counted.work(rows))


def optimistix_lm(residuals: Any, x0: np.ndarray) -> FitEnd:
    tolerance = jnp.asarray(OPTIMISTIX_TOLERANCE)
    x, steps = optimistix_lm_with_steps(residuals, jnp.asarray(x0), tolerance, MAX_EVALUATIONS)
    rows = len(compile_residuals(residuals)[0](x0))
    return FitEnd(np.asarray(x), float(steps) * (min(rows, x0.size) + 0.5))


def end_of(call: Callable[[], FitEnd]) -> FitEnd:
    """Return what the call returns, or the error that a solver raises."""
    try:
        return call()
    except (ArithmeticError, ValueError, RuntimeError) as raised:
        return FitEnd(None, float("inf"), error=f"{type(raised).__name__}: {str(raised)[:80]}")


REQUIRED = {"lmfit": "lmfit", "iminuit": "iminuit", "optimistix LM": "optimistix"}
ALL: dict[str, FitSolver] = {
    "SciPy lm": scipy_solver("lm"),
    "SciPy trf": scipy_solver("trf"),
    "lmfit": lmfit_leastsq,
    "iminuit": iminuit_migrad,
    "optimistix LM": optimistix_lm,
}


def installed_solvers() -> dict[str, FitSolver]:
    """Return the other solvers whose packages are installed."""
    return {
        name: solve
        for name, solve in ALL.items()
        if name not in REQUIRED or importlib.util.find_spec(REQUIRED[name]) is not None
    }


def missing_packages() -> list[str]:
    """Return the packages of solvers that are not installed."""
    return [name for name in REQUIRED.values() if importlib.util.find_spec(name) is None]
