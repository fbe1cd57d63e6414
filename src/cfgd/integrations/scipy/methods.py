"""cfgd's methods as callables for the argument `method` of `scipy.optimize.minimize`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import HessianUpdateStrategy, OptimizeResult

from cfgd._core import checks
from cfgd._core.pytrees import Structure
from cfgd.integrations.scipy.functions import CountedFunction
from cfgd.methods import AdaptiveOrder, AdaptiveTerminal, Auto
from cfgd.methods.base import Method
from cfgd.objectives import External, Local
from cfgd.solve import Solution, minimize
from cfgd.solve.bounds import as_box
from cfgd.status import Status

# SciPy's default for BFGS: a gradient of differences is not accurate enough for a smaller one.
GTOL_OF_DIFFERENCES = 1e-5
# SciPy's status and message where a callback raises StopIteration.
CALLBACK_STATUS, CALLBACK_MESSAGE = 99, "`callback` raised `StopIteration`."
# SciPy's names of finite differences for `hess`.
DIFFERENCES = ("2-point", "3-point", "cs")
DEFAULT_MAXITER = 10_000

# returns the objective and the method, and removes from the options those that it uses
Builder = Callable[[CountedFunction, dict[str, Any]], tuple[External | Local, Method]]


def auto(fun: Callable[..., Any], x0: Any, **options: Any) -> OptimizeResult:
    """Minimise with cfgd's `Auto`: `scipy.optimize.minimize(..., method=auto)`.

    With `hess`, `Auto` takes Levenberg-Marquardt steps with the Hessian, in up to 1,250 dimensions:
    on most standard problems this takes half of the iterations or fewer. If the Hessian is singular
    at the minimum and f is zero there, as for Powell's function, the run continues to `maxiter`.

    Parameters
    ----------
    fun, x0, args, jac, hess, bounds, callback
        As in `scipy.optimize.minimize`. Without `jac` the gradient consists of central differences.
    hessp : callable
        Not used, and a warning says so: assembling the Hessian from products took more function
        calls in total than not using it, on the same problems.
    maxiter : int
        Maximum number of iterations (default 10,000).
    tol : float
        Relative tolerance of the gradient (default 1e-8).
    gtol : float
        Absolute tolerance of the gradient (default: none, 1e-5 without `jac`).
    time_limit : float
        Maximum time in seconds (default: none).
    disp : bool
        Whether to print progress.

    Returns
    -------
    OptimizeResult
        With the fields of SciPy's own methods.

    Raises
    ------
    ValueError
        For constraints other than bounds, an unknown option, an unknown `hess`, or a `maxiter` that
        is not positive. A start at which f is not finite is reported in the result.

    Examples
    --------
    >>> from scipy.optimize import minimize, rosen, rosen_der
    >>> from cfgd.integrations.scipy import auto
    >>> print(minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto).x.round(6))
    [1. 1.]
    """

    def build(f: CountedFunction, options: dict[str, Any]) -> tuple[External | Local, Method]:
        if f.hess is None and f.hessp is not None:
            _warn_unused("auto", "Hessian-vector product information (hessp)")
        return External(f.value, f.gradient, None if f.hess is None else f.hessian), Auto()

    return _minimize("auto", fun, x0, build, **options)


def adaptive_terminal(fun: Callable[..., Any], x0: Any, **options: Any) -> OptimizeResult:
    """Minimise with `AdaptiveTerminal`: `scipy.optimize.minimize(..., method=adaptive_terminal)`.

    The method works on the local quadratic model. Its curvatures are the diagonal of `hess`, or one
    product `hessp` per coordinate, or else differences of gradients: three gradients per coordinate
    in every iteration.

    Parameters
    ----------
    fun, x0, args, jac, hess, hessp, bounds, callback, maxiter, tol, gtol, time_limit, disp
        As in `auto`.
    alpha, gamma : float
        Order and gamma of the paper's method (default 0.5 and -0.25).
    lag : int
        Number of iterations that the terminal lies back (default 1).

    Returns
    -------
    OptimizeResult
        With the fields of SciPy's own methods.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import minimize
    >>> from cfgd.integrations.scipy import adaptive_terminal
    >>> f, g = lambda x: 10 * x[0] ** 2 + x[1] ** 2, lambda x: x * [20.0, 2.0]
    >>> options = {"gamma": -0.25}
    >>> result = minimize(f, [1.0, -10.0], jac=g, method=adaptive_terminal, options=options)
    >>> print(result.success, np.abs(result.x).max() < 1e-6)
    True True
    """

    def build(f: CountedFunction, options: dict[str, Any]) -> tuple[External | Local, Method]:
        alpha, gamma = options.pop("alpha", 0.5), options.pop("gamma", -0.25)
        return _local_model(f), AdaptiveTerminal(alpha, gamma=gamma, lag=options.pop("lag", 1))

    return _minimize("adaptive_terminal", fun, x0, build, **options)


def adaptive_order(fun: Callable[..., Any], x0: Any, **options: Any) -> OptimizeResult:
    """Minimise with `AdaptiveOrder`: `scipy.optimize.minimize(..., method=adaptive_order)`.

    The method works on the local quadratic model, with the curvatures described in
    `adaptive_terminal`.

    Parameters
    ----------
    fun, x0, args, jac, hess, hessp, bounds, callback, maxiter, tol, gtol, time_limit, disp
        As in `auto`.
    stages : list of cfgd.Stage
        The stages of the paper's method; required.
    terminal : array
        The fixed terminal (default `x0`).

    Returns
    -------
    OptimizeResult
        With the fields of SciPy's own methods.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> from scipy.optimize import minimize
    >>> from cfgd.integrations.scipy import adaptive_order
    >>> f, g = lambda x: 10 * x[0] ** 2 + x[1] ** 2, lambda x: x * [20.0, 2.0]
    >>> options = {"stages": [cfgd.Stage(10, gamma=1.0), cfgd.Stage(100, gamma=0.0)]}
    >>> result = minimize(f, [1.0, -10.0], jac=g, method=adaptive_order, options=options)
    >>> print(result.success, np.abs(result.x).max() < 1e-6)
    True True
    """

    def build(f: CountedFunction, options: dict[str, Any]) -> tuple[External | Local, Method]:
        if "stages" not in options:
            wanted = "be given, a list of cfgd.Stage"
            checks.fail("adaptive_order", "options['stages']", wanted, "nothing")
        terminal = options.pop("terminal", np.asarray(x0, float))
        return _local_model(f), AdaptiveOrder(options.pop("stages"), terminal)

    return _minimize("adaptive_order", fun, x0, build, **options)


def _local_model(f: CountedFunction) -> Local:
    has_hessian = f.hess is not None or f.hessp is not None
    return Local(External(f.value, f.gradient, f.hessian if has_hessian else None), "exact")


def _minimize(
    owner: str,
    fun: Callable[..., Any],
    x0: Any,
    build: Builder,
    *,
    args: tuple[Any, ...] = (),
    jac: Callable[..., Any] | None = None,
    hess: Any = None,
    hessp: Callable[..., Any] | None = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    tol: float | None = None,
    gtol: float | None = None,
    maxiter: float | None = None,
    time_limit: float | None = None,
    disp: bool | int = False,
    **options: Any,
) -> OptimizeResult:
    """Run `cfgd.minimize` with SciPy's arguments and return SciPy's result."""
    if constraints is not None and constraints not in ((), []):
        wanted = "be omitted: cfgd minimises without constraints other than bounds"
        checks.fail(owner, "constraints", wanted, "constraints")
    x0 = np.atleast_1d(np.array(x0, float))  # a copy: the result may be this point
    box = None
    if bounds is not None:
        box = as_box(owner, bounds, Structure.of(x0), x0.dtype)
        x0 = box.project(x0)
    f = CountedFunction(owner, fun, jac, _hessian_function(owner, hess), hessp, args, box)
    objective, method = build(f, options)
    if options:
        known = "maxiter, tol, gtol, time_limit, disp and the method's own"
        checks.fail(owner, "options", f"be among {known}", ", ".join(map(repr, options)))
    if jac is None and gtol is None:
        gtol = GTOL_OF_DIFFERENCES
    max_iterations = _max_iterations(owner, maxiter)
    result = _result(f, x0, 0)
    if not (np.isfinite(result.fun) and np.all(np.isfinite(result.jac))):
        message = "The value or the gradient at `x0` is not finite: start elsewhere."
        result.update(status=Status.nonfinite.code, success=False, message=message)
        return result
    solution = minimize(
        objective,
        x0,
        method,
        bounds=None if box is None else tuple(box),
        max_iterations=max_iterations,
        tolerance=tol,
        gradient_tolerance=gtol,
        time_limit=time_limit,
        callback=None if callback is None else _solution_callback(callback),
        progress=bool(disp),
    )
    result = _result(f, np.asarray(solution.x), int(solution.iterations), solution.value)
    result.update(success=bool(solution.success), message=solution.message)
    result.status = 0 if solution.success else solution.status.code
    if solution.status is Status.callback:
        result.update(status=CALLBACK_STATUS, message=CALLBACK_MESSAGE)
    return result


def _hessian_function(owner: str, hess: Any) -> Callable[..., Any] | None:
    """Return `hess` if it is a function, and None for differences or quasi-Newton updates."""
    if hess is None or (isinstance(hess, str) and hess in DIFFERENCES):
        return None
    if isinstance(hess, HessianUpdateStrategy):
        _warn_unused(owner, "the updates of a HessianUpdateStrategy (hess)")
        return None
    wanted = f"be a function, a HessianUpdateStrategy or one of {', '.join(DIFFERENCES)}"
    checks.function(owner, "hess", hess, wanted)
    return hess


def _warn_unused(owner: str, what: str) -> None:
    """Warn of an argument without effect, in SciPy's words."""
    checks.warn(f"Method {owner} does not use {what}.", RuntimeWarning)


def _max_iterations(owner: str, maxiter: float | None) -> int:
    """Return `maxiter` as an integer; SciPy allows any real number."""
    if maxiter is None:
        return DEFAULT_MAXITER
    if not maxiter > 0:
        checks.fail(owner, "maxiter", "be a positive number", maxiter)
    return min(math.ceil(min(maxiter, checks.MAX_INT32)), checks.MAX_INT32)


def _result(
    f: CountedFunction, x: np.ndarray, nit: int, value: float | None = None
) -> OptimizeResult:
    """Return value, gradient and counts at x; status and message are the caller's to add."""
    fun = float(f.value(x)) if value is None else value
    jac = f.gradient_of_result(x)
    return OptimizeResult(x=x, fun=fun, jac=jac, nit=nit, nfev=f.nfev, njev=f.njev, nhev=f.nhev)


def _solution_callback(callback: Callable[..., Any]) -> Callable[[Solution], None]:
    """Wrap SciPy's `callback(xk)` or `callback(intermediate_result=...)`."""
    takes_result = set(inspect.signature(callback).parameters) == {"intermediate_result"}

    def wrapped(solution: Solution) -> None:
        x = np.copy(solution.x)
        if takes_result:
            callback(intermediate_result=OptimizeResult(x=x, fun=solution.value))
        else:
            callback(x)

    return wrapped
