"""Plot data, curve and residuals. matplotlib is optional, so it is imported where it is used."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cfgd._core import checks
from cfgd._core.extras import import_extra
from cfgd.fitting.band import place_of
from cfgd.fitting.datasets import DataSet
from cfgd.fitting.intervals import checked_level
from cfgd.fitting.problem import FitProblem

if TYPE_CHECKING:
    from cfgd.fitting.fit import Fit

GRID = 200  # points of a curve: the corners of its line are closer than can be seen
MAX_LABELS = 10  # series in the legend: more are hard to read
# Relative tolerance to which a model gives the same results at the data points when it is called
# with further points: it does if each of its results depends on one x.
POINTWISE = 1e-4
SHADE = 0.2  # opacity of a band, so that points of another data set behind it stay visible


@dataclasses.dataclass(frozen=True)
class Series:
    """Points of one colour, and the curve through them.

    `at`, `curve`, `lower` and `upper` belong to the curve, the others to the points. The curve is
    no line where x is the index of a point.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    sigma: np.ndarray | None
    sigma_x: np.ndarray | None
    fitted: np.ndarray
    at: np.ndarray
    curve: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    is_line: bool


def draw(fit: Fit, ax: Any, level: float, data_set: Any) -> Any:
    """Draw data, curve and residuals, and return the axes."""
    owner = "Fit.plot"
    checked_level(owner, level)
    problem = fit.needed_problem("plot")
    places = list(range(len(problem.data)))
    if data_set is not None:
        places = [place_of(owner, problem, data_set)]
    curves, below = _axes(owner, ax)
    series = [each for i in places for each in _series(fit, problem, i, level)]
    is_single = len(series) == 1
    for each in series:
        colour = _draw_curve(curves, each, f"{100 * level:g} % band" if is_single else "")
        if below is not None:
            _draw_residuals(below, each, colour)
    if len(series) <= MAX_LABELS:
        curves.legend()
    has_x = all(_is_line(problem.data[i]) for i in places)
    weighted = all(each.sigma is not None for each in series)
    curves.set(ylabel="y")
    (curves if below is None else below).set(xlabel="x" if has_x else "index of the point")
    if below is None:
        return curves
    below.axhline(0, color="0.5", linewidth=0.8, zorder=0)
    below.set(ylabel="residual / sigma" if weighted else "residual")
    return curves, below


def _axes(owner: str, ax: Any) -> tuple[Any, Any]:
    """Return the axes of the curve and those of the residuals, which may be None."""
    if ax is None:
        figure = new_figure(owner)
        curves, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        return curves, below
    given = np.ravel(np.array(ax, dtype=object))
    if len(given) > 2 or not all(hasattr(each, "errorbar") for each in given):
        checks.fail(owner, "ax", "be axes or a pair of them", checks.describe(ax))
    return given[0], given[1] if len(given) == 2 else None


def new_figure(owner: str) -> Any:
    """Return a new figure of pyplot, or raise a sentence about what to install."""
    pyplot = import_extra("matplotlib.pyplot", f"`{owner}`", "plot")
    return pyplot.figure(layout="constrained")


def _draw_curve(ax: Any, each: Series, band: str) -> Any:
    """Draw points, curve and band; the last two are in the legend if the band has a name."""
    style = {"linestyle": "none", "marker": "o", "markersize": 4, "elinewidth": 1}
    # as an error bar also without errors: points of one kind for the legend
    bars = ax.errorbar(each.x, each.y, each.sigma, each.sigma_x, label=each.label, **style)
    colour = bars.lines[0].get_color()
    half = (each.upper - each.lower) / 2
    if not each.is_line:  # a line between points without an order has no meaning
        half = np.where(np.isfinite(half), half, 0)
        style = {"linestyle": "none", "marker": "_", "markersize": 9, "elinewidth": 5}
        label = f"fit with {band}" if band else None
        ax.errorbar(each.at, each.curve, half, color=colour, alpha=2 * SHADE, label=label, **style)
        return colour
    ax.plot(each.at, each.curve, color=colour, label="fit" if band else None)
    if np.isfinite(half).any():
        shade = {"color": colour, "alpha": SHADE, "linewidth": 0, "label": band or None}
        ax.fill_between(each.at, each.lower, each.upper, **shade)
    return colour


def _draw_residuals(ax: Any, each: Series, colour: Any) -> None:
    residuals = each.y - each.fitted
    if each.sigma is not None:
        residuals = residuals / each.sigma
    ax.plot(each.x, residuals, color=colour, linestyle="none", marker="o", markersize=4)


def _is_line(data: DataSet) -> bool:
    """Return whether x is one array of real numbers, along an axis of y."""
    if isinstance(data.x, dict | tuple) or np.iscomplexobj(data.x):
        return False
    return np.ndim(data.x) == 1 and len(data.x) in np.shape(data.y)


def _series(fit: Fit, problem: FitProblem, place: int, level: float) -> list[Series]:
    """Return the series of a data set: one for each column of y, two for complex ones."""
    data = problem.data[place]
    z = np.asarray(fit.solution.x)
    shape = np.shape(data.y)
    is_line = _is_line(data)
    axis = 0
    if is_line:
        # the axis of y along which x runs; the first one where several would do
        axis = shape.index(len(data.x))
    x = (
        np.asarray(data.x, float)
        if is_line
        else np.arange(max(int(np.prod(shape)), 1), dtype=float)
    )
    fitted = np.asarray(problem.predict(z, data.measured.x, place))
    grid = _grid(problem, z, place, x, fitted, axis) if is_line else None
    if grid is None:
        at, on_line = x, data.measured.x
        order = np.argsort(x, kind="stable")
    else:
        at = on_line = grid
        order = np.arange(len(grid))
    curve = np.asarray(problem.predict(z, on_line, place))
    lower, upper = fit.band(on_line, level, data_set=place)

    def columns(values: Any) -> np.ndarray:
        """Return rows for points, a column for each series."""
        values = np.asarray(values)
        values = np.moveaxis(values, axis, 0) if is_line else values.reshape(-1, 1)
        values = values.reshape(len(values), -1)
        if np.iscomplexobj(values):
            values = np.stack([values.real, values.imag], -1).reshape(len(values), -1)
        return values

    y = np.where(_counts(data), np.asarray(data.y), np.nan)
    sigma = _sigma(data)
    if sigma is not None:
        sigma = columns(sigma + 1j * sigma if np.iscomplexobj(y) else sigma)
    sigma_x = data.measured.sigma_x[0] if is_line and data.measured.sigma_x is not None else None
    rows = zip(
        *(columns(each).T for each in (y, fitted)),
        *(columns(each)[order].T for each in (curve, lower, upper)),
        strict=True,
    )
    found = []
    for j, (y_of, fitted_of, curve_of, lower_of, upper_of) in enumerate(rows):
        found.append(
            Series(
                label="",
                x=x,
                y=y_of,
                sigma=None if sigma is None else sigma[:, j],
                sigma_x=sigma_x,
                fitted=fitted_of,
                at=at[order],
                curve=curve_of,
                lower=lower_of,
                upper=upper_of,
                is_line=is_line,
            )
        )
    labels = _labels(data, place, len(found), np.iscomplexobj(y))
    return [
        dataclasses.replace(each, label=label) for each, label in zip(found, labels, strict=True)
    ]


def _labels(data: DataSet, place: int, count: int, is_complex: bool) -> list[str]:
    parts = ["real part", "imaginary part"] if is_complex else [""]
    columns = count // len(parts)
    found = []
    for column in range(columns):
        for part in parts:
            words = [
                data.name,
                f"column {column}" if columns > 1 else "",
                part,
            ]
            found.append(", ".join(word for word in words if word) or "data")
    return found


def _counts(data: DataSet) -> np.ndarray:
    """Return which points of y were fitted."""
    shape = np.shape(data.y)
    present = data.measured.present
    return np.ones(shape, bool) if present is None else np.reshape(present, shape)


def _sigma(data: DataSet) -> np.ndarray | None:
    """Return the standard deviations in the shape of y."""
    if data.sigma is None:
        return None
    sigma = np.asarray(data.sigma, float)
    if data.measured.whitening is not None:
        sigma = np.sqrt(np.diagonal(sigma)).reshape(np.shape(data.y))
    return np.broadcast_to(sigma, np.shape(data.y))


def _grid(
    problem: FitProblem, z: np.ndarray, place: int, x: np.ndarray, fitted: np.ndarray, axis: int
) -> np.ndarray | None:
    """Return points for a smooth curve, or None if the model only makes sense at the x of the data.

    A model may mix points, as a convolution does, or need its number of points. It is drawn on
    other points only if they give the same results where they meet the data.
    """
    known = np.isfinite(x)
    ends = x[known]
    if len(ends) == 0 or ends.min() == ends.max():
        return None
    grid = np.union1d(np.linspace(ends.min(), ends.max(), GRID), ends).astype(x.dtype)
    try:
        curve = np.asarray(problem.predict(z, grid, place))
    except (TypeError, ValueError, IndexError):  # shapes that do not fit, as JAX reports them
        return None
    wanted = list(fitted.shape)
    wanted[axis] = len(grid)
    if list(curve.shape) != wanted:
        return None
    again = np.take(curve, np.searchsorted(grid, ends), axis)
    before = np.compress(known, fitted, axis)
    size = np.max(np.abs(before[np.isfinite(before)]), initial=0.0)
    is_same = np.allclose(again, before, rtol=POINTWISE, atol=POINTWISE * size, equal_nan=True)
    return grid if is_same else None
