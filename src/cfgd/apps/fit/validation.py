"""The penalty by cross-validation: five folds, each predicted by the other four."""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd.apps.fit.fitting import Setting, Watch, as_wanted, fitted, start
from cfgd.apps.fit.rows import Rows
from cfgd.apps.fit.split import FOLDS, Part, fold, without_fold

SIZES = 10.0 ** np.arange(1, -6, -1)  # of the penalty for each row, from strong to weak

TOLERANCE = 1e-4  # losses of penalties ten times apart differ by more


@dataclasses.dataclass(frozen=True)
class Validated:
    """The mean loss of rows that were left out, for each penalty."""

    l2: np.ndarray
    losses: np.ndarray

    @property
    def best(self) -> float:
        return float(self.l2[np.argmin(self.losses)])


def validated(rows: Rows, correlation: np.ndarray | None, watch: Watch) -> Validated:
    """Every fold along the penalties, each from where the last one ended.

    The minimiser does not depend on the method: it is always the quickest.
    """
    l2 = SIZES * rows.count
    total = np.zeros(len(l2))
    for k in range(FOLDS):
        w = start(rows)
        for i, penalty in enumerate(l2):
            done = (k * len(l2) + i) / (FOLDS * len(l2))
            watch(done, f"fold {k + 1} of {FOLDS}, l2 = {penalty:.3g}")
            quiet = Setting(float(penalty), "auto", lambda far, words: None, False, TOLERANCE)
            w, _ = fitted(rows, without_fold(k), quiet, w, correlation)
            total[i] += _loss(rows, fold(k), w)
    return Validated(l2, total / rows.count)


def _loss(rows: Rows, part: Part, w: np.ndarray) -> float:
    loss, total = rows.target.rule, 0.0
    for X, y in rows.blocks(part):
        total += float(np.sum(loss.value(X @ w[:-1] + w[-1], as_wanted(rows, y))))
    return total
