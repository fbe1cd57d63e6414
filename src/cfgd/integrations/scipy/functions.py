"""The user's functions with SciPy's counters `nfev`, `njev` and `nhev`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import approx_fprime

from cfgd._core import checks
from cfgd._core.box import Box
from cfgd.objectives.external import Remembered


class CountedFunction:
    """f, its gradient and its Hessian, as `scipy.optimize.minimize` receives them.

    Without `jac` the gradient consists of central differences; with `hessp` alone the Hessian is
    assembled from one product per column. The last value and the last gradient are cached.
    """

    def __init__(
        self,
        owner: str,
        fun: Callable[..., Any],
        jac: Callable[..., Any] | None,
        hess: Callable[..., Any] | None,
        hessp: Callable[..., Any] | None,
        args: tuple[Any, ...],
        box: Box | None = None,
    ) -> None:
        self.owner, self.args, self.box = owner, args, box
        self.fun, self.jac, self.hess, self.hessp = fun, jac, hess, hessp
        self.nfev = self.njev = self.nhev = 0
        self.value, self.gradient = Remembered(self._value), Remembered(self._gradient)
        self.best_value: Any = np.inf
        self.best_x: np.ndarray | None = None
        self.best_gradient: np.ndarray | None = None

    def _value(self, x: np.ndarray) -> np.ndarray:
        self.nfev += 1
        value = np.array(self.fun(x, *self.args), float)  # `fun` may return one buffer always
        if value.size != 1:
            checks.fail(self.owner, "fun", "return a scalar", f"shape {value.shape}")
        return value.reshape(())

    def _gradient(self, x: np.ndarray) -> np.ndarray:
        x_copy = np.array(x)  # the user's `jac` may write into its argument
        value, gradient = self.value(x_copy), self._user_gradient(x)
        if value <= self.best_value:
            self.best_value, self.best_x, self.best_gradient = value, x_copy, gradient
        return gradient

    def gradient_of_result(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient at the result, which is cached if x is the best point so far."""
        if self.best_x is not None and np.array_equal(x, self.best_x):
            return np.array(self.best_gradient)
        return self.gradient(x)

    def _user_gradient(self, x: np.ndarray) -> np.ndarray:
        self.njev += 1
        if self.jac is not None:
            return np.array(self.jac(x, *self.args), float).reshape(-1)
        # Central differences: the error of forward ones stops a run in Rosenbrock's valley. Their
        # best relative step is the cube root of the rounding (Nocedal and Wright, section 8.1).
        steps = np.diag(np.finfo(float).eps ** (1 / 3) * np.maximum(1, abs(x)))
        ahead, behind = x + steps, x - steps
        if self.box is not None:  # one-sided at a bound
            ahead, behind = self.box.project(ahead), self.box.project(behind)
        moves = (ahead - behind).sum(axis=1)
        differences = [
            float(self._value(a) - self._value(b)) if move > 0 else 0.0  # a fixed coordinate
            for a, b, move in zip(ahead, behind, moves, strict=True)
        ]
        return np.array(differences) / np.where(moves > 0, moves, 1)

    def hessian(self, x: np.ndarray) -> Any:
        """Return the Hessian, dense or sparse, as the user's `hess` or `hessp` has it."""
        if self.hess is not None:
            self.nhev += 1
            return self.hess(x, *self.args)
        assert self.hessp is not None
        self.nhev += x.size
        columns = [
            np.array(self.hessp(np.array(x), e, *self.args), float).reshape(-1)
            for e in np.eye(x.size)
        ]
        return np.stack(columns, 1)


class CountedResiduals:
    """The residuals and their Jacobian, as `least_squares` receives them.

    Without `jac` the Jacobian consists of forward differences, whose calls of `fun` are not in
    `nfev`, as in SciPy. The last residuals are cached.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        jac: Callable[..., Any] | None,
        args: tuple[Any, ...],
        box: Box | None = None,
    ) -> None:
        self.fun, self.jac, self.args, self.box = fun, jac, args, box
        self.nfev = self.njev = 0
        self.residuals = Remembered(self._residuals)

    def _residuals(self, x: np.ndarray) -> np.ndarray:
        self.nfev += 1
        return self._uncounted(x)

    def _uncounted(self, x: np.ndarray) -> np.ndarray:
        return np.array(self.fun(x, *self.args), float).reshape(-1)

    def jacobian(self, x: np.ndarray) -> Any:
        """Return the Jacobian, dense or sparse."""
        self.njev += 1
        if self.jac is not None:
            return self.jac(x, *self.args)
        residuals = self.residuals(x)
        # the best relative step of forward differences (Nocedal and Wright, section 8.1)
        step = np.sqrt(np.finfo(float).eps) * np.where(x == 0, 1, abs(x))
        if self.box is not None:
            step = np.where(x + step <= self.box.upper, step, -step)

        def fun(z: np.ndarray) -> np.ndarray:
            return residuals if np.array_equal(z, x) else self._uncounted(np.array(z))

        return np.asarray(approx_fprime(x, fun, step)).reshape(residuals.size, x.size)
