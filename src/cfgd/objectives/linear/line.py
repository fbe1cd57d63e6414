"""The line of an objective of predictions, which move along it in proportion."""

from __future__ import annotations

from typing import TypeAlias

import jax.numpy as jnp
from jaxtyping import Float

from cfgd._core.either import mapped
from cfgd._core.linalg import inner
from cfgd._core.types import AnyArray, Etas, LineValues, Numbers, Scalar, Vector
from cfgd.objectives.evaluation import Costs, Evaluation, Line

Predictions: TypeAlias = Float[AnyArray, " m *classes"]


class PredictionLine(Line):
    """Along the line predictions are Xw - eta X d: a candidate costs O(m), once X d is there."""

    product: Predictions  # X d

    @property
    def costs(self) -> Costs:
        return Costs(0.0, 0.0)

    def curvature(self) -> Scalar:
        f = self.objective
        change = f.weighted(f.loss.along(self.point.aux, f.y, self.product))
        along = inner(change.reshape(-1), self.product.reshape(-1))
        return along + f.penalty(self.d)

    def values(self, etas: Etas) -> LineValues:
        if etas.ndim != 1:
            return super().values(etas)

        def value(eta: Scalar) -> Scalar:
            return self.objective.value_of(*self._moved(eta))

        return mapped(value, etas)

    def to(self, eta: Numbers) -> Evaluation:
        return super().to(eta) if jnp.ndim(eta) != 0 else self.objective.point(*self._moved(eta))

    def _moved(self, eta: Scalar) -> tuple[Vector, Predictions]:
        return self.point.x - eta * self.d, self.point.aux - eta * self.product
