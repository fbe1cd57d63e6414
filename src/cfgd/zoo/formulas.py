"""Formulas that several rules share."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax.numpy as jnp
from jax.scipy.special import gamma
from jaxtyping import Array, Float

from cfgd._core.types import Count, Numbers, Vector, Vectors

# a number of a rule: in optax as the user gave it
Parameter: TypeAlias = Numbers | float


def first_term(distance: Any, alpha: Parameter) -> Any:
    """Return D^(1 - alpha) / Gamma(2 - alpha), the Caputo derivative of x at a distance D."""
    alpha = jnp.asarray(alpha)
    return distance ** (1 - alpha) / gamma(2 - alpha)


def binomial_weights(alpha: Parameter, n: int) -> Float[Array, " n"]:
    """Return w_0 = 1, w_j = (1 - (alpha + 1)/j) w_{j-1}: Gruenwald and Letnikov's, for j < n.

    They are (-1)^j times the binomial coefficient of alpha over j.
    """
    j = jnp.arange(1, n)
    ratios = 1 - (jnp.asarray(alpha) + 1) / j
    return jnp.concatenate([jnp.ones(1, ratios.dtype), jnp.cumprod(ratios)])


def pushed(buffer: Vectors, newest: Vector) -> Vectors:
    """Return the buffer with the newest vector as its row 0, and the oldest left out."""
    return jnp.concatenate([newest[None], buffer[:-1]])


def adam(
    g: Vector,
    moments: tuple[Vector, Vector],
    k: Count,
    b1: Parameter,
    b2: Parameter,
    eps: Parameter,
) -> tuple[Vector, tuple[Vector, Vector]]:
    """Return Adam's direction for the gradient g of iteration k, and its moments."""
    m = b1 * moments[0] + (1 - b1) * g
    v = b2 * moments[1] + (1 - b2) * g**2
    m_hat, v_hat = m / (1 - b1 ** (k + 1)), v / (1 - b2 ** (k + 1))
    return m_hat / (jnp.sqrt(v_hat) + eps), (m, v)


def order_towards_one(alpha: Parameter, rate: Parameter, k: Count) -> Parameter:
    """Return alpha_k = 1 - (1 - alpha) / (1 + rate k)."""
    return 1 - (1 - alpha) / (1 + rate * k)
