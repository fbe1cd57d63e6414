"""The limit point of the non-adaptive method on a model: (H + gamma D) p = g.

Theorem 3: with terminal c = x and gamma > 0 the method converges to the minimiser of
q + gamma/2 |x - c|^2_D, where q is the quadratic model at x and D its diagonal. Where its matrix
can be written down, that point is taken at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.either import chosen, factored, on_host, raised, repeat, space
from cfgd._core.linalg import inner
from cfgd._core.types import Count, Number, Scalar, Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import is_wide, kept
from cfgd.objectives.evaluation import Evaluation

# of the gradient, what conjugate iterations leave at most, and how many there are at most
FORCING, MOST_PRODUCTS = 0.1, 200
# the least gamma: below it rounding decides
LEAST = 1e-14


class Step(NamedTuple):
    """p of a gamma, and products that it took."""

    p: Vector
    cost: Number
    bent: Callable[[Any], Vector] | None  # with J'k in place of g, for a k


class System(NamedTuple):
    """(H + gamma D) p = g for every gamma."""

    D: Vector
    own: Callable[[], Vector]  # the diagonal of H itself
    step: Callable[[Scalar], Step]
    undamped: Callable[[], Vector]  # p without gamma, to rounding
    cost: float  # of the matrix, in gradients
    image: Callable[[Vector], Any] | None  # Jp


def system(objective: Objective, point: Evaluation, old: Vector, part: Scalar) -> System:
    """The system at a point; D is kept from shrinking below the `old` one.

    The smaller of the two matrices, J'J and JJ', is factored, in coordinates in which D is one.
    Where both are too large it goes without: by conjugate iterations, the more exact the smaller
    a `part` of the gradient at the start is left.
    """
    shape = objective.model_shape(point)
    if shape is None or not objective.affords(shape):
        P = kept(0 * old, objective.gauss_newton_diagonal(point))
        D = kept(old, objective.damping(point, P))
        way = partial(_by_products, objective, point, D, part)
        last = partial(_by_products, objective, point, P, part, 0 * part + LEAST)
        return System(D, lambda: P, way, lambda: last().p, 0.0, None)
    D, matrix, rows, r = objective.normal(point, old)
    xp, cost = space(D), objective.model_cost(shape)
    root = xp.sqrt(D)

    def across(gamma: Scalar) -> Step:
        solved = factored(raised(matrix, gamma))

        def of(k: Any) -> Vector:
            return (solved(k) @ rows) / root

        return Step(of(r), 0.0, of)

    def along(gamma: Scalar) -> Step:
        solved = factored(raised(matrix, gamma))

        def bent(k: Any) -> Vector:
            return solved(k @ rows) / root

        p = solved(point.gradient / root) / root
        return Step(p, 0.0, None if rows is None else bent)

    wide = r is not None and is_wide(shape)

    def own() -> Vector:
        parts = xp.einsum("ij,ij->j", rows, rows) if wide else matrix.diagonal()
        return kept(0 * D, D * parts)

    def undamped() -> Vector:
        if wide:
            return across(0 * part + LEAST).p
        size = xp.sqrt(own())
        more = root / size
        solved = factored(raised(matrix * more * more[:, None], LEAST))
        return solved(point.gradient / size) / size

    step = across if wide else along
    return System(D, own, step, undamped, cost, lambda p: rows @ (root * p))


class Going(NamedTuple):
    """Conjugate iterations so far."""

    p: Vector
    rest: Vector  # g - (H + gamma D) p
    way: Vector
    size: Scalar  # of the rest, squared, in the norm of D^-1
    made: Count


def _by_products(
    objective: Objective, point: Evaluation, D: Vector, part: Scalar, gamma: Scalar
) -> Step:
    g, xp = point.gradient, space(point.gradient)
    enough = xp.minimum(FORCING, xp.sqrt(part)) ** 2 * inner(g, g / D)

    def once(at: Going) -> Going:
        image = objective.model_times(point, at.way) + gamma * D * at.way
        along = inner(at.way, image)
        eta = at.size / chosen(along > 0, along, 0 * along + 1)
        rest = at.rest - eta * image
        size = inner(rest, rest / D)
        way = rest / D + size / at.size * at.way
        return Going(at.p + eta * at.way, rest, way, size, at.made + 1)

    def goes(at: Going) -> Scalar:
        return (at.size > enough) & (at.made < MOST_PRODUCTS)

    none = xp.zeros((), np.int32)[()]
    end = repeat(goes, once, Going(0 * g, g, g / D, inner(g, g / D), none), on_host(g))
    return Step(end.p, objective.product_cost * end.made, None)
