"""Profile-likelihood contours of two parameters: their joint confidence region."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.optimize import brentq

from cfgd.fitting.profile import HeldFits

# Directions from the estimate in which the contour is looked for: every 15 degrees of the ellipse;
# and points that are drawn for each of them.
DIRECTIONS, BETWEEN = 24, 5
# The search goes outwards by this factor at a time, and so often: forty times the ellipse.
GROWTH, OUTWARD_STEPS = 1.6, 8
# Accuracy of a radius, relative to the ellipse: less than the width of a line.
ACCURACY = 3e-3


@dataclasses.dataclass
class Contour(HeldFits):
    """The region of two coordinates within which the fit is worse by at most `root`^2.

    Parameters
    ----------
    pair
        The two coordinates.
    covariance
        The covariance of all coordinates.
    root
        The root of the rise at the contour.
    """

    pair: tuple[int, int]
    covariance: np.ndarray
    root: float

    def __post_init__(self) -> None:
        block = self.covariance[np.ix_(self.pair, self.pair)]
        self._factor = np.linalg.cholesky(block)
        self._tangent = np.linalg.solve(block, self.covariance[list(self.pair)]).T
        self._last = self.z

    def points(self) -> np.ndarray:
        """Return the points of the closed contour, a row each; NaN where there is no end."""
        angles = np.linspace(0, 2 * np.pi, DIRECTIONS + 1)
        radii = [self._radius(self._direction(angle)) for angle in angles[:-1]]
        # between two directions the radius changes little in units of the ellipse
        fine = np.linspace(0, 2 * np.pi, BETWEEN * DIRECTIONS + 1)
        far = np.interp(fine, angles, [*radii, radii[0]])
        center = self.z[list(self.pair)]
        points = center + far[:, None] * np.stack([self._direction(angle) for angle in fine])
        lower, upper = (each[list(self.pair)] for each in (self.problem.lower, self.problem.upper))
        return np.clip(points, lower, upper)

    def _direction(self, angle: float) -> np.ndarray:
        """Return a step of one standard deviation in the two coordinates."""
        return self._factor @ np.array([np.cos(angle), np.sin(angle)])

    def _radius(self, direction: np.ndarray) -> float:
        """Return how far along a ray from the estimate the contour is, or a bound."""
        center = self.z[list(self.pair)]
        most = self._distance_to_bounds(center, direction)

        def excess(radius: float) -> float:
            return self._root_of_rise(center + radius * direction) - self.root

        inside, outside = 0.0, min(self.root, most)
        for _ in range(OUTWARD_STEPS):
            if excess(outside) >= 0:
                return float(brentq(excess, inside, outside, xtol=ACCURACY * self.root))
            if outside == most:
                return most
            inside, outside = outside, min(GROWTH * outside, most)
        return np.nan

    def _distance_to_bounds(self, center: np.ndarray, direction: np.ndarray) -> float:
        lower, upper = (each[list(self.pair)] for each in (self.problem.lower, self.problem.upper))
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = (np.where(direction > 0, upper, lower) - center) / direction
        return float(np.min(np.where(direction != 0, distances, np.inf)))

    def _root_of_rise(self, held: np.ndarray) -> float:
        """Return the root of how much worse the fit with both held is; a large one if infinite."""
        if np.array_equal(held, self.z[list(self.pair)]):
            return 0.0
        guesses = [self.z + self._tangent @ (held - self.z[list(self.pair)]), self._last]
        z, rise = self.fit_with(dict(zip(self.pair, held.tolist(), strict=True)), guesses)
        if not np.isfinite(rise):
            return 2 * self.root
        self._last = z
        return float(np.sqrt(max(rise, 0.0)))
