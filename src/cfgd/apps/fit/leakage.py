"""Signs of leakage: a column that alone explains the target, and errors of the size of rounding.

Such a column often holds the target in another form, or something that is known only after it. Each
column is tried alone: a line for numbers, the mean of each level for texts, fitted to training rows
and measured on held-out rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from cfgd._core.engines.base import Arrays
from cfgd.apps.fit.columns import Column, TextColumn
from cfgd.apps.fit.quality import R_SQUARED, ROC_AUC, Quality
from cfgd.apps.fit.row_block import RowBlock
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import RowSubset, training_rows
from cfgd.apps.fit.table_statistics import Standardisation
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES
from cfgd.apps.fit.two_classes import roc_auc

# Levels from which on a column is named. Measured columns of real tables rarely reach them: the
# best one of the breast cancer data has an area under the ROC curve of 0.975.
MAX_R_SQUARED, MAX_AUC = 0.999, 0.995
MAX_ROWS = 20_000  # training rows, and as many held-out ones, that are looked at: the first ones
MAX_NUMBERS = 2_500_000  # of the design matrix of either, which take 20 MB
MIN_ROWS = 10  # held-out rows, so that the measure is no accident
# The share of the baseline's error below which the model's error is rounding: of a mean of squares,
# and of other measures. Tables are often written with six digits.
ROUNDING = {"mean squared error": 1e-12, "mean deviance": 1e-12}
OTHER_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class Suspect:
    """A column that alone explains the target, with the measure that says so."""

    column: str
    measure: str
    value: float


def suspects(
    rows: Rows,
    columns: Sequence[Column],
    terms: Sequence[str],
    standardisation: Standardisation,
    measured: RowSubset,
) -> list[Suspect]:
    """Return the columns that alone explain the target of the measured rows.

    Parameters
    ----------
    columns, terms
        The encoded columns, and the names of the columns of the design matrix. Where a formula
        makes the design matrix, give no columns.
    standardisation
        That of the columns of the design matrix.
    measured
        The held-out rows, or the training rows if none are held out.
    """
    groups = _groups(columns, terms)
    loss = rows.target.loss
    if len(groups) < 2 or (loss in CLASSIFICATION_LOSSES and rows.target.classes > 1):
        return []
    limit = min(MAX_ROWS, MAX_NUMBERS // rows.width)
    X, y, weight = rows.first(training_rows, limit, _values)
    sums = np.column_stack([weight @ X, weight @ X**2, (weight * y) @ X])
    of_target = np.array([weight.sum(), weight @ y, weight @ y**2])
    chosen = rows.first(measured, limit, _values)
    if not chosen or len(chosen[1]) < MIN_ROWS:
        return []
    X, y, weight = chosen
    found: list[Suspect] = []
    for name, place in groups.items():
        if place.stop - place.start == 1:
            predicted = _line(sums[place][0], of_target, X[:, place.start])
        else:
            own = Standardisation(standardisation.mean[place], standardisation.deviation[place])
            predicted = _level_means(sums[place], of_target, X[:, place], own)
        if loss == "logistic":
            value, measure, level = roc_auc(predicted, y, weight), ROC_AUC, MAX_AUC
        else:
            value, measure, level = _r_squared(predicted, y, weight), R_SQUARED, MAX_R_SQUARED
        if value > level:
            found.append(Suspect(name, measure, value))
    return found


def is_rounding(quality: Quality) -> bool:
    """Return whether the error of the model is of the size of rounding."""
    name = next(iter(quality.model))
    share = ROUNDING.get(name, OTHER_ROUNDING)
    return quality.model[name] <= share * quality.baseline[name]


def _groups(columns: Sequence[Column], terms: Sequence[str]) -> dict[str, slice]:
    """Return the places in the design matrix: those of all levels of a text together."""
    if not columns:
        return {term: slice(k, k + 1) for k, term in enumerate(terms)}
    groups, start = {}, 0
    for column in columns:
        size = len(column.terms)
        if isinstance(column, TextColumn):
            groups[column.name] = slice(start, start + size)
        else:
            for k, term in enumerate(column.terms):
                groups[term] = slice(start + k, start + k + 1)
        start += size
    return groups


def _values(block: RowBlock) -> Arrays:
    return block.X, block.y, block.weights


def _line(sums: np.ndarray, of_target: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the predictions of the least-squares line of a column."""
    n, total, _ = of_target
    mean = sums[0] / n
    variance = sums[1] / n - mean**2
    slope = (sums[2] / n - mean * total / n) / variance if variance > 0 else 0.0
    return total / n + slope * (x - mean)


def _level_means(
    sums: np.ndarray, of_target: np.ndarray, X: np.ndarray, standardisation: Standardisation
) -> np.ndarray:
    """Return the mean target of the level of each row; `standardisation` is of indicators X."""
    n, total, _ = of_target
    mean, deviation = standardisation.mean, standardisation.deviation
    counts = np.append(deviation * sums[:, 0] + mean * n, 0.0)
    totals = np.append(deviation * sums[:, 2] + mean * total, 0.0)
    counts[-1], totals[-1] = n - counts.sum(), total - totals.sum()  # the reference level
    means = np.divide(totals, counts, out=np.zeros_like(totals), where=counts > 0.5)
    indicators = X * deviation + mean
    return indicators @ means[:-1] + (1 - indicators.sum(1)) * means[-1]


def _r_squared(predicted: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    variance = np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    error = np.average((y - predicted) ** 2, weights=weight)
    return float(1 - error / variance) if variance > 0 else float("nan")
