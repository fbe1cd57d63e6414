"""The cubic through values and slopes at two points of a line: its minimum, and its curvature.

References: Nocedal and Wright, equation 3.59; Biggs, "Minimization algorithms making use of
non-quadratic properties of the objective function", J. Inst. Maths Applics 8 (1971).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd._core.types import Number, Scalar

# Share of an interval that a trial keeps from its ends, so that the interval shrinks.
MARGIN = 0.1


class Trial(NamedTuple):
    """A trial at x - t p."""

    t: Number
    value: Scalar
    slope: Scalar  # the derivative in t


def trial_between(low: Trial, high: Trial) -> Number:
    """Return the minimum of the cubic through two trials, not too near to either of them."""
    width = high.t - low.t
    t = _minimum(low, high)
    if not np.isfinite(t):
        t = low.t + MARGIN * width  # f is not finite at the far end
    ends = low.t + MARGIN * width, high.t - MARGIN * width
    return min(max(t, min(ends)), max(ends))


def _minimum(low: Trial, high: Trial) -> Number:
    """Return the minimum of the cubic (Nocedal and Wright, equation 3.59); NaN if it has none."""
    if not (abs(high.value) < np.inf and abs(high.slope) < np.inf):
        return np.nan
    d1 = low.slope + high.slope - 3 * (low.value - high.value) / (low.t - high.t)
    under_root = d1 * d1 - low.slope * high.slope
    if not under_root >= 0:
        return (low.t + high.t) / 2
    d2 = np.copysign(np.sqrt(under_root), high.t - low.t)
    bottom = high.slope - low.slope + 2 * d2
    return high.t - (high.t - low.t) * (high.slope + d2 - d1) / bottom if bottom else np.nan


def curvature_at_end(low: Trial, high: Trial) -> Scalar:
    """Return the second derivative of the cubic at the second trial."""
    width = high.t - low.t
    return (6 * (low.value - high.value) / width + 2 * low.slope + 4 * high.slope) / width
