"""The line of a shallow network, along which the inputs of its units change linearly."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cfgd._core.linalg import inner
from cfgd._core.types import Count, Etas, LineValues, Scalar
from cfgd.objectives.base import BATCH_NUMBERS
from cfgd.objectives.evaluation import Line, LineCosts
from cfgd.objectives.network.activation import series

# A unit's response to a change of its input by at most NEAR is a polynomial of degree 8, to
# rounding: tanh has poles at a distance of pi/2, and the remainder is about (2/pi NEAR)^9 = 1e-18.
NEAR = 1 / 64
# Number of values from which on the polynomial pays for its nine coefficients, measured.
MANY = 8


@dataclasses.dataclass(frozen=True, eq=False)
class NetworkLine(Line):
    """f(x - eta d) for one eta or many, and its derivatives at eta = 0."""

    change: Float[Array, "m n"]  # of the inputs of the units, for eta = -1

    @property
    def costs(self) -> LineCosts:
        return LineCosts(curvature=0.5)

    def curvature(self) -> Scalar:
        f, at = self.objective, self.evaluation.aux
        (_, output), (_, out_d) = f.layers(self.evaluation.x), f.layers(self.d)
        _, _, curvature = f.activation(at.inside)
        change = at.slope * self.change
        first = change @ output + at.phi @ out_d
        second = (curvature * self.change * self.change) @ output + 2 * (change @ out_d)
        return inner(first, first) + inner(at.misfit, second)

    def output_curvature(self) -> Scalar:
        """Return d'Hd of the output layer alone, in which f is quadratic."""
        change = self.evaluation.aux.phi @ self.d[self.objective.hidden :]
        return inner(change, change)

    def values(self, etas: Etas) -> LineValues:
        return super().values(etas) if etas.ndim != 1 else self.layer_values(etas, etas)

    def layer_values(
        self, hidden: Float[Array, " n"], output: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """Return f for steps of one length in the hidden layer and another in the output layer."""
        f = self.objective
        (_, weights), (_, out_d) = f.layers(self.evaluation.x), f.layers(self.d)

        def value(etas: tuple[Scalar, Scalar]) -> Scalar:
            inside, out = etas
            phi, _, _ = f.activation(self.evaluation.aux.inside - inside * self.change)
            misfit = phi @ (weights - out * out_d) - f.y
            return inner(misfit, misfit) / 2

        furthest = jnp.max(jnp.abs(self.change))
        near = self._nearby(hidden, output, furthest) if len(hidden) >= MANY else None
        if near is None:
            size = max(1, min(len(hidden), BATCH_NUMBERS // self.change.size))
            return jax.lax.map(value, (hidden, output), batch_size=size)
        is_far = jnp.abs(hidden) * furthest > NEAR
        far = jnp.argsort(~is_far)  # those first

        def replaced(k: Count, values: Float[Array, " n"]) -> Float[Array, " n"]:
            j = far[k]
            return values.at[j].set(value((hidden[j], output[j])))

        return jax.lax.fori_loop(0, jnp.sum(is_far), replaced, near)

    def _nearby(
        self, hidden: Float[Array, " n"], output: Float[Array, " n"], furthest: Scalar
    ) -> Float[Array, " n"] | None:
        """Return values for small steps in the hidden layer, by the Taylor series of its units.

        N = sum_k (-eta)^k (phi_k c^k) a_3, c being the change: m numbers for each power of eta, so
        that a value costs no activation. In units in which the largest change is one: float32
        would lose its eighth power. None where the series is not known.
        """
        f, at = self.objective, self.evaluation.aux
        parts = series(f.activation, at.phi, at.slope)
        if parts is None:
            return None
        (_, weights), (_, out_d) = f.layers(self.evaluation.x), f.layers(self.d)
        unit = jnp.where(furthest > 0, furthest, 1)
        change = self.change / unit
        power, terms, out_terms = jnp.ones_like(change), [], []
        for part in parts:
            terms.append((part * power) @ weights)
            out_terms.append((part * power) @ out_d)
            power = -power * change
        powers = (unit * hidden)[:, None] ** np.arange(len(parts))
        answers = powers @ jnp.stack(terms) - output[:, None] * (powers @ jnp.stack(out_terms))
        misfit = answers - f.y
        return jnp.sum(misfit * misfit, 1) / 2
