"""Choose the penalty by cross-validation in five folds."""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd.apps.fit.fitting import (
    ProgressCallback,
    SolverOptions,
    baseline_coefficients,
    fit_coefficients,
)
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import FOLDS, RowSubset, fold, without_fold

PENALTIES_PER_ROW = 10.0 ** np.arange(1, -6, -1)  # from strong to weak: each starts the next fit
# The losses of penalties that differ by a factor of ten differ by far more than this.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class CrossValidation:
    """The mean loss over left-out rows for each penalty."""

    l2: np.ndarray
    losses: np.ndarray

    @property
    def best(self) -> float:
        """The penalty of the lowest loss."""
        return float(self.l2[np.argmin(self.losses)])


def cross_validate(rows: Rows, memory: float, on_progress: ProgressCallback) -> CrossValidation:
    """Fit to four of five folds and measure the loss on the fifth, for each fold and penalty.

    Each fit starts from the coefficients of the next stronger penalty. The method is always
    `Auto`: the minimiser does not depend on the method, and `Auto` is the fastest.
    """
    l2 = PENALTIES_PER_ROW * rows.count
    total = np.zeros(len(l2))
    for k in range(FOLDS):
        w = baseline_coefficients(rows)
        for i, penalty in enumerate(l2):
            fraction = (k * len(l2) + i) / (FOLDS * len(l2))
            on_progress(fraction, f"fold {k + 1} of {FOLDS}, l2 = {penalty:.3g}")
            options = SolverOptions(
                float(penalty), "auto", memory, _ignore_progress, tolerance=TOLERANCE
            )
            w, _ = fit_coefficients(rows, without_fold(k), options, w)
            total[i] += _total_loss(rows, fold(k), w)
    return CrossValidation(l2, total / rows.count)


def _ignore_progress(fraction: float, description: str) -> None:
    """Report nothing: the progress of cross-validation counts fits."""


def _total_loss(rows: Rows, subset: RowSubset, w: np.ndarray) -> float:
    target = rows.target
    return sum(
        float(np.sum(target.loss_function.value(X @ w[:-1] + w[-1], target.for_loss(y))))
        for X, y in rows.blocks(subset)
    )
