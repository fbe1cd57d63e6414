"""The backtracking line search of L-BFGS.

References: Nocedal and Wright, sections 3.1 and 3.5; Hager and Zhang, SIAM J. Optim. 16 (2005), for
steps whose decrease is hidden by rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import eps_of, inner
from cfgd._core.types import Number, Scalar, Vector
from cfgd.methods.auto.cubic import Trial, trial_between
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Start, detect_unbounded
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Share of the decrease along the slope that a step must achieve (Nocedal and Wright, section 3.1).
ACCEPT = 1e-4
# The largest number of reductions of a step, each at least to its half: 2^-40 of it is rounding.
MOST_TRIES = 40
# Powers of eps that say when rounding hides a decrease: slopes below eps^0.6 |f| predict none that
# a value, known to about eps^0.8 |f|, would show.
HIDDEN_SLOPE, HIDDEN_CHANGE = 0.6, 0.8
# Slope with which f may rise at the end of a step whose decrease is hidden, relative to the slope
# with which it falls at the start: 1 - 2 delta in Hager and Zhang, with their delta = 0.1.
SLOPE_AT_END = 0.8

# Share of its first slope with which f must still fall at the end of a step in a box so that the
# step is lengthened: the curvature condition of Wolfe, with the usual 0.9 (Nocedal and Wright,
# section 3.1). Each time it is four times as long, up to 1e6 times.
CURVATURE_CONDITION, EXTENSION, MOST_EXTENSIONS = 0.9, 4.0, 10


class Search(NamedTuple):
    """The next line search, along x + offset - t p."""

    p: Vector
    slope: Scalar  # <g, p>
    t: Number  # the first trial
    eta: Number = 1.0  # of p, for the history
    gamma: Number = 0.0
    leaves_saddle: bool = False
    offset: Any = 0.0  # a vector where a saddle was found at x + offset, else 0
    is_second: bool = False  # of a saddle, to the other side


class Accepted(NamedTuple):
    """The point that a line search has accepted."""

    evaluation: Evaluation
    value: Scalar  # that of the previous point if rounding made it larger
    t: Number


def line_search(
    oracle: Oracle, origin: Evaluation, search: Search, start: Start
) -> Accepted | Status:
    """Backtrack from the first trial until f decreases by a share of what the slope predicts."""
    x = origin.x + search.offset if np.ndim(search.offset) else origin.x
    t = search.t
    for _ in range(MOST_TRIES + 1):
        at = oracle.evaluate(x - t * search.p)
        norm2 = inner(at.gradient, at.gradient)
        enough, value = decreases(search, t, origin, at, oracle.resolution)
        if enough and abs(at.value) < np.inf and norm2 < np.inf:
            return extended(oracle, x, search, Accepted(at, value, t))
        if detect_unbounded(oracle, start, at)[1]:
            return Status.unbounded
        end = Trial(t, at.value, -inner(at.gradient, search.p))
        t = _shorter(Trial(0.0, origin.value, -search.slope), end)
    return Status.stalled


def _shorter(start: Trial, end: Trial) -> Number:
    """Return the next trial, within a tenth and a half of the last one, `end`.

    It is the minimum of the cubic through values and slopes at both ends where f rises at the end,
    so that there is a minimum between. Otherwise it is that of the parabola through both values and
    the first slope.
    """
    t, slope = end.t, -start.slope
    if end.slope > 0:
        return min(trial_between(start, end), t / 2)
    parabola = slope * t * t / (2 * (end.value - start.value + slope * t))
    return min(max(parabola, t / 10), t / 2) if abs(parabola) < np.inf else t / 10


def extended(oracle: Oracle, x: Vector, search: Search, accepted: Accepted) -> Accepted:
    """Lengthen a step at the boundary of a box while f falls along it almost as at its start.

    In a box f may have a minimum although its curvature is negative. A quasi-Newton step, whose
    model is convex, is then far too short. (Without bounds, most such functions are unbounded.)
    """
    box = oracle.box
    if box is None or not box.mask(accepted.evaluation.x).any():
        return accepted
    for _ in range(MOST_EXTENSIONS):
        at = accepted.evaluation
        if not inner(oracle.free_gradient(at), search.p) >= CURVATURE_CONDITION * search.slope:
            break
        t = EXTENSION * accepted.t
        further = oracle.evaluate(x - t * search.p)
        if not (further.value < at.value and np.isfinite(further.gradient).all()):
            break
        accepted = Accepted(further, further.value, t)
    return accepted


def decreases(
    search: Search, t: Number, origin: Evaluation, at: Evaluation, resolution: float
) -> tuple[bool, Scalar]:
    """Return whether f decreases by a share of what the slope predicts, and the value to keep.

    Where rounding may hide the decrease, a value that is not larger is enough. A value that is
    larger by rounding counts as the old one if the slopes at both ends show a decrease (the
    approximate Wolfe condition of Hager and Zhang, SIAM J. Optim. 16, 2005).
    """
    value, eps = origin.value, eps_of(origin.value)
    enough = at.value <= value - ACCEPT * t * search.slope
    if search.leaves_saddle:
        return bool(enough and at.value < value), at.value
    if enough:
        return True, at.value
    tiny = np.finfo(value.dtype).tiny * resolution
    if not search.slope <= eps**HIDDEN_SLOPE * abs(value) + 1e3 * tiny:
        return False, at.value
    falls = inner(at.gradient, search.p) >= -SLOPE_AT_END * search.slope
    if falls and at.value <= value + eps**HIDDEN_CHANGE * abs(value) + tiny:
        counted = at.value if at.value < value else value
        return bool(counted <= value), counted
    return bool(at.value <= value), at.value
