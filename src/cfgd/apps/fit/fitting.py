"""Solve for the coefficients: a `LinearModel` of rows in memory, `Blocks` of streamed rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cfgd import distributed
from cfgd.apps.fit.rows import InMemoryRows, Rows
from cfgd.apps.fit.split import RowSubset
from cfgd.methods import AdaptiveTerminal, Auto, GradientDescent
from cfgd.methods.base import Method
from cfgd.objectives import Blocks, LinearModel
from cfgd.solve import Solution, minimize

# A classifier whose loss has fallen to this share of the loss at the start predicts every label
# with certainty: the classes are separable, and the coefficients would grow without bound.
SEPARABLE_LOSS = 1e-6
CALLBACK_INTERVAL = 25  # iterations of the cheap first-order methods between progress reports
METHODS: dict[str, Callable[[], Method]] = {
    "auto": Auto,
    "adaptive_terminal": lambda: AdaptiveTerminal(gamma=-0.25),
    "gradient_descent": GradientDescent,
}

# called with the finished fraction of a run, from 0 to 1, and a description of its state
ProgressCallback = Callable[[float, str], None]


@dataclasses.dataclass(frozen=True)
class SolverOptions:
    """Options of one run of the solver.

    `stop_if_separable` ends a run early once every label is predicted with certainty.
    `memory` bounds the bytes that a streamed fit may use for the Hessian.
    """

    l2: float
    method: str
    memory: float
    on_progress: ProgressCallback
    stop_if_separable: bool = False
    tolerance: float | None = None  # of the gradient; None for the default of `minimize`
    checkpoint: Path | None = None


def is_separable(solution: Solution) -> bool:
    """Return whether the loss of a classifier has vanished, as it does for separable classes."""
    values = solution.history["value"]
    return bool(values[-1] < SEPARABLE_LOSS * values[0])


def baseline_coefficients(rows: Rows) -> np.ndarray:
    """Return the coefficients of the model that uses no column, where every fit starts."""
    w = np.zeros(rows.coefficient_shape)
    w[-1] = rows.target.baseline[0] if rows.target.classes == 1 else rows.target.baseline
    return w


def fit_coefficients(
    rows: Rows, subset: RowSubset, options: SolverOptions, w0: np.ndarray
) -> tuple[np.ndarray, Solution]:
    """Fit the coefficients of standardised columns to a subset of the rows.

    Returns
    -------
    w : array of shape `rows.coefficient_shape`
        The intercept is last. The coefficients of several classes sum to zero.
    solution : Solution
        The run that found them.
    """
    if isinstance(rows, InMemoryRows):
        objective: LinearModel | Blocks = _in_memory_objective(rows, subset, options.l2)
    else:
        objective = Blocks(
            lambda: (
                (block.X, block.y, rows.fit_weight(block), block.offset)
                for block in rows.blocks(subset)
            ),
            loss=rows.target.loss,
            l2=options.l2,
            intercept=True,
            memory=options.memory,
        )
    solution = _minimize(objective, w0, options)
    w = np.asarray(solution.x)
    if w.ndim == 2:  # adding a constant to the coefficients of all classes changes nothing
        w = w - w.mean(1, keepdims=True)
    return w, solution


def _in_memory_objective(rows: InMemoryRows, subset: RowSubset, l2: float) -> LinearModel:
    """Return the objective of rows in memory; each of several processes holds a share of them."""
    block, loss = rows.select(subset), rows.target.loss
    weight = rows.fit_weight(block)
    process = distributed.start()
    if process.count == 1:
        return LinearModel(block.X, block.y, loss, l2, weight, intercept=True, offset=block.offset)
    own = slice(process.index, None, process.count)
    X, y, own_weight = distributed.rows(block.X[own], block.y[own], weight[own])
    return LinearModel(X, y, loss, l2, own_weight, intercept=True)


def _minimize(objective: LinearModel | Blocks, w0: np.ndarray, options: SolverOptions) -> Solution:
    def callback(solution: Solution) -> bool:
        """Report progress by the logarithm of the gradient norm; return whether to stop."""
        first, now = solution.history["gradient_norm"][0], solution.gradient_norm
        fraction = 0.0
        if 0 < now < first and solution.tolerance:
            fraction = (math.log(now) - math.log(first)) / math.log(solution.tolerance)
        options.on_progress(min(1.0, fraction), f"iteration {solution.iterations}")
        return options.stop_if_separable and is_separable(solution)

    return minimize(
        objective,
        w0,
        METHODS[options.method](),
        tolerance=options.tolerance,
        callback=callback,
        every=1 if options.method == "auto" else CALLBACK_INTERVAL,
        checkpoint=options.checkpoint,
    )
