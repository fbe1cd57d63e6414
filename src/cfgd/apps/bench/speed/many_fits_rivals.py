"""Many fits with other libraries: a loop over their fits, or a batch if they support it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from cfgd.apps.bench.speed.many_fits_cases import Case
from cfgd.apps.bench.speed.many_fits_numpy import batch_levenberg_marquardt


class Rival(NamedTuple):
    """A way to make many fits.

    Attributes
    ----------
    fit : callable
        fit(case, Y) returns the parameters, one row for each fit, NaN where it failed.
    n_fits : int
        The largest number of fits that is timed, about a second of time.
    """

    fit: Callable[[Case, np.ndarray], np.ndarray]
    n_fits: int


def scipy_loop(has_jacobian: bool, case: Case, Y: np.ndarray) -> np.ndarray:
    """Call `scipy.optimize.curve_fit` for each row, which returns the covariance as well."""
    options = {"jac": case.jacobian} if has_jacobian else {}
    found = np.full((len(Y), len(case.start)), np.nan)
    for i, y in enumerate(Y):
        try:
            found[i], _ = scipy.optimize.curve_fit(
                case.numpy_model, case.t, y, case.start, **options
            )
        except RuntimeError:  # it has used up its evaluations
            continue
    return found


def lmfit_loop(case: Case, Y: np.ndarray) -> np.ndarray:
    """Call `lmfit.Model.fit` for each row, which computes standard errors as well."""
    model = importlib.import_module("lmfit").Model(case.numpy_model)
    start = dict(zip(model.param_names, case.start, strict=True))
    results = [model.fit(y, t=case.t, **start) for y in Y]
    return np.array([[result.best_values[name] for name in start] for result in results])


def optimistix_batch(case: Case, Y: np.ndarray) -> np.ndarray:
    """Run `optimistix.LevenbergMarquardt` under `jax.vmap`; there are no standard errors."""
    with jax.enable_x64(True):
        return np.asarray(_optimistix(case)(jnp.asarray(Y)))


@functools.cache
def _optimistix(case: Case) -> Any:
    optimistix: Any = importlib.import_module("optimistix")
    solver = optimistix.LevenbergMarquardt(rtol=1e-8, atol=1e-8)
    t, start = case.t, jnp.asarray(case.start)

    def one(y: Any) -> Any:
        return optimistix.least_squares(
            lambda z, y: case.model(t, *z) - y,
            solver,
            start,
            args=y,
            max_steps=1000,
            throw=False,
        ).value

    return jax.jit(jax.vmap(one))


def numpy_batch(case: Case, Y: np.ndarray) -> np.ndarray:
    """Run Levenberg-Marquardt in NumPy on all rows at a time, with standard errors."""
    return batch_levenberg_marquardt(case, Y)[0]


def compiled_loop(package: str, case: Case, Y: np.ndarray) -> np.ndarray:
    """Call the `curve_fit` of jaxfit or NLSQ for each row, which returns the covariance as well."""
    fitter = _fitter(package)
    found = np.empty((len(Y), len(case.start)))
    for row, y in zip(found, Y, strict=True):
        row[:], _ = fitter.curve_fit(case.model, case.t, y, p0=np.asarray(case.start))
    return found


@functools.cache
def _fitter(package: str) -> Any:
    """Return the `CurveFit` object of a package, which caches its compiled functions."""
    return importlib.import_module(package).CurveFit()


SCIPY = ("a loop of SciPy's curve_fit", "a loop of SciPy's curve_fit with the Jacobian")
RIVALS = {
    SCIPY[0]: Rival(functools.partial(scipy_loop, False), 500),
    SCIPY[1]: Rival(functools.partial(scipy_loop, True), 500),
    "a loop of lmfit's Model.fit": Rival(lmfit_loop, 50),
    "Optimistix under vmap, no standard errors": Rival(optimistix_batch, 2000),
    "a batch in NumPy, on one core": Rival(numpy_batch, 10_000),
    "a loop of jaxfit's curve_fit": Rival(functools.partial(compiled_loop, "jaxfit"), 50),
    "a loop of NLSQ's curve_fit": Rival(functools.partial(compiled_loop, "nlsq"), 50),
}
