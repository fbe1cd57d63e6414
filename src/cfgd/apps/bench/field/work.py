"""What all rivals share: how their work is counted, and when they have to stop.

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
import scipy.sparse.linalg

from cfgd.apps.bench.field.cases import Case

MOST = 20_000  # iterations of anything


class Outcome(NamedTuple):
    x: Any
    work: float
    values: Any = None  # by iteration, where known


Rival = Callable[[Case, float], Outcome]


def in_time(case: Case, done: Callable[[], bool] = lambda: False) -> Callable[[Any], None]:
    """A callback for SciPy that ends a run when its time or its budget is over.

    Where losses at equal work are compared, nobody is stopped by the clock.
    """
    began = time.perf_counter()

    def over(x: Any) -> None:
        late = case.budget is None and time.perf_counter() - began > case.patience
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


@functools.lru_cache(maxsize=2)
def residuals_of(fn: Callable[[Any], Any]) -> tuple[Any, Any]:
    return jax.jit(fn), jax.jit(jax.jacfwd(fn))
