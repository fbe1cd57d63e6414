"""Variable projection: parameters that enter a model linearly are found by linear least squares.

G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate, SIAM Journal on Numerical Analysis 10 (1973).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.compiled import bind
from cfgd.fitting.problem import FitProblem
from cfgd.objectives.residuals import Residuals
from cfgd.solve.covariance import information
from cfgd.solve.solution import Solution


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


class Projection:
    """The problem of the numbers of z that do not enter linearly: `reduced`.

    Its vector has the numbers of z at the places `others`.
    """

    def __init__(self, owner: str, problem: FitProblem, linear: Any) -> None:
        self.names = checks.names(owner, "linear", linear)
        self.problem = problem
        is_linear = self._is_linear(owner)
        places, self.others = np.flatnonzero(is_linear), np.flatnonzero(~is_linear)
        if np.isfinite([problem.lower[places], problem.upper[places]]).any():
            self._refuse(owner, "name parameters without bounds")
        if not len(self.others):
            self._refuse(owner, "leave at least one free parameter that is not linear")
        fn = problem.objective.fn
        fn = ProjectedResiduals(fn, tuple(places.tolist()), tuple(self.others.tolist()))
        self.reduced = dataclasses.replace(
            problem,
            objective=Residuals(fn, args=problem.objective.args),
            start=problem.start[self.others],
            lower=problem.lower[self.others],
            upper=problem.upper[self.others],
        )
        # half of the digits are rounding at most
        if self._at(_nonlinearity, self.reduced.start) > np.sqrt(np.finfo(self.dtype).eps):
            self._refuse(owner, "name parameters in which the model is jointly linear")

    def _is_linear(self, owner: str) -> np.ndarray:
        problem, free = self.problem, self.problem.parameters.free
        if not problem.objective.is_squared:
            self._refuse(owner, "be left out with a robust loss")
        if not set(self.names) <= set(free):
            self._refuse(owner, f"name free parameters among {', '.join(free)}")
        is_linear = np.zeros(problem.start.size, bool)
        is_linear[: len(problem.free)] = [name in self.names for name in problem.owners]
        return is_linear

    def _refuse(self, owner: str, wanted: str) -> NoReturn:
        checks.fail(owner, "linear", wanted, repr(self.names))

    @property
    def dtype(self) -> Any:
        """The precision of the problem."""
        return self.problem.start.dtype

    @property
    def note(self) -> str:
        """A sentence for reports."""
        names = ", ".join(self.names)
        return (
            f"Variable projection: {names} by linear least squares for each value of the other "
            "parameters."
        )

    def complete(self, u: np.ndarray) -> np.ndarray:
        """Return z with the best values of the linear numbers, from the others."""
        return self._at(_complete, u)

    def unprojected(self, solution: Solution) -> Solution:
        """Return the solution for z from that for the other numbers.

        The gradient with respect to the linear numbers vanishes, so that its norm is the same.
        """
        z, objective, mask = self.complete(solution.x), self.problem.objective, None
        if solution.active_mask is not None:
            mask = np.zeros(z.shape, int)
            mask[self.others] = solution.active_mask
        with in_precision(self.dtype):
            known = information(objective.curvature(objective.evaluate(jnp.asarray(z))))
        return dataclasses.replace(solution, x=z, active_mask=mask, information=known)

    def _at(self, fn: Callable[[Residuals, Any], Any], u: np.ndarray) -> np.ndarray:
        with in_precision(self.dtype):
            return np.asarray(bind(fn, self.reduced.objective)(np.asarray(u, self.dtype)))


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
