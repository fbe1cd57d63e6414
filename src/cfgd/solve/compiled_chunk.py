"""The programs of the compiled loop: a chunk of iterations of a method of JAX as one program.

Its body is a block of a few iterations, so that the stats are updated once a block and not once an
iteration. In a sweep, a run that has ended stays in the loop with steps of length zero until all
runs have ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from cfgd._core.linalg import inner
from cfgd._core.modules import FastModule
from cfgd._core.types import Count, Counts, Flag, Flags, Points, Reals, Scalar, Vector
from cfgd.methods.base import Method, State
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.solve.recompute import recompute
from cfgd.solve.run_stats import (
    CONVERGED,
    NONFINITE,
    RUNNING,
    STALLED,
    LoopSettings,
    Rows,
    RunStats,
    Tolerances,
)

# Iterations of a block on a quadratic, where an iteration costs less than an update of the stats.
# They are unrolled: a loop inside the loop would take XLA longer than the iteration itself; more
# than four take longer to compile and run no faster.
BLOCK = 4
# A run without progress has stalled only if its gradient is at most this many times its least one:
# rounding explains a small growth, a larger one means that the run diverges.
MAX_GROWTH = 4.0

# Where |f| has fallen to this share of |f(x0)|, a value that is updated by recurrence may have lost
# more than the last four of its sixteen digits, and the history gets a computed one.
DRIFT = 1e-4

Recorder: TypeAlias = Callable[[State], Rows]


class Best(FastModule):
    """The least finite value so far, and where; of equal values the latest.

    The gradient is stored only for functions of the user, which are not called again after Ctrl-C.
    """

    value: Scalar
    x: Vector
    gradient: Vector | None

    @classmethod
    def at_start(cls, objective: Objective, evaluation: Evaluation) -> Best:
        keeps = objective.traits.runs_user_code
        return cls(evaluation.value, evaluation.x, evaluation.gradient if keeps else None)

    def or_better(self, evaluation: Evaluation, is_over: Flag) -> Best:
        """Return the better of both, or this one if the run was over before the evaluation."""
        value = evaluation.value
        better = jnp.isfinite(value) & (value <= self.value) & ~is_over
        keeps = self.gradient is not None
        new = Best(value, evaluation.x, evaluation.gradient if keeps else None)
        return jax.tree.map(lambda a, b: jnp.where(better, a, b), new, self)


class Carry(FastModule):
    """What is passed from chunk to chunk."""

    state: State
    stats: RunStats
    best: Best


def over_runs(settings: LoopSettings, fn: Callable[..., Any]) -> Callable[..., Any]:
    return jax.vmap(fn) if settings.is_batched else fn


def row_of(settings: LoopSettings, state: State) -> Rows:
    """Return what the history records of an iteration."""
    at = state.evaluation
    norm = jnp.sqrt(inner(at.gradient, at.gradient))
    recorded = {name: of(state) for name, of in settings.records.items()}
    return {"value": at.value, "gradient_norm": norm} | recorded


def recorded_row(settings: LoopSettings, objective: Objective, first: Reals, state: State) -> Rows:
    """Return the row of an iteration, of all runs; `first` are the values at the start."""
    row = over_runs(settings, partial(row_of, settings))(state)
    if not objective.traits.accumulates_rounding:
        return row
    x, value = state.evaluation.x, state.evaluation.value
    value = jax.lax.cond(
        jnp.any(jnp.abs(value) <= DRIFT * jnp.abs(first)),
        lambda: evaluate(settings, objective, x).value,
        lambda: value,
    )
    return row | {"value": value}


def evaluate(settings: LoopSettings, objective: Objective, x: Points) -> Evaluation:
    """Return the objective at x, computed and not updated by recurrence."""
    return over_runs(settings, objective.evaluate)(x)


def begin(
    settings: LoopSettings, objective: Objective, method: Method, x0: Points, goal: Tolerances
) -> tuple[Carry, Rows]:
    """Return the carry and the row of iteration 0."""

    def start(method: Method, x0: Vector) -> Carry:
        state = method.init(objective, x0)
        norm2, zero = method.measure(objective, state), jnp.zeros((), jnp.int32)
        fine = jnp.isfinite(state.evaluation.value) & jnp.isfinite(norm2)
        stats = RunStats(
            iterations=zero,
            evaluations=jnp.ones((), norm2.dtype),
            resets=zero,
            norm2=norm2,
            floor=goal.floor(norm2),
            least_norm2=jnp.full_like(norm2, jnp.inf),
            idle=zero,
            code=jnp.where(fine, RUNNING, NONFINITE).astype(jnp.int32),
            needs_recheck=jnp.zeros((), bool),
        )
        return Carry(state, stats, Best.at_start(objective, state.evaluation))

    carry = over_runs(settings, start)(method, x0)
    return carry, over_runs(settings, partial(row_of, settings))(carry.state)


def recheck_final(
    settings: LoopSettings, objective: Objective, method: Method, carry: Carry, goal: Tolerances
) -> Carry:
    """Return the carry with `converged` where the recomputed last point meets the tolerance."""

    def one(method: Method, carry: Carry) -> Carry:
        at = objective.evaluate(carry.state.evaluation.x)
        state = dataclasses.replace(carry.state, evaluation=at)
        met = carry.stats.is_open & (method.measure(objective, state) <= carry.stats.floor)
        code = jnp.where(met, CONVERGED, carry.stats.code).astype(jnp.int32)
        return dataclasses.replace(carry, stats=carry.stats._replace(code=code))

    return over_runs(settings, one)(method, carry)


# a chunk so far: rows, their labels, how many were written, and iterations made
Progress: TypeAlias = tuple[Carry, Rows, Int[Array, " rows"], Count, Count]


def chunk(
    settings: LoopSettings,
    objective: Objective,
    method: Method,
    carry: Carry,
    length: Count | np.int32,
    last: Count | np.int32,
    goal: Tolerances,
    first: Reals,
) -> tuple[Carry, Rows, Int[Array, " rows"], Count]:
    """Make at most `length` iterations, none beyond iteration `last`, while rows have room.

    `first` are the values at the start.

    Return the carry, the rows with the iterations they are of, and how many were written.
    """
    row = partial(recorded_row, settings, objective, first)
    base = jnp.max(carry.stats.iterations)

    def continues(carry: Carry) -> Flag:
        return jnp.any(carry.stats.is_open & (carry.stats.iterations < last))

    def block(carry: Carry, rows: Rows | None, written: object) -> tuple[Carry, Rows | None]:
        return _block(settings, objective, method, carry, last, goal, row, rows, written)

    def stride(carry: Carry) -> Carry:
        """Iterate until the next multiple of `every`; the last chunk may have ended in between."""
        carry, _ = jax.lax.while_loop(
            lambda at: (
                continues(at[0]) & (at[1] | (jnp.max(at[0].stats.iterations) % settings.every != 0))
            ),
            lambda at: (block(at[0], None, 0)[0], False),
            (carry, True),
        )
        return carry

    def body(at: Progress) -> Progress:
        carry, rows, labels, written, made = at
        if settings.every == 1:
            carry, rows = block(carry, rows, written)  # type: ignore[assignment]
            written = jnp.max(carry.stats.iterations) - base
            return carry, rows, labels, written, made + settings.block
        before = jnp.max(carry.stats.iterations)
        carry = stride(carry)
        now = jnp.max(carry.stats.iterations)
        rows = _write(rows, row(carry.state), written)
        # a stride without an iteration, because the run had ended, has no row
        labels = labels.at[written].set(now)
        return carry, rows, labels, written + (now > before), made + settings.every

    shapes = jax.eval_shape(row, carry.state)
    size = settings.capacity + (settings.block if settings.every == 1 else 0)
    rows = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape), leaf.dtype), shapes)
    none = jnp.zeros((), jnp.int32)
    # with a row for each iteration, those that follow the first one
    labels = base + 1 + jnp.arange(size, dtype=jnp.int32)
    carry, rows, labels, written, _ = jax.lax.while_loop(
        lambda at: continues(at[0]) & (at[3] < settings.capacity) & (at[4] < length),
        body,
        (carry, rows, labels, none, none),
    )
    return carry, rows, labels, written


def _write(rows: Rows, row: Rows, place: object) -> Rows:
    """Return rows with one of them replaced."""
    return jax.tree.map(
        lambda all, one: jax.lax.dynamic_update_index_in_dim(all, one, place, 0), rows, row
    )


class BlockStats(NamedTuple):
    """What the iterations of a block add to the stats, for each run."""

    moved: Counts  # iterations made
    cost: Reals
    resets: Counts
    status: Counts  # code of `running`, or of what ended the run
    met: Flags  # the gradient met the tolerance
    met_at_once: Flags  # in the first iteration
    is_finite: Flags
    least_norm2: Reals
    norm2: Reals  # of the last iteration


def _block(
    settings: LoopSettings,
    objective: Objective,
    method: Method,
    carry: Carry,
    last: Count | np.int32,
    goal: Tolerances,
    row: Recorder,
    rows: Rows | None,
    written: Any,
) -> tuple[Carry, Rows | None]:
    """Make a few iterations and update the stats; write one row for each, where there are rows."""
    stats, tolerance = carry.stats, jnp.asarray(goal.relative)
    is_updated = objective.traits.accumulates_rounding
    state, recomputed = carry.state, jnp.ones((), bool)
    if is_updated:
        runs = partial(over_runs, settings)
        state, recomputed = recompute(
            settings.block, runs, objective, method, state, stats.needs_recheck
        )
    step = over_runs(
        settings, lambda method, state, floor: method.step(objective, state, floor, tolerance)
    )
    or_better = over_runs(settings, Best.or_better)

    def once(
        i: Any, at: tuple[State, Best, BlockStats, Rows | None]
    ) -> tuple[State, Best, BlockStats, Rows | None]:
        state, best, block, rows = at
        # an ended run waits: its steps get length zero
        active = stats.is_open & (block.status == RUNNING) & (stats.iterations + i < last)
        floor = jnp.where(active, stats.floor, jnp.inf)
        state, info = step(method, state, floor)
        value, norm2 = state.evaluation.value, info.norm2
        met = active & (norm2 <= floor)
        # of updated gradients, only that of a recomputed point is sure
        sure = active & recomputed & (i == 0) if is_updated else active
        block = BlockStats(
            moved=block.moved + (active & info.moved),
            cost=block.cost + jnp.where(active, info.cost, 0),
            resets=block.resets + (active & info.reset),
            status=jnp.where(active, info.status, block.status).astype(jnp.int32),
            met=block.met | met,
            met_at_once=block.met_at_once | (met & (i == 0)),
            is_finite=block.is_finite & (~active | (jnp.isfinite(value) & jnp.isfinite(norm2))),
            least_norm2=jnp.minimum(block.least_norm2, jnp.where(sure, norm2, jnp.inf)),
            norm2=norm2,
        )
        best = or_better(best, state.evaluation, ~active)
        return state, best, block, None if rows is None else _write(rows, row(state), written + i)

    zero, no = jnp.zeros_like(stats.iterations), jnp.zeros_like(stats.needs_recheck)
    real = jnp.zeros_like(stats.norm2)
    none = BlockStats(zero, real, zero, zero + RUNNING, no, no, ~no, stats.least_norm2, stats.norm2)
    state, best, block, rows = jax.lax.fori_loop(
        0, settings.block, once, (state, carry.best, none, rows), unroll=True
    )
    falls = best.value < carry.best.value
    stats = _updated(method, stats, block, recomputed, is_updated, falls)
    return Carry(state, stats, best), rows


def _updated(
    method: Method,
    stats: RunStats,
    block: BlockStats,
    recomputed: Flag,
    is_updated: bool,
    falls: Flags,
) -> RunStats:
    """Return the stats after a block."""
    running, traits = stats.is_open, method.traits
    converged = block.met_at_once & recomputed if is_updated else block.met
    least, idle = stats.least_norm2, stats.idle
    out_of_patience = jnp.zeros_like(converged)
    if traits.patience is not None:
        least = block.least_norm2
        better = (least < stats.least_norm2) | (falls & traits.seeks_minimiser)
        idle = jnp.where(better, 0, idle + block.moved)
        # on ill-conditioned data gradients rise and fall in waves that become longer
        wait = jnp.maximum(traits.patience, stats.iterations // 2)
        # where the gradient grows, the run diverges
        out_of_patience = (idle > wait) & (block.norm2 <= MAX_GROWTH**2 * least)
    code = jnp.select(
        [
            ~running,
            (block.status == RUNNING) & ~block.is_finite,
            converged,
            out_of_patience,
            block.met,
        ],
        [stats.code, NONFINITE, CONVERGED, STALLED, RUNNING],
        block.status,
    ).astype(jnp.int32)
    return RunStats(
        iterations=stats.iterations + block.moved,
        evaluations=stats.evaluations + block.cost + (recomputed & running & is_updated),
        resets=stats.resets + block.resets,
        norm2=jnp.where(running, block.norm2, stats.norm2),
        floor=stats.floor,
        least_norm2=least,
        idle=idle,
        code=code,
        needs_recheck=block.met & (code == RUNNING),
    )
