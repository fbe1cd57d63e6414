"""Plots of a history against the iteration. matplotlib is optional, so it is imported late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd._core.extras import import_extra

MAX_LABELS = 10  # settings in the legend: more are hard to read
NORM_LABEL = "gradient norm (dashed)"


def draw(history: Mapping[str, Any], ends: Any, swept: bool, ax: Any) -> Any:
    """Draw on `ax`, or on the axes of a new figure, and return the axes.

    `ends` is the last iteration of each setting; `swept` says whether there are several settings.
    """
    if "iteration" not in history or "value" not in history:
        wanted = "hold `iteration` and `value` to be drawn"
        checks.fail("Solution", "history", wanted, f"the names {list(history)}")
    ax = _new_axes() if ax is None else ax
    iterations = np.asarray(history["iteration"])
    label, values = positive(finite(history["value"]))
    ax.set(xlabel="iteration", ylabel=label)
    if swept:
        _draw_settings(ax, iterations, values, ends)
    else:
        (line,) = ax.plot(iterations, values, marker=_marker(iterations))
        if "gradient_norm" in history:
            right, norms = _norm_axes(ax), finite(history["gradient_norm"])
            style = {"color": line.get_color(), "linestyle": "--", "linewidth": 1}
            right.plot(iterations, norms, marker=_marker(iterations), **style)
            _set_log_scale(right, norms)
    _set_log_scale(ax, values)
    return ax


def _draw_settings(ax: Any, iterations: Any, values: Any, ends: Any) -> None:
    """Draw the values of each setting; their gradient norms would double the number of lines."""
    from matplotlib import colormaps

    settings = len(values)
    labelled = set(np.linspace(0, settings - 1, min(settings, MAX_LABELS)).astype(int))
    for i, row in enumerate(values):
        running = iterations <= ends[i]  # the history repeats the last row of a setting that ended
        # without the last tenth of the colours, a light yellow that is hard to see on white
        colour = colormaps["viridis"](0.9 * i / max(settings - 1, 1))
        label = f"setting {i}" if i in labelled else None
        x, y = iterations[running], row[running]
        ax.plot(x, y, color=colour, label=label, marker=_marker(x))
    ax.legend()


def _marker(iterations: Any) -> str | None:
    return "o" if len(iterations) == 1 else None  # a line through one point is invisible


def _new_axes() -> Any:
    pyplot = import_extra("matplotlib.pyplot", "`Solution.plot`", "plot")
    ax = pyplot.subplots(layout="constrained")[1]
    ax.locator_params(axis="x", integer=True)  # there is no half of an iteration
    return ax


def _norm_axes(ax: Any) -> Any:
    """Return the axes of norms to the right of `ax`, which an earlier plot may have made."""
    for other in ax.figure.axes:
        if other.get_label() == NORM_LABEL and ax in other.get_shared_x_axes().get_siblings(other):
            return other
    right = ax.twinx()
    right.set(label=NORM_LABEL, ylabel=NORM_LABEL)
    return right


def finite(entry: object) -> Any:
    """Return the numbers with NaN, which is not drawn, for those that are not finite."""
    entry = np.asarray(entry, np.float64)
    return np.where(np.isfinite(entry), entry, np.nan)


def positive(values: Any) -> tuple[str, Any]:
    """Return a label and the values; subtract the least one if they are not all positive."""
    known = values[~np.isnan(values)]
    least = known.min(initial=np.inf)
    if least > 0 or not (known > least).any():
        return "value", values
    return f"value − smallest value, {least:.6g}", values - least


def _set_log_scale(axes: Any, values: Any) -> None:
    """Make the vertical axis logarithmic if the positive values span a decade."""
    if spans_a_decade(values):
        axes.set_yscale("log", nonpositive="mask")


def spans_a_decade(values: Any) -> bool:
    """Return whether the positive values span a decade."""
    above = values[values > 0]
    return bool(len(above) and above.max() >= 10 * above.min())
