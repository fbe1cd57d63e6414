"""Steps in the span of a few terminals and the scaled gradients there."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from cfgd._core.either import (
    branch,
    chosen,
    eigenvalues,
    kept_rows,
    mapped,
    masked,
    on_host,
    put,
    shifted,
    space,
    triangular_solved,
)
from cfgd._core.linalg import eps_of, inner, size as size_of
from cfgd._core.types import AnyArray, Column, Count, Flag, Matrix, Scalar, Vector, Vectors

# terminals, and directions that are looked along before a run ends, where there are as many
TERMINALS = 16
# coordinates from which on the memory of a run counts, which has two vectors for each terminal
LONG, FEWER = 10_000, 11
# how much longer a step becomes where the last one met no curvature
GROWTH = 4.0


def is_small(d: int) -> bool:
    """Whether the memory has room for a step along every coordinate."""
    return d <= TERMINALS


def terminals(d: int) -> int:
    """How many a run in d dimensions remembers."""
    return TERMINALS if d < LONG else FEWER


@functools.cache
def oldest_first(n: int) -> np.ndarray:
    """Of a ring of n, by its newest row: all rows in the order of their age."""
    rows = np.arange(n, dtype=np.int32)  # in either precision
    return (rows[:, None] + 1 + rows) % n


@functools.cache
def places(n: int) -> np.ndarray:
    """Of a ring of n, by its newest row: the place of each row in that order."""
    rows = np.arange(n, dtype=np.int32)
    return (rows - 1 - rows[:, None]) % n


class Pair(NamedTuple):
    """A step and the change of the gradient along it."""

    step: Vector
    change: Vector
    along: Scalar  # <step, change>
    squares: Scalar  # <change, change>
    grew: Flag  # the gradient did, beyond rounding

    @classmethod
    def of(cls, step: Vector, change: Vector) -> Pair:
        sqrt, along, squares = space(step).sqrt, inner(step, change), inner(change, change)
        grew = along > 1e-12 * sqrt(inner(step, step)) * sqrt(squares)
        return cls(step, change, along, squares, grew)


class Memory(NamedTuple):
    """Steps s with the changes y of the gradient along them, in a ring; empty rows are zero.

    Of steps, only those along which the gradient grew are kept. Of probes, `settled` keeps these.
    """

    steps: Vectors
    changes: Vectors
    triangle: Matrix  # s_i'y_j for changes that are not older, oldest first; else the identity
    newest: Count  # row
    last: Count  # row that is not empty
    along: Scalar  # s'y of it, or 0
    flat: Flag  # along the last step the gradient did not grow

    @classmethod
    def empty(cls, x: Vector) -> Memory:
        xp, n = space(x), terminals(x.size)
        steps, changes = (xp.zeros((n, x.size), x.dtype) for _ in range(2))
        none, zero = xp.zeros((), np.int32)[()], xp.zeros((), x.dtype)[()]
        return cls(steps, changes, xp.eye(n, dtype=x.dtype), none, none, zero, zero > 0)

    def emptied(self) -> Memory:
        """On the host in place, as all that happens to it: it is what a run holds most of."""
        if not on_host(self.steps):
            return Memory.empty(self.steps[0])
        steps, changes = self.steps, self.changes
        steps[:] = changes[:] = 0
        triangle: Any = np.eye(len(steps), dtype=steps.dtype)
        return Memory.empty(steps[0, :0])._replace(steps=steps, changes=changes, triangle=triangle)

    def then(self, pair: Pair) -> Memory:
        """With one more step in place of the oldest one."""
        step, change, along, _, grew = pair
        n = len(self.steps)
        j = (self.newest + 1) % n
        steps = put(self.steps, j, masked(grew, step))
        changes = put(self.changes, j, masked(grew, change))
        column = (steps @ changes[j])[rows_of(oldest_first(n), j)]
        triangle = shifted(self.triangle, column, chosen(grew, along, 0 * along + 1))
        last, along = chosen(grew, j, self.last), chosen(grew, along, self.along)
        # the row of the last one may have been overwritten
        along = chosen((last == j) & ~grew, 0 * along, along)
        return Memory(steps, changes, triangle, j, last, along, ~grew)

    def kept(self, pair: Pair) -> Pair:
        """The pair that was added last, as it stands here: on the host two vectors less."""
        if not on_host(pair.step) or not pair.grew:
            return pair
        return pair._replace(step=self.steps[self.newest], change=self.changes[self.newest])

    def scale(self, P: Vector) -> Column:
        """What makes the length of each step one in the norm of P; zero for empty rows."""
        xp = space(P)
        norms = mapped(lambda step: size_of(step, P), self.steps)
        return (norms > 0) / xp.where(norms > 0, norms, 1)

    def plus(self, j: Count, step: Vector, change: Vector) -> Memory:
        """With more of row j: half of a probe."""
        steps = put(self.steps, j, self.steps[j] + step)
        changes = put(self.changes, j, self.changes[j] + change)
        return self._replace(steps=steps, changes=changes, newest=j)

    def settled(self) -> Memory:
        """The probes as steps, of which the last one is the newest."""
        xp, n = space(self.steps), len(self.steps)
        order = rows_of(oldest_first(n), self.newest)
        squares = [xp.einsum("ij,ij->i", of, of) for of in (self.steps, self.changes)]
        lengths = xp.sqrt(squares[0]) * xp.sqrt(squares[1])
        along = xp.einsum("ij,ij->i", self.steps, self.changes)
        grew = along > 1e-12 * lengths
        steps, changes = (kept_rows(of, grew) for of in (self.steps, self.changes))
        products = xp.triu((steps @ changes.T)[order][:, order])
        triangle = products + xp.diag((~grew[order]).astype(steps.dtype))
        last = order[n - 1 - grew[order][::-1].argmax()].astype(np.int32)
        known = chosen(grew[last], along[last], 0 * along[last])
        return Memory(steps, changes, triangle, self.newest, last, known, known < 0)


def rows_of(table: np.ndarray, j: Count) -> Any:
    return table[j] if on_host(j) else jnp.asarray(table)[j]


class Direction(NamedTuple):
    """p = eta (P^-1 g + gamma (x - c) + ...), to be walked against."""

    p: Vector
    slope: Scalar  # <g, p>
    eta: Scalar
    gamma: Scalar  # of the last terminal


def best_direction(memory: Memory, g: Vector, P: Vector, step: Vector) -> Direction:
    """In the span of x - c and of P^-1 times the gradients, for the last terminals c and for x.

    The weights are those of L-BFGS, whose two loops over pairs along which the gradient grew are
    two triangular systems: with R the products s_i'y_j of steps with changes that are not older,
    a = R^-1 S g and q = g - Y'a; then p = eta P^-1 q + S'b with R'b = D a - eta Y P^-1 q, where D
    is the diagonal of R and 1/eta the curvature y'P^-1 y / y's that the last step has met. Where
    the gradient did not grow along the last `step`, the next one is longer.
    """
    one = 0 * memory.along + 1
    S, Y, R = memory.steps, memory.changes, memory.triangle
    there, back = (rows_of(table(len(S)), memory.newest) for table in (oldest_first, places))
    a = triangular_solved(R, (S @ g)[there])
    y, known = Y[memory.last], memory.along > 0
    eta = chosen(known, memory.along / chosen(known, inner(y, y / P), one), one)
    p = g - a[back] @ Y
    p *= eta / P  # on the host in place: it has as many vectors as it needs already
    b = triangular_solved(R, R.diagonal() * a - (Y @ p)[there], transposed=True)
    p += b[back] @ S
    p = branch(memory.flat, lambda: _lengthened(p, P, step), lambda: p)
    slope = inner(g, p)
    falls = (slope > 0) & (slope < np.inf)
    return branch(
        falls,
        lambda: Direction(p, slope, eta, b[-1] / eta),
        lambda: Direction(g / P, inner(g, g / P), one, 0 * one),
    )


def _lengthened(p: Vector, P: Vector, step: Vector) -> Vector:
    length, least = size_of(p, P), GROWTH * size_of(step, P)
    further = (least > length) & (length > 0)
    return chosen(further, p * (least / chosen(further, length, 0 * length + 1)), p)


class Looked(NamedTuple):
    """What the curvature around a point promises, the memory being of probes around it."""

    p: Vector  # the step of the model, curvatures counting by their size
    decrease: Scalar  # that the model promises at most
    length: Scalar  # of the step that it promises, in the norm of P
    least: Scalar  # curvature, as a part of the largest one; negative at a saddle
    downwards: Vector  # the direction of the least curvature, of length one in the norm of P
    flat: Vector  # one without any curvature, or zero
    convex: Flag  # all curvatures are known, and positive


def looked_direction(
    memory: Memory,
    g: Vector,
    P: Vector,
    size: Scalar,
    noise: Any,
    far: Bool[AnyArray, " d"],
) -> Looked:
    """Newton's step in the span of the probes, which are orthogonal in the norm of P.

    Curvatures below `noise`, as a part of the largest one, are not known: the step takes them for
    that, the promise for zero to rounding, unless the gradient is zero to rounding along them.
    Where such a direction moves coordinates that went `far`, it leads to infinity, and promises
    that.
    """
    xp, eps = space(g), eps_of(g)
    scale = memory.scale(P)
    among = scale[:, None] * (memory.steps @ memory.changes.T) * scale
    unequal = xp.sqrt(((among - among.T) ** 2).sum())  # what rounding makes of it
    curvatures, axes = eigenvalues((among + among.T) / 2)
    sizes = abs(curvatures)
    largest = sizes.max()
    ways = axes.T * scale  # of each curvature the weights of steps that make a unit vector
    slopes = ways @ (memory.steps @ g)
    noise = xp.maximum(noise, 4 * unequal / largest)
    known = sizes > noise * largest
    none = ~known & (abs(slopes) <= 4 * eps * largest * size)
    best = slopes / xp.where(known, sizes, noise * largest)
    most = xp.where(none, 0, slopes / xp.where(known, sizes, eps * largest))

    p, downwards = (best @ ways) @ memory.steps, ways[0] @ memory.steps
    downwards = chosen(inner(downwards, g) < 0, -downwards, downwards)
    least = chosen(known[0], curvatures[0] / largest, 0 * largest)

    def sums(way: Vector) -> Any:
        """Squares of a unit vector: of all coordinates, and of those that went far."""
        squares = way @ memory.steps  # one vector at a time: there may not be room for all
        squares *= squares
        squares *= P
        return xp.stack([squares.sum(), xp.where(far, squares, 0).sum()])

    whole, gone = mapped(sums, ways).T
    endless = (~known & (gone > 0.1)).any()
    length = chosen(endless, 0 * largest + np.inf, xp.sqrt(inner(most, most)))
    decrease = chosen(length < np.inf, inner(slopes, most) / 2, 0 * largest + np.inf)
    unknown = ~known & (whole > 0.5)  # and not an empty row
    flat = unknown.any() * (ways[unknown.argmax()] @ memory.steps)
    return Looked(p, decrease, length, least, downwards, flat, ~unknown.any() & (least >= 0))
