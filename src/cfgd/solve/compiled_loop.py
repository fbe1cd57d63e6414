"""A chunk of iterations, to be compiled: the only loop in which methods step.

Its body is a block of a few iterations, so that bookkeeping is done once a block and not once an
iteration. A run that is over does not leave the loop while others of its sweep go on: its steps
get length zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from cfgd._core.either import Plain, space
from cfgd._core.linalg import inner
from cfgd._core.types import Count, Counts, Data, Flag, Flags, Points, Reals, Vector
from cfgd.methods.base import Method, State
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.solve.best_point import Best
from cfgd.solve.drift import refreshed
from cfgd.status import Status

Rows: TypeAlias = dict[str, Any]  # of an iteration, or of several along the first axis
Recorder: TypeAlias = Callable[[State], Rows]

# iterations of a block on a quadratic, where an iteration costs less than its bookkeeping
BLOCK = 8

# times its least that the gradient of a run may be which rounding keeps from improving
GROWN = 4.0
# A run whose gradient meets the tolerance and is no solution goes on to this part of it.
FURTHER = 1e-2
RUNNING, CONVERGED, NONFINITE, STALLED = (
    status.code for status in (Status.running, Status.converged, Status.nonfinite, Status.stalled)
)


class Goal(NamedTuple):
    """When a run has arrived: |g| <= `tolerance` |g_0| or |g| <= `absolute`."""

    tolerance: Data
    absolute: Data

    def met(self, norm2: Reals) -> Flags:
        """Whether the absolute one is: then nobody is asked for more."""
        return (norm2 <= self.absolute**2) & (self.absolute > 0)

    def floor(self, norm2: Reals) -> Reals:
        """The squared norm at which a run that starts with `norm2` has arrived."""
        return space(norm2).maximum(self.tolerance**2 * norm2, self.absolute**2)


class Tally(Plain, eqx.Module):
    """What the host wants to know of a run: numbers only, so that keeping them costs nothing."""

    iterations: Counts
    evaluations: Reals
    resets: Counts
    norm2: Reals
    floor: Reals  # the squared norm at which the run has arrived; -1 before the start is known
    least: Reals  # squared norm so far
    idle: Counts  # iterations since then
    code: Counts  # of a Status
    reached: Flags  # the carried gradient meets the tolerance; recompute it before `converged`

    @property
    def is_open(self) -> Any:
        """Whether the run is not over."""
        return self.code == RUNNING


class Carry(Plain, eqx.Module):
    state: State
    tally: Tally
    best: Best


# a chunk so far: rows, their labels, how many were written, and iterations made
Made: TypeAlias = tuple[Carry, Rows, Int[Array, " rows"], Count, Count]


class Loop(Plain, eqx.Module):
    """How a chunk runs: all that is fixed for a run and shared by its chunks."""

    records: Mapping[str, Callable[[State], Array]]
    every: int  # iterations between two rows
    capacity: int  # rows that a chunk may write
    block: int  # iterations between two bookkeepings; divides `every`
    batched: bool  # a sweep: method, state and tally have a leading axis

    def row(self, state: State) -> Rows:
        """What is written down of an iteration: value, norm, and what the user asked for."""
        point = state.point
        norm = jnp.sqrt(inner(point.gradient, point.gradient))
        own = {name: of(state) for name, of in self.records.items()}
        return {"value": point.value, "gradient_norm": norm} | own

    def over_runs(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return jax.vmap(fn) if self.batched else fn


def begin(
    loop: Loop, objective: Objective, method: Method, x0: Points, goal: Goal
) -> tuple[Carry, Rows]:
    """The carry and the row of iteration 0."""
    carry = loop.over_runs(partial(_start, objective, goal))(method, x0)
    return carry, loop.over_runs(loop.row)(carry.state)


def blank(method: Method, x0: Vector) -> Carry:
    """The carry of a method that looks at x0 where it looks at all points: in its steps."""
    return _start(None, None, method, x0)


def blanks(batched: bool, method: Method, x0: Points) -> Carry:
    """Of a run, or of each run of a sweep."""
    return jax.vmap(blank)(method, x0) if batched else blank(method, x0)


def look(loop: Loop, objective: Objective, x: Points) -> Evaluation:
    """The objective at x, computed and not carried along."""
    return loop.over_runs(objective.evaluate)(x)


def settle(loop: Loop, objective: Objective, method: Method, carry: Carry, goal: Goal) -> Carry:
    """Whether the last point, from which no step was made, meets the tolerance."""

    def one(method: Method, carry: Carry) -> Carry:
        point = objective.evaluate(carry.state.point.x)
        state = eqx.tree_at(lambda s: s.point, carry.state, point)
        met = carry.tally.is_open & (method.measure(objective, state) <= carry.tally.floor)
        met = met & method.confirms(objective, point, jnp.asarray(goal.tolerance))
        code = jnp.where(met, CONVERGED, carry.tally.code).astype(jnp.int32)
        return eqx.tree_at(lambda c: c.tally.code, carry, code)

    return loop.over_runs(one)(method, carry)


def _start(objective: Any, goal: Any, method: Method, x0: Vector) -> Carry:
    state = method.start(objective, x0)
    norm2 = jnp.zeros((), x0.dtype) if method.judges else method.measure(objective, state)
    zero = jnp.zeros((), jnp.int32)
    fine = method.judges | (jnp.isfinite(state.point.value) & jnp.isfinite(norm2))
    tally = Tally(
        iterations=zero,
        evaluations=jnp.asarray(method.start_cost(objective, x0.size), norm2.dtype),
        resets=zero,
        norm2=norm2,
        floor=jnp.full_like(norm2, -1) if method.judges else goal.floor(norm2),
        least=jnp.full_like(norm2, jnp.inf),
        idle=zero,
        code=jnp.where(fine, RUNNING, NONFINITE).astype(jnp.int32),
        reached=jnp.zeros((), bool),
    )
    return Carry(state, tally, Best.of(state.point))


def chunk(
    loop: Loop,
    objective: Objective,
    method: Method,
    carry: Carry,
    length: Count | np.int32,
    last: Count | np.int32,
    goal: Goal,
) -> tuple[Carry, Rows, Int[Array, " rows"], Count]:
    """At most `length` steps, none beyond iteration `last`, as many as have room for rows.

    Returns the carry, the rows with the iterations they are of, and how many were written.
    """
    row = loop.over_runs(loop.row)
    base = jnp.max(carry.tally.iterations)

    def goes_on(carry: Carry) -> Flag:
        return jnp.any(_goes(carry.tally, last))

    def some(carry: Carry, row: Recorder | None = None) -> tuple[Carry, Rows | None]:
        return _block(loop, objective, method, carry, last, goal, row)

    def stride(carry: Carry) -> tuple[Carry, Rows]:
        carry, _ = jax.lax.while_loop(
            lambda at: goes_on(at[0]) & (at[1] < loop.every),
            lambda at: (some(at[0])[0], at[1] + loop.block),
            (carry, jnp.zeros((), jnp.int32)),
        )
        return carry, jax.tree.map(lambda leaf: leaf[None], row(carry.state))

    def body(at: Made) -> Made:
        carry, rows, labels, written, made = at
        before = jnp.max(carry.tally.iterations)
        carry, new = some(carry, row) if loop.every == 1 else stride(carry)
        rows = jax.tree.map(
            lambda all, few: jax.lax.dynamic_update_slice_in_dim(all, few, written, 0), rows, new
        )
        now = jnp.max(carry.tally.iterations)
        if loop.every == 1:
            return carry, rows, labels, now - base, made + loop.block
        # a stride that only found out that the run is over has no row of its own
        return carry, rows, labels.at[written].set(now), written + (now > before), made + loop.every

    shapes = jax.eval_shape(row, carry.state)
    size = loop.capacity + (loop.block if loop.every == 1 else 0)
    rows = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape), leaf.dtype), shapes)
    none = jnp.zeros((), jnp.int32)
    # with a row for each iteration, those that follow the first one
    labels = base + 1 + jnp.arange(size, dtype=jnp.int32)
    carry, rows, labels, written, _ = jax.lax.while_loop(
        lambda at: goes_on(at[0]) & (at[3] < loop.capacity) & (at[4] < length),
        body,
        (carry, rows, labels, none, none),
    )
    return carry, rows, labels, written


# of the iterations of a block, their axis first
Floors: TypeAlias = Float[Array, " block *runs"]
Went: TypeAlias = Bool[Array, " block *runs"]


def _goes(tally: Tally, last: Count | np.int32, ahead: Any = 0) -> Any:
    """Which runs go on: those that are open, and not at their last iteration."""
    return tally.is_open & ((tally.iterations + ahead < last) | (tally.floor < 0))


class Trace(NamedTuple):
    """What the bookkeeping needs of the iterations of a block: each entry has their axis first."""

    value: Float[Array, " block *runs"]
    norm2: Float[Array, " block *runs"]
    cost: Float[Array, " block *runs"]
    reset: Bool[Array, " block *runs"]
    ending: Int[Array, " block *runs"]
    moved: Bool[Array, " block *runs"]


def _block(
    loop: Loop,
    objective: Objective,
    method: Method,
    carry: Carry,
    last: Count | np.int32,
    goal: Goal,
    row: Recorder | None,
) -> tuple[Carry, Rows | None]:
    """A few iterations, then their bookkeeping; with `row`, one row for each iteration."""
    tally, tolerance = carry.tally, jnp.asarray(goal.tolerance)
    drifting = objective.drifts and not method.judges
    state, looked = carry.state, jnp.zeros((), bool)
    if drifting:
        state, looked, norm2 = refreshed(loop, objective, method, state, tally.reached, tolerance)
        # small beside its start and yet no solution: the start was bad
        close = tally.reached & (norm2 > goal.absolute**2)
        floor = jnp.where(close, jnp.minimum(FURTHER**2 * norm2, tally.floor), tally.floor)
        tally = eqx.tree_at(lambda t: t.floor, tally, floor)

    ahead = jnp.arange(loop.block).reshape((-1,) + (1,) * tally.code.ndim)
    goes = _goes(tally, last, ahead)
    floors = jnp.where(goes, jnp.maximum(tally.floor, 0), jnp.inf)
    step = loop.over_runs(
        lambda method, state, floor: method.step(objective, state, floor, tolerance)
    )
    or_better = loop.over_runs(Best.or_better)

    def once(
        at: tuple[State, Best, Flags], floor: Reals
    ) -> tuple[tuple[State, Best, Flags], tuple[Trace, Rows | None]]:
        state, best, over = at
        state, info = step(method, state, floor)
        cost = jnp.broadcast_to(jnp.asarray(info.cost, info.norm2.dtype), info.norm2.shape)
        trace = Trace(state.point.value, info.norm2, cost, info.reset, info.ending, info.moved)
        # what is computed after the end of a run is not looked at: to stop it would cost more
        after = state, or_better(best, state.point, over), over | (info.ending != RUNNING)
        return after, (trace, row(state) if row else None)

    start = state, carry.best, jnp.zeros(tally.code.shape, bool)
    # written out, eight iterations take twice as long to compile; only a batch is faster for it
    unroll = BLOCK if loop.batched else 1
    (state, best, _), (trace, rows) = jax.lax.scan(once, start, floors, unroll=unroll)
    falls = best.value < carry.best.value
    tally = _after(method, goal, tally, trace, goes, floors, looked, drifting, falls)
    return Carry(state, tally, best), rows


def _after(
    method: Method,
    goal: Goal,
    tally: Tally,
    trace: Trace,
    goes: Went,
    floors: Floors,
    looked: Flag,
    drifting: bool,
    falls: Flags,
) -> Tally:
    """The tally after the iterations of a block, of which the last ones may have been waiting."""
    running, over = tally.is_open, trace.ending != RUNNING
    goes = goes & (jnp.cumsum(over, 0) - over == 0)  # what follows the end is no step
    moved = goes & trace.moved
    reached = goes & (goal.met(trace.norm2) if method.judges else trace.norm2 <= floors)
    met = jnp.any(reached, 0)
    # of carried values, only what the first step of a point that was looked at says is sure
    converged = reached[0] & looked if drifting else met
    bad = jnp.any(goes & ~(jnp.isfinite(trace.value) & jnp.isfinite(trace.norm2)), 0)
    ends = jnp.max(jnp.where(goes, trace.ending, RUNNING), 0)  # of `running` and one other
    least, idle = tally.least, tally.idle
    tired = jnp.zeros_like(met)
    if method.patience is not None:
        # of carried values, again, only what was looked at: they may fall where the truth does not
        seen = goes & looked & (jnp.cumsum(goes, 0) == 1) if drifting else goes
        least = jnp.minimum(least, jnp.min(jnp.where(seen, trace.norm2, jnp.inf), 0))
        better = (least < tally.least) | (falls & method.seeks_minimiser)
        idle = jnp.where(better, 0, idle + jnp.sum(moved, 0, dtype=jnp.int32))
        # On badly conditioned data gradients rise and fall in waves, the longer the later.
        wait = jnp.maximum(method.patience, tally.iterations // 2)
        # where it grows, the run diverges
        tired = (idle > wait) & (trace.norm2[-1] <= GROWN**2 * least)
    code = jnp.select(
        [~running, (ends == RUNNING) & bad, converged, tired, met],
        [tally.code, NONFINITE, CONVERGED, STALLED, RUNNING],
        ends,
    ).astype(jnp.int32)
    cost = jnp.sum(jnp.where(goes, trace.cost, 0), 0)
    return Tally(
        iterations=tally.iterations + jnp.sum(moved, 0, dtype=jnp.int32),
        evaluations=tally.evaluations + cost + (looked & running),
        resets=tally.resets + jnp.sum(trace.reset & goes, 0, dtype=jnp.int32),
        norm2=jnp.where(running, trace.norm2[-1], tally.norm2),
        floor=jnp.where(tally.floor < 0, goal.floor(trace.norm2[-1]), tally.floor),
        least=least,
        idle=idle,
        code=code,
        reached=met & (code == RUNNING),
    )
