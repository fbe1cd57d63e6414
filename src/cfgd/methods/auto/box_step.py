"""The minimiser of a convex quadratic model in a box, by a primal-dual active set method.

Steps under bounds minimise the same model as steps without: -g'p + p'Mp / 2 over all p for which
x - p lies in the box, with M the damped matrix of Levenberg and Marquardt or that of L-BFGS. An
iteration guesses which coordinates end at their bounds, minimises over the others, and corrects
the guess by the signs of the multipliers. Reference: Hintermüller, Ito and Kunisch, "The
primal-dual active set strategy as a semismooth Newton method", SIAM J. Optim. 13 (2003).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfgd._core.types import Vector

# Guesses after which coordinates are no longer released from their bounds, so that the iteration
# ends. A handful is usual; a cycle, which is possible for some matrices, would never end.
MOST_GUESSES = 20


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
        the values of `fixed`. It returns all coordinates.
    remaining_slope
        p -> g - Mp, the slope with which the model still falls at p.
    p
        The minimiser without bounds.
    """
    is_fixed = lower == upper
    side = np.where(is_fixed, 1, _sides(p, lower, upper))
    guesses = 0
    while True:
        guesses += 1
        free = side == 0
        p = np.where(side > 0, upper, np.where(side < 0, lower, 0.0))
        if free.any():
            p = solve(free, p)
        if not np.isfinite(p).all():
            return p
        new = np.where(free, _sides(p, lower, upper), side)
        if guesses <= MOST_GUESSES:
            slope = remaining_slope(p)
            is_wrong = ((side > 0) & (slope < 0)) | ((side < 0) & (slope > 0))
            new = np.where(is_wrong & ~is_fixed, 0, new)
        if (new == side).all():
            return p
        side = new


def _sides(p: Vector, lower: Vector, upper: Vector) -> np.ndarray:
    """Return 1 above the upper bound, -1 below the lower one, 0 between them."""
    return (p > upper).astype(int) - (p < lower)
