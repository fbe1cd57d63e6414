"""Nonlinear least squares in the manner of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy.optimize import OptimizeResult, approx_fprime

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd.objectives import Residuals
from cfgd.objectives.external import Remembered, dense
from cfgd.objectives.external_residuals import ExternalResiduals
from cfgd.solve import minimize
from cfgd.status import Status

# SciPy's names of the losses of residuals
LOSSES = {"linear": "squared", "soft_l1": "soft_l1", "huber": "huber", "cauchy": "cauchy"}
FLOAT = np.dtype(float)


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    *,
    loss: str = "linear",
    f_scale: float = 1.0,
    args: tuple[Any, ...] = (),
    xtol: float = 1e-8,
    max_nfev: int | None = None,
    verbose: int = 0,
) -> OptimizeResult:
    """Nonlinear least squares in the manner of `scipy.optimize.least_squares`, by `Auto`.

    `fun(x, *args)` returns residuals. `jac` is a function for their Jacobian, dense or sparse, or
    "2-point", forward differences; `fun` is then NumPy's. Without it `fun` is differentiated by JAX
    where it is written in it, and by differences where not. The result has SciPy's fields: `cost`,
    `fun`, `jac`, `grad`, `optimality`, `active_mask`, `nfev`, `njev`, a `status` of 0 where
    iterations ran out and above where it converged; and `nit`.

    >>> import numpy as np
    >>> from cfgd.integrations.scipy import least_squares
    >>> found = least_squares(lambda x: np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]]), [-1.2, 1.0])
    >>> print(found.x.round(6), found.cost < 1e-12)
    [1. 1.] True
    """
    owner = "least_squares"
    if loss not in LOSSES:
        checks.fail(owner, "loss", f"be one of {', '.join(LOSSES)}", repr(loss))
    if not (jac is None or callable(jac) or (isinstance(jac, str) and jac == "2-point")):
        checks.fail(owner, "jac", "be None, a function or '2-point'", repr(jac))
    x0 = np.atleast_1d(np.asarray(x0, float))
    by_jax = jac is None and _is_jax(fun, x0, args)
    asked = _Asked(fun, jac if callable(jac) else None, args)
    f: Residuals
    if by_jax:
        f = Residuals(fun, LOSSES[loss], scale=f_scale, args=args)
    else:
        f = ExternalResiduals(asked.residuals, asked.jacobian, LOSSES[loss], scale=f_scale)
    most = 10_000 if max_nfev is None else max_nfev
    ends = minimize(f, x0, max_iterations=most, tolerance=xtol, progress=bool(verbose))
    x = np.asarray(ends.x)
    if by_jax:
        asked.nfev, asked.njev = round(ends.evaluations), int(ends.iterations) + 1
    with in_precision(FLOAT):
        at: Any = jax.numpy.asarray(x) if by_jax else x
        seen = f.vector(at), f.jacobian(at), f.evaluate(at).gradient
    residuals, jacobian, gradient = (np.asarray(part) for part in seen)
    return OptimizeResult(
        x=x,
        cost=ends.value,
        fun=residuals,
        jac=jacobian,
        grad=gradient,
        optimality=float(np.abs(gradient).max()),
        active_mask=np.zeros(x.size, int),
        nfev=asked.nfev,
        njev=asked.njev,
        nit=int(ends.iterations),
        status=1 if ends.success else 0 if ends.status is Status.max_iterations else -1,
        success=bool(ends.success),
        message=ends.message,
    )


def _is_jax(fun: Callable[..., Any], x0: np.ndarray, args: tuple[Any, ...]) -> bool:
    """Whether JAX can trace it; what else it may raise, it raises where it is called."""
    try:
        with in_precision(FLOAT):
            jax.eval_shape(lambda x: fun(x, *args), x0)
    except Exception:
        return False
    return True


class _Asked:
    """The user's functions, counted; a Jacobian of differences is counted as one."""

    def __init__(self, fun: Callable[..., Any], jac: Any, args: tuple[Any, ...]) -> None:
        self.fun, self.jac, self.args = fun, jac, args
        self.nfev = self.njev = 0
        self.residuals = Remembered(self._residuals)

    def _residuals(self, x: np.ndarray) -> np.ndarray:
        self.nfev += 1
        return self._called(x)

    def _called(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.fun(x, *self.args), float).reshape(-1)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        self.njev += 1
        if self.jac is not None:
            return dense(self.jac(x, *self.args), FLOAT)
        here = self.residuals(x)
        step = np.sqrt(np.finfo(float).eps) * np.where(x == 0, 1, abs(x))
        rows = approx_fprime(
            x, lambda at: here if np.array_equal(at, x) else self._called(np.array(at)), step
        )
        return np.asarray(rows).reshape(here.size, x.size)
