"""Plots of the uncertainty of parameters: profiles, and joint confidence regions of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from cfgd._core import checks
from cfgd._core.students_t import quantile
from cfgd.fitting.contours import Contour
from cfgd.fitting.intervals import METHODS, checked_level, profile_of
from cfgd.fitting.plot import new_figure
from cfgd.fitting.uncertainty import linearise

if TYPE_CHECKING:
    from cfgd.fitting.fit import Fit

# Fits on each side of the estimate, beside those of the search for the interval.
PROFILE_POINTS = 10
# The profile is drawn this much beyond its interval.
BEYOND = 1.25
# Panels of pairs have this side, in inches.
PANEL = 2.4
ANGLES = np.linspace(0, 2 * np.pi, 121)  # every three degrees: a smooth ellipse


def draw_profile(fit: Fit, name: str, level: float, ax: Any) -> Any:
    """Draw the profile of a free parameter with the parabola of its normal approximation."""
    owner = "Fit.plot_profile"
    level = checked_level(owner, level)
    (i,) = _indices(owner, "name", fit, [name])
    problem = fit.needed_problem("plot_profile")
    _check_dispersion(owner, fit)
    root = quantile(level, fit.freedom_of_quantile)
    at = linearise(problem.objective, fit.solution.x)
    profile, step = profile_of(fit, problem, at, i, root)
    estimate, error = float(fit.numbers[i]), float(fit.standard_errors[i])
    ends = [profile.end(side, root, step)[0] for side in (-1, 1)]
    bounds = float(problem.lower[i]), float(problem.upper[i])
    held = [estimate]
    for side, end, bound in zip((-1, 1), ends, bounds, strict=True):
        reach = abs(end - estimate) if np.isfinite(end) else step
        # outwards: each fit starts from its neighbour
        parts = estimate + side * reach * np.linspace(0, BEYOND, PROFILE_POINTS + 1)[1:]
        held += [float(each) for each in parts if side * (each - bound) <= 0]
        held += [end] if np.isfinite(end) else []
    rises = {each: profile.rise(each) for each in held}
    shown = np.array(sorted(rises))
    if ax is None:
        ax = new_figure(owner).subplots()
    (line,) = ax.plot(shown, [rises[each] for each in shown], label="profile")
    if np.isfinite(error) and error > 0:
        grid = np.linspace(shown[0], shown[-1], ANGLES.size)
        parabola = ((grid - estimate) / error) ** 2
        ax.plot(grid, parabola, color="0.5", linestyle="--", label="normal approximation")
    ax.axhline(root**2, color="0.7", linewidth=1, label=f"limit at {100 * level:g} %")
    interval = f"{100 * level:g} % interval"
    for end in ends:
        if np.isfinite(end):
            style = {"color": line.get_color(), "linewidth": 1, "linestyle": ":"}
            ax.axvline(end, label=interval, **style)
            interval = ""  # one line in the legend
    rise = "rise of chi-square above its minimum"
    rise = rise if fit.dispersion == 1 else f"{rise} / dispersion"
    ax.set(xlabel=name, ylabel=rise, ylim=(0, BEYOND**2 * root**2))
    ax.legend()
    return ax


def draw_pairs(fit: Fit, names: list[str] | None, level: float, method: str, ax: Any) -> Any:
    """Draw the joint confidence region of each pair of free parameters."""
    owner = "Fit.plot_pairs"
    level = checked_level(owner, level)
    checks.choice(owner, "method", method, METHODS)
    if names is None:
        names = [
            name
            for name, error in zip(fit.names, fit.standard_errors, strict=True)
            if np.isfinite(error) and error > 0
        ]
    places = _indices(owner, "names", fit, names)
    if len(places) < 2:
        wanted = "be at least two parameters with standard errors"
        checks.fail(owner, "names", wanted, ", ".join(names) or "none")
    for i in places:
        if not (np.isfinite(fit.standard_errors[i]) and fit.standard_errors[i] > 0):
            wanted = "be parameters with standard errors"
            checks.fail(owner, "names", wanted, f"{fit.names[i]}, which has none")
    if method == "profile":
        _check_dispersion(owner, fit)
    root = _root_of_two(level, fit.freedom_of_quantile)
    size = len(places) - 1
    axes = _square(owner, ax, size)
    for row in range(size):
        for column in range(size):
            panel = axes[row, column]
            if column > row:
                panel.set_axis_off()
                continue
            pair = places[column], places[row + 1]
            _draw_pair(fit, panel, pair, root, method, f"{100 * level:g} % region")
            if row == size - 1:
                panel.set(xlabel=fit.names[pair[0]])
            if column == 0:
                panel.set(ylabel=fit.names[pair[1]])
    if size > 1:  # the panel above the diagonal is empty
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, size - 1].legend(handles, labels, fontsize="small", loc="upper right")
        return axes
    axes[0, 0].legend(fontsize="small")
    return axes[0, 0]


def _draw_pair(
    fit: Fit, ax: Any, pair: tuple[int, int], root: float, method: str, percent: str
) -> None:
    center = fit.numbers[list(pair)]
    block = fit.covariance[np.ix_(pair, pair)]
    ellipse = center + root * (_square_root(block) @ [np.cos(ANGLES), np.sin(ANGLES)]).T
    style = {"color": "0.5", "linestyle": "--"} if method == "profile" else {"color": "C0"}
    ax.plot(*ellipse.T, label=f"{percent}, normal", **style)
    if method == "profile":
        problem = fit.needed_problem("plot_pairs(method='profile')")
        assert fit.uncertainty is not None
        contour = Contour(
            problem=problem,
            z=np.asarray(fit.solution.x, float),
            value=float(fit.solution.value),
            pair=pair,
            covariance=fit.uncertainty.factor @ fit.uncertainty.factor.T,
            dispersion=fit.dispersion,
            root=root,
        )
        ax.plot(*contour.points().T, color="C0", label=f"{percent}, profile")
    ax.plot(*center, color="C0", marker="+", markersize=8)
    correlation = fit.correlations[pair]
    ax.set_title(f"correlation {correlation:+.2f}", fontsize="small")
    ax.tick_params(labelsize="small")


def _square_root(block: np.ndarray) -> np.ndarray:
    """Return a square root of a covariance, which may be singular to rounding."""
    values, vectors = np.linalg.eigh(block)
    return vectors * np.sqrt(np.maximum(values, 0))


def _root_of_two(level: float, freedom: float) -> float:
    """Return the radius of the joint region of two parameters, in standard deviations."""
    if np.isinf(freedom):
        return float(np.sqrt(special.chdtri(2, 1 - level)))
    return float(np.sqrt(2 * special.fdtri(2, freedom, level))) if freedom > 0 else np.inf


def _square(owner: str, ax: Any, size: int) -> np.ndarray:
    """Return a square array of axes: the given ones, or those of a new figure."""
    if ax is None:
        figure = new_figure(owner)
        figure.set_size_inches(max(4.0, PANEL * size), max(4.0, PANEL * size))
        return figure.subplots(size, size, squeeze=False, sharex="col", sharey="row")
    axes = np.array(ax, dtype=object)
    if axes.size != size**2:
        checks.fail(owner, "ax", f"have {size} x {size} axes", f"shape {axes.shape}")
    return axes.reshape(size, size)


def _indices(owner: str, field: str, fit: Fit, names: list[str]) -> list[int]:
    for name in names:
        if name not in fit.names:
            wanted = f"be among the free parameters {', '.join(fit.names)}"
            checks.fail(owner, field, wanted, repr(name))
    return [fit.names.index(name) for name in names]


def _check_dispersion(owner: str, fit: Fit) -> None:
    if not (np.isfinite(fit.dispersion) and fit.dispersion > 0):
        wanted = "be positive: an exact fit, or one without degrees of freedom, has no profile"
        checks.fail(owner, "dispersion", wanted, f"{fit.dispersion:g}")
