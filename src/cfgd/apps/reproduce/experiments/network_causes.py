"""Directions that separate the causes: which part of the printed formula helps a network?

Each differs from `AdaptiveTerminal(reading="printed")` in one thing, and takes the same step
search. Random numbers are of the iteration alone, so that a run can be repeated.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from cfgd import AdaptiveTerminal
from cfgd._core.types import Vector
from cfgd.methods.paper.direction import Memory, direction
from cfgd.methods.paper.fractional import FractionalState
from cfgd.objectives.base import Objective

KEY = 0


def key_of(state: FractionalState) -> jax.Array:
    return jax.random.fold_in(jax.random.key(KEY), state.k)


class RandomSign(AdaptiveTerminal):
    """A random sign in place of that of x_j - c_j: the memory's length without its side.

    Nodes c + u s |x - c| and the term beta s |x - c|, s_j being +1 or -1 by chance. The exact
    formula has the sign of x_j - c_j for s_j, the printed one +1.
    """

    def direction_at(
        self, objective: Objective, state: FractionalState, c: Vector, memory: Memory
    ) -> Vector:
        x = state.point.x
        sign = jax.random.rademacher(key_of(state), x.shape, x.dtype)
        u, w = (part[:, None] if part.ndim == 1 else part for part in memory.nodes)
        length = sign * jnp.abs(x - c)
        slopes, curvatures = objective.slopes(state.point, c + u * length)
        return jnp.sum(w * slopes, 0) + memory.beta * length * jnp.sum(w * curvatures, 0)


class Noise(AdaptiveTerminal):
    """No memory: the gradient, and white noise as long as what the printed formula adds to it.

    As long in each layer, whose pushes are of different sizes.
    """

    def direction_at(
        self, objective: Objective, state: FractionalState, c: Vector, memory: Memory
    ) -> Vector:
        g = state.point.gradient
        added = direction(objective, state.point, c, memory, self.reading) - g
        noise = jax.random.normal(key_of(state), g.shape, g.dtype)
        layers = [slice(objective.hidden), slice(objective.hidden, None)]
        parts = [
            noise[layer] * jnp.linalg.norm(added[layer]) / jnp.linalg.norm(noise[layer])
            for layer in layers
        ]
        return g + jnp.concatenate(parts)
