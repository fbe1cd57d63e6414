"""The figures of a fit: coefficients, convergence, and residuals or calibration and ROC."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from cfgd._core.files import printable
from cfgd.apps.fit.quality import area
from cfgd.apps.fit.run import Fitted
from cfgd.apps.fit.target import OF_LABELS
from cfgd.apps.page.drawing import Panel, Panels, colour, decades, line, svgs

MOST_TERMS = 20  # the largest coefficients
MOST_POINTS = 800
MOST_CURVES = 5
BINS = 10
NAMED = ("blue", "orange", "green", "purple", "yellow")
SURE = 1.96  # standard errors to each side of what holds 19 of 20


def figures_of(done: Fitted) -> list[list[tuple[str, str]]]:
    """Rows of (title, SVG)."""
    if done.target.loss in OF_LABELS:
        last = [Panel("Calibration", _calibration), Panel("ROC", _roc)]
    else:
        last = [Panel("Residuals", _residuals), Panel("How residuals are spread", _spread)]
    first = [Panel("Coefficients of standardised columns", _coefficients)]
    panels: Panels = [[*first, Panel("Convergence", _convergence)], last]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the font of the layout does not have
        drawn = svgs("fit", panels, {"done": done})
    return [
        [(panel.title, svg) for panel, svg in zip(row, found, strict=True)]
        for row, found in zip(panels, drawn, strict=True)
    ]


def _coefficients(axis: Any, data: Mapping[str, Any]) -> None:
    """The largest ones with the intervals that hold 19 of 20; of several classes the farthest."""
    done: Fitted = data["done"]
    w = done.target.scale * done.standardised[:-1].reshape(len(done.standardised) - 1, -1)
    k = np.argmax(np.abs(w), 1)
    each = np.arange(len(w))
    largest = np.argsort(-np.abs(w[each, k]))[:MOST_TERMS][::-1]
    far = 0 * w
    if done.spread is not None:
        far = SURE * done.target.scale * done.spread[:-1].reshape(w.shape)
    names = [_name(done, int(j), int(k[j])) for j in largest]
    place = np.arange(len(largest))
    axis.errorbar(
        w[each, k][largest],
        place,
        xerr=far[each, k][largest],
        fmt="o",
        markersize=4.5,
        color=colour("blue"),
        elinewidth=1.2,
    )
    axis.axvline(0, color=colour("ink"), linewidth=0.8)
    axis.set_yticks(place, names)
    for text in axis.get_yticklabels():
        text.set_parse_math(False)  # a name is a name, whatever it holds
    axis.tick_params(axis="y", labelsize=7)
    axis.set(xlabel="change of the prediction per deviation")


def _name(done: Fitted, j: int, k: int) -> str:
    term = _short(done.model.terms[j])
    return term if done.target.classes == 1 else f"{term}: {_short(str(done.target.labels[k]))}"


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) <= 18 else f"{name[:17]}…"


def _convergence(axis: Any, data: Mapping[str, Any]) -> None:
    history = data["done"].solution.history
    norm, value = (np.asarray(history[name], float) for name in ("gradient_norm", "value"))
    above = value - value.min()
    for entries, named, words in (
        (norm / norm[0], "blue", "norm of the gradient"),
        (above / (above[0] or 1), "orange", "value above the least"),
    ):
        shown = np.where(entries > 0, entries, np.nan)
        line(axis, history["iteration"], shown, named, label=words, marker="o", markersize=3)
    decades(axis, "share of the start")


def _some(done: Fitted) -> tuple[np.ndarray, np.ndarray]:
    """As many rows as can be told apart, from all over the sample."""
    found = done.quality
    keep = np.unique(np.linspace(0, len(found.y) - 1, MOST_POINTS).astype(int))
    return found.expected[keep], found.y[keep]


def _residuals(axis: Any, data: Mapping[str, Any]) -> None:
    mean, y = _some(data["done"])
    axis.plot(mean, y - mean, "o", markersize=2.5, alpha=0.5, color=colour("blue"))
    axis.axhline(0, color=colour("ink"), linewidth=0.8)
    axis.set(xlabel="predicted", ylabel="target less predicted")


def _spread(axis: Any, data: Mapping[str, Any]) -> None:
    found = data["done"].quality
    axis.set_axisbelow(True)
    axis.hist(found.y - found.expected, bins=30, color=colour("blue"))
    axis.axvline(0, color=colour("ink"), linewidth=0.8)
    axis.set(xlabel="target less predicted", ylabel="rows")


def _calibration(axis: Any, data: Mapping[str, Any]) -> None:
    """Of two labels the second; of more the one that is predicted."""
    done: Fitted = data["done"]
    chances, y = done.quality.expected, done.quality.y
    if done.target.classes == 1:
        chance, came = chances[:, 1], y == 1
    else:
        chance, came = chances.max(1), chances.argmax(1) == y
    order = np.argsort(chance, kind="stable")
    groups = [group for group in np.array_split(order, BINS) if len(group)]
    told = np.array([chance[group].mean() for group in groups])
    seen = np.array([came[group].mean() for group in groups])
    sizes = np.array([len(group) for group in groups])
    axis.plot([0, 1], [0, 1], color=colour("ink"), linewidth=0.8)
    axis.errorbar(
        told,
        seen,
        yerr=SURE * np.sqrt(told * (1 - told) / sizes),
        fmt="o",
        markersize=4.5,
        color=colour("blue"),
        elinewidth=1.2,
    )
    axis.set(xlabel="probability that is predicted", ylabel="share that came true")
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))


def _roc(axis: Any, data: Mapping[str, Any]) -> None:
    done: Fitted = data["done"]
    chances, y = done.quality.expected, done.quality.y
    places = [1] if done.target.classes == 1 else range(min(MOST_CURVES, len(done.target.labels)))
    axis.plot([0, 1], [0, 1], color=colour("ink"), linewidth=0.8)
    for place, named in zip(places, NAMED, strict=False):
        wrong, right = roc(chances[:, place], y == place)
        words = f"label {_short(str(done.target.labels[place]))}"
        told = f"{words}, area {area(chances[:, place], y == place):.3f}"
        line(axis, wrong, right, named, label=told)
    axis.set(xlabel="share of others that are taken for it", ylabel="share that is found")
    for text in axis.legend(loc="lower right").get_texts():
        text.set_parse_math(False)


def roc(chance: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shares of others, and of those that have the label, above each chance.

    >>> wrong, right = roc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1]))
    >>> print(wrong, right)
    [0.  0.  0.5 0.5 1. ] [0.  0.5 0.5 1.  1. ]
    """
    order = np.argsort(-chance, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(chance[order])), len(chance) - 1)  # ties go together
    found = np.append(0, np.cumsum(y[order])[ends])
    taken = np.append(0, ends + 1)
    return (taken - found) / max(taken[-1] - found[-1], 1), found / max(found[-1], 1)
