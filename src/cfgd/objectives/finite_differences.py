"""Products with the Hessian by differences of gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfgd._core.linalg import eps_of
from cfgd._core.types import Vector

# A coordinate counts as no smaller than this part of the typical one: it may be zero by chance.
SMALLEST = 1e-3


def hessian_product(
    gradient: Callable[[Vector], Vector],
    x: Vector,
    v: Vector,
    x0: Vector | None = None,
    sizes: Vector | None = None,
) -> Vector:
    """Return Hv by a central difference of gradients.

    The step moves no coordinate by more than eps^(1/3) of its size, which balances rounding and
    truncation errors. Where no `sizes` are given, they are those of x, or of the start `x0` where x
    is near zero.
    """
    if sizes is None:
        squares = (x * x).mean() if x0 is None else max((x * x).mean(), (x0 * x0).mean())
        sizes = np.maximum(abs(x), SMALLEST * np.sqrt(squares))
    relative = abs(v) / np.where(sizes > 0, sizes, 1)
    h = eps_of(x) ** (1 / 3) / relative.max()
    return (gradient(x + h * v) - gradient(x - h * v)) / (2 * h)
