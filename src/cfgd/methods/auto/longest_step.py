"""The longest step: no coordinate moves by more than a few times its size.

At larger distances a quadratic model does not describe f, and steps lead across poles and onto
plateaus.
"""

from __future__ import annotations

import numpy as np

from cfgd._core.linalg import inner
from cfgd._core.types import Vector

# The largest change of a coordinate in one step, in multiples of its size.
LONGEST_STEP = 10.0


def longest_fraction(x: Vector, x0: Vector, step: Vector, longest: float = LONGEST_STEP) -> float:
    """Return the fraction of a step that moves no coordinate by more than `longest` its size."""
    typical2 = inner(x, x) / x.size
    if not (typical2 > 0 and inner(step, step) > longest**2 * typical2):
        return 1.0
    moves = abs(step)
    moves /= _sizes(x, x0)
    most = moves.max()
    return float(longest / most) if most > longest else 1.0


def shortened(x: Vector, x0: Vector, step: Vector, longest: float) -> Vector:
    """Return a step whose coordinates move by at most `longest` their size."""
    most = longest * _sizes(x, x0)
    return np.clip(step, -most, most)


def _sizes(x: Vector, x0: Vector) -> Vector:
    """Return |x| + |x - x0| + the root mean square of x, for each coordinate."""
    sizes = abs(x - x0)
    sizes += abs(x)
    sizes += np.sqrt(inner(x, x) / x.size)
    return sizes
