"""Values that a line updates by recurrence drift from the truth: the one place that mends it.

An objective that `drifts` is looked at anew every REFRESH iterations and when its carried gradient
meets the tolerance; only what was looked at may be called converged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core.sharding import to_host
from cfgd._core.types import Flag, Flags, Reals, Scalar
from cfgd.methods.base import Method, State
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation

# iterations between two looks at a point that is otherwise updated by recurrence
REFRESH = 256
# how much of the way from the start to the best point is gone, where its true value overflows
LENGTHS = (*10.0 ** -np.arange(0.0, 320, 10), 0.0)


def refreshed(
    loop: Any,
    objective: Objective,
    method: Method,
    state: State,
    reached: Flags,
    tolerance: Scalar,
) -> tuple[State, Flag, Reals]:
    """The state, its point computed anew where that is due, and whether it was.

    `reached` are the runs whose carried gradient meets the tolerance. Last, the squared norm where
    a point that was looked at is no solution, and infinity where it is, or was not looked at.
    """
    k = jnp.max(state.k)
    due = ((k % REFRESH < loop.block) & (k >= loop.block)) | jnp.any(reached)
    look = loop.over_runs(partial(_look_again, objective, tolerance))

    # a loop of one turn or none: a condition has no place in a native function
    state, norm2, _ = jax.lax.while_loop(
        lambda at: at[2],
        lambda at: (*look(method, at[0], reached), jnp.zeros((), bool)),
        (state, jnp.full(reached.shape, jnp.inf, state.point.x.dtype), due),
    )
    return state, due, norm2


def _look_again(
    objective: Objective, tolerance: Scalar, method: Method, state: State, reached: Flag
) -> tuple[State, Scalar]:
    """The state with its point computed and not carried along; see `refreshed`.

    Waiting runs overwrote their memory with x: forget it.
    """
    point = objective.evaluate(state.point.x)
    state = eqx.tree_at(lambda s: s.point, state, point)
    anew = method.forget(objective, state)
    state = jax.tree.map(lambda a, b: jnp.where(reached, a, b), anew, state)
    solved = method.confirms(objective, point, tolerance)
    return state, jnp.where(solved, jnp.inf, method.measure(objective, state))


def as_good(objective: Objective, last: Any, best: Any, first: Any) -> Any:
    """Whether the last value is the best one as far as carried values can tell.

    Carried values err by eps |f(x0)|; within that, prefer the last point.
    """
    if not objective.drifts:
        return last <= best
    rounding = 8 * np.finfo(last.dtype).eps * np.maximum(np.abs(first), np.abs(last))
    return last <= best + rounding


def looked_at(
    objective: Objective,
    look: Callable[[Any], Evaluation],
    x: Any,
    best: Any,
    start: Any,
    most: Any,
) -> tuple[Evaluation, int]:
    """The objective at x, with its value computed and not carried, and how many looks it took.

    Where the true value is above `most` or not finite, which the carried one hid, the best point
    is tried, and then points ever nearer to the start.
    """
    point = look(x)
    if not objective.drifts:
        return point, 1
    for tries, length in enumerate(LENGTHS, 1):
        value, there = to_host((point.value, point.x))
        true = np.isfinite(value) & (value <= most) & np.all(np.isfinite(there), -1)
        if np.all(true):
            return point, tries
        nearer = best if length == 1 else start + length * (best - start)
        x = np.where(true[..., None], x, np.where(np.isfinite(best), nearer, start))
        point = look(x)
    return point, len(LENGTHS) + 1
