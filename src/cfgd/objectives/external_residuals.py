"""Residuals of NumPy, or of anything else that gives their Jacobian, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd._core.either import Unbound
from cfgd._core.types import Column, Rows, Vector
from cfgd.objectives.base import Sight
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.external import Remembered, as_given, dense, raised
from cfgd.objectives.residuals import Residuals


class ExternalResiduals(Residuals):
    """`Residuals` of NumPy functions for r and its Jacobian: `Auto` walks on them on the host.

    A step that is tried asks for r alone. Errors go up as those inside an `External` do.
    """

    jacobian_fn: Remembered

    def __init__(
        self,
        fn: Callable[[Any], Any],
        jacobian: Callable[[Any], Any],
        loss: str = "squared",
        *,
        scale: Any = 1.0,
    ) -> None:
        super().__init__(fn, loss, scale=scale)
        checks.function("ExternalResiduals", "jacobian", jacobian, "be a function of x")
        self.jacobian_fn = Remembered(jacobian)

    def check(self, owner: str, x: Any) -> None:
        """Look once, so that a wrong shape is seen before any work."""
        raised.clear()
        x = np.asarray(x)
        m = self.vector(x).size
        if m == 0:
            checks.fail("ExternalResiduals", "fn", "return at least one number", "nothing")
        if len(self.jacobian(x)) != m:
            wanted = f"return a matrix with {m} rows"
            checks.fail("ExternalResiduals", "jacobian", wanted, len(self.jacobian(x)))

    @property
    def sight(self) -> Sight:
        def late(x: Any, r: Any) -> Any:
            try:
                return self._pull(r) @ self.jacobian(x)
            except Exception as error:
                raised.append(error)
                return None

        def seen(x: Any) -> tuple[Any, Any, Any] | None:
            try:
                r = self.vector(x)
            except Exception as error:
                raised.append(error)
                return None
            return self._value(r), lambda: late(x, r), self._carried(r)

        return seen

    def error(self) -> Exception | None:
        return raised.pop() if raised else None

    def in_numpy(self) -> Unbound:
        return Unbound(self)

    @property
    def has_hessian(self) -> bool:
        return False

    def evaluate(self, x: Any) -> Evaluation:
        r: Any = self.vector(x)
        gradient: Any = self._pull(r) @ self.jacobian(x)
        return Evaluation(x, self._value(r), gradient, self._carried(r))

    def vector(self, x: Any) -> Column:
        return np.asarray(self.fn(as_given(None, x)), x.dtype).reshape(-1)

    def jacobian(self, x: Any) -> Rows:
        J: Any = dense(self.jacobian_fn(x), x.dtype)
        if J.ndim != 2 or J.shape[1] != x.size:
            wanted = f"return a matrix with {x.size} columns"
            checks.fail("ExternalResiduals", "jacobian", wanted, f"shape {J.shape}")
        return J

    def model_times(self, point: Evaluation, v: Vector) -> Vector:
        root: Any = self._weighted(point.aux)[0]
        J = self.jacobian(point.x)
        return (root * root * (J @ v)) @ J

    def gauss_newton_diagonal(self, point: Evaluation) -> Vector:
        return (self.model(point).J ** 2).sum(0)
