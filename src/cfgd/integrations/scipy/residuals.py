"""Nonlinear least squares with the interface of `scipy.optimize.least_squares`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy.optimize import OptimizeResult

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.pytrees import Structure
from cfgd.integrations.scipy.functions import CountedResiduals
from cfgd.objectives import Residuals
from cfgd.objectives.external_residuals import ExternalResiduals
from cfgd.solve import minimize
from cfgd.solve.bounds import as_box
from cfgd.status import Status

# SciPy's names of the losses, and those of `cfgd.Residuals`
LOSSES = {"linear": "squared", "soft_l1": "soft_l1", "huber": "huber", "cauchy": "cauchy"}
DEFAULT_MAX_NFEV = 10_000
FLOAT = np.dtype(float)


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    bounds: Any = (-np.inf, np.inf),
    *,
    loss: str = "linear",
    f_scale: float = 1.0,
    args: tuple[Any, ...] = (),
    xtol: float | None = None,
    max_nfev: int | None = None,
    verbose: int = 0,
) -> OptimizeResult:
    """Solve a nonlinear least-squares problem with `Auto`, as `scipy.optimize.least_squares` does.

    Parameters
    ----------
    fun : callable
        `fun(x, *args)` returns the residuals.
    x0 : array
        Initial point.
    jac : callable, "2-point" or None, optional
        The Jacobian, dense or sparse, as a function of NumPy arrays, or forward differences. With
        None `fun` is differentiated by JAX if JAX can trace it, else by forward differences.
    bounds : tuple (lower, upper) or scipy.optimize.Bounds, default (-inf, inf)
        Numbers or arrays. A start outside of them is moved inside.
    loss : {"linear", "soft_l1", "huber", "cauchy"}, default "linear"
        Loss of a residual.
    f_scale : float, default 1.0
        The size of a residual from which on a robust loss grows more slowly than the squared one.
    args : tuple, default ()
        Further arguments of `fun` and `jac`.
    xtol : float, optional
        Relative tolerance of the gradient (default 1e-8).
    max_nfev : int, optional
        Maximum number of iterations (default 10,000).
    verbose : int, default 0
        Whether to print progress.

    Returns
    -------
    OptimizeResult
        With SciPy's fields `cost`, `fun`, `jac`, `grad`, `optimality`, `active_mask`, `nfev`,
        `njev`, and `nit`. `status` is 0 if the iterations ran out, 1 if the run converged, else -1.

    Raises
    ------
    ValueError
        If `loss` or `jac` is not one of those above, a lower bound is above the upper one,
        `f_scale` or `max_nfev` is not positive, or the residuals are not finite at `x0`.

    Examples
    --------
    >>> import numpy as np
    >>> from cfgd.integrations.scipy import least_squares
    >>> fun = lambda x: np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])
    >>> result = least_squares(fun, [-1.2, 1.0])
    >>> print(result.x.round(6), result.cost < 1e-12)
    [1. 1.] True
    """
    owner = "least_squares"
    if loss not in LOSSES:
        checks.fail(owner, "loss", f"be one of {', '.join(LOSSES)}", repr(loss))
    if not (jac is None or callable(jac) or (isinstance(jac, str) and jac == "2-point")):
        checks.fail(owner, "jac", "be None, a function or '2-point'", repr(jac))
    x0 = np.atleast_1d(np.asarray(x0, float))
    box = as_box(owner, bounds, Structure.of(x0), x0.dtype)
    is_bounded = bool(np.isfinite([*box.lower, *box.upper]).any())
    x0 = box.project(x0)
    uses_jax = jac is None and _is_traceable(fun, x0, args)
    counted = CountedResiduals(fun, jac if callable(jac) else None, args, box)
    objective: Residuals
    if uses_jax:
        objective = Residuals(fun, LOSSES[loss], scale=f_scale, args=args)
    else:
        objective = ExternalResiduals(
            counted.residuals, counted.jacobian, LOSSES[loss], scale=f_scale
        )
    solution = minimize(
        objective,
        x0,
        bounds=tuple(box) if is_bounded else None,
        max_iterations=DEFAULT_MAX_NFEV if max_nfev is None else max_nfev,
        tolerance=xtol,
        progress=bool(verbose),
    )
    x = np.asarray(solution.x)
    with in_precision(FLOAT):
        point: Any = jax.numpy.asarray(x) if uses_jax else x
        residuals = np.asarray(objective.vector(point))
        jacobian = np.asarray(objective.jacobian(point))
        gradient = np.asarray(objective.evaluate(point).gradient)
    nfev, njev = counted.nfev, counted.njev
    if uses_jax:  # what is compiled cannot count calls
        nfev, njev = round(solution.evaluations), int(solution.iterations) + 1
    return OptimizeResult(
        x=x,
        cost=solution.value,
        fun=residuals,
        jac=jacobian,
        grad=gradient,
        optimality=float(np.abs(box.free_gradient(x, gradient)).max()),
        active_mask=box.mask(x),
        nfev=nfev,
        njev=njev,
        nit=int(solution.iterations),
        status=1 if solution.success else 0 if solution.status is Status.max_iterations else -1,
        success=bool(solution.success),
        message=solution.message,
    )


def _is_traceable(fun: Callable[..., Any], x0: np.ndarray, args: tuple[Any, ...]) -> bool:
    """Return whether JAX can trace `fun`; an error of another kind recurs when `fun` is called."""
    try:
        with in_precision(FLOAT):
            jax.eval_shape(lambda x: fun(x, *args), x0)
    except Exception:
        return False
    return True
