"""The matrix of Gauss and Newton at a point, and its normal equations."""

from __future__ import annotations

import math
from typing import NamedTuple

from cfgd._core.either import on_host, space
from cfgd._core.types import Column, Data, Matrix, Rows, Vector

# products of numbers that a matrix may take, about a tenth of a second: beyond it goes without
AFFORDABLE = 2e9
# times what it is that a diagonal is kept at
KEPT = 1e6


class Model(NamedTuple):
    """H = J'J + ridge; for sums of squares, `r` with J'r for the gradient."""

    J: Rows
    ridge: Data | float = 0.0
    r: Column | None = None


class Normal(NamedTuple):
    """The normal equations in coordinates in which the diagonal D is one.

    `matrix` is the smaller of the two products of rows, JD^-1/2, with their transpose. They are
    kept where something else is to be done with them.
    """

    D: Vector
    matrix: Matrix
    rows: Rows | None
    r: Column | None


def is_affordable(shape: tuple[int, ...]) -> bool:
    """Whether rows are worth writing down and factoring: m d min(m, d) products of numbers."""
    return float(math.prod(shape)) * min(shape) <= AFFORDABLE


def is_wide(shape: tuple[int, ...]) -> bool:
    """Whether there are fewer rows than columns."""
    return shape[0] < shape[1]


def kept(old: Vector, new: Vector) -> Vector:
    """A diagonal that is kept from shrinking; one where nothing is known yet.

    It must not jump back and forth with x, nor be that of a bad start for ever.
    """
    xp = space(new)
    less = xp.minimum(old, KEPT * new)
    if on_host(new) and new.min() > 0:  # as nearly always
        return xp.maximum(new, less)
    D = xp.maximum(new, xp.where(new > 0, less, old))
    return xp.where(D > 0, D, 1)


def normal_of(H: Matrix, old: Vector) -> Normal:
    """The normal equations of a matrix without rows."""
    D = kept(old, H.diagonal())
    root = space(D).sqrt(D)
    return Normal(D, H / root / root[:, None], None, None)
