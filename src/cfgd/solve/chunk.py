"""A jitted chunk of iterations: the only loop in which methods step.

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

from cfgd.method.base import Method, State
from cfgd.objective.base import Objective
from cfgd.objective.line import Point
from cfgd.solve.best_point import Best
from cfgd.solve.drift import refreshed, sure
from cfgd.status import Status
from cfgd.types import Count, Counts, Flag, Flags, Points, Reals, Vector

Rows: TypeAlias = dict[str, Array]  # of an iteration, or of several along the first axis
Recorder: TypeAlias = Callable[[State], Rows]

# iterations of a block on a quadratic, where an iteration costs less than its bookkeeping
BLOCK = 8

RUNNING, CONVERGED, NONFINITE = (
    status.code for status in (Status.running, Status.converged, Status.nonfinite)
)


class Tally(eqx.Module):
    """What the host wants to know of a run: numbers only, so that keeping them costs nothing."""

    iterations: Counts
    evaluations: Reals
    resets: Counts
    norm2: Reals
    code: Counts  # of a Status
    reached: Flags  # the carried gradient meets the tolerance; recompute it before `converged`

    @property
    def is_open(self) -> Any:
        """Whether the run is not over."""
        return self.code == RUNNING


class Carry(eqx.Module):
    state: State
    tally: Tally
    best: Best


# a chunk so far: rows, their labels, how many were written, and iterations made
Made: TypeAlias = tuple[Carry, Rows, Int[Array, " rows"], Count, Count]


class Loop(eqx.Module):
    """How a chunk runs: all that is fixed for a run and shared by its chunks."""

    records: Mapping[str, Callable[[State], Array]]
    every: int  # iterations between two rows
    capacity: int  # rows that a chunk may write
    block: int  # iterations between two bookkeepings; divides `every`
    batched: bool  # a sweep: method, state and tally have a leading axis

    def row(self, state: State) -> Rows:
        """What is written down of an iteration: the value, and what the user asked for."""
        return {"value": state.point.value} | {k: of(state) for k, of in self.records.items()}

    def over_runs(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return jax.vmap(fn) if self.batched else fn


@eqx.filter_jit
def begin(loop: Loop, objective: Objective, method: Method, x0: Points) -> tuple[Carry, Rows]:
    """The carry and the row of iteration 0."""
    carry = loop.over_runs(partial(_start, objective))(method, x0)
    return carry, loop.over_runs(loop.row)(carry.state)


@eqx.filter_jit
def look(loop: Loop, objective: Objective, x: Points) -> Point:
    """The objective at x, computed and not carried along."""
    return loop.over_runs(objective.at)(x)


@eqx.filter_jit
def settle(loop: Loop, objective: Objective, method: Method, carry: Carry, floor: Reals) -> Carry:
    """Whether the last point, from which no step was made, meets the tolerance."""

    def one(method: Method, carry: Carry, floor: Reals) -> Carry:
        state = eqx.tree_at(lambda s: s.point, carry.state, objective.at(carry.state.point.x))
        met = carry.tally.is_open & (method.measure(objective, state) <= floor)
        code = jnp.where(met, CONVERGED, carry.tally.code).astype(jnp.int32)
        return eqx.tree_at(lambda c: c.tally.code, carry, code)

    return loop.over_runs(one)(method, carry, floor)


def _start(objective: Objective, method: Method, x0: Vector) -> Carry:
    state = method.start(objective, x0)
    norm2 = method.measure(objective, state)
    zero = jnp.zeros((), jnp.int32)
    fine = jnp.isfinite(state.point.value) & jnp.isfinite(norm2)
    tally = Tally(
        iterations=zero,
        evaluations=jnp.asarray(method.start_cost(objective, x0.size), norm2.dtype),
        resets=zero,
        norm2=norm2,
        code=jnp.where(fine, RUNNING, NONFINITE).astype(jnp.int32),
        reached=jnp.zeros((), bool),
    )
    return Carry(state, tally, Best(state.point.value, state.point.x))


@eqx.filter_jit
def chunk(
    loop: Loop,
    objective: Objective,
    method: Method,
    carry: Carry,
    length: Count | np.int32,
    last: Count | np.int32,
    floor: Reals,
) -> tuple[Carry, Rows, Int[Array, " rows"], Count]:
    """At most `length` iterations, none beyond iteration `last`, as many as have room for rows.

    A run is over when its squared norm is at most `floor`. Returns the carry, the rows with the
    iterations they are of, and how many were written.
    """
    row = loop.over_runs(loop.row)
    base = jnp.max(carry.tally.iterations)

    def goes_on(carry: Carry) -> Flag:
        return jnp.any(carry.tally.is_open & (carry.tally.iterations < last))

    def block(carry: Carry, row: Recorder | None = None) -> tuple[Carry, Rows | None]:
        return _block(loop, objective, method, carry, last, floor, row)

    def stride(carry: Carry) -> tuple[Carry, Rows]:
        carry, _ = jax.lax.while_loop(
            lambda at: goes_on(at[0]) & (at[1] < loop.every),
            lambda at: (block(at[0])[0], at[1] + loop.block),
            (carry, jnp.zeros((), jnp.int32)),
        )
        return carry, jax.tree.map(lambda leaf: leaf[None], row(carry.state))

    def body(at: Made) -> Made:
        carry, rows, labels, written, made = at
        before = jnp.max(carry.tally.iterations)
        carry, new = block(carry, row) if loop.every == 1 else stride(carry)
        rows = jax.tree.map(
            lambda all, some: jax.lax.dynamic_update_slice_in_dim(all, some, written, 0), rows, new
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


class Trace(NamedTuple):
    """What the bookkeeping needs of the iterations of a block: each entry has their axis first."""

    value: Float[Array, " block *runs"]
    norm2: Float[Array, " block *runs"]
    cost: Float[Array, " block *runs"]
    reset: Bool[Array, " block *runs"]
    ending: Int[Array, " block *runs"]


def _block(
    loop: Loop,
    objective: Objective,
    method: Method,
    carry: Carry,
    last: Count | np.int32,
    floor: Reals,
    row: Recorder | None,
) -> tuple[Carry, Rows | None]:
    """A few iterations, then their bookkeeping; with `row`, one row for each iteration."""
    tally = carry.tally
    state, looked = refreshed(loop, objective, method, carry.state, tally.reached)

    ahead = jnp.arange(loop.block).reshape((-1,) + (1,) * tally.code.ndim)
    goes = tally.is_open & (tally.iterations + ahead < last)
    floors = jnp.where(goes, floor, jnp.inf)
    step = loop.over_runs(lambda method, state, floor: method.step(objective, state, floor))
    or_better = loop.over_runs(Best.or_better)

    def once(
        at: tuple[State, Best, Flags], floor: Reals
    ) -> tuple[tuple[State, Best, Flags], tuple[Trace, Rows | None]]:
        state, best, over = at
        state, info = step(method, state, floor)
        cost = jnp.broadcast_to(jnp.asarray(info.cost, info.norm2.dtype), info.norm2.shape)
        trace = Trace(state.point.value, info.norm2, cost, info.reset, info.ending)
        # what is computed after the end of a run is not looked at: to stop it would cost more
        after = state, or_better(best, state.point, over), over | (info.ending != RUNNING)
        return after, (trace, row(state) if row else None)

    start = state, carry.best, jnp.zeros(tally.code.shape, bool)
    (state, best, _), (trace, rows) = jax.lax.scan(once, start, floors, unroll=8)
    tally = _after(objective, tally, trace, goes, floors, looked)
    return Carry(state, tally, best), rows


def _after(
    objective: Objective, tally: Tally, trace: Trace, goes: Went, floors: Floors, looked: Flag
) -> Tally:
    """The tally after the iterations of a block, of which the last ones may have been waiting."""
    running, over = tally.is_open, trace.ending != RUNNING
    goes = goes & (jnp.cumsum(over, 0) - over == 0)  # what follows the end is no step
    moved = goes & (trace.norm2 > floors)
    reached = goes & (trace.norm2 <= floors)
    met, converged = jnp.any(reached, 0), sure(objective, reached, looked)
    bad = jnp.any(goes & ~(jnp.isfinite(trace.value) & jnp.isfinite(trace.norm2)), 0)
    ends = jnp.max(jnp.where(goes, trace.ending, RUNNING), 0)  # of `running` and one other
    code = jnp.select(
        [~running, bad, converged, met], [tally.code, NONFINITE, CONVERGED, RUNNING], ends
    ).astype(jnp.int32)
    cost = jnp.sum(jnp.where(moved, trace.cost, 0), 0)
    return Tally(
        iterations=tally.iterations + jnp.sum(moved, 0, dtype=jnp.int32),
        evaluations=tally.evaluations + cost + (looked & running),
        resets=tally.resets + jnp.sum(trace.reset, 0, dtype=jnp.int32),
        norm2=jnp.where(running, trace.norm2[-1], tally.norm2),
        code=code,
        reached=met & (code == RUNNING),
    )
