"""The line of a linear model, along which its predictions change linearly."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from cfgd._core.linalg import inner, map_rows
from cfgd._core.types import AnyArray, Etas, LineValues, Numbers, Scalar, Vector
from cfgd.objectives.evaluation import Evaluation, Line, LineCosts

Predictions: TypeAlias = Float[AnyArray, " m *classes"]


@dataclasses.dataclass(frozen=True, eq=False)
class PredictionLine(Line):
    """Predictions along the line are Xw - eta X d: a value costs O(m) once X d is known."""

    product: Predictions  # X d

    @property
    def costs(self) -> LineCosts:
        return LineCosts(0.0, 0.0)

    def curvature(self) -> Scalar:
        return self._loss_curvature() + self.objective.penalty(self.d)

    def _loss_curvature(self) -> Scalar:
        """Return d'Hd of the losses without the penalty."""
        f = self.objective
        change = f.weighted(f.loss.along(self.evaluation.aux, f.y, self.product))
        return inner(change.reshape(-1), self.product.reshape(-1))

    def values(self, etas: Etas) -> LineValues:
        if etas.ndim != 1:
            return super().values(etas)
        return map_rows(lambda eta: self.objective.value_of(*self._moved(eta)), etas)

    def to(self, eta: Numbers) -> Evaluation:
        if np.ndim(eta) != 0:
            return super().to(eta)
        return self.objective.from_predictions(*self._moved(eta))

    def _moved(self, eta: Scalar) -> tuple[Vector, Predictions]:
        return self.evaluation.x - eta * self.d, self.evaluation.aux - eta * self.product
