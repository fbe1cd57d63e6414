"""Measures of the quality of a fit, compared with a baseline that uses no column."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

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
    model, baseline = ({name: 0.0 for name in measures} for _ in range(2))
    count = sample_size = 0
    total_weight, moments = 0.0, np.zeros(2)
    confusion = np.zeros(2 * (len(target.labels),))
    sample: list[tuple[np.ndarray, ...]] = []
    for block in rows.blocks(subset):
        y, weight = target.centre + target.scale * block.y, block.weights
        p = block.predictors(w)
        by_model = target.expected(p)
        without_columns = block.plus_offset(target.baseline_predictors(len(y)))
        by_baseline = target.expected(without_columns)
        for name, measure in measures.items():
            model[name] += float(weight @ measure(by_model, y))
            baseline[name] += float(weight @ measure(by_baseline, y))
        if target.labels:
            np.add.at(confusion, (y.astype(int), by_model.argmax(1)), weight)
        else:
            moments += weight @ block.y, weight @ block.y**2
        room = SAMPLE - sample_size
        sample.append((by_model[:room], y[:room], weight[:room], p[:room]))
        total_weight += float(weight.sum())
        count, sample_size = count + len(y), sample_size + len(sample[-1][1])
    model, baseline = (
        {name: total / total_weight for name, total in totals.items()}
        for totals in (model, baseline)
    )
    expected, y, weight, p = (np.concatenate(arrays) for arrays in zip(*sample, strict=True))
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
    """Return how many of the positive and of the negative rows are called positive."""
    with np.errstate(invalid="ignore"):  # no row of a class
        false, true = (confusion[:, 1] / confusion.sum(1)).tolist()
    return {TRUE_POSITIVE_RATE: true, FALSE_POSITIVE_RATE: false}


def describe_baseline(target: Target, roles: RowRoles = NO_ROLES) -> str:
    """Return what the baseline predicts, to follow the words "The baseline"."""
    weighted = "weighted " if roles.weights is not None else ""
    if roles.offset is not None:
        return f"has the best {weighted}intercept, the offset {roles.offset!r} and no column"
    if target.loss in CLASSIFICATION_LOSSES:
        return f"predicts the {weighted}class shares of the training rows for every row"
    mean = float(target.expected(target.baseline_predictors(1))[0])
    return f"predicts {mean:.6g}, the {weighted}mean of the target in the training rows"
