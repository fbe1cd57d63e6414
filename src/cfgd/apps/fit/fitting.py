"""Solve for the coefficients: a `LinearModel` of rows in memory, `Blocks` of streamed rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cfgd import distributed
from cfgd._core.sharding import any_sharded
from cfgd.apps.fit.conditioning import MAX_COLUMNS
from cfgd.apps.fit.rows import InMemoryRows, Rows
from cfgd.apps.fit.split import RowSubset, training_rows
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES
from cfgd.methods import AdaptiveTerminal, Auto, GradientDescent
from cfgd.methods.base import Method
from cfgd.objectives import Blocks, LinearModel
from cfgd.solve import Solution, minimize
from cfgd.solve.separated import describe_separation, separating_value, separation_of
from cfgd.status import Status

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

    `memory` bounds the bytes that a streamed fit may use for the Hessian.
    """

    l2: float
    method: str
    memory: float
    on_progress: ProgressCallback
    tolerance: float | None = None  # of the gradient; None for the default of `minimize`
    checkpoint: Path | None = None


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
    objective: LinearModel | Blocks = (
        _in_memory_objective(rows, subset, options.l2)
        if isinstance(rows, InMemoryRows)
        else _streamed_objective(rows, subset, options.l2, options.memory)
    )
    solution = _minimize(objective, w0, options)
    w = np.asarray(solution.x)
    if w.ndim == 2:  # adding a constant to the coefficients of all classes changes nothing
        w = w - w.mean(1, keepdims=True)
    return w, solution


def name_separation(
    rows: Rows, w: np.ndarray, solution: Solution, memory: float, terms: list[str]
) -> Solution:
    """Return the solution of a fit to the training rows with the names of what is separated.

    It also recognises separated classes where `minimize` does not look for them: in several
    processes, and after a run that the callback ended.
    """
    known = (Status.separated, Status.callback)
    may_be = solution.status in known or distributed.start().count > 1
    if not may_be or rows.target.loss not in CLASSIFICATION_LOSSES:
        return solution
    if isinstance(rows, InMemoryRows):
        objective: LinearModel | Blocks = _local_objective(rows, training_rows, 0.0)
    else:
        objective = _streamed_objective(rows, training_rows, 0.0, memory)
    found = separation_of(objective, w.reshape(-1))
    if found is None:
        return solution
    labels = [
        repr(label) if isinstance(label, str) else f"{label:g}" for label in rows.target.labels
    ]
    details = describe_separation(found, [repr(term) for term in terms], labels)
    return dataclasses.replace(solution, status=Status.separated, details=details)


def _streamed_objective(rows: Rows, subset: RowSubset, l2: float, memory: float) -> Blocks:
    return Blocks(
        lambda: (
            (block.X, block.y, rows.fit_weight(block), block.offset)
            for block in rows.blocks(subset)
        ),
        loss=rows.target.loss,
        l2=l2,
        intercept=True,
        memory=memory,
    )


def _local_objective(rows: InMemoryRows, subset: RowSubset, l2: float) -> LinearModel:
    block = rows.select(subset)
    weight, loss = rows.fit_weight(block), rows.target.loss
    return LinearModel(block.X, block.y, loss, l2, weight, intercept=True, offset=block.offset)


def _in_memory_objective(rows: InMemoryRows, subset: RowSubset, l2: float) -> LinearModel:
    """Return the objective of rows in memory; each of several processes holds a share of them."""
    process = distributed.start()
    if process.count == 1:
        return _local_objective(rows, subset, l2)
    block, loss = rows.select(subset), rows.target.loss
    weight = rows.fit_weight(block)
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
        return bool(solution.value < enough)  # every row is classified right

    enough = separating_value(objective)
    return minimize(
        objective,
        w0,
        _method(objective, options),
        tolerance=options.tolerance,
        callback=callback,
        every=1 if options.method == "auto" else CALLBACK_INTERVAL,
        checkpoint=options.checkpoint,
    )


def _method(objective: LinearModel | Blocks, options: SolverOptions) -> Method:
    """Return the method by its name; one Newton step solves a squared loss of rows in memory."""
    is_local = isinstance(objective, LinearModel) and not any_sharded(objective)
    if options.method == "auto" and is_local and objective.traits.is_quadratic:
        has_matrix = objective.shape[0] <= MAX_COLUMNS
        return Auto("levenberg_marquardt") if has_matrix else Auto()
    return METHODS[options.method]()
