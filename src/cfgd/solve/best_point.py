"""The best point of a run, carried along with it."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from cfgd._core.either import Plain, made
from cfgd._core.types import Flag, Scalar, Vector
from cfgd.objectives.evaluation import Evaluation


class Best(Plain, eqx.Module):
    """The least finite value seen, and where; of equal values the latest."""

    value: Scalar
    x: Vector

    @classmethod
    def of(cls, point: Evaluation) -> Best:
        return made(cls, value=point.value, x=point.x)

    def or_better(self, point: Evaluation, over: Flag) -> Best:
        """With the point, unless the run was `over` before it."""
        better = jnp.isfinite(point.value) & (point.value <= self.value) & ~over
        return Best(jnp.where(better, point.value, self.value), jnp.where(better, point.x, self.x))
