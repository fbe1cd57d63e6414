"""The figures of the report: coefficients, convergence, and residuals or calibration and ROC."""

from __future__ import annotations

import numpy as np

from cfgd._core.files import printable
from cfgd._core.students_t import quantile
from cfgd.apps.fit.formats import format_label
from cfgd.apps.fit.result import FitResult
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES
from cfgd.apps.fit.two_classes import counts_by_threshold, roc_auc
from cfgd.apps.page.chart import Chart

MAX_TERMS = 20  # coefficients that are shown, the largest ones
MAX_POINTS = 800  # residuals that can be distinguished in a scatter plot
MAX_CURVES = 5  # ROC curves in one panel
MAX_NAME = 18  # characters of a name
CALIBRATION_BINS = 10
Z95 = 1.96  # standard errors on each side of a 95 % interval of a normal distribution
MAX_LINE, MAX_MARKS = 400, 60  # points of a line, and of a line that shows them
BINS = 30  # of a histogram
# what a coefficient is a change of, where it is not the prediction itself
UNITS = {
    "logistic": "change of the log-odds",
    "multinomial": "change of the log-odds",
    "poisson": "change of the log of the mean",
    "gamma": "change of the log of the mean",
}
UNIT = (-0.02, 1.02)  # limits of rates and probabilities
CURVE_COLOURS = ("blue", "orange", "green", "purple", "yellow")


def figures_of(result: FitResult) -> list[list[tuple[str, str]]]:
    """Return the figures as rows of (title, SVG)."""
    shown = "Standardised coefficients"
    if result.target.classes > 1:
        shown = "Largest standardised coefficient of each column"
    if _has_intervals(result):
        shown += ", 95 % intervals"
    rows = [[(shown, _coefficients), ("Convergence", _convergence)]]
    if result.target.loss in CLASSIFICATION_LOSSES:
        rows.append([("Calibration, 95 % intervals", _calibration), ("ROC", _roc)])
    else:
        rows.append([("Residuals", _residuals), ("Distribution of residuals", _histogram)])
    if result.cross_validation is not None:
        rows.append(
            [("Cross-validation, \N{PLUS-MINUS SIGN} one standard error", _cross_validation)]
        )
    return [[(title, draw(result).svg(title)) for title, draw in row] for row in rows]


def _has_intervals(result: FitResult) -> bool:
    """Return whether coefficients have intervals; those that a penalty shrinks have none."""
    return result.standardised_errors is not None and not result.l2


def _coefficients(result: FitResult) -> Chart:
    """Draw the largest coefficients with 95 % intervals; of each column the largest class."""
    scale, standardised = result.target.scale, result.standardised
    w = scale * standardised[:-1].reshape(len(standardised) - 1, -1)
    half_widths = np.zeros_like(w)
    if result.standardised_errors is not None and _has_intervals(result):
        factor = quantile(0.95, result.dof)
        half_widths = factor * scale * result.standardised_errors[:-1].reshape(w.shape)
    classes = np.argmax(np.abs(w), 1)
    columns = np.argsort(-np.abs(w).max(1), kind="stable")[:MAX_TERMS][::-1]
    shown = columns, classes[columns]
    names = [_coefficient_name(result, int(j), int(k)) for j, k in zip(*shown, strict=True)]
    change = UNITS.get(result.target.loss, "change of the prediction")
    chart = Chart(f"{change} per standard deviation", names=names)
    y = np.arange(len(columns))
    ends = np.column_stack([w[shown] - half_widths[shown], w[shown] + half_widths[shown]])
    chart.rule("x", 0)
    chart.whiskers(ends, np.column_stack([y, y]), "blue")
    chart.points(w[shown], y, "blue")
    return chart


def _coefficient_name(result: FitResult, column: int, class_index: int) -> str:
    term = _shortened(result.model.terms[column])
    if result.target.classes == 1:
        return term
    return f"{term}: {_shortened(str(result.target.labels[class_index]))}"


def _shortened(name: str) -> str:
    name = printable(name)
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def _convergence(result: FitResult) -> Chart:
    history = result.solution.history
    norm, value = (np.asarray(history[name], float) for name in ("gradient_norm", "value"))
    excess = value - value.min()
    chart = Chart("iteration", "relative to the initial value", log="y", integer_x=True)
    for values, colour, label in (
        (norm / (norm[0] or 1), "blue", "gradient norm"),
        (excess / (excess[0] or 1), "orange", "objective above its minimum"),
    ):
        shown = _thinned(len(values), MAX_LINE)
        chart.line(np.asarray(history["iteration"], float)[shown], values[shown], colour, label)
        if len(values) <= MAX_MARKS:
            chart.points(history["iteration"], values, colour, size=2.5)
    return chart


def _thinned(count: int, most: int) -> np.ndarray:
    """Return the indices of at most so many values, from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def _cross_validation(result: FitResult) -> Chart:
    """Draw the mean loss of left-out rows for each penalty, with its standard error."""
    found = result.cross_validation
    assert found is not None
    chart = Chart("penalty l2", "mean loss of left-out rows", log="x")
    errors = np.nan_to_num(found.standard_errors)
    ends = np.column_stack([found.losses - errors, found.losses + errors])
    chart.rule("x", found.best)
    chart.whiskers(np.column_stack([found.l2, found.l2]), ends, "blue")
    chart.line(found.l2, found.losses, "blue")
    chart.points(found.l2, found.losses, "blue")
    return chart


def _residuals(result: FitResult) -> Chart:
    quality = result.quality
    shown = _thinned(len(quality.y), MAX_POINTS)
    mean, y = quality.expected[shown], quality.y[shown]
    chart = Chart("predicted value", "residual (target \N{MINUS SIGN} predicted)")
    chart.rule("y", 0)
    chart.points(mean, y - mean, "blue", size=2, opacity=0.5)
    return chart


def _histogram(result: FitResult) -> Chart:
    quality = result.quality
    counts, edges = np.histogram(quality.y - quality.expected, bins=BINS)
    chart = Chart("residual (target \N{MINUS SIGN} predicted)", "number of rows")
    chart.columns(edges, counts, "blue")
    chart.rule("x", 0)
    return chart


def _calibration(result: FitResult) -> Chart:
    """Draw how often predictions are true against their probability, in bins of equally many rows.

    The predictions are those of the second of two labels, or of the most probable of several.
    """
    probabilities, y = result.quality.expected, result.quality.y
    if result.target.classes == 1:
        probability, is_true = probabilities[:, 1], y == 1
        of = _shortened(format_label(result.target.labels[1]))
    else:
        probability, is_true = probabilities.max(1), probabilities.argmax(1) == y
        of = "the most probable class"
    order = np.argsort(probability, kind="stable")
    bins = [rows for rows in np.array_split(order, CALIBRATION_BINS) if len(rows)]
    weight = result.quality.weight
    predicted = np.array([np.average(probability[rows], weights=weight[rows]) for rows in bins])
    observed = np.array([np.average(is_true[rows], weights=weight[rows]) for rows in bins])
    # the effective sample size of the weighted rows (Kish, 1965)
    sizes = np.array([weight[rows].sum() ** 2 / (weight[rows] ** 2).sum() for rows in bins])
    half = Z95 * np.sqrt(predicted * (1 - predicted) / sizes)
    chart = Chart(f"predicted probability of {of}", "observed frequency", limits=UNIT)
    chart.line([0, 1], [0, 1], "ink", width=1)
    ends = np.clip(np.column_stack([observed - half, observed + half]), *UNIT)
    chart.whiskers(np.column_stack([predicted, predicted]), ends, "blue")
    chart.points(predicted, observed, "blue")
    return chart


def _roc(result: FitResult) -> Chart:
    probabilities, y, labels = result.quality.expected, result.quality.y, result.target.labels
    weight = result.quality.weight
    shown = [1] if result.target.classes == 1 else range(min(MAX_CURVES, len(labels)))
    chart = Chart("false positive rate", "true positive rate", limits=UNIT)
    chart.line([0, 1], [0, 1], "ink", width=1)
    for k, colour in zip(shown, CURVE_COLOURS, strict=False):
        rates = roc_curve(probabilities[:, k], y == k, weight)
        area = roc_auc(probabilities[:, k], y == k, weight)
        name = _shortened(str(format_label(labels[k])))
        part = _thinned(len(rates[0]), MAX_LINE)
        chart.line(rates[0][part], rates[1][part], colour, f"{name}, area {area:.3f}")
    return chart


def roc_curve(
    score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the false and the true positive rates for all thresholds of the score.

    >>> false, true = roc_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1]))
    >>> print(false, true)
    [0.  0.  0.5 0.5 1. ] [0.  0.5 0.5 1.  1. ]
    """
    counts = counts_by_threshold(score, is_positive, weight)
    false, true = (np.append(0.0, of) for of in counts)
    return false / (false[-1] or 1), true / (true[-1] or 1)
