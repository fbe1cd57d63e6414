"""Steps in the span of a few terminals and the scaled gradients there."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

from cfgd.algebra import inner, size as size_of
from cfgd.either import chosen, eigenvalues, put, space, triangular_solved
from cfgd.types import Computed, Count, Scalar, Vector, Vectors

Matrix: TypeAlias = Float[Computed, "n n"]
Mask: TypeAlias = Bool[Computed, " n"]

# terminals, and directions that are looked along before a run ends, where there are as many
TERMINALS = 16
# how much longer a step becomes where the last one met no curvature
GROWTH = 4.0


def is_small(d: int) -> bool:
    """Whether the memory has room for a step along every coordinate."""
    return d <= TERMINALS


class Memory(NamedTuple):
    """Steps s with the changes y of the gradient along them, in a ring; empty rows are zero."""

    steps: Vectors
    changes: Vectors
    products: Matrix  # s_i'y_j
    usable: Mask  # along which the gradient grew
    newest: Count  # the row of the latest step

    @classmethod
    def empty(cls, x: Vector) -> Memory:
        xp = space(x)
        steps, changes = (xp.zeros((TERMINALS, x.size), x.dtype) for _ in range(2))
        products, usable = xp.zeros((TERMINALS, TERMINALS), x.dtype), xp.zeros(TERMINALS, bool)
        return cls(steps, changes, products, usable, xp.zeros((), np.int32)[()])

    def then(self, step: Vector, change: Vector) -> Memory:
        """With one more step in place of the oldest one."""
        return self._with((self.newest + 1) % TERMINALS, step, change)

    def plus(self, j: Count, step: Vector, change: Vector) -> Memory:
        """With more of row j."""
        return self._with(j, self.steps[j] + step, self.changes[j] + change)

    def _with(self, j: Count, step: Vector, change: Vector) -> Memory:
        steps, changes = put(self.steps, j, step), put(self.changes, j, change)
        products = put(self.products, j, changes @ step)
        products = put(products.T, j, steps @ change).T
        sizes, sqrt = (inner(step, step), inner(change, change)), space(step).sqrt
        grew = products[j, j] > 1e-12 * sqrt(sizes[0]) * sqrt(sizes[1])
        return Memory(steps, changes, products, put(self.usable, j, grew), j)

    def emptied(self) -> Memory:
        zeros = space(self.steps).zeros_like
        steps, changes, products, usable = (zeros(of) for of in self[:4])
        return Memory(steps, changes, products, usable, self.newest)


class Direction(NamedTuple):
    """p = eta (P^-1 g + gamma (x - c) + ...), to be walked against."""

    p: Vector
    eta: Scalar
    gamma: Scalar  # of the last terminal


def best_direction(memory: Memory, g: Vector, P: Vector) -> Direction:
    """In the span of x - c and of P^-1 times the gradients, for the last terminals c and for x.

    The weights are those of L-BFGS, whose two loops over pairs along which the gradient grew are
    two triangular systems: with R the products s_i'y_j of steps with changes that are not older,
    a = R^-1 S g and q = g - Y'a; then p = eta P^-1 q + S'b with R'b = D a - eta Y P^-1 q, where D
    is the diagonal of R and 1/eta the curvature y'P^-1 y / y's that the last step has met.
    """
    xp, one = space(g), 0 * g[0] + 1
    # oldest first
    there = (memory.newest + 1 + xp.arange(TERMINALS)) % TERMINALS
    back = (xp.arange(TERMINALS) - memory.newest - 1) % TERMINALS
    usable, products = memory.usable[there], memory.products[there][:, there]
    R = xp.where(usable[:, None] & usable, xp.triu(products), xp.eye(TERMINALS, dtype=g.dtype))
    along = products.diagonal()

    a = triangular_solved(R, xp.where(usable, (memory.steps @ g)[there], 0))
    q = g - a[back] @ memory.changes
    last = TERMINALS - 1 - usable[::-1].argmax()
    y = memory.changes[there[last]]
    met = inner(y, y / P)
    eta = chosen(usable[last], along[last] / chosen(usable[last], met, one), one)
    p = q * (eta / P)
    b = triangular_solved(R, xp.where(usable, along * a - (memory.changes @ p)[there], 0), True)
    p = p + b[back] @ memory.steps
    # along the last step the gradient did not grow: go further
    length, least = size_of(p, P), GROWTH * size_of(memory.steps[memory.newest], P)
    further = ~usable[-1] & (least > length) & (length > 0)
    p = chosen(further, p * (least / chosen(further, length, one)), p)
    slope = inner(g, p)
    falls = (slope > 0) & (slope < np.inf)
    return Direction(
        chosen(falls, p, g / P),
        chosen(falls, eta, one),
        chosen(falls, b[-1] / eta, 0 * one),
    )


class Looked(NamedTuple):
    """What the curvature around a point promises, the memory being of probes around it."""

    p: Vector  # the step of the model, curvatures counting by their size
    decrease: Scalar  # that the model promises at most
    length: Scalar  # of the step that it promises, in the norm of P
    least: Scalar  # curvature, as a part of the largest one; negative at a saddle
    downwards: Vector  # the direction of the least curvature, of length one in the norm of P


def looked_direction(
    memory: Memory,
    g: Vector,
    P: Vector,
    size: Scalar,
    noise: Any,
    far: Bool[Computed, " d"],
) -> Looked:
    """Newton's step in the span of the probes, which are orthogonal in the norm of P.

    Curvatures below `noise`, as a part of the largest one, are not known: the step takes them for
    that, the promise for zero to rounding, unless the gradient is zero to rounding along them.
    Where such a direction moves coordinates that went `far`, it leads to infinity, and promises
    that.
    """
    xp, eps = space(g), np.finfo(g.dtype).eps
    norms = xp.sqrt((memory.steps * P * memory.steps).sum(1))
    scale = (norms > 0) / xp.where(norms > 0, norms, 1)
    among = scale[:, None] * memory.products * scale
    unequal = xp.sqrt(((among - among.T) ** 2).sum())  # what rounding makes of it
    curvatures, axes = eigenvalues((among + among.T) / 2)
    sizes = abs(curvatures)
    largest = sizes.max()
    ways = (axes.T * scale) @ memory.steps  # of each curvature, a unit vector
    slopes = ways @ g
    noise = xp.maximum(noise, 4 * unequal / largest)
    known = sizes > noise * largest
    none = ~known & (abs(slopes) <= 4 * eps * largest * size)
    best = slopes / xp.where(known, sizes, noise * largest)
    most = xp.where(none, 0, slopes / xp.where(known, sizes, eps * largest))

    p, downwards = best @ ways, ways[0]
    downwards = chosen(inner(downwards, g) < 0, -downwards, downwards)
    least = chosen(known[0], curvatures[0] / largest, 0 * largest)
    endless = (~known & (xp.where(far, P * ways**2, 0).sum(1) > 0.1)).any()
    length = chosen(endless, 0 * largest + np.inf, xp.sqrt(inner(most, most)))
    decrease = chosen(length < np.inf, inner(slopes, most) / 2, 0 * largest + np.inf)
    return Looked(p, decrease, length, least, downwards)
