"""The figures of the report: coefficients, convergence, and residuals or calibration and ROC."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from cfgd._core.files import printable
from cfgd._core.students_t import quantile
from cfgd.apps.fit.result import FitResult
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES
from cfgd.apps.fit.two_classes import roc_auc
from cfgd.apps.page.drawing import Panel, Panels, colour, decades, line, svgs

MAX_TERMS = 20  # coefficients that are shown, the largest ones
MAX_POINTS = 800  # residuals that can be distinguished in a scatter plot
MAX_CURVES = 5  # ROC curves in one panel
MAX_NAME = 18  # characters of a name
CALIBRATION_BINS = 10
Z95 = 1.96  # standard errors on each side of a 95 % interval of a normal distribution
CURVE_COLOURS = ("blue", "orange", "green", "purple", "yellow")


def figures_of(result: FitResult) -> list[list[tuple[str, str]]]:
    """Return the figures as rows of (title, SVG)."""
    first = [
        Panel("Coefficients of standardised columns", _coefficients),
        Panel("Convergence", _convergence),
    ]
    if result.target.loss in CLASSIFICATION_LOSSES:
        second = [Panel("Calibration", _calibration), Panel("ROC", _roc)]
    else:
        second = [Panel("Residuals", _residuals), Panel("Distribution of residuals", _histogram)]
    panels: Panels = [first, second]
    if result.cross_validation is not None:
        panels = [*panels, [Panel("Cross-validation", _cross_validation)]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of characters that matplotlib's font does not have
        drawn = svgs("fit", panels, {"result": result})
    return [
        [(panel.title, svg) for panel, svg in zip(row, row_svgs, strict=True)]
        for row, row_svgs in zip(panels, drawn, strict=True)
    ]


def _coefficients(axis: Any, data: Mapping[str, Any]) -> None:
    """Draw the largest coefficients with 95 % intervals; of each column the largest class.

    Coefficients that a penalty shrinks have no intervals.
    """
    result: FitResult = data["result"]
    scale, standardised = result.target.scale, result.standardised
    w = scale * standardised[:-1].reshape(len(standardised) - 1, -1)
    half_widths = np.zeros_like(w)
    if result.standardised_errors is not None and not result.l2:
        factor = quantile(0.95, result.dof)
        half_widths = factor * scale * result.standardised_errors[:-1].reshape(w.shape)
    classes = np.argmax(np.abs(w), 1)
    columns = np.argsort(-np.abs(w).max(1))[:MAX_TERMS][::-1]
    shown = columns, classes[columns]
    positions = np.arange(len(columns))
    axis.errorbar(
        w[shown],
        positions,
        xerr=half_widths[shown],
        fmt="o",
        markersize=4.5,
        color=colour("blue"),
        elinewidth=1.2,
    )
    axis.axvline(0, color=colour("ink"), linewidth=0.8)
    names = [_coefficient_name(result, int(j), int(k)) for j, k in zip(*shown, strict=True)]
    axis.set_yticks(positions, names)
    for text in axis.get_yticklabels():
        text.set_parse_math(False)  # a dollar sign in a name is no formula
    axis.tick_params(axis="y", labelsize=7)
    axis.set(xlabel="change of the linear predictor per standard deviation")


def _coefficient_name(result: FitResult, column: int, class_index: int) -> str:
    term = _shortened(result.model.terms[column])
    if result.target.classes == 1:
        return term
    return f"{term}: {_shortened(str(result.target.labels[class_index]))}"


def _shortened(name: str) -> str:
    name = printable(name)
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def _convergence(axis: Any, data: Mapping[str, Any]) -> None:
    history = data["result"].solution.history
    norm, value = (np.asarray(history[name], float) for name in ("gradient_norm", "value"))
    excess = value - value.min()
    for values, colour_name, label in (
        (norm / norm[0], "blue", "gradient norm"),
        (excess / (excess[0] or 1), "orange", "value above the minimum"),
    ):
        positive = np.where(values > 0, values, np.nan)  # the axis is logarithmic
        style = {"label": label, "marker": "o", "markersize": 3}
        line(axis, history["iteration"], positive, colour_name, **style)
    decades(axis, "relative to the start")


def _cross_validation(axis: Any, data: Mapping[str, Any]) -> None:
    """Draw the mean loss of left-out rows for each penalty, with its standard error."""
    found = data["result"].cross_validation
    axis.errorbar(
        found.l2,
        found.losses,
        yerr=found.standard_errors,
        fmt="o-",
        markersize=4.5,
        color=colour("blue"),
        elinewidth=1.2,
    )
    axis.axvline(found.best, color=colour("ink"), linewidth=0.8)
    axis.set_xscale("log")
    axis.set(xlabel="penalty l2", ylabel="mean loss of left-out rows")


def _residuals(axis: Any, data: Mapping[str, Any]) -> None:
    quality = data["result"].quality
    shown = np.unique(np.linspace(0, len(quality.y) - 1, MAX_POINTS).astype(int))
    mean, y = quality.expected[shown], quality.y[shown]
    axis.plot(mean, y - mean, "o", markersize=2.5, alpha=0.5, color=colour("blue"))
    axis.axhline(0, color=colour("ink"), linewidth=0.8)
    axis.set(xlabel="predicted", ylabel="residual (target - predicted)")


def _histogram(axis: Any, data: Mapping[str, Any]) -> None:
    quality = data["result"].quality
    axis.set_axisbelow(True)
    axis.hist(quality.y - quality.expected, bins=30, color=colour("blue"))
    axis.axvline(0, color=colour("ink"), linewidth=0.8)
    axis.set(xlabel="residual (target - predicted)", ylabel="rows")


def _calibration(axis: Any, data: Mapping[str, Any]) -> None:
    """Draw how often predictions are true against their probability, in bins of equally many rows.

    The predictions are those of the second of two labels, or of the most probable of several.
    """
    result: FitResult = data["result"]
    probabilities, y = result.quality.expected, result.quality.y
    if result.target.classes == 1:
        probability, is_true = probabilities[:, 1], y == 1
    else:
        probability, is_true = probabilities.max(1), probabilities.argmax(1) == y
    order = np.argsort(probability, kind="stable")
    bins = [rows for rows in np.array_split(order, CALIBRATION_BINS) if len(rows)]
    predicted = np.array([probability[rows].mean() for rows in bins])
    observed = np.array([is_true[rows].mean() for rows in bins])
    sizes = np.array([len(rows) for rows in bins])
    axis.plot([0, 1], [0, 1], color=colour("ink"), linewidth=0.8)
    axis.errorbar(
        predicted,
        observed,
        yerr=Z95 * np.sqrt(predicted * (1 - predicted) / sizes),
        fmt="o",
        markersize=4.5,
        color=colour("blue"),
        elinewidth=1.2,
    )
    axis.set(xlabel="predicted probability", ylabel="observed frequency")
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))


def _roc(axis: Any, data: Mapping[str, Any]) -> None:
    result: FitResult = data["result"]
    probabilities, y, labels = result.quality.expected, result.quality.y, result.target.labels
    shown = [1] if result.target.classes == 1 else range(min(MAX_CURVES, len(labels)))
    axis.plot([0, 1], [0, 1], color=colour("ink"), linewidth=0.8)
    for k, colour_name in zip(shown, CURVE_COLOURS, strict=False):
        false_positives, true_positives = roc_curve(probabilities[:, k], y == k)
        area = roc_auc(probabilities[:, k], y == k)
        label = f"label {_shortened(str(labels[k]))}, area {area:.3f}"
        line(axis, false_positives, true_positives, colour_name, label=label)
    axis.set(xlabel="false positive rate", ylabel="true positive rate")
    for text in axis.legend(loc="lower right").get_texts():
        text.set_parse_math(False)


def roc_curve(score: np.ndarray, is_positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the false and the true positive rates for all thresholds of the score.

    >>> false, true = roc_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1]))
    >>> print(false, true)
    [0.  0.  0.5 0.5 1. ] [0.  0.5 0.5 1.  1. ]
    """
    order = np.argsort(-score, kind="stable")
    # equal scores pass a threshold together
    ends = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)
    true = np.append(0, np.cumsum(is_positive[order])[ends])
    false = np.append(0, ends + 1) - true
    return false / max(false[-1], 1), true / max(true[-1], 1)
