"""Bands around a fitted curve, for the curve and for new observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.students_t import quantile
from cfgd.fitting.derived import tangent
from cfgd.fitting.intervals import checked_level
from cfgd.fitting.problem import FitProblem

if TYPE_CHECKING:
    from cfgd.fitting.fit import Fit

KINDS = ("curve", "observation")


def band(
    fit: Fit, x: Any, level: float, kind: str, sigma: Any, data_set: int | str
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper limits of the curve, or of new observations, at x."""
    owner = "Fit.band"
    level = checked_level(owner, level)
    checks.choice(owner, "kind", kind, KINDS)
    problem = fit.needed_problem("band")
    assert fit.uncertainty is not None
    index = place_of(owner, problem, data_set)
    if isinstance(x, dict | tuple):
        x = jax.tree.map(lambda leaf: checks.array(owner, "x", leaf), x)
    else:
        x = checks.array(owner, "x", x)
    is_complex = np.iscomplexobj(problem.data[index].y)

    def curve(z: Any) -> Any:
        """Return the model at x; complex results have real and imaginary part along a last axis."""
        found = problem.predict(z, jax.tree.map(jnp.asarray, x), index)
        return jnp.stack([found.real, found.imag], -1) if is_complex else found

    value, gradients = tangent(curve, np.asarray(fit.solution.x))
    error = fit.uncertainty.standard_errors(gradients).reshape(value.shape)
    if kind == "observation":
        noise = _noise(owner, fit, problem, index, sigma, value.shape)
        error = np.sqrt(error**2 + noise**2)
    half = quantile(level, fit.freedom_of_quantile) * error
    lower, upper = value - half, value + half
    if is_complex:
        return lower[..., 0] + 1j * lower[..., 1], upper[..., 0] + 1j * upper[..., 1]
    return lower, upper


def place_of(owner: str, problem: FitProblem, data_set: int | str) -> int:
    """Return the index of a data set that is given by its index or name."""
    names = [each.name for each in problem.data]
    if isinstance(data_set, str) and data_set in names:
        return names.index(data_set)
    if isinstance(data_set, int) and 0 <= data_set < len(names):
        return data_set
    last = len(names) - 1
    wanted = f"be an index from 0 to {last}" if last else "be 0, the only data set"
    if all(names):
        wanted = f"be the name of a data set ({', '.join(names)}) or {wanted.removeprefix('be ')}"
    checks.fail(owner, "data_set", wanted, repr(data_set))


def _noise(
    owner: str, fit: Fit, problem: FitProblem, index: int, sigma: Any, shape: tuple[int, ...]
) -> np.ndarray:
    """Return the standard deviations of new observations."""
    scale = 1.0 if fit.absolute_sigma else fit.residual_std
    given = problem.data[index].sigma
    if sigma is None and given is not None:
        if np.ndim(given) > 0 and np.ptp(given) > 0:
            wanted = "be given for new observations, as the sigma of the fit is not one number"
            checks.fail(owner, "sigma", wanted, None)
        sigma = np.ravel(given)[0]
    found = np.asarray(checks.positive(owner, "sigma", 1.0 if sigma is None else sigma))
    if found.shape not in ((), shape):
        checks.fail(owner, "sigma", f"have shape {shape}", f"shape {found.shape}")
    return np.broadcast_to(scale * found, shape)
