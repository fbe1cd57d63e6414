"""Derivatives by differences: products with the Hessian, and slopes from values only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from cfgd._core.linalg import eps_of
from cfgd._core.types import Vector

# The size of a coordinate is at least this share of the typical one: it may be zero by chance.
SMALLEST = 1e-3


def hessian_product(
    gradient: Callable[[Vector], Vector],
    x: Vector,
    v: Vector,
    x0: Vector | None = None,
    sizes: Vector | None = None,
    room: tuple[float, float] = (np.inf, np.inf),
) -> Vector:
    """Return Hv by a central difference of gradients.

    The step moves no coordinate by more than eps^(1/3) of its size, which balances rounding and
    truncation errors. By default the `sizes` are those of x, or of the start `x0` where x is near
    zero. `room` are the largest multiples of v and of -v that may be added to x: if one of them is
    less than the step, the difference is taken to the other side only.
    """
    if sizes is None:
        sizes = _sizes(x) if x0 is None else np.maximum(_sizes(x), SMALLEST * _root_mean_square(x0))
    h = eps_of(x) ** (1 / 3) / _relative_size(v, sizes)
    if min(room) < h:
        ahead, behind = room
        one_sided = min(float(h), ahead) if ahead >= behind else -min(float(h), behind)
        if one_sided == 0:
            return np.zeros_like(v)
        return (gradient(x + one_sided * v) - gradient(x)) / one_sided
    return (gradient(x + h * v) - gradient(x - h * v)) / (2 * h)


def _sizes(x: Vector) -> Vector:
    """Return |x| for each coordinate, or a share of the root mean square where |x| is smaller."""
    return np.maximum(abs(x), SMALLEST * _root_mean_square(x))


def _root_mean_square(x: Vector) -> float:
    largest = abs(x).max(initial=0)
    unit = largest if 0 < largest < np.inf else 1  # the square of 1e200 overflows
    return float(unit * np.sqrt(((x / unit) ** 2).mean()))


def _relative_size(v: Vector, sizes: Vector) -> float:
    """Return the largest |v_j| relative to the size of coordinate j, or to 1 if the size is 0."""
    return float((abs(v) / np.where(sizes > 0, sizes, 1)).max())


# The longest difference moves a coordinate by a tenth of its size, each of the next ones by an
# eighth of the last: the shortest, 0.1/8^8 = 6e-9 of it, is about the square root of the rounding
# of float64, below which a difference has no digits.
LONGEST, SHORTER, LEVELS = 0.1, 8.0, 9


class Slope(NamedTuple):
    """A derivative along a direction by differences of values, with an estimate of its error."""

    value: float
    error: float


def slopes_along(value: Callable[[Vector], float], x: Vector, v: Vector) -> Iterator[Slope]:
    """Yield estimates of the derivative of f along v, from ever shorter differences.

    They are central differences with one step of Richardson's extrapolation. The error is the
    spread of three successive ones, plus rounding, plus the difference of the slopes to both sides
    where that does not shrink with the step, as at a kink. The first estimate takes nine values.
    """
    centre = value(x)
    eps = eps_of(np.asarray(centre))
    h = LONGEST / _relative_size(v, _sizes(x))
    previous = previous_gap = np.nan
    extrapolated: list[float] = []
    for _ in range(LEVELS):
        ahead, behind = value(x + h * v), value(x - h * v)
        with np.errstate(all="ignore"):
            central = (ahead - behind) / (2 * h)
            gap = abs((ahead - centre) - (centre - behind)) / h
            rounding = eps * max(abs(ahead), abs(behind)) / h
            extrapolated.append((SHORTER**2 * central - previous) / (SHORTER**2 - 1))
            last = extrapolated[-3:]
            error = max(last) - min(last) + rounding + (gap if gap > previous_gap / 2 else 0)
        if len(last) == 3 and np.isfinite(last).all() and np.isfinite(error):
            yield Slope(float(last[-1]), float(error))
        previous, previous_gap = central, gap
        h /= SHORTER
