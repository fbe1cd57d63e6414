"""Measures of the quality of a fit, compared with a baseline that uses no column."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from cfgd._core.engines.base import Arrays
from cfgd.apps.fit.row_block import RowBlock
from cfgd.apps.fit.row_roles import RowRoles
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import RowSubset
from cfgd.apps.fit.table_statistics import NO_ROLES, SAMPLE
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES, Target
from cfgd.apps.fit.two_classes import average_precision, calibration, roc_auc

ROC_AUC = "area under the ROC curve"
AVERAGE_PRECISION = "average precision"
CALIBRATION_SLOPE, CALIBRATION_INTERCEPT = "calibration slope", "calibration intercept"
TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE = "true positive rate", "false positive rate"
R_SQUARED = "R squared"
# maps expected values (means, or probabilities of the labels) and targets to a number for each row
Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _poisson_deviance(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0) - y + mean)


def _gamma_deviance(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2 * ((y - mean) / mean - np.log(y / mean))


def _log_loss(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return -np.log(np.take_along_axis(probabilities, y.astype(int)[:, None], 1)[:, 0])


def _is_correct(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (probabilities.argmax(1) == y).astype(float)


def _squared_error(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (mean - y) ** 2


def _absolute_error(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(mean - y)


# `Quality.explained` is computed from the first measure of each loss.
MEASURES: dict[str, dict[str, Measure]] = {
    "squared": {"mean squared error": _squared_error, "mean absolute error": _absolute_error},
    "huber": {"mean absolute error": _absolute_error, "mean squared error": _squared_error},
    "poisson": {"mean deviance": _poisson_deviance, "mean absolute error": _absolute_error},
    "gamma": {"mean deviance": _gamma_deviance, "mean absolute error": _absolute_error},
    "logistic": {"log loss": _log_loss, "accuracy": _is_correct},
    "multinomial": {"log loss": _log_loss, "accuracy": _is_correct},
}


@dataclasses.dataclass(frozen=True)
class Quality:
    """Measures of the model and of the baseline, as weighted means over rows.

    `confusion` has for class labels the weight of the rows of each label (a row) that the model
    gives each label (a column). `expected` has the means, or a column of probabilities for each
    label, `y` the targets, or indices of labels, and `weight` the weights, of the first `SAMPLE`
    rows: the figures show them.
    """

    rows: int
    model: dict[str, float]
    baseline: dict[str, float]
    confusion: np.ndarray | None
    expected: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    @property
    def explained(self) -> float:
        """The share of the error of the baseline that the model removes."""
        name = next(iter(self.model))
        return 1 - self.model[name] / self.baseline[name] if self.baseline[name] else 0.0


def measure_quality(rows: Rows, subset: RowSubset, w: np.ndarray) -> Quality:
    """Measure the model and the baseline on a subset of the rows, in one pass.

    Rows count by the weights of `--weights`; class weights do not count.
    """
    target, measures = rows.target, MEASURES[rows.target.loss]
    by_measure, confusion, moments, sizes = rows.sum(subset, _measured, target, w)
    count, total_weight = int(sizes[0]), sizes[1]
    model, baseline = (
        dict(zip(measures, (totals / total_weight).tolist(), strict=True)) for totals in by_measure
    )
    expected, y, weight, p = rows.first(subset, SAMPLE, _predicted, target, w)
    if target.loss == "logistic":
        model |= _two_class_measures(expected[:, 1], p, y, weight) | _rates(confusion)
        baseline[ROC_AUC] = 0.5
        baseline[AVERAGE_PRECISION] = float(np.average(y, weights=weight))
    elif "mean squared error" in measures:
        mean, mean_square = moments / total_weight
        variance = target.scale**2 * (mean_square - mean**2)
        for found in (model, baseline):
            share = found["mean squared error"] / variance if variance > 0 else np.nan
            found[R_SQUARED] = 1 - float(share)
    known = confusion if target.labels else None
    return Quality(count, model, baseline, known, expected, y, weight)


def _measured(blocks: Iterator[RowBlock], target: Target, w: np.ndarray) -> Arrays:
    """Return sums of the measures of the model and of the baseline, and what goes with them.

    These are the confusion matrix, the moments of y, and the number of rows with their weight.
    """
    measures = MEASURES[target.loss].values()
    found, moments, sizes = np.zeros((2, len(measures))), np.zeros(2), np.zeros(2)
    confusion = np.zeros(2 * (len(target.labels),))
    for block in blocks:
        by_model, y, weight, _ = _predicted(block, target, w)
        without_columns = block.plus_offset(target.baseline_predictors(len(y)))
        by_baseline = target.expected(without_columns)
        for k, measure in enumerate(measures):
            found[:, k] += weight @ measure(by_model, y), weight @ measure(by_baseline, y)
        if target.labels:
            np.add.at(confusion, (y.astype(int), by_model.argmax(1)), weight)
        else:
            moments += weight @ block.y, weight @ block.y**2
        sizes += len(y), weight.sum()
    return found, confusion, moments, sizes


def _predicted(block: RowBlock, target: Target, w: np.ndarray) -> Arrays:
    """Return expected values, targets, weights and linear predictors of the rows of a block."""
    p = block.predictors(w)
    return target.expected(p), target.centre + target.scale * block.y, block.weights, p


def _two_class_measures(
    probability: np.ndarray, p: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> dict[str, float]:
    slope, intercept = calibration(p, y, weight)
    return {
        ROC_AUC: roc_auc(probability, y, weight),
        AVERAGE_PRECISION: average_precision(probability, y, weight),
        CALIBRATION_SLOPE: slope,
        CALIBRATION_INTERCEPT: intercept,
    }


def _rates(confusion: np.ndarray) -> dict[str, float]:
    """Return the shares of the positive and of the negative rows that are predicted positive."""
    with np.errstate(invalid="ignore"):  # no row of a class
        false, true = (confusion[:, 1] / confusion.sum(1)).tolist()
    return {TRUE_POSITIVE_RATE: true, FALSE_POSITIVE_RATE: false}


def describe_baseline(target: Target, roles: RowRoles = NO_ROLES) -> str:
    """Return what the baseline predicts, to follow the words "The baseline"."""
    weighted = "weighted " if roles.weights is not None else ""
    if roles.offset is not None:
        return f"uses the offset {roles.offset!r} and the best {weighted}intercept, and no column"
    if target.loss in CLASSIFICATION_LOSSES:
        return f"predicts the {weighted}class shares of the training rows for every row"
    mean = float(target.expected(target.baseline_predictors(1))[0])
    return f"predicts {mean:.6g}, the {weighted}mean of the target in the training rows"
