"""Choose the penalty by cross-validation in five folds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from cfgd._core.engines.base import Arrays
from cfgd.apps.fit.fitting import (
    ProgressCallback,
    SolverOptions,
    baseline_coefficients,
    fit_coefficients,
)
from cfgd.apps.fit.row_block import RowBlock
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import FOLDS, fold, training_rows, without_fold
from cfgd.apps.fit.target import Target

PENALTIES_PER_ROW = 10.0 ** np.arange(1, -6, -1)  # from strong to weak: each starts the next fit
# The losses of penalties that differ by a factor of ten differ by far more than this.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class CrossValidation:
    """The mean loss over left-out rows for each penalty.

    `fold_losses` has the mean loss of each fold in a row, and `standard_errors` are those of the
    mean of the folds.
    """

    l2: np.ndarray
    losses: np.ndarray
    fold_losses: np.ndarray

    @property
    def best(self) -> float:
        """The penalty of the lowest loss."""
        return float(self.l2[np.argmin(self.losses)])

    @property
    def standard_errors(self) -> np.ndarray:
        """The standard error of the mean loss of the folds, for each penalty."""
        folds = self.fold_losses[np.isfinite(self.fold_losses).all(1)]
        if len(folds) < 2:
            return np.full(len(self.l2), np.nan)
        return folds.std(0, ddof=1) / np.sqrt(len(folds))


def cross_validate(rows: Rows, memory: float, on_progress: ProgressCallback) -> CrossValidation:
    """Fit to four of five folds and measure the loss on the fifth, for each fold and penalty.

    Each fit starts from the coefficients of the next stronger penalty. The method is always
    `Auto`: the minimiser does not depend on the method, and `Auto` is the fastest.
    """
    (weight,) = rows.sum(training_rows, _weight, rows.target)
    l2 = PENALTIES_PER_ROW * weight
    totals, sizes = np.zeros((FOLDS, len(l2))), np.zeros((FOLDS, len(l2)))
    for k in range(FOLDS):
        w = baseline_coefficients(rows)
        for i, penalty in enumerate(l2):
            fraction = (k * len(l2) + i) / (FOLDS * len(l2))
            on_progress(fraction, f"fold {k + 1} of {FOLDS}, l2 = {penalty:.3g}")
            options = SolverOptions(
                float(penalty), "auto", memory, _ignore_progress, tolerance=TOLERANCE
            )
            w, _ = fit_coefficients(rows, without_fold(k), options, w)
            totals[k, i], sizes[k, i] = rows.sum(fold(k), _loss, rows.target, w)
    with np.errstate(invalid="ignore"):  # a fold without rows
        return CrossValidation(l2, totals.sum(0) / sizes.sum(0), totals / sizes)


def _ignore_progress(fraction: float, description: str) -> None:
    """Report nothing: the progress of cross-validation counts fits."""


def _weight(blocks: Iterator[RowBlock], target: Target) -> Arrays:
    """Return the sum of the weights."""
    return (np.array(sum(float(block.fit_weight(target).sum()) for block in blocks)),)


def _loss(blocks: Iterator[RowBlock], target: Target, w: np.ndarray) -> Arrays:
    """Return the weighted sum of the losses, and the sum of the weights."""
    total, size = np.zeros(()), np.zeros(())
    for block in blocks:
        weight = block.fit_weight(target)
        losses = target.loss_function.value(block.predictors(w), target.for_loss(block.y))
        total += weight @ np.asarray(losses)
        size += weight.sum()
    return total, size
