"""The minimiser of a convex quadratic model in a box, by a primal-dual active set method.

Steps under bounds minimise the same model as steps without bounds, -g'p + p'Mp / 2, over all p for
which x - p lies in the box. M is the damped matrix of Levenberg-Marquardt or that of L-BFGS. An
iteration guesses which coordinates end at their bounds, minimises over the others, and corrects
the guess by the signs of the multipliers. Reference: Hintermüller, Ito and Kunisch, "The
primal-dual active set strategy as a semismooth Newton method", SIAM J. Optim. 13 (2003).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfgd._core.types import Vector

# Guesses after which bounds are changed one at a time. A handful is usual; with an ill-conditioned
# matrix the guesses may repeat in a cycle.
MOST_GUESSES = 20
# Changes of one bound for each coordinate, after which the step is taken as it is: each bound may
# become active and inactive a few times, and further changes are caused by rounding errors.
MOST_CHANGES = 5


def minimise_in_box(
    solve: Callable[[np.ndarray, Vector], Vector],
    remaining_slope: Callable[[Vector], Vector],
    p: Vector,
    lower: Vector,
    upper: Vector,
) -> Vector:
    """Return the p in [lower, upper] that minimises a quadratic model.

    Parameters
    ----------
    solve
        (free, fixed) -> the minimiser over the coordinates `free`, a mask, where the others have
        the values of `fixed`, which is zero in the free ones. It returns all coordinates.
    remaining_slope
        p -> g - Mp, the negative gradient of the model at p.
    p
        The minimiser without bounds.
    """
    is_fixed = lower == upper
    side = np.where(is_fixed, 1, _sides(p, lower, upper))
    for _ in range(MOST_GUESSES):
        free = side == 0
        p = _at_bounds(side, lower, upper, np.zeros_like(p))
        if free.any():
            p = solve(free, p)
        if not np.isfinite(p).all():
            return p
        is_wrong = _has_wrong_sign(side, remaining_slope(p)) & ~is_fixed
        new = np.where(is_wrong, 0, np.where(free, _sides(p, lower, upper), side))
        if (new == side).all():
            return p
        side = new
    return _one_at_a_time(solve, remaining_slope, np.clip(p, lower, upper), lower, upper)


def _one_at_a_time(
    solve: Callable[[np.ndarray, Vector], Vector],
    remaining_slope: Callable[[Vector], Vector],
    p: Vector,
    lower: Vector,
    upper: Vector,
) -> Vector:
    """Return the minimiser by the primal active set method, from a p in the box.

    Every iteration lowers the model, so that no active set occurs twice (Nocedal and Wright,
    algorithm 16.3).
    """
    is_fixed = lower == upper
    side = np.where(p >= upper, 1, np.where(p <= lower, -1, 0))
    for _ in range(MOST_CHANGES * p.size):
        free = side == 0
        fixed = _at_bounds(side, lower, upper, np.zeros_like(p))
        target = solve(free, fixed) if free.any() else fixed
        if not np.isfinite(target).all():
            return p
        with np.errstate(divide="ignore", invalid="ignore"):
            step = target - p
            room = np.where(step > 0, (upper - p) / step, (lower - p) / step)
        room = np.where(free & (step != 0), room, np.inf)
        nearest = int(room.argmin())
        if room[nearest] < 1:  # stop at the first bound along the step
            p = p + room[nearest] * step
            side[nearest] = 1 if step[nearest] > 0 else -1
            p = _at_bounds(side, lower, upper, p)
            continue
        p, slope = target, remaining_slope(target)
        wrong = np.where(_has_wrong_sign(side, slope) & ~is_fixed, abs(slope), 0)
        if not wrong.any():
            return p
        side[wrong.argmax()] = 0
    return p


def _at_bounds(side: np.ndarray, lower: Vector, upper: Vector, inside: Vector) -> Vector:
    """Return the bounds of coordinates that are at them, and `inside` for the others."""
    return np.where(side > 0, upper, np.where(side < 0, lower, inside))


def _has_wrong_sign(side: np.ndarray, slope: Vector) -> np.ndarray:
    """Return for which coordinates at a bound the model falls into the box."""
    return ((side > 0) & (slope < 0)) | ((side < 0) & (slope > 0))


def _sides(p: Vector, lower: Vector, upper: Vector) -> np.ndarray:
    """Return 1 above the upper bound, -1 below the lower one, 0 between them."""
    return (p > upper).astype(int) - (p < lower)
