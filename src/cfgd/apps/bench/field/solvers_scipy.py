"""Solvers of NumPy and SciPy, and textbook methods written in NumPy."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

from cfgd.apps.bench.field.cases import Case
from cfgd.apps.bench.field.variable_projection import ProjectedNetwork
from cfgd.apps.bench.field.work import (
    MAX_ITERATIONS,
    CountedFunction,
    CountedMatrix,
    SolverResult,
    compile_derivatives,
    compile_residuals,
    stop_callback,
)


def lsqr(case: Case, tolerance: float) -> SolverResult:
    X, r = CountedMatrix(case.matrix, _column_scale(case)), case.y - case.matrix @ case.x0
    result = scipy.sparse.linalg.lsqr(
        X.operator, r, atol=tolerance, btol=tolerance, conlim=0, iter_lim=MAX_ITERATIONS
    )
    return SolverResult(case.x0 + X.scale * result[0], X.products)


def lsmr(case: Case, tolerance: float) -> SolverResult:
    X, r = CountedMatrix(case.matrix, _column_scale(case)), case.y - case.matrix @ case.x0
    result = scipy.sparse.linalg.lsmr(
        X.operator, r, atol=tolerance, btol=tolerance, conlim=0, maxiter=MAX_ITERATIONS
    )
    return SolverResult(case.x0 + X.scale * result[0], X.products)


def _column_scale(case: Case) -> Any:
    """Return the inverse norms of the columns, the scaling that Auto also uses."""
    squares = np.asarray((case.matrix**2).sum(0)).ravel()
    return 1 / np.sqrt(np.where(squares > 0, squares, 1))


def cg(case: Case, tolerance: float) -> SolverResult:
    """Run conjugate gradients on the normal equations, scaled by the norms of the columns."""
    X = CountedMatrix(case.matrix, _column_scale(case))
    d = case.x0.size
    normal = scipy.sparse.linalg.LinearOperator(
        (d, d), matvec=lambda v: X.rmatvec(X.matvec(v)), dtype=float
    )
    right = X.rmatvec(case.y - case.matrix @ case.x0)
    u, _ = scipy.sparse.linalg.cg(normal, right, rtol=tolerance, maxiter=MAX_ITERATIONS)
    return SolverResult(case.x0 + X.scale * u, X.products)


def lbfgsb(case: Case, tolerance: float) -> SolverResult:
    def value_and_gradient(x: Any) -> tuple[float, Any]:
        if case.group == "least-squares":  # in NumPy: a compiled program would hold a copy of X
            r = case.matrix @ x - case.y
            return r @ r / 2, case.matrix.T @ r
        value, gradient = compile_derivatives(case.fn)[0](x)
        return float(value), np.asarray(gradient)

    start_norm = np.linalg.norm(value_and_gradient(case.x0)[1])
    limit = case.budget or MAX_ITERATIONS
    gtol = 0.0 if case.budget else tolerance * start_norm
    options = {"maxiter": limit, "maxfun": limit, "gtol": gtol, "ftol": 0.0}
    result = scipy.optimize.minimize(
        value_and_gradient,
        case.x0,
        jac=True,
        method="L-BFGS-B",
        options=options,
        callback=stop_callback(case),
    )
    return SolverResult(result.x, result.nfev * (2 if case.group == "least-squares" else 1))


def trust_ncg(case: Case, tolerance: float) -> SolverResult:
    function = CountedFunction(case)
    start_norm = np.linalg.norm(function.compiled(case.x0)[1])

    def budget_spent() -> bool:
        return case.budget is not None and function.work >= case.budget

    options = {"gtol": 0.0 if case.budget else tolerance * start_norm, "maxiter": MAX_ITERATIONS}
    result = scipy.optimize.minimize(
        function.value_and_gradient,
        case.x0,
        jac=True,
        hessp=function.hessian_product,
        method="trust-ncg",
        options=options,
        callback=stop_callback(case, budget_spent),
    )
    return SolverResult(result.x, function.work)


def newton_cg(case: Case, tolerance: float) -> SolverResult:
    function = CountedFunction(case)
    result = scipy.optimize.minimize(
        function.value_and_gradient,
        case.x0,
        jac=True,
        hessp=function.hessian_product,
        method="Newton-CG",
        options={"xtol": tolerance, "maxiter": 2000},
        callback=stop_callback(case),
    )
    return SolverResult(result.x, function.work)


def least_squares(case: Case, tolerance: float) -> SolverResult:
    residuals, jacobian = compile_residuals(case.residuals)
    m, d = len(residuals(case.x0)), case.x0.size
    start = float(np.max(np.abs(jacobian(case.x0).T @ residuals(case.x0))))
    limit = MAX_ITERATIONS // 10 if case.budget is None else max(1, case.budget // (min(m, d) + 1))
    result = scipy.optimize.least_squares(
        lambda x: np.asarray(residuals(x)),
        case.x0,
        lambda x: np.asarray(jacobian(x)),
        x_scale="jac",
        ftol=None,
        xtol=1e-15,
        gtol=max(1e-15, tolerance * start) if case.budget is None else 1e-15,
        max_nfev=limit,
    )
    return SolverResult(result.x, 0.5 * result.nfev + min(m, d) * result.njev)


def direct(case: Case, tolerance: float) -> SolverResult:
    """Solve by an orthogonal factorisation, which costs about min(m, d) products with X."""
    x = np.linalg.lstsq(case.matrix, case.y, rcond=None)[0]
    return SolverResult(x, float(min(case.matrix.shape)))


def barzilai_borwein(case: Case, tolerance: float) -> SolverResult:
    """Run Barzilai and Borwein's method: eta = |s|^2 / s'As with the previous step s.

    The first step is exact.
    """
    X, x = CountedMatrix(case.matrix), case.x0
    g = X.rmatvec(X.matvec(x) - case.y)
    floor = tolerance * np.linalg.norm(g)
    image = X.matvec(g)
    eta = (g @ g) / (image @ image)
    stop_if_late = stop_callback(case)
    with contextlib.suppress(StopIteration):
        for _ in range(MAX_ITERATIONS):
            s = -eta * g
            x = x + s
            new = X.rmatvec(X.matvec(x) - case.y)
            if np.linalg.norm(new) <= floor:
                break
            eta = (s @ s) / (s @ (new - g))
            g = new
            stop_if_late(x)
    return SolverResult(x, X.products)


def variable_projection(case: Case, tolerance: float) -> SolverResult:
    """Run L-BFGS-B over the hidden weights, with optimal output weights.

    The gradient in the hidden weights is the partial one, because the derivative in the output
    weights is zero at their optimum.
    """
    projected = ProjectedNetwork(case.objective)
    assert case.budget is not None
    limit = int(case.budget / 1.5)  # an evaluation is a gradient, and the features cost a half
    result = scipy.optimize.minimize(
        projected.value_and_gradient,
        case.x0[: case.objective.hidden],
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": limit, "maxfun": limit, "gtol": 0.0, "ftol": 0.0},
    )
    return SolverResult(projected.all_weights(result.x), 1.5 * result.nfev)
