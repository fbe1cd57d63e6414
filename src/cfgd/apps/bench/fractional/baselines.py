"""The baselines of the comparison, as update rules."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from cfgd._core.types import Count, Vector
from cfgd.objectives.evaluation import Evaluation
from cfgd.zoo.formulas import adam
from cfgd.zoo.update_rule import DECAY, POSITIVE, UpdateRule, parameter

Pair = tuple[Vector, Vector]


class GradientDescent(UpdateRule):
    """x - eta g."""

    eta: Any = parameter(POSITIVE)

    def update(self, at: Evaluation, memory: None, k: Count, objective: Any) -> tuple[Vector, None]:
        return self.eta * at.gradient, None


class HeavyBall(UpdateRule):
    """v = m v + eta g; x - v (Polyak)."""

    eta: Any = parameter(POSITIVE)
    momentum: Any = parameter(DECAY)

    def start(self, x: Vector) -> Vector:
        return jnp.zeros_like(x)

    def update(
        self, at: Evaluation, memory: Vector, k: Count, objective: Any
    ) -> tuple[Vector, Vector]:
        v = self.momentum * memory + self.eta * at.gradient
        return v, v


class Nesterov(UpdateRule):
    """x' = y - eta g(y); y' = x' + m (x' - x). The points of a run are y."""

    eta: Any = parameter(POSITIVE)
    momentum: Any = parameter(DECAY)

    def start(self, x: Vector) -> Vector:
        return x

    def update(
        self, at: Evaluation, memory: Vector, k: Count, objective: Any
    ) -> tuple[Vector, Vector]:
        x = at.x - self.eta * at.gradient
        return at.x - x - self.momentum * (x - memory), x


class Adam(UpdateRule):
    """Adam with bias correction."""

    eta: Any = parameter(POSITIVE)
    b1: Any = parameter(DECAY)
    b2: Any = parameter(DECAY)

    def start(self, x: Vector) -> Pair:
        return jnp.zeros_like(x), jnp.zeros_like(x)

    def update(self, at: Evaluation, memory: Pair, k: Count, objective: Any) -> tuple[Vector, Pair]:
        d, memory = adam(at.gradient, memory, k, self.b1, self.b2, 1e-8)  # optax's epsilon
        return self.eta * d, memory
