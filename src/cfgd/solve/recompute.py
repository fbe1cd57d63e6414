"""Recompute evaluations that a line updates by recurrence, whose rounding errors add up.

An objective whose traits say `accumulates_rounding` is evaluated every REFRESH iterations and when
its updated gradient meets the tolerance; only a recomputed gradient may be called converged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core.sharding import to_host
from cfgd._core.types import Flag, Flags
from cfgd.methods.base import Method, State
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation

# Iterations between two evaluations: after so many, rounding errors are still far below the
# tolerance, and one evaluation costs less than a percent of the iterations.
REFRESH = 256
# Parts of the way from the start to the best point that are tried where its true value overflows.
LENGTHS = (*10.0 ** -np.arange(0.0, 320, 10), 0.0)


def recompute(
    block: int,
    over_runs: Callable[[Callable[..., Any]], Callable[..., Any]],
    objective: Objective,
    method: Method,
    state: State,
    needs_recheck: Flags,
) -> tuple[State, Flag]:
    """Return the state, recomputed if that is due, and whether it was.

    `needs_recheck` are the runs whose updated gradient meets the tolerance. While such a run waited
    for the end of its block, its memory was overwritten with x, so that it is restarted.
    """

    def one(method: Method, state: State, needs_recheck: Flag) -> State:
        at = objective.evaluate(state.evaluation.x)
        state = dataclasses.replace(state, evaluation=at)
        restarted = method.restart(state)
        return jax.tree.map(lambda a, b: jnp.where(needs_recheck, a, b), restarted, state)

    k = jnp.max(state.k)
    due = ((k % REFRESH < block) & (k >= block)) | jnp.any(needs_recheck)
    state = jax.lax.cond(due, lambda: over_runs(one)(method, state, needs_recheck), lambda: state)
    return state, due


def value_is_as_good(objective: Objective, last: Any, best: Any, first: Any) -> Any:
    """Return whether the last value is the best one, up to rounding errors.

    The error of a computed value is a few eps |f|, that of an updated one a few eps |f(x0)|. Within
    this error the last point is preferred, because its gradient is smaller.
    """
    size = np.abs(last)
    if objective.traits.accumulates_rounding:
        size = np.maximum(np.abs(first), size)
    return last <= best + 8 * np.finfo(last.dtype).eps * size


def evaluate_finite(
    objective: Objective,
    compute: Callable[[Any], Evaluation],
    x: Any,
    best: Any,
    start: Any,
    most: Any,
) -> tuple[Evaluation, int]:
    """Return the evaluation at x, and how many evaluations it took.

    If the computed value is above `most` or not finite, although the updated one was not, the best
    point is tried, and then points nearer and nearer to the start.
    """
    at = compute(x)
    if not objective.traits.accumulates_rounding:
        return at, 1
    for count, length in enumerate(LENGTHS, 1):
        value, there = to_host((at.value, at.x))
        good = np.isfinite(value) & (value <= most) & np.all(np.isfinite(there), -1)
        if np.all(good):
            return at, count
        nearer = best if length == 1 else start + length * (best - start)
        x = np.where(good[..., None], x, np.where(np.isfinite(best), nearer, start))
        at = compute(x)
    return at, len(LENGTHS) + 1
