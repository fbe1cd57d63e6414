"""Variable projection: parameters that enter a model linearly are found by linear least squares.

G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate, SIAM Journal on Numerical Analysis 10 (1973).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.compiled import bind
from cfgd.fitting.problem import FitProblem
from cfgd.objectives.residuals import Residuals


class ProjectedResiduals(eqx.Module):
    """The residuals at the best values of the linear numbers, as a function of the others.

    With r(u, c) = r(u, 0) + A(u) c and A = QR, they are (I - QQ') r(u, 0).
    """

    fn: Callable[..., Any]
    linear: tuple[int, ...] = eqx.field(static=True)
    others: tuple[int, ...] = eqx.field(static=True)

    def join(self, u: Any, c: Any) -> Any:
        """Return z from its two parts."""
        z = jnp.zeros(len(self.linear) + len(self.others), u.dtype)
        return z.at[np.array(self.others, int)].set(u).at[np.array(self.linear, int)].set(c)

    def vector(self, u: Any, c: Any, *args: Any) -> Any:
        """Return r(u, c)."""
        return jnp.concatenate([jnp.ravel(r) for r in self.fn(self.join(u, c), *args)])

    def parts(self, u: Any, *args: Any) -> tuple[Any, Any, Any]:
        """Return r(u, 0), Q and R."""
        zero = jnp.zeros(len(self.linear), u.dtype)
        r = self.vector(u, zero, *args)
        A = jax.jacfwd(lambda c: self.vector(u, c, *args))(zero)
        return r, *jnp.linalg.qr(A)

    def __call__(self, u: Any, *args: Any) -> Any:
        r, Q, _ = self.parts(u, *args)
        return r - Q @ (Q.T @ r)

    def complete(self, u: Any, *args: Any) -> Any:
        """Return z with the best values of the linear numbers."""
        r, Q, R = self.parts(u, *args)
        return self.join(u, -jax.scipy.linalg.solve_triangular(R, Q.T @ r))


def projected(owner: str, problem: FitProblem, linear: Any) -> tuple[FitProblem, np.ndarray]:
    """Return the problem of the numbers of z that do not enter linearly, and which ones do.

    Its vector is shorter than z: `unprojected` makes z of it.
    """
    names = [linear] if isinstance(linear, str) else list(linear)
    if not problem.objective.is_squared:
        checks.fail(owner, "linear", "be left out with a robust loss", repr(names))
    free = problem.parameters.free
    for name in names:
        if name not in free:
            wanted = f"name free parameters among {', '.join(free)}"
            checks.fail(owner, "linear", wanted, repr(name))
    is_linear = np.zeros(problem.start.size, bool)
    is_linear[: len(problem.free)] = [name in names for name in problem.owners]
    places, others = np.flatnonzero(is_linear), np.flatnonzero(~is_linear)
    if np.isfinite([problem.lower[places], problem.upper[places]]).any():
        checks.fail(owner, "linear", "name parameters without bounds", repr(names))
    if not len(others):
        checks.fail(owner, "linear", "leave a parameter that is not linear", repr(names))
    fn = ProjectedResiduals(problem.objective.fn, tuple(places.tolist()), tuple(others.tolist()))
    objective = Residuals(fn, args=problem.objective.args)
    start = problem.start[others]
    with in_precision(start.dtype):
        error = float(bind(_nonlinearity, objective)(start))
    if error > np.sqrt(np.finfo(start.dtype).eps):  # half of the digits are rounding at most
        checks.fail(owner, "linear", "name parameters in which the model is linear", repr(names))
    lower, upper = problem.lower[others], problem.upper[others]
    reduced = dataclasses.replace(
        problem, objective=objective, start=start, lower=lower, upper=upper
    )
    return reduced, is_linear


def unprojected(reduced: FitProblem, u: np.ndarray) -> np.ndarray:
    """Return z with the best values of the linear numbers, from the others."""
    with in_precision(reduced.start.dtype):
        return np.asarray(bind(_complete, reduced.objective)(np.asarray(u, reduced.start.dtype)))


def _complete(objective: Residuals, u: Any) -> Any:
    fn = objective.fn
    assert isinstance(fn, ProjectedResiduals)
    return fn.complete(u, *objective.args)


def _nonlinearity(objective: Residuals, u: Any) -> Any:
    """Return the relative error of r(u, 0) + A c for some c."""
    fn = objective.fn
    assert isinstance(fn, ProjectedResiduals)
    r, Q, R = fn.parts(u, *objective.args)
    c = 1.0 + jnp.arange(len(fn.linear), dtype=u.dtype)  # not a special point of the usual models
    wanted = fn.vector(u, c, *objective.args)
    change = Q @ (R @ c)
    return jnp.linalg.norm(wanted - r - change) / (jnp.linalg.norm(r) + jnp.linalg.norm(change))
