"""Residuals of NumPy functions, or of anything else that also gives the Jacobian."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd._core.types import Column, Rows, Vector
from cfgd.objectives.base import Traits
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.external import Remembered, dense
from cfgd.objectives.finite_differences import hessian_product
from cfgd.objectives.residuals import Residuals


class ExternalResiduals(Residuals):
    """`Residuals` of NumPy functions for r and its Jacobian, which `Auto` minimises.

    A trial step evaluates r alone, and no point is evaluated twice in a row. An error inside a
    function ends the run and is raised with the best point so far as its `solution`.
    """

    residuals_fn: Remembered
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
        self.residuals_fn, self.jacobian_fn = Remembered(fn), Remembered(jacobian)

    @property
    def traits(self) -> Traits:
        return dataclasses.replace(
            super().traits, runs_user_code=True, separate_value=True, hessian_by_differences=True
        )

    def check(self, owner: str, x: Any) -> None:
        """Evaluate once, so that a wrong shape is found before any work."""
        x = np.asarray(x)
        m = self.vector(x).size
        if m == 0:
            checks.fail("ExternalResiduals", "fn", "return at least one number", "nothing")
        if len(self.jacobian(x)) != m:
            wanted = f"return a matrix with {m} rows"
            checks.fail("ExternalResiduals", "jacobian", wanted, len(self.jacobian(x)))

    def value(self, x: Any) -> Any:
        return self._value(self.vector(np.asarray(x)))

    def evaluate(self, x: Vector) -> Evaluation:
        r: Any = self.vector(x)
        gradient: Any = self._cotangent(r) @ self.jacobian(x)
        return Evaluation(x, self._value(r), gradient, self._aux(r))

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        return hessian_product(lambda x: self.evaluate(x).gradient, evaluation.x, v)

    def curvature(self, evaluation: Evaluation) -> Curvature:
        inherited = super().curvature(evaluation)
        assert inherited.rows is not None
        rows = functools.cache(inherited.rows)

        def times(v: Vector) -> Vector:
            J, _ = rows()
            return (J @ v) @ J

        return dataclasses.replace(
            inherited,
            cost=max(inherited.cost - 1.0, 0.0),  # the gradient, counted by itself, is J'r
            rows=rows,
            times=times,
            diagonal=lambda: (rows().jacobian ** 2).sum(0),
            residuals_at=(lambda x: self._aux(self.vector(x))) if self.is_squared else None,
        )

    def on_host(self) -> ExternalResiduals:
        return self

    def vector(self, x: Any) -> Column:
        return np.array(self.residuals_fn(x), x.dtype).reshape(-1)

    def jacobian(self, x: Any) -> Rows:
        J: Any = dense(self.jacobian_fn(x), x.dtype)
        if J.ndim != 2 or J.shape[1] != x.size:
            wanted = f"return a matrix with {x.size} columns"
            checks.fail("ExternalResiduals", "jacobian", wanted, f"shape {J.shape}")
        return J
