"""The one formula."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from cfgd.objective.base import Objective, Point, Vector

# nodes and weights of the expectation over U: (s,), or (s, d) for an order per coordinate
Rule = tuple[Float[Array, " s *d"], Float[Array, " s *d"]]


def direction(objective: Objective, point: Point, c: Vector, rule: Rule, beta: Any) -> Vector:
    r"""The scaled Caputo fractional gradient at `point` with terminal c (Theorem 2.4).

    $$ d_j = E[f_j'(T_j)] + \beta (x_j - c_j) E[f_j''(T_j)], \quad T_j = c_j + U (x_j - c_j) $$

    Signed throughout: the nodes lie between c_j and x_j whichever is larger (errata 2 and 3).
    """
    u, w = (part[:, None] if part.ndim == 1 else part for part in rule)
    from_terminal = point.x - c
    slopes, curvatures = objective.slopes(point, c + u * from_terminal)
    if len(u) == 1:  # the one weight is one
        return slopes[0] + beta * from_terminal * curvatures[0]
    return jnp.sum(w * slopes, 0) + beta * from_terminal * jnp.sum(w * curvatures, 0)
