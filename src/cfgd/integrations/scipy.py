"""cfgd as a method of `scipy.optimize.minimize`, and a `least_squares` in SciPy's manner.

>>> import scipy.optimize
>>> from cfgd.integrations.scipy import auto
>>> from scipy.optimize import rosen, rosen_der
>>> found = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto)
>>> print(found.x.round(6), found.success)
[1. 1.] True
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy.optimize import OptimizeResult, approx_fprime

from cfgd import _check
from cfgd.method import AdaptiveOrder, AdaptiveTerminal, Auto
from cfgd.method.base import Method
from cfgd.objective import External, Local, Residuals
from cfgd.precision import in_precision
from cfgd.solve import Solution, minimize

# where the gradient is one of differences, it is known no further: SciPy's own default
BY_DIFFERENCES = 1e-5
# SciPy's names of the losses of residuals
LOSSES = {"linear": "squared", "soft_l1": "soft_l1", "huber": "huber", "cauchy": "cauchy"}


def auto(fun: Callable[..., Any], x0: Any, **given: Any) -> OptimizeResult:
    """`scipy.optimize.minimize(..., method=auto)`: cfgd's `Auto`.

    Options: `maxiter`, `tol` (relative, of the gradient), `gtol` (absolute), `time_limit`, `disp`.
    """
    return _solved("auto", fun, x0, lambda f, options: (f, Auto()), **given)


def adaptive_terminal(fun: Callable[..., Any], x0: Any, **given: Any) -> OptimizeResult:
    """`scipy.optimize.minimize(..., method=adaptive_terminal)`: the paper's method.

    Options: `alpha`, `gamma`, `lag`, and those of `auto`. On the local model, whose curvatures are
    differences of gradients: two for each coordinate in every iteration.
    """

    def made(f: External, options: dict[str, Any]) -> tuple[Any, Method]:
        alpha, gamma = options.pop("alpha", 0.5), options.pop("gamma", -0.25)
        return Local(f, "exact"), AdaptiveTerminal(alpha, gamma=gamma, lag=options.pop("lag", 1))

    return _solved("adaptive_terminal", fun, x0, made, **given)


def adaptive_order(fun: Callable[..., Any], x0: Any, **given: Any) -> OptimizeResult:
    """`scipy.optimize.minimize(..., method=adaptive_order)`: the paper's stages.

    Options: `stages`, a list of `cfgd.Stage`, `terminal` (default x0), and those of `auto`.
    """

    def made(f: External, options: dict[str, Any]) -> tuple[Any, Method]:
        if "stages" not in options:
            wanted = "be given, a list of cfgd.Stage"
            _check.fail("adaptive_order", "options['stages']", wanted, "nothing")
        terminal = options.pop("terminal", np.asarray(x0, float))
        return Local(f, "exact"), AdaptiveOrder(options.pop("stages"), terminal)

    return _solved("adaptive_order", fun, x0, made, **given)


def _solved(
    owner: str,
    fun: Callable[..., Any],
    x0: Any,
    made: Callable[[External, dict[str, Any]], tuple[Any, Method]],
    *,
    args: tuple[Any, ...] = (),
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Any = None,
    tol: float | None = None,
    gtol: float | None = None,
    maxiter: int | None = None,
    time_limit: float | None = None,
    disp: bool = False,
    **options: Any,
) -> OptimizeResult:
    if bounds is not None or (constraints is not None and constraints not in ((), [])):
        field = "bounds" if bounds is not None else "constraints"
        _check.fail(owner, field, "be left out: cfgd minimises without them", "some")
    if hess is not None or hessp is not None:
        message = f"Method {owner} does not use Hessian information (hess, hessp)."
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    x0 = np.atleast_1d(np.asarray(x0, float))
    counted = _Counted(fun, jac, args)
    objective, method = made(External(counted.value, counted.gradient), options)
    if options:
        known = "maxiter, tol, gtol, time_limit, disp and the method's own"
        _check.fail(owner, "options", f"be {known}", ", ".join(map(repr, options)))
    if jac is None and gtol is None:
        gtol = BY_DIFFERENCES
    ends = minimize(
        objective,
        x0,
        method,
        max_iterations=10_000 if maxiter is None else maxiter,
        tolerance=1e-8 if tol is None else tol,
        gradient_tolerance=gtol,
        time_limit=time_limit,
        callback=None if callback is None else _callback(callback),
        progress=bool(disp),
    )
    return _result(ends, jac=counted.gradient(ends.x), nfev=counted.values, njev=counted.gradients)


class _Counted:
    """The user's functions, counted; a gradient that is not given is one of differences."""

    def __init__(self, fun: Callable[..., Any], jac: Any, args: tuple[Any, ...]) -> None:
        self.fun, self.jac, self.args = fun, jac, args
        self.values = self.gradients = 0

    def value(self, x: np.ndarray) -> Any:
        self.values += 1
        return np.asarray(self.fun(x, *self.args), float).reshape(())

    def gradient(self, x: np.ndarray) -> np.ndarray:
        self.gradients += 1
        if self.jac is None:
            return approx_fprime(x, lambda at: float(self.value(at)))
        return np.asarray(self.jac(x, *self.args), float).reshape(-1)


def _callback(callback: Callable[..., Any]) -> Callable[[Solution], Any]:
    """In both of SciPy's forms: `callback(xk)` and `callback(intermediate_result=...)`."""
    keyword = set(inspect.signature(callback).parameters) == {"intermediate_result"}

    def called(so_far: Solution) -> Any:
        x = np.copy(so_far.x)
        if keyword:
            return callback(intermediate_result=OptimizeResult(x=x, fun=so_far.value))
        return callback(x)

    return called


def _result(ends: Solution, **more: Any) -> OptimizeResult:
    return OptimizeResult(
        x=np.asarray(ends.x),
        fun=ends.value,
        nit=int(ends.iterations),
        status=0 if ends.success else ends.status.code,
        success=bool(ends.success),
        message=ends.message,
        **more,
    )


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    *,
    loss: str = "linear",
    f_scale: float = 1.0,
    args: tuple[Any, ...] = (),
    xtol: float = 1e-8,
    max_nfev: int | None = None,
    verbose: int = 0,
) -> OptimizeResult:
    """Nonlinear least squares in the manner of `scipy.optimize.least_squares`, by `Auto`.

    `fun(x, *args)` returns residuals and is written in JAX, whose Jacobian is exact. The result has
    SciPy's fields: `cost`, `fun`, `jac`, `grad`, `optimality`, `nfev`, and `nit`.

    >>> import jax.numpy as jnp
    >>> from cfgd.integrations.scipy import least_squares
    >>> found = least_squares(lambda x: jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]]), [-1.2, 1.0])
    >>> print(found.x.round(6), found.cost < 1e-12)
    [1. 1.] True
    """
    if loss not in LOSSES:
        _check.fail("least_squares", "loss", f"be one of {', '.join(LOSSES)}", repr(loss))
    x0 = np.atleast_1d(np.asarray(x0, float))
    f = Residuals(fun, LOSSES[loss], scale=f_scale, args=args)
    most = 10_000 if max_nfev is None else max_nfev
    ends = minimize(f, x0, max_iterations=most, tolerance=xtol, progress=bool(verbose))
    with in_precision(np.dtype(float)):
        residuals = np.asarray(f.vector(jax.numpy.asarray(ends.x)))
        jacobian = np.asarray(f.jacobian(jax.numpy.asarray(ends.x)))
    gradient = np.asarray(f.gradient(ends.x))
    found = _result(ends, nfev=round(ends.evaluations), jac=jacobian, grad=gradient)
    found.update(cost=ends.value, fun=residuals, optimality=float(np.abs(gradient).max()))
    return found
