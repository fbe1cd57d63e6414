"""The oracle: evaluations for Auto's solvers, counted and interruptible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cfgd._core.box import Box
from cfgd._core.linalg import inner
from cfgd._core.records import changed
from cfgd._core.types import Scalar, Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation, Line
from cfgd.objectives.finite_differences import hessian_product


class StopRunError(Exception):
    """Raised by an oracle inside a step when the run must end; the last state is still valid."""


class Once:
    """A function without arguments that is called once; `functools.cache` takes longer to make."""

    __slots__ = "fn", "found"

    def __init__(self, fn: Callable[[], Any]) -> None:
        self.fn: Callable[[], Any] | None = fn

    def __call__(self) -> Any:
        if self.fn is not None:
            self.found, self.fn = self.fn(), None
        return self.found


class Oracle:
    """An objective on the host that counts its evaluations and may end the run.

    Parameters
    ----------
    objective
        An objective that takes and returns NumPy arrays: see `objectives.host`.
    x0
        The start, whose size bounds the steps of finite differences.
    should_stop
        Called before every evaluation and product; the run ends where it returns True.
    resolution
        The least difference of two small values, in units of the least normal number.
    box
        Bounds of x, or None. Every point is projected onto the box before it is evaluated.

    Attributes
    ----------
    cost
        The work so far, in gradients. A value without its gradient counts as `Traits.value_cost`,
        curvatures and products by the costs that `Curvature` and `Traits` give.
    """

    def __init__(
        self,
        objective: Objective,
        x0: np.ndarray,
        should_stop: Callable[[], bool] | None = None,
        resolution: float = 1.0,
        box: Box | None = None,
    ) -> None:
        self.objective, self.traits, self.x0 = objective, objective.traits, x0
        self.should_stop, self.resolution, self.box = should_stop, resolution, box
        self.cost = 0.0
        # Levenberg-Marquardt asks for the value of a trial, and for the gradient at an equal x
        # where the trial was accepted.
        self._compares_x = self.traits.curvature is not None
        self._user_errstate: Any = np.geterr()
        self._last: Evaluation | None = None
        self._last_was_counted = False
        self._valued: Vector | None = None  # the last argument of `value`
        self._curvature: tuple[Evaluation, Curvature | None] | None = None

    def evaluate(self, x: Vector) -> Evaluation:
        """Return value and gradient at x."""
        x = x if self.box is None else self.box.project(x)
        if self._last is None or not self._is_last(x):
            self._last, self._last_was_counted = self._call(self.objective.evaluate, x), False
        if not self._last_was_counted:
            self.cost += 1.0
            self._last_was_counted = True
        return self._last

    def value(self, x: Vector) -> Scalar:
        """Return f(x), for a trial that may be rejected."""
        self._valued = x
        x = x if self.box is None else self.box.project(x)
        if self._last is not None and self._is_last(x):
            return self._last.value
        cost = self.traits.value_cost
        self.cost += cost
        if self.traits.separate_value:
            return self._call(self.objective.value, x)
        self._last, self._last_was_counted = self._call(self.objective.evaluate, x), cost >= 1
        return self._last.value

    def free_gradient(self, evaluation: Evaluation) -> Vector:
        """Return the gradient, with zeros in the coordinates at active bounds."""
        x, _, g = evaluation[:3]
        return g if self.box is None else self.box.free_gradient(x, g)

    def norm2(self, evaluation: Evaluation) -> Scalar:
        """Return the squared norm of `free_gradient`."""
        g = self.free_gradient(evaluation)
        return inner(g, g)

    def residuals(self, curvature: Curvature, x: Vector) -> Any:
        """Return the residuals at x, at the cost of a value unless that was evaluated last."""
        assert curvature.residuals_at is not None
        if self._valued is not x:
            self.cost += self.traits.value_cost
        return self._call(curvature.residuals_at, x)

    def acceleration(self, curvature: Curvature, p: Vector, t: float) -> Vector:
        """Return J'k of a sharded Jacobian, at the cost of a value and a gradient."""
        assert curvature.acceleration is not None
        self.check_stop()
        self.cost += self.traits.value_cost + 1.0
        return curvature.acceleration(p, t)

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        """Return the line x - eta d."""
        return self.objective.line(evaluation, d, slope)

    def curvature(self, evaluation: Evaluation) -> Curvature | None:
        """Return the curvature; its matrix or Jacobian is formed at most once at a point.

        The matrix of a quadratic is formed once for all points.
        """
        if self._curvature is None or self._curvature[0] is not evaluation:
            found = self.objective.curvature(evaluation)
            if found is not None:
                rows = None if found.rows is None else Once(found.rows)
                matrix: Any = None if found.matrix is None else Once(found.matrix)
                last = None if self._curvature is None else self._curvature[1]
                if matrix is not None and last is not None and self.traits.is_quadratic:
                    matrix = last.matrix  # it is the same everywhere
                found = changed(found, rows=rows, matrix=matrix)
            self._curvature = evaluation, found
        return self._curvature[1]

    def diagonal(self, evaluation: Evaluation) -> Vector | None:
        """Return the diagonal of the curvature, or None where it costs more than a gradient."""
        if self.traits.diagonal is None:
            return None
        curvature = self.objective.curvature(evaluation)
        assert curvature is not None
        return curvature.diagonal()

    def hessian_times(
        self, evaluation: Evaluation, v: Vector, sizes: Vector | None = None
    ) -> Vector:
        """Return the product with the Hessian, and count it; `sizes` are for differences."""
        self.check_stop()
        self.cost += self.traits.product_cost
        if not self.traits.hessian_by_differences:
            return self.objective.hessian_times(evaluation, v)
        room = (np.inf, np.inf)
        if self.box is not None:
            ahead, behind = (self.box.longest_fraction(evaluation.x, s * v) for s in (-1.0, 1.0))
            room = float(ahead), float(behind)
        return hessian_product(self._gradient, evaluation.x, v, self.x0, sizes, room)

    def _gradient(self, x: Vector) -> Vector:
        return self._call(self.objective.evaluate, x).gradient

    def _is_last(self, x: Vector) -> bool:
        assert self._last is not None
        last = self._last.x
        if x is last:
            return True
        # the first coordinate tells most points apart in less time than all of them take
        return bool(self._compares_x and x[0] == last[0] and (x == last).all())

    def check_stop(self) -> None:
        """Raise StopRunError if the run is to end; for computations as long as an evaluation."""
        if self.should_stop is not None and self.should_stop():
            raise StopRunError

    def _call(self, fn: Callable[[Vector], Any], x: Vector) -> Any:
        self.check_stop()
        if not self.traits.runs_user_code:
            return fn(x)
        with np.errstate(**self._user_errstate):  # floating-point warnings as the user set them
            return fn(x)
