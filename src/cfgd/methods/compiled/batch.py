"""Many small problems in one compiled program: ended problems are replaced by the next ones.

A fixed number of slots takes steps in parallel. After a few steps the problems that have ended are
written to the results, and the next problems of the block take their slots, so that a problem that
needs many iterations holds up its own slot and no other. One block is one call of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from cfgd._core.types import Count, Counts, Flag, Number, Numbers
from cfgd.methods.compiled import levenberg_marquardt as lm
from cfgd.methods.compiled.problem import Problem

# Steps between two exchanges of slots: an exchange costs about half a step, because it copies data
# of all slots, and a slot is idle for half of these steps on average.
STEPS = 3


class Slots(NamedTuple):
    """Problems that take steps: their places in the block, and their rows of data and states."""

    index: Counts  # at least the number of problems if the slot is idle
    data: PyTree
    states: Numbers


class Block(NamedTuple):
    """Problems with one row each: their data, and their states as vectors (see `pack`)."""

    data: PyTree
    states: Numbers


def pack(states: lm.State) -> Numbers:
    """Return states with one row each as one matrix, of which rows are fast to exchange."""
    return jax.vmap(lambda state: ravel_pytree(state)[0])(states)


def unpack(states: Numbers, size: int) -> lm.State:
    """Return the states of problems with `size` unknowns from the rows of `pack`."""
    _, unravel = ravel_pytree(lm.init(jnp.zeros(size, states.dtype)))
    return jax.vmap(unravel)(states)


def solve_block(
    problem_of: Callable[[PyTree], Problem],
    block: Block,
    size: int,
    count: Count,
    tolerance: Number,
    max_iterations: Count | int,
    n_slots: int,
    n_left: Count,
) -> Numbers:
    """Take steps until all but `n_left` of the first `count` runs of a block have ended.

    Parameters
    ----------
    problem_of
        Returns the problem for its row of the data.
    size
        The number of unknowns of each problem.
    n_slots
        How many problems take steps at a time.
    n_left
        How many runs may be unfinished at the end: a last one that takes long would leave the other
        slots idle.

    Returns
    -------
    array
        The states after the last step, with one row for each problem.
    """
    n_rows = len(block.states)
    n_slots = min(n_slots, n_rows)

    def is_running(states: lm.State) -> Any:
        return jax.vmap(lm.is_running, (0, None))(states, max_iterations)

    def advance(data: PyTree, state: lm.State) -> lm.State:
        new = lm.step(problem_of(data), state, tolerance)
        return lm.select(lm.is_running(state, max_iterations), new, state)

    def fill(index: Counts) -> Slots:
        """Return slots with these rows of the block; idle ones have the last row."""
        rows = (jnp.take(all, index, 0, mode="clip") for all in jax.tree.leaves(block.data))
        data = jax.tree.unflatten(jax.tree.structure(block.data), rows)
        return Slots(index, data, jnp.take(block.states, index, 0, mode="clip"))

    def exchange(carry: tuple[Slots, Numbers, Count]) -> tuple[Slots, Numbers, Count]:
        slots, results, following = carry
        states = lax.fori_loop(
            0,
            STEPS,
            lambda _, states: jax.vmap(advance)(slots.data, states),
            unpack(slots.states, size),
        )
        is_done, packed = ~is_running(states), pack(states)
        place = jnp.where(slots.index < count, slots.index, n_rows)
        results = results.at[place].set(packed, mode="drop")
        done = jnp.cumsum(is_done, dtype=jnp.int32)
        filled = fill(jnp.where(is_done, following + done - 1, slots.index))
        kept = jnp.where(is_done[:, None], filled.states, packed)
        return filled._replace(states=kept), results, following + done[-1]

    def continues(carry: tuple[Slots, Numbers, Count]) -> Flag:
        slots, _, following = carry
        return (following < count) | ((slots.index < count).sum() > n_left)

    first = fill(jnp.arange(n_slots, dtype=jnp.int32))
    _, states, _ = lax.while_loop(continues, exchange, (first, block.states, jnp.int32(n_slots)))
    return states
