"""The methods of cfgd in the place of SciPy's."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import HessianUpdateStrategy, OptimizeResult

from cfgd._core import checks
from cfgd.integrations.scipy.functions import Functions
from cfgd.methods import AdaptiveOrder, AdaptiveTerminal, Auto
from cfgd.methods.base import Method
from cfgd.objectives import External, Local
from cfgd.solve import Solution, minimize
from cfgd.status import Status

# where the gradient is one of differences, it is known no further: SciPy's own default
BY_DIFFERENCES = 1e-5
# what SciPy says where a callback raises StopIteration
STOPPED, SAID = 99, "`callback` raised `StopIteration`."
# what it has names for, and cfgd does where it is given nothing
DIFFERENCES = ("2-point", "3-point", "cs")


def auto(fun: Callable[..., Any], x0: Any, **given: Any) -> OptimizeResult:
    """`scipy.optimize.minimize(..., method=auto)`: cfgd's `Auto`.

    Options: `maxiter`, `tol` (relative, of the gradient), `gtol` (absolute), `time_limit`, `disp`.
    With `hess` it takes Tikhonov steps on the Hessian, in up to 1,250 dimensions: on most standard
    problems half of the iterations or fewer; where the Hessian is singular at the minimum and f
    zero there, as for Powell's function, it runs on to `maxiter`. `hessp` is not used, and a
    warning says so: a Hessian made of products took more calls in all on those problems.

    >>> from scipy.optimize import minimize, rosen, rosen_der
    >>> from cfgd.integrations.scipy import auto
    >>> print(minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto).x.round(6))
    [1. 1.]
    """

    def made(f: Functions, options: dict[str, Any]) -> tuple[Any, Method]:
        if f.hess is None and f.hessp is not None:
            _unused("auto", "Hessian-vector product information (hessp)")
        return External(f.value, f.gradient, None if f.hess is None else f.hessian), Auto()

    return _solved("auto", fun, x0, made, **given)


def adaptive_terminal(fun: Callable[..., Any], x0: Any, **given: Any) -> OptimizeResult:
    """`scipy.optimize.minimize(..., method=adaptive_terminal)`: the paper's method.

    Options: `alpha`, `gamma`, `lag`, and those of `auto`. On the local model, whose curvatures are
    those of `hess`, or of a product `hessp` for each coordinate, or else differences of gradients:
    three for each coordinate in every iteration.

    >>> import numpy as np
    >>> from scipy.optimize import minimize
    >>> from cfgd.integrations.scipy import adaptive_terminal
    >>> f, g = lambda x: 10 * x[0] ** 2 + x[1] ** 2, lambda x: x * [20.0, 2.0]
    >>> found = minimize(f, [1.0, -10.0], jac=g, method=adaptive_terminal, options={"gamma": -0.25})
    >>> print(found.success, np.abs(found.x).max() < 1e-6)
    True True
    """

    def made(f: Functions, options: dict[str, Any]) -> tuple[Any, Method]:
        alpha, gamma = options.pop("alpha", 0.5), options.pop("gamma", -0.25)
        return _local(f), AdaptiveTerminal(alpha, gamma=gamma, lag=options.pop("lag", 1))

    return _solved("adaptive_terminal", fun, x0, made, **given)


def adaptive_order(fun: Callable[..., Any], x0: Any, **given: Any) -> OptimizeResult:
    """`scipy.optimize.minimize(..., method=adaptive_order)`: the paper's stages.

    Options: `stages`, a list of `cfgd.Stage`, `terminal` (default x0), and those of `auto`;
    curvatures as of `adaptive_terminal`.

    >>> import cfgd, numpy as np
    >>> from scipy.optimize import minimize
    >>> from cfgd.integrations.scipy import adaptive_order
    >>> f, g = lambda x: 10 * x[0] ** 2 + x[1] ** 2, lambda x: x * [20.0, 2.0]
    >>> stages = {"stages": [cfgd.Stage(10, gamma=1.0), cfgd.Stage(100, gamma=0.0)]}
    >>> found = minimize(f, [1.0, -10.0], jac=g, method=adaptive_order, options=stages)
    >>> print(found.success, np.abs(found.x).max() < 1e-6)
    True True
    """

    def made(f: Functions, options: dict[str, Any]) -> tuple[Any, Method]:
        if "stages" not in options:
            wanted = "be given, a list of cfgd.Stage"
            checks.fail("adaptive_order", "options['stages']", wanted, "nothing")
        terminal = options.pop("terminal", np.asarray(x0, float))
        return _local(f), AdaptiveOrder(options.pop("stages"), terminal)

    return _solved("adaptive_order", fun, x0, made, **given)


def _local(f: Functions) -> Local:
    known = f.hess is not None or f.hessp is not None
    return Local(External(f.value, f.gradient, f.hessian if known else None), "exact")


def _solved(
    owner: str,
    fun: Callable[..., Any],
    x0: Any,
    made: Callable[[Functions, dict[str, Any]], tuple[Any, Method]],
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
    maxiter: float | None = None,
    time_limit: float | None = None,
    disp: bool = False,
    **options: Any,
) -> OptimizeResult:
    if bounds is not None or (constraints is not None and constraints not in ((), [])):
        field = "bounds" if bounds is not None else "constraints"
        checks.fail(owner, field, "be left out: cfgd minimises without them", "some")
    x0 = np.atleast_1d(np.asarray(x0, float))
    functions = Functions(owner, fun, jac, _hessian(owner, hess), hessp, args)
    objective, method = made(functions, options)
    if options:
        known = "maxiter, tol, gtol, time_limit, disp and the method's own"
        checks.fail(owner, "options", f"be {known}", ", ".join(map(repr, options)))
    if jac is None and gtol is None:
        gtol = BY_DIFFERENCES
    last = _last(owner, maxiter)
    start = _of(functions, x0, 0)
    if not (np.isfinite(start.fun) and np.all(np.isfinite(start.jac))):
        said = "The value or the gradient at `x0` is not finite: start elsewhere."
        start.update(status=Status.nonfinite.code, success=False, message=said)
        return start
    ends = minimize(
        objective,
        x0,
        method,
        max_iterations=last,
        tolerance=1e-8 if tol is None else tol,
        gradient_tolerance=gtol,
        time_limit=time_limit,
        callback=None if callback is None else _callback(callback),
        progress=bool(disp),
    )
    found = _of(functions, np.asarray(ends.x), int(ends.iterations), ends.value)
    found.update(success=bool(ends.success), message=ends.message)
    found.status = 0 if ends.success else ends.status.code
    if ends.status is Status.callback:
        found.update(status=STOPPED, message=SAID)
    return found


def _hessian(owner: str, hess: Any) -> Any:
    """A function, or None where differences or cfgd's own updates are all there is."""
    if hess is None or (isinstance(hess, str) and hess in DIFFERENCES):
        return None
    if isinstance(hess, HessianUpdateStrategy):
        _unused(owner, "the updates of a HessianUpdateStrategy (hess)")
        return None
    wanted = f"be a function, a HessianUpdateStrategy or one of {', '.join(DIFFERENCES)}"
    checks.function(owner, "hess", hess, wanted)
    return hess


def _unused(owner: str, what: str) -> None:
    """As SciPy says it."""
    checks.warn(f"Method {owner} does not use {what}.", RuntimeWarning)


def _last(owner: str, maxiter: float | None) -> int:
    """The last iteration; SciPy takes any number for it."""
    if maxiter is None:
        return 10_000
    if not maxiter > 0:
        checks.fail(owner, "maxiter", "be a positive number", maxiter)
    return min(math.ceil(min(maxiter, checks.MAX_INT32)), checks.MAX_INT32)


def _of(f: Functions, x: np.ndarray, nit: int, value: float | None = None) -> OptimizeResult:
    """What is known at a point."""
    fun = float(f.value(x)) if value is None else value
    jac = f.gradient_at(x)
    return OptimizeResult(x=x, fun=fun, jac=jac, nit=nit, nfev=f.nfev, njev=f.njev, nhev=f.nhev)


def _callback(callback: Callable[..., Any]) -> Callable[[Solution], None]:
    """In both of SciPy's forms: `callback(xk)` and `callback(intermediate_result=...)`."""
    keyword = set(inspect.signature(callback).parameters) == {"intermediate_result"}

    def called(so_far: Solution) -> None:
        x = np.copy(so_far.x)
        if keyword:
            callback(intermediate_result=OptimizeResult(x=x, fun=so_far.value))
        else:
            callback(x)

    return called
