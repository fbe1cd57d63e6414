"""How long steps may be, and the curvature diagonal by which coordinates are scaled."""

from __future__ import annotations

import numpy as np

from cfgd._core.either import branch, chosen, space
from cfgd._core.linalg import inner, positive
from cfgd._core.types import Count, Scalar, Vector
from cfgd.methods.auto.subspace import Memory, Pair, is_small
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation

# of the curvature that the first step meets, the part that all coordinates start with
FIRST = 0.1
# of the typical coordinate, the size that one counts for at least in the first step
SMALLEST = 1e-3
# times its size that a coordinate may move in one step
FURTHEST = 10.0


def first_step(x: Vector, g: Vector) -> Vector:
    """Along the gradient, no coordinate by more than a tenth of its size; of length one from 0."""
    xp = space(x)
    typical = xp.sqrt((x * x).mean())
    sizes = xp.maximum(abs(x), SMALLEST * typical)
    none = typical == 0
    most = abs(g / chosen(none, xp.ones_like(x), sizes / 10)).max()
    length = chosen(none, xp.sqrt(inner(g, g)), most)
    return g / chosen(length > 0, length, 0 * length + 1)


def furthest(x: Vector, x0: Vector, p: Vector) -> Scalar:
    """The part of p that moves no coordinate by more than many times what is known of its size."""
    xp, typical2 = space(x), inner(x, x) / x.size
    one = 0 * typical2 + 1

    def part() -> Scalar:
        sizes = abs(x - x0)  # on the host in place, as above
        sizes += abs(x)
        sizes += xp.sqrt(typical2)
        parts = abs(p)
        parts /= sizes
        most = parts.max()
        long = (typical2 > 0) & (most > FURTHEST)
        return chosen(long, FURTHEST / chosen(most > 0, most, one), one)

    return branch(inner(p, p) > FURTHEST**2 * typical2, part, lambda: one)


def new_scaling(objective: Objective, P: Vector, at: Evaluation, pair: Pair, k: Count) -> Vector:
    """P: the objective's own diagonal made positive, else one that the gradients seen keep true."""
    if objective.scaled_by is not None:
        return positive(objective.scaling_at(at))

    def updated() -> Vector:
        old = branch(k == 0, lambda: first_scaling(pair), lambda: P)
        return _secant_diagonal(old, pair)

    return branch(k < 0, lambda: P, updated)


def probed_scaling(objective: Objective, P: Vector, memory: Memory) -> Vector:
    """That of probes along every coordinate."""
    if objective.scaled_by is not None or not is_small(P.size):
        return P
    return positive(memory.changes.diagonal() / memory.steps.diagonal(), 1e-30)


def first_scaling(pair: Pair) -> Vector:
    """Of all coordinates a part of the curvature that the first step has met.

    A small one: the secant update adds to it where it sees more, and takes little away.
    """
    along, squares = pair.along, pair.squares
    one = 0 * squares + 1
    curvature = chosen(along > 0, FIRST * squares / chosen(along > 0, along, one), one)
    return space(pair.step).full_like(pair.step, chosen(curvature < np.inf, curvature, one))


def _secant_diagonal(D: Vector, pair: Pair) -> Vector:
    """The diagonal of the BFGS update of diag(D), where it is positive."""
    change, weighted = pair.change, D * pair.step
    size = inner(pair.step, weighted)

    def updated() -> Vector:
        less, more = weighted / size, change / pair.along
        less *= weighted
        more *= change
        new = D - less
        new += more
        return chosen(new.min() > 0, new, D)

    finite = pair.squares / chosen(pair.grew, pair.along, 1 + 0 * size) < np.inf
    return branch(pair.grew & finite & (size > 0), updated, lambda: D)
