"""Confidence intervals of fitted parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from cfgd._core import checks
from cfgd._core.students_t import quantile
from cfgd.fitting.problem import FitProblem
from cfgd.fitting.profile import Profile
from cfgd.fitting.quality import is_exact
from cfgd.fitting.uncertainty import Linearisation, Uncertainty, linearise

if TYPE_CHECKING:
    from cfgd.fitting.fit import Fit

METHODS = ("profile", "normal")


class Intervals(Mapping[str, tuple[float, float]]):
    """Confidence intervals: a mapping from names to (lower, upper).

    Attributes
    ----------
    level : float
        The confidence level, in (0, 1).
    method : str
        "profile" or "normal".
    notes : list of str
        One sentence for each end that is infinite, is a bound of the parameter, or was not found.
    """

    def __init__(
        self,
        ends: dict[str, tuple[float, float]],
        level: float,
        method: str,
        notes: list[str],
    ) -> None:
        self._ends, self.level, self.method, self.notes = ends, level, method, notes

    def __getitem__(self, name: str) -> tuple[float, float]:
        return self._ends[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ends)

    def __len__(self) -> int:
        return len(self._ends)

    def __repr__(self) -> str:
        width = max(9, *(len(name) for name in self._ends))
        head = f"{100 * self.level:g} % intervals ({self.method})"
        title = f"  {'parameter':<{width}}  {'lower':>14}  {'upper':>14}"
        rows = [f"  {n:<{width}}  {a:>14.8g}  {b:>14.8g}" for n, (a, b) in self._ends.items()]
        return "\n".join([head, title, *rows, *(f"  {note}" for note in self.notes)])


def intervals(fit: Fit, level: float, method: str, names: list[str] | str | None) -> Intervals:
    """Return the confidence intervals of the free parameters of a fit."""
    owner = "Fit.intervals"
    level = checked_level(owner, level)
    checks.choice(owner, "method", method, METHODS)
    chosen = fit.names if names is None else checks.names(owner, "names", names)
    for name in chosen:
        if name not in fit.names:
            wanted = f"be among the free parameters {', '.join(fit.names)}"
            checks.fail(owner, "names", wanted, repr(name))
    ends = _normal(fit, level) if method == "normal" else _profiles(fit, level, chosen)
    return Intervals({n: ends[n][:2] for n in chosen}, level, method, _notes(ends, chosen))


def checked_level(owner: str, level: float) -> float:
    """Return a confidence level in (0, 1)."""
    number = checks.in_open_unit_interval(owner, "level", level)
    if number.ndim != 0:
        checks.fail(owner, "level", "be one number", f"shape {number.shape}")
    return float(number)


End = tuple[float, float, list[str]]


def _normal(fit: Fit, level: float) -> dict[str, End]:
    """Return estimate -+ quantile times standard error; NaN for a parameter at its bound."""
    width = quantile(level, fit.freedom_of_quantile)
    found: dict[str, End] = {}
    for name, at, error in zip(fit.names, fit.numbers, fit.standard_errors, strict=True):
        half = width * error if error != 0 else 0.0
        remarks = (
            [] if np.isfinite(half) else ["is infinite: the data do not determine the parameter"]
        )
        if np.isnan(half):
            remarks = [f"is at its bound {at:.6g} and has no normal interval; use method='profile'"]
        found[name] = float(at - half), float(at + half), remarks
    return found


def _profiles(fit: Fit, level: float, names: list[str]) -> dict[str, End]:
    problem = fit.needed_problem("intervals(method='profile')")
    if not np.isfinite(fit.dispersion):
        remark = ["is infinite: there are no degrees of freedom to estimate the variance from"]
        return {name: (-np.inf, np.inf, remark) for name in names}
    eps = float(np.finfo(problem.start.dtype).eps)
    if np.isfinite(fit.freedom_of_quantile) and is_exact(problem.data, fit.chi_square, eps):
        remark = ["is the normal interval, because the residuals are only rounding errors"]
        return {name: (*ends[:2], remark) for name, ends in _normal(fit, level).items()}
    root = quantile(level, fit.freedom_of_quantile)
    at = linearise(problem.objective, fit.solution.x)
    return {name: _profile(fit, problem, at, fit.names.index(name), root) for name in names}


def profile_of(
    fit: Fit, problem: FitProblem, at: Linearisation, i: int, root: float
) -> tuple[Profile, float]:
    """Return the profile of coordinate i, and about how far off the rise of f has this root."""
    assert fit.uncertainty is not None
    z, rise, held = np.asarray(fit.solution.x, float), fit.dispersion, fit.uncertainty.held
    is_held = held[i]
    # a parameter at its bound is free in its own profile
    around = Uncertainty.of(at.jacobian, rise, held & (np.arange(len(z)) != i))
    column = around.factor @ around.factor[i]
    error, undetermined = np.sqrt(column[i]), around.is_undetermined(np.eye(len(z))[i : i + 1])[0]
    tangent = column / column[i] if column[i] > 0 else np.eye(len(z))[i]
    if undetermined:
        # Nothing is known about the size of a step: a tenth of the value, then outwards.
        error, tangent = 0.1 * (abs(z[i]) or 1.0) / root, np.eye(len(z))[i]
    step = root * float(error)
    if is_held:
        # along 2 g d / rise + (d / error)^2 = root^2 with the gradient g at the bound
        g = abs(float(at.jacobian[:, i] @ at.psi)) / rise
        step = root**2 / (g + np.sqrt(g**2 + (root / error) ** 2))
    return Profile(problem, z, float(fit.solution.value), rise, i, tangent), step


def _profile(fit: Fit, problem: FitProblem, at: Linearisation, i: int, root: float) -> End:
    """Return both ends of the interval of coordinate i, where the rise of f has this root."""
    profile, step = profile_of(fit, problem, at, i, root)
    found, remarks = [], []
    for side, word in ((-1, "lower"), (1, "upper")):
        end, remark = profile.end(side, root, step)
        found.append(end)
        if remark:
            remarks.append(f"the {word} end {remark}")
    return found[0], found[1], remarks


def _notes(ends: dict[str, End], names: list[str]) -> list[str]:
    return [f"{name}: {remark}." for name in names for remark in ends[name][2]]
