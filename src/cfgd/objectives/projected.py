"""An objective under bounds, for the methods of the paper: their steps are projected onto the box.

x_{k+1} is the point of the box nearest to x_k - eta_k d_k. In coordinates at active bounds, where f
decreases out of the box, slope, curvature, gradient and direction are zero, so that the step size
depends on the other coordinates only. Values along a line are those of projected points; slope and
curvature are those of the line itself. Reference: Bertsekas, "On the
Goldstein-Levitin-Polyak gradient projection method", IEEE Trans. Automat. Control 21 (1976).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jaxtyping import PyTree

from cfgd._core.box import Box
from cfgd._core.linalg import map_rows
from cfgd._core.pytrees import Structure
from cfgd._core.types import Etas, LineValues, PointFlags, Scalar, Vector, Vectors
from cfgd.objectives.base import Objective, Traits
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation, Line, LineCosts


@dataclasses.dataclass(frozen=True, eq=False)
class ProjectedLine(Line):
    """A line of f whose points are projected onto the box."""

    wrapped: Line

    @property
    def costs(self) -> LineCosts:
        return LineCosts(curvature=self.wrapped.costs.curvature)

    def curvature(self) -> Scalar:
        return self.wrapped.curvature()

    def values(self, etas: Etas) -> LineValues:
        f, x = self.objective, self.evaluation.x
        return map_rows(lambda eta: f.value(f.box.project(x - eta * self.d)), etas)


class Projected(Objective):
    """f in a box: every point is projected before it is evaluated."""

    objective: Any  # an Objective
    box: Box

    def value(self, x: PyTree) -> Any:
        return self.objective.value(x)

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.objective.shape

    @property
    def traits(self) -> Traits:
        # nothing is updated along a line, because its points are projected
        return dataclasses.replace(self.objective.traits, accumulates_rounding=False)

    def evaluate(self, x: Vector) -> Evaluation:
        at = self.objective.evaluate(self.box.project(x))
        return Evaluation(at.x, at.value, self.box.free_gradient(at.x, at.gradient), at)

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        d = jnp.where(self._is_active(evaluation), 0, d)
        wrapped = self.objective.line(evaluation.aux, d)
        return ProjectedLine(self, evaluation, d, wrapped.slope, wrapped)

    def coordinate_derivatives(self, evaluation: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        slopes, curvatures = self.objective.coordinate_derivatives(evaluation.aux, t)
        is_active = self._is_active(evaluation)
        return jnp.where(is_active, 0, slopes), jnp.where(is_active, 0, curvatures)

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        return self.objective.hessian_times(evaluation.aux, v)

    def curvature(self, evaluation: Evaluation) -> Curvature | None:
        found = self.objective.curvature(evaluation.aux)
        if found is None:
            return None
        is_active, diagonal = self._is_active(evaluation), found.diagonal
        return dataclasses.replace(found, diagonal=lambda: jnp.where(is_active, 0, diagonal()))

    def _is_active(self, evaluation: Evaluation) -> PointFlags:
        return self.box.is_active(evaluation.aux.x, evaluation.aux.gradient)

    def raveled(self, structure: Structure) -> Objective:
        return Projected(self.objective.raveled(structure), self.box)

    def check(self, owner: str, x: Vector) -> None:
        self.objective.check(owner, x)
