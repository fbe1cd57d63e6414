"""The memory of L-BFGS: pairs of steps and gradient changes, and the diagonal preconditioner.

References: Nocedal and Wright, section 7.2; the compact form of the inverse matrix is that of Byrd,
Nocedal and Schnabel, Mathematical Programming 63 (1994).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from cfgd._core.box import Box
from cfgd._core.linalg import inner, solve_upper, weighted_norm
from cfgd._core.types import Column, Matrix, Number, Scalar, Vector, Vectors
from cfgd.methods.auto.box_step import minimise_in_box
from cfgd.methods.auto.cubic import Trial, curvature_at_end
from cfgd.methods.auto.curvature_check import MOST_DIRECTIONS, Probes, most_directions
from cfgd.objectives.evaluation import Evaluation

# Pairs in the memory; 3 to 20 are usual (Nocedal and Wright, section 7.2). The probes of a
# curvature check become pairs, so that there is room for as many.
PAIRS = MOST_DIRECTIONS
# A pair is used if the cosine of the angle between step and change is above this number: below it
# the sign of the curvature is that of rounding errors.
LEAST_COSINE = 1e-12
# Largest ratio of the curvature at the end of a step to the average one, and of its inverse: an
# order of magnitude. A cubic with a larger ratio, or with a negative curvature, is no good model of
# f.
LARGEST_FACTOR = 10.0
# If the curvature along a step is above this share of f, the values of f are used to estimate how
# it changes. Values of simulations often have no more than six or seven digits, and the estimate
# has six times their error. Shorter steps need no such correction.
SEEN = 1e-5
# Least ratio of a step to the last one if the curvature along that was not positive: four is
# between the doubling and the tenfold growth by which line searches extrapolate.
GROWTH = 4.0
# Numbers in a memory up to which all its products are computed at once; beyond, row by row, to save
# memory.
FEW_NUMBERS = 2**16
# Least size of a coordinate for the first step, relative to the root mean square of x: a coordinate
# that is zero by chance must not shorten the step of all others (an order of magnitude, not tuned).
SMALLEST = 1e-3


@functools.cache
def _oldest_first(n: int) -> np.ndarray:
    """Return, for each newest row of a ring buffer of n, all rows from the oldest on."""
    rows = np.arange(n)
    return (rows[:, None] + 1 + rows) % n


@functools.cache
def _age_rank(n: int) -> np.ndarray:
    """Return, for each newest row of a ring buffer of n, the place of each row in that order."""
    rows = np.arange(n)
    return (rows - 1 - rows[:, None]) % n


class Pair(NamedTuple):
    """A step and the change of the gradient along it."""

    step: Vector
    change: Vector
    product: Scalar  # <step, change>
    change2: Scalar  # <change, change>
    is_positive: bool  # the curvature along the step is positive beyond rounding

    @classmethod
    def of(cls, step: Vector, change: Vector) -> Pair:
        product, change2 = inner(step, change), inner(change, change)
        lengths = np.sqrt(inner(step, step)) * np.sqrt(change2)
        return cls(step, change, product, change2, bool(product > LEAST_COSINE * lengths))

    @classmethod
    def between(cls, old: Evaluation, new: Evaluation) -> Pair:
        """Return the pair of a step, with the curvature that f has along it at its end.

        The change of the gradient gives the average curvature along the step, and the values of f
        show how it changes. The cubic through both gives the curvature at the new point (Biggs, J.
        Inst. Maths Applics 8, 1971). On quadratics the two are equal.
        """
        pair = cls.of(new.x - old.x, new.gradient - old.gradient)
        hidden = SEEN * max(abs(old.value), abs(new.value))
        if not (pair.is_positive and pair.product > hidden):
            return pair
        ends = (Trial(t, at.value, inner(at.gradient, pair.step)) for t, at in ((0, old), (1, new)))
        factor = curvature_at_end(*ends) / pair.product
        factor = min(max(factor, 1 / LARGEST_FACTOR), LARGEST_FACTOR)
        return cls(
            pair.step, factor * pair.change, factor * pair.product, factor**2 * pair.change2, True
        )


@dataclasses.dataclass
class Memory:
    """The last pairs, in a ring buffer that `add` overwrites in place.

    A row is zero where there is no pair: before the buffer is full, and where the curvature along a
    step was not positive.
    """

    steps: Vectors  # S
    changes: Vectors  # Y
    triangle: Matrix  # R: <s_i, y_j> for j not older than i, oldest first; 1 on empty diagonals
    newest: int  # the row that was written last
    last: int  # the row of the last pair
    product: Scalar  # <s, y> of the last pair; 0 without any
    is_flat: bool  # the curvature along the last step was not positive

    @classmethod
    def empty(cls, x: Vector) -> Memory:
        n = most_directions(x.size)
        steps, changes = np.zeros((n, x.size), x.dtype), np.zeros((n, x.size), x.dtype)
        return cls(steps, changes, np.eye(n, dtype=x.dtype), 0, 0, x.dtype.type(0), False)

    @classmethod
    def of_probes(cls, x: Vector, probes: Probes) -> Memory:
        """Return a memory whose pairs are probes around x, the last one the newest.

        A full memory consists of the arrays of the probes themselves.
        """
        n, m = most_directions(x.size), len(probes.steps)
        steps, changes = probes
        if m < n:
            memory = cls.empty(x)
            memory.steps[:m], memory.changes[:m] = probes
            steps, changes = memory.steps, memory.changes
        newest = m - 1
        order = _oldest_first(n)[newest]

        def products_of(a: Vectors, b: Vectors) -> Column:
            if a.size <= FEW_NUMBERS:
                return (a * b).sum(1)
            return np.array([(row * other).sum() for row, other in zip(a, b, strict=True)])

        lengths = np.sqrt(products_of(steps, steps)) * np.sqrt(products_of(changes, changes))
        products = products_of(steps, changes)
        is_pair = products > LEAST_COSINE * lengths
        steps[~is_pair] = 0
        changes[~is_pair] = 0
        triangle = np.triu((steps @ changes.T)[order][:, order])
        triangle += np.diag((~is_pair[order]).astype(x.dtype))
        last = int(order[n - 1 - is_pair[order][::-1].argmax()])
        product = products[last] if is_pair[last] else x.dtype.type(0)
        return cls(steps, changes, triangle, newest, last, product, False)

    def add(self, pair: Pair) -> None:
        """Overwrite the oldest pair."""
        n = len(self.steps)
        j = (self.newest + 1) % n
        self.steps[j] = pair.step if pair.is_positive else 0
        self.changes[j] = pair.change if pair.is_positive else 0
        R, column = self.triangle, (self.steps @ self.changes[j])[_oldest_first(n)[j]]
        R[:-1, :-1] = R[1:, 1:]
        R[:, -1] = column
        R[-1, -1] = pair.product if pair.is_positive else 1
        self.newest = j
        self.is_flat = not pair.is_positive
        if pair.is_positive:
            self.last, self.product = j, pair.product
        elif self.last == j:  # the row of the last pair was overwritten
            self.product = self.product.dtype.type(0)


class Direction(NamedTuple):
    """A step x - p, p = eta (P^-1 g + gamma (x - c) + ...) with c the last terminal."""

    p: Vector
    slope: Scalar  # <g, p>
    eta: Number
    gamma: Number


def direction(memory: Memory, g: Vector, P: Vector, last_step: Vector) -> Direction:
    """Return the inverse L-BFGS matrix times g, by two triangular systems.

    The rows of S and Y are steps and changes, and R has the products s_i'y_j of steps with changes
    that are not older. With a = R^-1 S g and q = g - Y'a, p = eta P^-1 q + S'b where R'b = D a -
    eta Y P^-1 q; D is the diagonal of R and eta = s'y / y'P^-1 y of the last pair. Where the
    curvature along the last step was not positive, p is at least four times as long as that step.
    Where rounding leaves no descent, p is P^-1 g.
    """
    S, Y, R = memory.steps, memory.changes, memory.triangle
    order, rank = _oldest_first(len(S))[memory.newest], _age_rank(len(S))[memory.newest]
    a = solve_upper(R, (S @ g)[order])
    eta = 1.0
    if memory.product > 0:
        y = Y[memory.last]
        eta = memory.product / inner(y, y / P)
    p = g - a[rank] @ Y
    p *= eta / P
    b = solve_upper(R, R.diagonal() * a - (Y @ p)[order], transposed=True)
    p += b[rank] @ S
    if memory.is_flat:
        length, longer = weighted_norm(p, P), GROWTH * weighted_norm(last_step, P)
        if 0 < length < longer:
            p *= longer / length
    slope = inner(g, p)
    if 0 < slope < np.inf:
        return Direction(p, slope, eta, b[-1] / eta)
    return Direction(g / P, inner(g, g / P), 1.0, 0.0)


def inverse_matrix(memory: Memory, P: Vector) -> Matrix:
    """Return the inverse L-BFGS matrix itself, which `direction` multiplies with g.

    In the compact form it is E + S'R^-T (D + Y E Y') R^-1 S - S'R^-T Y E - E Y'R^-1 S, where
    E = eta P^-1 (Byrd, Nocedal and Schnabel, equation 2.6).
    """
    order = _oldest_first(len(memory.steps))[memory.newest]
    S, Y, R = memory.steps[order], memory.changes[order], memory.triangle
    eta = 1.0
    if memory.product > 0:
        y = memory.changes[memory.last]
        eta = memory.product / inner(y, y / P)
    scaled = Y * (eta / P)
    A = solve_upper(R, S)
    left = (np.diag(R.diagonal()) + scaled @ Y.T) @ A - scaled
    H = A.T @ left
    H -= scaled.T @ A
    H[np.diag_indices(P.size)] += eta / P
    return H


class CompactMatrix:
    """The L-BFGS matrix B itself, for steps under bounds.

    B = B0 - W' M^-1 W with B0 = P / eta, where W has the rows S B0 and Y and M consists of
    [[S B0 S', L], [L', -D]]; L is the part of SY' below its diagonal D (Nocedal and Wright, theorem
    7.4). Pairs are scaled so that D is the identity.
    """

    def __init__(self, memory: Memory, P: Vector) -> None:
        order = _oldest_first(len(memory.steps))[memory.newest]
        S, Y = memory.steps[order], memory.changes[order]
        products = np.einsum("ij,ij->i", S, Y)
        is_pair = products > 0
        root = np.sqrt(products[is_pair])[:, None]
        S, Y = S[is_pair] / root, Y[is_pair] / root
        eta = 1.0
        if memory.product > 0:
            y = memory.changes[memory.last]
            eta = memory.product / inner(y, y / P)
        self.diagonal = P / eta
        weighted = S * self.diagonal
        below = np.tril(S @ Y.T, -1)
        self.rows = np.concatenate([weighted, Y])
        self.middle = np.block([[weighted @ S.T, below], [below.T, -np.eye(len(S), dtype=P.dtype)]])

    def times(self, v: Vector) -> Vector:
        return self.diagonal * v - np.linalg.solve(self.middle, self.rows @ v) @ self.rows

    def solve(self, free: np.ndarray, v: Vector) -> Column:
        """Return the solution of B p = v in the coordinates `free`, by Woodbury's formula."""
        rows, diagonal = self.rows[:, free], self.diagonal[free]
        scaled = rows / diagonal
        inside = np.linalg.solve(self.middle - scaled @ rows.T, scaled @ v[free])
        return v[free] / diagonal + inside @ scaled


def next_direction(
    memory: Memory, evaluation: Evaluation, P: Vector, last_step: Vector, box: Box | None
) -> Direction:
    """Return the step that minimises the L-BFGS model, in a box if there is one; see `box_step`.

    If the step without bounds lies in the box, it is returned. If it is no descent direction
    because of rounding, the result is the projected step along P^-1 g.
    """
    x, _, g = evaluation[:3]
    found = direction(memory, g, P, last_step)
    if box is None:
        return found
    lower, upper = x - box.upper, x - box.lower
    if ((found.p >= lower) & (found.p <= upper)).all():
        return found
    try:
        B = CompactMatrix(memory, P)
        # if the last curvature was not positive, `direction` is longer than the model's minimiser
        longer = inner(found.p, B.times(found.p)) / found.slope if memory.is_flat else 1.0

        def solve(free: np.ndarray, fixed: Vector) -> Vector:
            p = fixed.copy()
            p[free] = B.solve(free, longer * g - B.times(fixed))
            return p

        p = minimise_in_box(solve, lambda p: longer * g - B.times(p), found.p, lower, upper)
    except np.linalg.LinAlgError:
        p = np.full_like(g, np.nan)
    slope = inner(g, p)
    if not 0 < slope < np.inf:
        p = np.clip(g / P, lower, upper)
        slope = inner(g, p)
    return Direction(p, slope, found.eta, found.gamma)


# ------------------------------------------------------------------ the diagonal


def first_step(x: Vector, g: Vector) -> Vector:
    """Return a multiple of g that moves no coordinate by more than a tenth of its size.

    At x = 0 its length is one.
    """
    typical = np.sqrt((x * x).mean())
    if typical == 0:
        length = np.sqrt(inner(g, g))
    else:
        length = (10 * abs(g) / np.maximum(abs(x), SMALLEST * typical)).max()
    return g / (length if length > 0 else 1)


def secant_diagonal(D: Vector, pair: Pair) -> Vector:
    """Return the diagonal of the BFGS update of t diag(D), or D where the update is not positive.

    t = y' diag(D)^-1 y / s'y is the scale with which a step uses D, see `direction`: without it
    the update would mix curvatures of two scales. Reference: Gilbert and Lemaréchal, "Some
    numerical experiments with variable-storage quasi-Newton algorithms", Math. Program. 45 (1989).
    """
    if not (pair.is_positive and pair.change2 / pair.product < np.inf):
        return D
    scaled = D * (inner(pair.change, pair.change / D) / pair.product)
    weighted = scaled * pair.step
    size = inner(pair.step, weighted)
    if not 0 < size < np.inf:
        return D
    removed, added = weighted / size, pair.change / pair.product
    removed *= weighted
    added *= pair.change
    updated = scaled - removed
    updated += added
    return updated if updated.min() > 0 else D
