"""How a run went, as lines against iterations. matplotlib is an extra: imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cfgd._core import checks

MOST_LABELS = 10
NORMS = "gradient norm (dashed)"


def draw(history: Mapping[str, Any], ends: Any, swept: bool, ax: Any) -> Any:
    """Draw on `ax`, or on axes of a new figure; `ends` are the iterations of each setting."""
    if "iteration" not in history or "value" not in history:
        wanted = "hold `iteration` and `value` to be drawn"
        checks.fail("Solution", "history", wanted, f"the names {list(history)}")
    ax = _new_axes() if ax is None else ax
    at = np.asarray(history["iteration"])
    what, values = _positive(_finite(history["value"]))
    ax.set(xlabel="iteration", ylabel=what)
    if swept:
        _draw_settings(ax, at, values, ends)
    else:
        (line,) = ax.plot(at, values, marker=_marker(at))
        if "gradient_norm" in history:
            right, norms = _right_of(ax), _finite(history["gradient_norm"])
            style = {"color": line.get_color(), "linestyle": "--", "linewidth": 1}
            right.plot(at, norms, marker=_marker(at), **style)
            _decades(right, norms)
    _decades(ax, values)
    return ax


def _draw_settings(ax: Any, at: Any, values: Any, ends: Any) -> None:
    """A line for each setting. Norms beside them would be twice as many, and hide both."""
    from matplotlib import colormaps

    settings = len(values)
    labelled = set(np.linspace(0, settings - 1, min(settings, MOST_LABELS)).astype(int))
    for i, row in enumerate(values):
        here = at <= ends[i]  # a setting that has ended is carried along with the others
        # the last tenth of the colours, a light yellow, is not seen on white
        colour = colormaps["viridis"](0.9 * i / max(settings - 1, 1))
        label = f"setting {i}" if i in labelled else None
        ax.plot(at[here], row[here], color=colour, label=label, marker=_marker(at[here]))
    ax.legend()


def _marker(at: Any) -> str | None:
    return "o" if len(at) == 1 else None  # one point is no line


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        needed = f"`Solution.plot` needs {error.name}: pip install 'cfgd[plot]'."
        raise ModuleNotFoundError(needed, name=error.name) from None
    return pyplot.subplots(layout="constrained")[1]


def _right_of(ax: Any) -> Any:
    """The axes of norms beside `ax`: of a run that was drawn there before, or new ones."""
    for other in ax.figure.axes:
        if other.get_label() == NORMS and ax in other.get_shared_x_axes().get_siblings(other):
            return other
    right = ax.twinx()
    right.set(label=NORMS, ylabel=NORMS)
    return right


def _finite(entry: Any) -> Any:
    """What is not finite has no place on an axis."""
    entry = np.asarray(entry, np.float64)
    return np.where(np.isfinite(entry), entry, np.nan)


def _positive(values: Any) -> tuple[str, Any]:
    """The values and what they are: above the least of them if they are not all positive."""
    known = values[~np.isnan(values)]
    least = known.min(initial=np.inf)
    if least > 0 or not (known > least).any():
        return "value", values
    return f"value above the least, {least:.6g}", values - least


def _decades(axis: Any, values: Any) -> None:
    """A logarithmic axis, if there are decades to show."""
    above = values[values > 0]
    if len(above) and above.max() >= 10 * above.min():
        axis.set_yscale("log", nonpositive="mask")
