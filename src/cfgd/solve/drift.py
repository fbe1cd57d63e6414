"""Values that a line updates by recurrence drift from the truth: the one place that mends it.

An objective that `drifts` is looked at anew every REFRESH iterations and when its carried gradient
meets the tolerance; only what was looked at may be called converged.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd.method.base import Method, State
from cfgd.objective.base import Objective
from cfgd.types import Flag, Flags

# iterations between two looks at a point that is otherwise updated by recurrence
REFRESH = 1024


def refreshed(
    loop: Any, objective: Objective, method: Method, state: State, reached: Flags
) -> tuple[State, Flag]:
    """The state, its point computed anew where that is due, and whether it was.

    `reached` are the runs whose carried gradient meets the tolerance.
    """
    if not objective.drifts:
        return state, jnp.ones((), bool)  # what is not carried is always fresh
    k = jnp.max(state.k)
    due = ((k % REFRESH < loop.block) & (k >= loop.block)) | jnp.any(reached)
    look = loop.over_runs(partial(_look_again, objective))
    state = jax.lax.cond(due, look, lambda method, state, reached: state, method, state, reached)
    return state, due


def _look_again(objective: Objective, method: Method, state: State, reached: Flag) -> State:
    """The state with its point computed and not carried along.

    Waiting runs overwrote their memory with x: forget it.
    """
    state = eqx.tree_at(lambda s: s.point, state, objective.at(state.point.x))
    anew = method.forget(objective, state)
    return jax.tree.map(lambda a, b: jnp.where(reached, a, b), anew, state)


def as_good(objective: Objective, last: Any, best: Any, first: Any) -> Any:
    """Whether the last value is the best one as far as carried values can tell.

    Carried values err by eps |f(x0)|; within that, prefer the last point.
    """
    if not objective.drifts:
        return last <= best
    rounding = 8 * np.finfo(last.dtype).eps * np.maximum(np.abs(first), np.abs(last))
    return last <= best + rounding
