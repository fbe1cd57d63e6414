"""Searches along directions in which the Hessian at the end of a run is nearly singular.

If the gradient and a curvature vanish, higher derivatives decide: x^3 decreases on one side, -x^4
on both sides, and x^4 increases. The curvature at x does not distinguish these cases, so that f is
evaluated on both sides of x, at several distances. Likewise, a negative curvature counts only if
gradients at other distances confirm it: a rounding error decreases with the distance, and the
truncation error of a difference increases with it. Reference: Nocedal and Wright, section 8.1, for
both errors.
"""

from __future__ import annotations

import numpy as np

from cfgd._core.linalg import eps_of, inner, symmetric_eigen
from cfgd._core.types import Column, Number, Scalar, Vector, Vectors
from cfgd.methods.auto.curvature_check import Probes
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Start
from cfgd.objectives.evaluation import Evaluation

# Curvature relative to the largest one below which a direction is nearly flat, with coordinates in
# units of their own size. At an inflection of third order, which a run approaches until the
# gradient has fallen to 1e-8, it is about 1e-4 of its start, and at one of fifth order 1e-6.
NEARLY_FLAT = 1e-4
# Distance in these units at which f is evaluated first, and the other ones: from where a fourth
# power is just visible beside f to where the sign of a coordinate changes.
FIRST_DISTANCE, DISTANCES = 1e-2, (1e-3, 0.1, 0.5, 0.9, 2.0)
# If f rises at the first distance by this share of what the curvature predicts, x is a minimum in
# this direction, and the other distances are not tried.
RISES = 0.5
# Distances at which a negative curvature is measured again, and the factor within which both
# results must agree: rounding would differ by the factor 10, and the error of a difference by 100.
CONFIRM_DISTANCES, AGREE = (1e-4, 1e-3), 3.0
# Distances for the curvature along a valley: at larger distances a curved valley has been left.
NEAR_DISTANCES = (1e-6, 1e-5)
# Relative difference of f between two points that belong to the same valley.
SAME_VALLEY = 1e-4
# How often a run continues from a lower value that was found in this way: f may decrease for ever
# towards infinity.
MOST_LOOKS = 3
# Rounding units of f within which a difference of two values is rounding: those of a sum.
ROUNDING_UNITS = 8


def coordinate_sizes(x: Vector, start: Start) -> Vector:
    """Return |x| + |x - x0| for each coordinate; their mean, or one, where that is zero."""
    sizes = abs(x) + abs(x - start.x)
    mean = sizes.mean()
    return np.where(sizes > 0, sizes, mean if mean > 0 else 1)


def flat_directions(
    probes: Probes, x: Vector, start: Start, fall: Number = 0.0
) -> tuple[Vectors, Column]:
    """Return the nearly flat directions among the probes, and their curvatures.

    The directions have length one in units of the sizes of coordinates. At the start, where f is
    known at no other point, all directions are returned: all curvatures of a monkey saddle are
    equal. Directions are also returned if their curvature is tiny relative to the `fall` of f since
    the start.
    """
    sizes, moved = coordinate_sizes(x, start), (probes.steps != 0).any(axis=1)
    steps, changes = probes.steps[moved] / sizes, probes.changes[moved] * sizes
    Q, R = np.linalg.qr(steps.T)
    if not abs(R.diagonal()).min(initial=np.inf) > 0:
        return np.zeros((0, x.size), x.dtype), np.zeros(0, x.dtype)
    H = np.linalg.solve(R.T, changes @ Q).T  # Q'H Q, with the Hessian in these units
    curvatures, axes = symmetric_eigen((H + H.T) / 2)
    is_flat = abs(curvatures) <= NEARLY_FLAT * max(abs(curvatures).max(initial=0), fall)
    is_flat |= np.array_equal(x, start.x)
    return (Q @ axes[:, is_flat]).T * sizes, curvatures[is_flat]


def lower_point(
    oracle: Oracle,
    evaluation: Evaluation,
    start: Start,
    directions: Vectors,
    curvatures: Column,
    tolerance: Number,
) -> Vector | None:
    """Return an offset to a point with a lower value along one of the directions, or None.

    It is lower by more than tolerance/100 |f|, which is what counts as a decrease at the end, and
    by more than a rounding unit of the fall of f so far.
    """
    x, f = evaluation[:2]
    rounding = ROUNDING_UNITS * eps_of(f) * abs(f)
    enough = max(rounding, tolerance / 100 * abs(f), eps_of(f) * (start.value - f))
    for direction, curvature in zip(directions, curvatures, strict=True):
        offsets = [sign * FIRST_DISTANCE * direction for sign in (1.0, -1.0)]
        values = [oracle.value(x + offset) for offset in offsets]
        rise = curvature * FIRST_DISTANCE**2 / 2
        if rise > rounding and min(values) >= f + RISES * rise:
            continue
        if not min(values) < f - enough:
            offsets = [sign * at * direction for at in DISTANCES for sign in (1.0, -1.0)]
            values = [oracle.value(x + offset) for offset in offsets]
        values = [value if abs(value) < np.inf else np.inf for value in values]
        if min(values) < f - enough:
            return offsets[int(np.argmin(values))]
    return None


def curvatures_along(
    oracle: Oracle,
    evaluation: Evaluation,
    start: Start,
    direction: Vector,
    distances: tuple[float, float],
) -> tuple[Scalar, Scalar]:
    """Return the curvature along a direction by differences of gradients at two distances."""
    x = evaluation.x
    unit = direction / (abs(direction) / coordinate_sizes(x, start)).max()

    def at(distance: float) -> Scalar:
        ahead, behind = (oracle.evaluate(x + sign * distance * unit) for sign in (1.0, -1.0))
        return inner(ahead.gradient - behind.gradient, unit) / (2 * distance)

    return at(distances[0]), at(distances[1])


def is_saddle(
    oracle: Oracle,
    evaluation: Evaluation,
    start: Start,
    direction: Vector,
    distances: tuple[float, float] = CONFIRM_DISTANCES,
) -> bool:
    """Return whether the curvature along a direction is negative beyond its own error."""
    near, far = curvatures_along(oracle, evaluation, start, direction, distances)
    return bool(far < 0 and AGREE * near <= far <= near / AGREE)


def valley_leads_to_saddle(
    oracle: Oracle, evaluation: Evaluation, start: Start, offset: Vector, direction: Vector
) -> bool:
    """Return whether f falls along a valley through x, or from x + offset along `direction`.

    At x + offset the curvature was negative, which is relevant only if f has the same value there.
    A sum of squares at the level of rounding errors cannot decrease further.
    """
    if abs(evaluation.value) <= eps_of(evaluation.value) * abs(start.value):
        return False
    if is_saddle(oracle, evaluation, start, offset, NEAR_DISTANCES):
        return True
    f, there = evaluation.value, oracle.evaluate(evaluation.x + offset)
    is_same = there.value <= f + SAME_VALLEY * abs(f)
    return bool(is_same and is_saddle(oracle, there, start, direction))
