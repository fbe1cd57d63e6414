"""The cost of all solvers, and the limits at which they are stopped.

For least squares the cost is the number of products with X or X', otherwise that of gradients: a
value with its gradient counts as 1, a value alone as 1/2, a Hessian-vector product as 2, and an
m x d Jacobian as min(m, d). A solver is run with smaller and smaller tolerances until it meets the
target. Only the last run counts, because the definitions of tolerances differ between solvers.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse.linalg

from cfgd.apps.bench.field.cases import Case

MAX_ITERATIONS = 20_000  # limit of every solver; gradient descent may need more


class SolverResult(NamedTuple):
    x: Any
    work: float
    values: Any = None  # the value at each iteration, if known


Solver = Callable[[Case, float], SolverResult]  # of the case and the tolerance


def stop_callback(
    case: Case, budget_spent: Callable[[], bool] = lambda: False
) -> Callable[[Any], None]:
    """Return a callback for SciPy that ends a run at its time limit or at the end of its budget.

    The time limit does not apply if losses at equal work are compared.
    """
    began = time.perf_counter()

    def callback(x: Any) -> None:
        late = case.budget is None and time.perf_counter() - began > case.time_limit
        if late or budget_spent():
            raise StopIteration

    return callback


class CountedMatrix:
    """X as a linear operator with scaled columns that counts its products."""

    def __init__(self, X: Any, scale: Any = 1.0) -> None:
        self.X, self.scale, self.products = X, scale, 0
        self.transposed = X.T.tocsr() if scipy.sparse.issparse(X) else X.T

    def matvec(self, v: Any) -> Any:
        self.products += 1
        return self.X @ (self.scale * v)

    def rmatvec(self, r: Any) -> Any:
        self.products += 1
        return self.scale * (self.transposed @ r)

    @property
    def operator(self) -> Any:
        return scipy.sparse.linalg.LinearOperator(
            self.X.shape, matvec=self.matvec, rmatvec=self.rmatvec, dtype=float
        )


@functools.lru_cache(maxsize=2)
def compile_derivatives(fn: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return compiled value with gradient, and Hessian-vector product.

    They are cached, so that only the first solver of a problem compiles.
    """
    gradient = jax.grad(fn)
    return (
        jax.jit(jax.value_and_grad(fn)),
        jax.jit(lambda x, v: jax.jvp(gradient, (x,), (v,))[1]),
    )


@functools.lru_cache(maxsize=2)
def compile_residuals(fn: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return compiled residuals and their Jacobian, cached."""
    return jax.jit(fn), jax.jit(jax.jacfwd(fn))


class CountedFunction:
    """Value with gradient, and Hessian-vector product, as NumPy functions that count their work."""

    def __init__(self, case: Case) -> None:
        self.compiled, self.compiled_product = compile_derivatives(case.fn)
        self.work = 0.0

    def value_and_gradient(self, x: Any) -> tuple[float, Any]:
        self.work += 1
        value, gradient = self.compiled(x)
        return float(value), np.asarray(gradient)

    def hessian_product(self, x: Any, v: Any) -> Any:
        self.work += 2
        return np.asarray(self.compiled_product(x, v))
