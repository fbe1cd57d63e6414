"""The user's functions, counted, and asked once where they are asked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd.objectives.external import Remembered


class Functions:
    """f, its gradient and its Hessian as SciPy is given them.

    A gradient that is not given is one of central differences, a Hessian of which products are
    given has one of them for each column.
    """

    def __init__(
        self,
        owner: str,
        fun: Callable[..., Any],
        jac: Any,
        hess: Any,
        hessp: Any,
        args: tuple[Any, ...],
    ) -> None:
        self.owner, self.args = owner, args
        self.fun, self.jac, self.hess, self.hessp = fun, jac, hess, hessp
        self.nfev = self.njev = self.nhev = 0
        self.value, self.gradient = Remembered(self._value), Remembered(self._gradient)
        self.least: Any = np.inf
        self.best: Any = None  # where that is, and the gradient there

    def _value(self, x: np.ndarray) -> np.ndarray:
        self.nfev += 1
        value = np.asarray(self.fun(x, *self.args), float)
        if value.size != 1:
            checks.fail(self.owner, "fun", "return a scalar", f"shape {value.shape}")
        return value.reshape(())

    def _gradient(self, x: np.ndarray) -> np.ndarray:
        at = np.array(x)  # the user may write into his
        value, gradient = self.value(at), self._slope(x)
        if value <= self.least:
            self.least, self.best = value, (at, gradient)
        return gradient

    def gradient_at(self, x: np.ndarray) -> np.ndarray:
        """Where a run has ended, which is where the value was least."""
        if self.best is not None and np.array_equal(x, self.best[0]):
            return np.array(self.best[1])
        return self.gradient(x)

    def _slope(self, x: np.ndarray) -> np.ndarray:
        self.njev += 1
        if self.jac is not None:
            return np.asarray(self.jac(x, *self.args), float).reshape(-1)
        # central ones: Rosenbrock's valley is too narrow for forward ones to end in
        steps = np.diag(np.finfo(float).eps ** (1 / 3) * np.maximum(1, abs(x)))
        pairs = [(self._value(x + h), self._value(x - h)) for h in steps]
        return np.array([float(ahead - behind) for ahead, behind in pairs]) / (2 * steps.diagonal())

    def hessian(self, x: np.ndarray) -> Any:
        if self.hess is not None:
            self.nhev += 1
            return self.hess(x, *self.args)
        self.nhev += x.size
        columns = [self.hessp(np.array(x), e, *self.args) for e in np.eye(x.size)]
        return np.stack([np.asarray(column, float).reshape(-1) for column in columns], 1)
