"""Solvers of one case: cfgd, SciPy, optax, optimistix. Each gives back x and its work.

Work is counted in products with X or X' for least squares, else in gradients: a value with its
gradient is one, a value alone a half, a Hessian-vector product two, a Jacobian min(m, d).
A solver is asked with smaller and smaller tolerances until the target is met; only the run that
meets it counts, so that nobody pays for a tolerance of another meaning than ours.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.optimize
import scipy.sparse.linalg

import cfgd
from cfgd.bench.field.cases import Case

MOST = 20_000  # iterations of anything
# seconds: a run that takes longer is not tried again with a smaller tolerance
PATIENCE = 10.0


class Outcome(NamedTuple):
    x: Any
    work: float
    values: Any = None  # by iteration, where known


Rival = Callable[[Case, float], Outcome]


def of_cfgd(method_of: Callable[[Case], Any]) -> Rival:
    """A method of cfgd as one that competes."""

    def solve(case: Case, tolerance: float) -> Outcome:
        method = method_of(case)
        most = MOST if case.budget is None else _fitting(case, method_of)
        ends = cfgd.minimize(
            case.objective,
            case.x0,
            method,
            tolerance=tolerance if case.budget is None else 0.0,
            max_iterations=most,
            time_limit=PATIENCE if case.budget is None else None,
            every=10,
        )
        # a look at a least-squares problem takes a product with X and one with X'
        work = ends.evaluations * (2 if case.group == "least squares" else 1)
        return Outcome(ends.x, work, ends.history["value"])

    return solve


@functools.lru_cache(maxsize=8)
def _fitting(case: Case, method_of: Callable[[Case], Any]) -> int:
    """How many iterations the budget pays for; what one costs depends on the search."""
    assert case.budget is not None
    most = case.budget
    while True:
        ends = cfgd.minimize(
            case.objective, case.x0, method_of(case), tolerance=0.0, max_iterations=most, every=10
        )
        if ends.evaluations <= case.budget or most <= 1:
            return most
        most = max(1, int(0.98 * ends.iterations * case.budget / ends.evaluations))


auto = of_cfgd(lambda case: cfgd.Auto())
paper = of_cfgd(lambda case: case.paper)


def in_time(case: Case, done: Callable[[], bool] = lambda: False) -> Callable[[Any], None]:
    """A callback for SciPy that ends a run when its time or its budget is over.

    Where losses at equal work are compared, nobody is stopped by the clock.
    """
    began = time.perf_counter()

    def over(x: Any) -> None:
        late = case.budget is None and time.perf_counter() - began > PATIENCE
        if late or done():
            raise StopIteration

    return over


class Counted:
    """X as a linear operator whose products are counted, its columns scaled."""

    def __init__(self, X: Any, scale: Any = 1.0) -> None:
        self.X, self.scale, self.products = X, scale, 0
        self.back = X.T.tocsr() if scipy.sparse.issparse(X) else X.T

    def times(self, v: Any) -> Any:
        self.products += 1
        return self.X @ (self.scale * v)

    def times_back(self, r: Any) -> Any:
        self.products += 1
        return self.scale * (self.back @ r)

    @property
    def operator(self) -> Any:
        return scipy.sparse.linalg.LinearOperator(
            self.X.shape, matvec=self.times, rmatvec=self.times_back, dtype=float
        )


def lsqr(case: Case, tolerance: float) -> Outcome:
    X, r = Counted(case.matrix, _scale(case)), case.y - case.matrix @ case.x0
    ends = scipy.sparse.linalg.lsqr(
        X.operator, r, atol=tolerance, btol=tolerance, conlim=0, iter_lim=MOST
    )
    return Outcome(case.x0 + X.scale * ends[0], X.products)


def lsmr(case: Case, tolerance: float) -> Outcome:
    X, r = Counted(case.matrix, _scale(case)), case.y - case.matrix @ case.x0
    ends = scipy.sparse.linalg.lsmr(
        X.operator, r, atol=tolerance, btol=tolerance, conlim=0, maxiter=MOST
    )
    return Outcome(case.x0 + X.scale * ends[0], X.products)


def _scale(case: Case) -> Any:
    """One over the norms of the columns: what Auto does as well."""
    squares = np.asarray((case.matrix**2).sum(0)).ravel()
    return 1 / np.sqrt(np.where(squares > 0, squares, 1))


def cg(case: Case, tolerance: float) -> Outcome:
    """On the normal equations, scaled by the norms of the columns."""
    X = Counted(case.matrix, _scale(case))
    d = case.x0.size
    normal = scipy.sparse.linalg.LinearOperator(
        (d, d), matvec=lambda v: X.times_back(X.times(v)), dtype=float
    )
    right = X.times_back(case.y - case.matrix @ case.x0)
    u, _ = scipy.sparse.linalg.cg(normal, right, rtol=tolerance, maxiter=MOST)
    return Outcome(case.x0 + X.scale * u, X.products)


@functools.lru_cache(maxsize=2)
def compiled(fn: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Value and gradient, Hessian-vector product: kept, so that no one pays for compiling."""
    gradient = jax.grad(fn)
    return (
        jax.jit(jax.value_and_grad(fn)),
        jax.jit(lambda x, v: jax.jvp(gradient, (x,), (v,))[1]),
    )


class Looks:
    """Value with gradient, and Hessian-vector product, for SciPy; their work is counted."""

    def __init__(self, case: Case) -> None:
        self.both, self.product = compiled(case.fn)
        self.work = 0.0

    def seen(self, x: Any) -> tuple[float, Any]:
        self.work += 1
        value, gradient = self.both(x)
        return float(value), np.asarray(gradient)

    def times(self, x: Any, v: Any) -> Any:
        self.work += 2
        return np.asarray(self.product(x, v))


def lbfgsb(case: Case, tolerance: float) -> Outcome:
    def seen(x: Any) -> tuple[float, Any]:
        if case.group == "least squares":  # NumPy's own products: no copy of X inside a program
            r = case.matrix @ x - case.y
            return r @ r / 2, case.matrix.T @ r
        value, gradient = compiled(case.fn)[0](x)
        return float(value), np.asarray(gradient)

    start = np.linalg.norm(seen(case.x0)[1])
    most = case.budget or MOST
    gtol = 0.0 if case.budget else tolerance * start
    options = {"maxiter": most, "maxfun": most, "gtol": gtol, "ftol": 0.0}
    ends = scipy.optimize.minimize(
        seen,
        case.x0,
        jac=True,
        method="L-BFGS-B",
        options=options,
        callback=in_time(case),
    )
    return Outcome(ends.x, ends.nfev * (2 if case.group == "least squares" else 1))


def trust_ncg(case: Case, tolerance: float) -> Outcome:
    looks = Looks(case)
    start = np.linalg.norm(looks.both(case.x0)[1])

    def done() -> bool:
        return case.budget is not None and looks.work >= case.budget

    options = {"gtol": 0.0 if case.budget else tolerance * start, "maxiter": MOST}
    ends = scipy.optimize.minimize(
        looks.seen,
        case.x0,
        jac=True,
        hessp=looks.times,
        method="trust-ncg",
        options=options,
        callback=in_time(case, done),
    )
    return Outcome(ends.x, looks.work)


def least_squares(case: Case, tolerance: float) -> Outcome:
    residuals, jacobian = residuals_of(case.residuals)
    m, d = len(residuals(case.x0)), case.x0.size
    start = float(np.max(np.abs(jacobian(case.x0).T @ residuals(case.x0))))
    most = MOST // 10 if case.budget is None else max(1, case.budget // (min(m, d) + 1))
    ends = scipy.optimize.least_squares(
        lambda x: np.asarray(residuals(x)),
        case.x0,
        lambda x: np.asarray(jacobian(x)),
        x_scale="jac",
        ftol=None,
        xtol=1e-15,
        gtol=max(1e-15, tolerance * start) if case.budget is None else 1e-15,
        max_nfev=most,
    )
    return Outcome(ends.x, 0.5 * ends.nfev + min(m, d) * ends.njev)


@functools.lru_cache(maxsize=2)
def residuals_of(fn: Callable[[Any], Any]) -> tuple[Any, Any]:
    return jax.jit(fn), jax.jit(jax.jacfwd(fn))
