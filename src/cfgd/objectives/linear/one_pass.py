"""Value and gradient of a long X by blocks of rows, which remain in the cache for both products.

The products Xw and then X'r would read X twice, and vectors with an entry for each row in between.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import inner, is_numpy
from cfgd._core.types import Vector
from cfgd.objectives.linear.design import BLOCK_NUMBERS, LONG


class Sums(NamedTuple):
    """The sum of the weighted losses, X' times their weighted slopes, and all predictions Xw."""

    value: Any
    gradient: Vector
    p: Any


def is_long(f: Any, X: Any, x: Vector) -> bool:
    """Return whether this is faster for a linear model f of the rows X, at a point in NumPy."""
    m, d = X.shape
    return m * d > LONG and is_numpy(x) and is_numpy(f.y) and X.is_dense


def one_pass(f: Any, X: Any, x: Vector) -> Sums:
    m, d = X.shape
    size, w = max(1, BLOCK_NUMBERS // d), f.coefficients(x)
    value: Any = 0.0
    gradient: Any = 0.0
    predictions = []
    for i in range(0, m, size):
        here = slice(i, i + size)
        rows, y, weight = X.rows(here), f.y[here], f.sample_weight[here]
        p = rows.times(w)
        if f.offset is not None:
            p = p + f.offset[here]
        slope, _ = f.loss.derivatives(p, y)
        value = value + inner(weight, f.loss.value(p, y))
        gradient = gradient + rows.back((weight if p.ndim == 1 else weight[:, None]) * slope)
        predictions.append(p)
    return Sums(value, gradient.reshape(-1), np.concatenate(predictions))
