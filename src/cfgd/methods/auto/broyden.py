"""Quasi-Newton steps with a dense matrix of the self-scaled Broyden family.

A step is x - t Hg with the inverse matrix H of `broyden_matrix` and t from a search for the strong
conditions of Wolfe, so that f falls in every iteration. Reference: Nocedal and Wright, section 6.3.
In the paper's words, all points of the run are terminals.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd._core.blas_threads import one_blas_thread
from cfgd._core.linalg import clip_positive, inner, weighted_norm
from cfgd._core.records import changed
from cfgd._core.types import Number, Scalar, Vector
from cfgd.methods.auto.broyden_matrix import BroydenMatrix, al_baali, self_scaled_bfgs
from cfgd.methods.auto.lbfgs import IDLE, LEAST_CURVATURE
from cfgd.methods.auto.lbfgs_memory import Pair
from cfgd.methods.auto.line_search import Search
from cfgd.methods.auto.longest_step import longest_fraction
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import (
    Goal,
    SolverState,
    change_is_negligible,
    detect_unbounded,
    makes_progress,
)
from cfgd.methods.auto.wolfe_search import LONGEST_EXTENSION, wolfe_search
from cfgd.status import Status

# Ratio of the expected decrease of an iteration to that of the last one: above one, so that steps
# of length one are tried in superlinear convergence (Nocedal and Wright, section 3.5).
MORE_THAN_LAST = 1.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class BroydenState(SolverState):
    """State between two iterations; `matrix` is updated in place."""

    matrix: BroydenMatrix
    fall: Scalar  # of f in the last iteration
    looks: int = 0  # number of searches along flat directions that found a lower value
    idle: int = 0  # iterations without progress
    least_norm2: Scalar
    checked_norm2: Number = np.inf  # |g|^2 where a check showed that f can be lowered further
    needs_check: bool = False  # of the curvature, before the next step
    is_stuck: bool = False  # no step lowers f


def broyden_step(oracle: Oracle, state: BroydenState, goal: Goal) -> BroydenState:
    """Make one iteration; request a check of the curvature if no step is found."""
    with one_blas_thread(state.evaluation.x.size):
        return _step(oracle, state, goal)


def _step(oracle: Oracle, state: BroydenState, goal: Goal) -> BroydenState:
    old, H = state.evaluation, state.matrix
    p = H.times(old.gradient)
    slope = inner(old.gradient, p)
    if not 0 < slope < np.inf:  # the matrix is not positive definite, because of rounding errors
        return changed(state, needs_check=True, is_stuck=True)
    t = min(longest_fraction(old.x, state.start.x, p), first_trial(state.fall, slope))
    search = Search(p, slope, t)
    found = wolfe_search(oracle, old, search, state.start)
    if isinstance(found, Status):
        if found is Status.unbounded:
            return changed(state, status=found)
        return changed(state, needs_check=True, is_stuck=True)
    at, point = found.evaluation, found.evaluation._replace(value=found.value)
    pair = Pair.of(at.x - old.x, at.gradient - old.gradient)
    if pair.is_positive:
        is_sum = oracle.traits.structure == "residuals"
        H.update(pair, found.t**2 * slope, al_baali if is_sum else self_scaled_bfgs)
    norm2 = oracle.norm2(at)
    start, is_unbounded = detect_unbounded(oracle, state.start, point)
    idle = 0 if makes_progress(old, found.value, norm2, state.least_norm2) else state.idle + 1
    reached = changed(
        state,
        evaluation=point,
        computed_value=at.value,
        norm2=norm2,
        start=start,
        iteration=state.iteration + 1,
        eta=found.t,
        gamma=0.0,
        fall=old.value - found.value,
        status=Status.unbounded if is_unbounded else Status.running,
        idle=idle,
        least_norm2=min(norm2, state.least_norm2),
    )
    is_due = norm2 <= min(goal.floor, state.checked_norm2 / 100)
    needs_check = idle >= IDLE or (is_due and _predicts_nothing(reached, goal))
    return changed(reached, needs_check=bool(needs_check))


def leaves_box(oracle: Oracle, state: BroydenState) -> bool:
    """Return whether the next step, or one that a search might extend it to, leaves the box."""
    if oracle.box is None:
        return False
    p = state.matrix.times(state.evaluation.gradient)
    return bool(oracle.box.longest_fraction(state.evaluation.x, p) <= LONGEST_EXTENSION)


def first_trial(fall: Scalar, slope: Scalar) -> Number:
    """Return the first step that is tried, at most one (Nocedal and Wright, equation 3.60).

    A self-scaled matrix is often too large. The step is the minimiser of the parabola that has this
    slope and the decrease of the last iteration.
    """
    return min(1.0, MORE_THAN_LAST * 2 * fall / slope) if fall > 0 else 1.0


def curvatures(matrix: BroydenMatrix) -> Vector:
    """Return a diagonal that scales coordinates: the inverse of that of H."""
    return clip_positive(1 / matrix.diagonal(), LEAST_CURVATURE)


def _predicts_nothing(state: BroydenState, goal: Goal) -> bool:
    """Return whether the change by the next step is below the tolerance."""
    at, P = state.evaluation, curvatures(state.matrix)
    p = state.matrix.times(at.gradient)
    decrease = inner(at.gradient, p) / 2
    length = weighted_norm(p, P)
    return change_is_negligible(at, state.start, P, p, decrease, length, goal.tolerance)
