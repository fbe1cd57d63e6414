"""Products with the Hessian by differences of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cfgd._core.linalg import eps_of

# A coordinate counts as no smaller than this part of the typical one: it may be zero by chance.
SMALLEST = 1e-3


def hessian_product(
    gradient: Callable[[np.ndarray], Any], x: np.ndarray, v: np.ndarray, x0: np.ndarray | None = None
) -> np.ndarray:
    """Return Hv by a central difference of gradients.

    The step moves no coordinate by more than eps^(1/3) of its size, which balances rounding and
    truncation errors. Sizes are those of x, or of the start `x0` where x is near zero.
    """
    squares = (x * x).mean() if x0 is None else max((x * x).mean(), (x0 * x0).mean())
    sizes = np.maximum(abs(x), SMALLEST * np.sqrt(squares))
    relative = abs(v) / np.where(sizes > 0, sizes, 1)
    h = eps_of(x) ** (1 / 3) / relative.max()
    return (gradient(x + h * v) - gradient(x - h * v)) / (2 * h)
