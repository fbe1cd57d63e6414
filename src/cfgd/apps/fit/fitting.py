"""Solve for the coefficients: Newton's method in plain cases, else `minimize`.

`minimize` takes a `LinearModel` of rows in memory and `Blocks` of streamed rows. It needs JAX,
which is loaded where it is used: the plain cases do without.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfgd._core.engines.base import Part
from cfgd.apps.fit.conditioning import MAX_COLUMNS
from cfgd.apps.fit.newton import newton
from cfgd.apps.fit.rows import InMemoryRows, Rows, of_subset
from cfgd.apps.fit.solver_run import SolverRun
from cfgd.apps.fit.split import RowSubset, training_rows
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES, Target
from cfgd.status import Status

if TYPE_CHECKING:
    from cfgd.methods.base import Method
    from cfgd.objectives import Blocks, LinearModel
    from cfgd.solve import Solution

CALLBACK_INTERVAL = 25  # iterations of the cheap first-order methods between progress reports
AUTO, ADAPTIVE_TERMINAL, GRADIENT_DESCENT = "auto", "adaptive_terminal", "gradient_descent"
METHODS = (AUTO, ADAPTIVE_TERMINAL, GRADIENT_DESCENT)
# losses whose curvature is positive everywhere, so that Newton's steps need no damping
NEWTON_LOSSES = ("squared", "logistic", "poisson", "gamma")

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
) -> tuple[np.ndarray, SolverRun]:
    """Fit the coefficients of standardised columns to a subset of the rows.

    Returns
    -------
    w : array of shape `rows.coefficient_shape`
        The intercept is last. The coefficients of several classes sum to zero.
    run : SolverRun
        The run that found them.
    """
    if isinstance(rows, InMemoryRows) and _is_plain(rows, options):
        block, target = rows.select(subset), rows.target
        weight, y = block.fit_weight(target), target.for_loss(block.y)
        # a row that is classified wrongly has a loss of at least log 2 times its weight
        can_be_separated = target.loss in CLASSIFICATION_LOSSES and not options.l2
        can_be_separated &= block.offset is None
        separating = math.log(2) * float(weight.min()) if can_be_separated else -math.inf
        found = newton(
            target.loss_function,
            block,
            y,
            weight,
            options.l2,
            w0,
            rows.known_gram(subset) if target.loss == "squared" else None,
            separating,
        )
        if found is not None:
            history = {
                "iteration": np.arange(found.iterations + 1),
                "value": np.array(found.values),
                "gradient_norm": np.array(found.gradient_norms),
            }
            status = Status.separated if found.is_separated else Status.converged
            evaluations = float(found.iterations + 1)
            run = SolverRun(status, found.iterations, evaluations, history)
            return found.w, dataclasses.replace(run, is_determined=run.success)
    objective = _objective(rows, subset, options.l2, options.memory)
    solution = _minimize(objective, w0, options)
    rows.passes += getattr(objective, "passes", 0)
    w = np.asarray(solution.x)
    if w.ndim == 2:  # adding a constant to the coefficients of all classes changes nothing
        w = w - w.mean(1, keepdims=True)
    return w, _run_of(solution)


def _is_plain(rows: InMemoryRows, options: SolverOptions) -> bool:
    """Return whether Newton's method in this process is what `minimize` would do."""
    return (
        options.method == AUTO
        and options.checkpoint is None
        and rows.target.loss in NEWTON_LOSSES
        and rows.width <= MAX_COLUMNS
        and rows.workers.is_alone
    )


def _run_of(solution: Solution) -> SolverRun:
    return SolverRun(
        solution.status,
        int(solution.iterations),
        float(solution.evaluations),
        solution.history,
        str(solution.details),
    )


def name_separation(
    rows: Rows, w: np.ndarray, solution: SolverRun, memory: float, terms: list[str]
) -> SolverRun:
    """Return the run of a fit to the training rows with the names of what is separated.

    It also recognises separated classes after a run that the callback ended.
    """
    may_be = solution.status in (Status.separated, Status.callback)
    if not may_be or rows.target.loss not in CLASSIFICATION_LOSSES:
        return solution
    from cfgd.solve.separated import describe_separation, separation_of

    objective = _objective(rows, training_rows, 0.0, memory)
    found = separation_of(objective, w.reshape(-1))
    if found is None:
        return solution
    labels = [
        repr(label) if isinstance(label, str) else f"{label:g}" for label in rows.target.labels
    ]
    details = describe_separation(found, [repr(term) for term in terms], labels)
    return dataclasses.replace(solution, status=Status.separated, details=details)


def _objective(rows: Rows, subset: RowSubset, l2: float, memory: float) -> LinearModel | Blocks:
    """Return the objective: a linear model of rows in memory, if there is one process."""
    from cfgd.objectives import Blocks, LinearModel

    target = rows.target
    if isinstance(rows, InMemoryRows) and rows.workers.is_alone:
        block = rows.select(subset)
        weight = block.fit_weight(target)
        return LinearModel(
            block.X, block.y, target.loss, l2, weight, intercept=True, offset=block.offset
        )
    return Blocks(
        [FitPart(part, subset, target) for part in rows.parts],
        loss=target.loss,
        l2=l2,
        intercept=True,
        memory=memory,
        **rows.workers.of_blocks,
    )


@dataclasses.dataclass(frozen=True)
class FitPart:
    """A part of a subset of the rows as `Blocks` takes it: X, y, weights and offsets."""

    part: Part
    subset: RowSubset
    target: Target

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        for block in of_subset(iter(self.part()), self.subset):
            yield block.X, block.y, block.fit_weight(self.target), block.offset
            del block


def _minimize(objective: LinearModel | Blocks, w0: np.ndarray, options: SolverOptions) -> Solution:
    from cfgd.solve import minimize
    from cfgd.solve.separated import separating_value

    def callback(solution: Solution) -> bool:
        """Report progress by the logarithm of the gradient norm; return whether to stop."""
        first, now = solution.history["gradient_norm"][0], solution.gradient_norm
        fraction = 0.0
        if 0 < now < first and solution.tolerance:
            fraction = (math.log(now) - math.log(first)) / math.log(solution.tolerance)
        options.on_progress(min(1.0, fraction), f"iteration {solution.iterations}")
        return bool(solution.value < enough)  # every row is classified correctly

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
    from cfgd._core.sharding import any_sharded
    from cfgd.methods import AdaptiveTerminal, Auto, GradientDescent
    from cfgd.objectives import LinearModel

    if options.method == ADAPTIVE_TERMINAL:
        return AdaptiveTerminal(gamma=-0.25)
    if options.method == GRADIENT_DESCENT:
        return GradientDescent()
    is_local = isinstance(objective, LinearModel) and not any_sharded(objective)
    has_matrix = objective.shape[0] <= MAX_COLUMNS
    if is_local and objective.traits.is_quadratic and has_matrix:
        return Auto("levenberg_marquardt")
    return Auto()
