"""The profile of a fit: the least value of the objective with one coordinate held."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.optimize import brentq

# A search for the end of an interval goes outwards by at most this factor at a time, because a fit
# that starts far from its solution may find another minimum ...
GROWTH = 4.0
# ... and gives up after this many steps, a million standard errors away.
OUTWARD_STEPS = 10
# Accuracy of the end of an interval, relative to its distance from the estimate. MINOS stops at
# about 1e-3.
ACCURACY = 1e-6
# A fit with one coordinate held that lies below the minimum by more than this share of the rise
# that is looked for shows that there is a lower minimum. Less is the tolerance of the two fits.
BELOW = 1e-3


@dataclasses.dataclass
class Profile:
    """Fits with coordinate `i` held, each started from its neighbours.

    The signed root of the rise of f above its minimum is nearly a straight line as a function of
    the held value; on it a root search takes a few fits.

    Parameters
    ----------
    problem
        The `FitProblem`.
    z
        Its solution.
    value
        The value of the objective there.
    i
        The coordinate to hold.
    dispersion
        Twice the rise of f over this number is compared with the squares of normal deviates.
    tangent
        dz/dz_i along the profile at its minimum: where the first fits start.
    """

    problem: Any
    z: np.ndarray
    value: float
    i: int
    dispersion: float
    tangent: np.ndarray

    def __post_init__(self) -> None:
        self.known: dict[float, tuple[np.ndarray, float]] = {float(self.z[self.i]): (self.z, 0.0)}
        self.lowest = 0.0

    def fit(self, held: float) -> tuple[np.ndarray, float]:
        """Return the best z with this value held, and the rise of f in squared deviates."""
        held = float(held)
        if held not in self.known:
            solution = self.problem.minimize(start=self._start(held), held={self.i: held})
            rise = 2 * (float(solution.value) - self.value) / self.dispersion
            self.known[held] = np.asarray(solution.x, float), rise
            self.lowest = min(self.lowest, rise)
        return self.known[held]

    def deviate(self, held: float) -> float:
        """Return the signed root of the rise of f; NaN where f is not finite."""
        rise = self.fit(held)[1]
        return float(np.sign(held - self.z[self.i]) * np.sign(rise) * np.sqrt(abs(rise)))

    def _start(self, held: float) -> np.ndarray:
        """Continue the line through the two nearest fits, within the bounds."""
        fits = sorted(
            (at for at in self.known if np.isfinite(self.known[at][1])),
            key=lambda at: abs(at - held),
        )
        near = self.known[fits[0]][0]
        if len(fits) == 1:
            slope = self.tangent
        else:
            slope = (self.known[fits[1]][0] - near) / (fits[1] - fits[0])
        start = np.clip(near + slope * (held - fits[0]), self.problem.lower, self.problem.upper)
        start[self.i] = held
        return start

    def end(self, side: int, root: float, step: float) -> tuple[float, str]:
        """Return where the signed root of the rise is `side * root`, and a remark.

        Parameters
        ----------
        side
            -1 for the lower end, 1 for the upper end.
        root
            The root of the rise at the end.
        step
            A first guess of its distance from the estimate.
        """
        at = float(self.z[self.i])
        bound = float((self.problem.upper if side > 0 else self.problem.lower)[self.i])
        inside, value_inside = at, 0.0
        for _ in range(OUTWARD_STEPS):
            trial = at + side * step
            if side * (trial - bound) >= 0:
                trial = bound
            if trial == inside:
                return bound, "ends at its bound"
            value = side * self.deviate(trial)
            if self.lowest < -BELOW * root**2:
                return np.nan, self._better()
            if not np.isfinite(value):
                return self._edge(inside, trial)
            if value >= root:
                return self._between(side, root, inside, trial), ""
            if trial == bound:
                return bound, "ends at its bound"
            # the straight line through the estimate, a little beyond where it reaches `root`
            grow = 1.05 * root / value if value > 0 else GROWTH
            inside, value_inside = trial, value
            step *= float(np.clip(grow, 1.05, GROWTH))
        return side * np.inf, (
            f"is open: at {inside:.4g} the fit is only {max(value_inside, 0.0):.2g} standard "
            f"deviations worse, {root:.3g} are wanted"
        )

    def _between(self, side: int, root: float, inside: float, outside: float) -> float:
        def excess(held: float) -> float:
            value = side * self.deviate(held)
            return value - root if np.isfinite(value) else root

        accuracy = ACCURACY * abs(outside - float(self.z[self.i]))
        found = brentq(excess, inside, outside, xtol=accuracy, rtol=4 * np.finfo(float).eps)
        return float(found)

    def _better(self) -> str:
        at = min(self.known, key=lambda held: np.nan_to_num(self.known[held][1], nan=np.inf))
        return (
            f"is unknown: the fit is better with {self.problem.free[self.i]} = {at:.6g}. "
            "Fit again from there"
        )

    def _edge(self, inside: float, outside: float) -> tuple[float, str]:
        return np.nan, f"is unknown: the model is not finite at {outside:.4g}"
