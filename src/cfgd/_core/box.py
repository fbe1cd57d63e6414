"""A box of lower and upper bounds, projections onto it, and the coordinates at active bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd._core.linalg import array_namespace
from cfgd._core.types import PointCounts, PointFlags, Points, Scalar, Vector


class Box(NamedTuple):
    """The points with lower <= x <= upper, coordinate by coordinate; bounds may be infinite."""

    lower: Vector
    upper: Vector

    def project(self, x: Points) -> Points:
        """Return the nearest point of the box."""
        return array_namespace(x).clip(x, self.lower, self.upper)

    def contains(self, x: Points) -> bool:
        return bool(((x >= self.lower) & (x <= self.upper)).all())

    def is_active(self, x: Points, g: Points) -> PointFlags:
        """Return which coordinates are at active bounds: f falls out of the box, or lower = upper.

        The Karush-Kuhn-Tucker conditions hold if the gradient vanishes in all other coordinates.
        """
        leaves_below, leaves_above = (x <= self.lower) & (g > 0), (x >= self.upper) & (g < 0)
        return leaves_below | leaves_above | (self.lower == self.upper)

    def free_gradient(self, x: Points, g: Points) -> Points:
        """Return the gradient with zeros in the active coordinates."""
        return array_namespace(x).where(self.is_active(x, g), 0, g)

    def mask(self, x: Points) -> PointCounts:
        """Return -1 for coordinates at their lower bounds, 1 at their upper ones, 0 for others."""
        xp = array_namespace(x)
        return xp.where(x <= self.lower, -1, xp.where(x >= self.upper, 1, 0))

    def longest_fraction(self, x: Vector, p: Vector) -> Scalar:
        """Return the largest t for which x - t p lies in the box; infinite if there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(p > 0, (x - self.lower) / p, (x - self.upper) / p)
        return np.where(p == 0, np.inf, room).min()
