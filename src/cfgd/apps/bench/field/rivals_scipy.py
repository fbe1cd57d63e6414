"""Rivals from SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

from cfgd.apps.bench.field.cases import Case
from cfgd.apps.bench.field.work import (
    MOST,
    Counted,
    Looks,
    Outcome,
    compiled,
    in_time,
    residuals_of,
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


def lbfgsb(case: Case, tolerance: float) -> Outcome:
    def seen(x: Any) -> tuple[float, Any]:
        if case.group == "least-squares":  # NumPy's own products: no copy of X inside a program
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
    return Outcome(ends.x, ends.nfev * (2 if case.group == "least-squares" else 1))


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


def newton_cg(case: Case, tolerance: float) -> Outcome:
    looks = Looks(case)
    ends = scipy.optimize.minimize(
        looks.seen,
        case.x0,
        jac=True,
        hessp=looks.times,
        method="Newton-CG",
        options={"xtol": tolerance, "maxiter": 2000},
        callback=in_time(case),
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
