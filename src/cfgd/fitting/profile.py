"""The profile of a fit: the least value of the objective with one coordinate held."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import brentq

from cfgd.fitting.problem import FitProblem
from cfgd.fitting.uncertainty import value_at
from cfgd.status import Status

# A search for the end of an interval goes outwards by at most this factor at a time, because a fit
# that starts far from its solution may find another minimum ...
GROWTH = 4.0
# ... and gives up after this many steps, a million standard errors away.
OUTWARD_STEPS = 10
# An outward step goes this much beyond where the secant of the last two fits reaches the end:
# a bracket on the first attempt saves a fit.
BEYOND = 1.2
# Accuracy of the end of an interval, relative to its distance from the estimate: two digits more
# than are worth printing.
ACCURACY = 1e-5
# Gradient at which a fit with coordinates held ends, relative to its start: the error of its
# value is the square of that, relative to how far above the minimum it started.
TOLERANCE = 1e-4
# A fit with one coordinate held that lies below the minimum by more than this share of the rise
# that is looked for shows that there is a lower minimum. Less is the tolerance of the two fits.
BELOW = 1e-3
# A root of the rise that differs from the wanted one by more than this share is a jump.
JUMP = 0.01


@dataclasses.dataclass
class HeldFits:
    """Fits with some coordinates held, compared with the fit without.

    Parameters
    ----------
    problem
        What is fitted.
    z
        Its solution.
    value
        The value of the objective there.
    dispersion
        Twice the rise of f over this number is compared with the squares of normal deviates.
    """

    problem: FitProblem
    z: np.ndarray
    value: float
    dispersion: float

    def fit_with(
        self, held: Mapping[int, float], guesses: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, float]:
        """Return the solution with values held, by their index, and how much worse it is.

        A guess from another fit may be on another branch, or at infinity in another coordinate:
        the value of the objective decides which one is near the solution.
        """
        starts = [np.clip(guess, self.problem.lower, self.problem.upper) for guess in guesses]
        for start in starts:
            start[list(held)] = list(held.values())
        values = [value_at(self.problem.objective, start) for start in starts]
        best = 0 if np.isnan(values).all() else int(np.nanargmin(values))
        solution = self.problem.minimize(starts[best], held, tolerance=TOLERANCE)
        if solution.status is Status.interrupted:  # Ctrl-C ends all fits, not one of them
            raise KeyboardInterrupt
        rise = 2 * (float(solution.value) - self.value) / self.dispersion
        return np.asarray(solution.x, float), rise


@dataclasses.dataclass
class Profile(HeldFits):
    """Fits with coordinate `i` held, each started from its neighbours.

    The signed root of the rise of f above its minimum is nearly a straight line as a function of
    the held value; on it a root search takes a few fits.

    Parameters
    ----------
    i
        The coordinate to hold.
    tangent
        dz/dz_i along the profile at its minimum.
    """

    i: int
    tangent: np.ndarray

    def __post_init__(self) -> None:
        self.known: dict[float, tuple[np.ndarray, float]] = {float(self.z[self.i]): (self.z, 0.0)}

    def rise(self, held: float) -> float:
        """Return how much worse the fit with this value held is, in squared deviates."""
        held = float(held)
        if held not in self.known:
            self.known[held] = self.fit_with({self.i: held}, self._guesses(held))
        return self.known[held][1]

    def deviate(self, held: float) -> float:
        """Return the signed root of the rise; NaN where the objective is not finite."""
        rise = self.rise(held)
        return float(np.sign(held - self.z[self.i]) * np.sign(rise) * np.sqrt(abs(rise)))

    def _guesses(self, held: float) -> list[np.ndarray]:
        """Return guesses of the solution from the neighbouring fits."""
        fits = [at for at in self.known if np.isfinite(self.known[at][1])]
        near, *further = sorted(fits, key=lambda at: abs(at - held))
        origin = self.known[near][0]
        guesses = [origin, self.z + self.tangent * (held - self.z[self.i])]
        if further:
            slope = (self.known[further[0]][0] - origin) / (further[0] - near)
            guesses.append(origin + slope * (held - near))
        return guesses

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

        Returns
        -------
        end, remark
            Infinite if the rise never reaches `root`, the bound of the coordinate if the rise does
            not reach `root` before it, and NaN if the end was not found; the remark says so.
        """
        at = float(self.z[self.i])
        bound = float((self.problem.upper if side > 0 else self.problem.lower)[self.i])
        inside, before = at, 0.0
        for _ in range(OUTWARD_STEPS):
            trial = at + side * step
            trial = bound if side * (trial - bound) >= 0 else trial
            value = side * self.deviate(trial) if trial != at else 0.0
            if not np.isfinite(value):
                name = self.problem.free[self.i]
                return np.nan, f"is unknown: with {name} = {trial:.4g} chi-square is not finite"
            if value < 0 and value**2 > BELOW * root**2:
                name = self.problem.free[self.i]
                return np.nan, (
                    f"is unknown: with {name} = {trial:.6g} there is a better fit than this one; "
                    "fit again from there"
                )
            if value >= root:
                return self._between(side, root, inside, trial)
            if trial == bound:
                return bound, "is its bound"
            rate = (value - before) / abs(trial - inside)
            ahead = abs(trial - at) + BEYOND * (root - value) / rate if rate > 0 else np.inf
            inside, before = trial, value
            step = float(np.clip(ahead, BEYOND * step, GROWTH * step))
        name = self.problem.free[self.i]
        return side * np.inf, (
            f"is infinite: with {name} = {inside:.4g} the square root of the rise of chi-square is "
            f"only {max(before, 0.0):.2g}, and the interval would end at {root:.3g}"
        )

    def _between(self, side: int, root: float, inside: float, outside: float) -> tuple[float, str]:
        def excess(held: float) -> float:
            value = side * self.deviate(held)
            return value - root if np.isfinite(value) else root

        accuracy = ACCURACY * abs(outside - float(self.z[self.i]))
        end = brentq(excess, inside, outside, xtol=accuracy, rtol=4 * np.finfo(float).eps)
        if abs(excess(end)) > JUMP * root:
            return float(end), "is where the profile of chi-square jumps"
        return float(end), ""
