"""L-BFGS for one problem with many unknowns, in plain JAX; `jax.vmap` makes it a batch.

Under bounds the step is that of the free coordinates, in which the pairs of the memory are taken,
and the search follows its projection (Bertsekas (1982), "Projected Newton methods"). A search
bisects until the conditions of Armijo and Wolfe hold (Lewis and Overton (2013), "Nonsmooth
optimization via quasi-Newton methods"), or, where rounding hides a decrease of f, the approximate
ones of Hager and Zhang (2005). At the end, conjugate gradients with the Hessian tell a minimum from
a saddle point, and their Newton step tells whether the run has converged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from cfgd._core.box import Box
from cfgd._core.types import Count, Flag, Number, Scalar, Vector, Vectors
from cfgd.methods.compiled.conjugate_gradients import solve_by_products
from cfgd.methods.compiled.face import face_gradient
from cfgd.methods.compiled.levenberg_marquardt import (
    CONVERGED,
    HIDDEN_CHANGE,
    MAX_ITERATIONS,
    NONFINITE,
    RUNNING,
    SADDLE,
    STALLED,
    TRAVELLED,
    longest_last_step,
)

# Pairs of steps and changes of the gradient in the memory: SciPy's default.
PAIRS = 10
# Share of the decrease along the slope that a step must achieve, and the largest share of the slope
# that may be left (Nocedal and Wright, section 3.1).
ARMIJO, WOLFE = 1e-4, 0.9
# Evaluations of one search: doubling or halving as often changes a step by a factor of 10^12.
MOST_TRIALS = 40
# Newton steps that a run may take: each at least halves the gradient, and L-BFGS reduces it by the
# tolerance before the next one.
MOST_CHECKS = 10
# Length of the first step relative to that of z: short enough for f to be nearly quadratic along it
# in most problems. At z = 0 the length is one.
FIRST_STEP = 0.1


class Memory(NamedTuple):
    """The last pairs, in a ring whose next place is `following`; empty places are zeros."""

    steps: Vectors
    changes: Vectors
    following: Count


class State(NamedTuple):
    """A run between two iterations; `status` is a code of `Status`."""

    z: Vector
    value: Scalar
    gradient: Vector
    memory: Memory
    start: Vector
    start_norm: Scalar  # of the gradient
    iteration: Count
    status: Count


class End(NamedTuple):
    """A state after the check of its Hessian, which is positive definite if `is_regular`."""

    state: State
    is_regular: Flag
    checks: Count


def solve(
    fn: Callable[[Vector], Scalar],
    bounds: Box | None,
    z: Vector,
    tolerance: Number,
    max_iterations: Count | int,
) -> End:
    """Take steps until the run has ended."""

    def descend(state: State) -> State:
        return lax.while_loop(
            lambda state: (state.status == RUNNING) & (state.iteration < max_iterations),
            lambda state: _step(fn, bounds, state, tolerance),
            state,
        )

    def continues(end: End) -> Flag:
        is_early = (end.checks < MOST_CHECKS) & (end.state.iteration < max_iterations)
        return (end.state.status == RUNNING) & is_early

    def descend_and_check(end: End) -> End:
        state, is_regular = _check(fn, bounds, descend(end.state))
        return End(state, is_regular, end.checks + 1)

    first = End(_init(fn, bounds, z), jnp.bool_(False), jnp.int32(0))
    # the start may be a solution, which has to be checked, too
    end = lax.while_loop(continues, descend_and_check, descend_and_check(first))
    status = jnp.where(end.state.status == RUNNING, MAX_ITERATIONS, end.state.status)
    return end._replace(state=end.state._replace(status=status.astype(jnp.int32)))


def _init(fn: Callable[[Vector], Scalar], bounds: Box | None, z: Vector) -> State:
    z = z if bounds is None else bounds.project(z)
    value, g = jax.value_and_grad(fn)(z)
    norm = _length(_free_gradient(bounds, z, g))
    is_finite = jnp.isfinite(value) & jnp.isfinite(g).all()
    status = jnp.where(is_finite, jnp.where(norm > 0, RUNNING, CONVERGED), NONFINITE)
    return State(z, value, g, _empty(z), z, norm, jnp.int32(0), status.astype(jnp.int32))


def _step(
    fn: Callable[[Vector], Scalar], bounds: Box | None, state: State, tolerance: Number
) -> State:
    """Search along the step of the memory, update the memory, and test the new point."""
    p = _direction(state, bounds)
    found = _search(fn, bounds, state, p)
    s, y = found.z - state.z, found.gradient - state.gradient
    added = _added(state.memory, s, y)
    had_pairs = (state.memory.steps != 0).any()
    new = state._replace(
        z=jnp.where(found.is_accepted, found.z, state.z),
        value=jnp.where(found.is_accepted, jnp.minimum(found.value, state.value), state.value),
        gradient=jnp.where(found.is_accepted, found.gradient, state.gradient),
        # a search that fails is repeated once along the gradient
        memory=jax.tree.map(
            lambda a, b: jnp.where(found.is_accepted, a, b), added, _empty(state.z)
        ),
        iteration=state.iteration + 1,
    )
    norm = _length(_free_gradient(bounds, new.z, new.gradient))
    converged = (norm <= tolerance * state.start_norm) | (norm == 0)
    is_stuck = ~found.is_accepted & ~had_pairs
    status = jnp.where(converged, CONVERGED, jnp.where(is_stuck, STALLED, RUNNING))
    return new._replace(status=status.astype(jnp.int32))


def _check(fn: Callable[[Vector], Scalar], bounds: Box | None, state: State) -> tuple[State, Flag]:
    """Take the Newton step from a point with a small gradient; its length is the final test.

    A gradient that is small relative to that of the start says little about the distance to the
    solution. The run has converged if the Newton step is short; the step doubles the number of
    correct digits. If the step is longer and lowers the gradient, the run continues from its end.
    """
    z, g = state.z, _free_gradient(bounds, state.z, state.gradient)
    _, times = jax.linearize(face_gradient(fn, bounds), z)
    # a random vector has a part in null directions of the Hessian that are orthogonal to the
    # gradient
    probe = jax.random.normal(jax.random.key(0), z.shape, z.dtype)
    steps, definite, indefinite = jax.vmap(lambda b: solve_by_products(times, b))(
        jnp.stack([g, probe])
    )
    new = z - steps[0] if bounds is None else bounds.project(z - steps[0])
    value, gradient = jax.value_and_grad(fn)(new)
    is_minimum = definite.all()
    is_short = _length(steps[0]) <= longest_last_step(z) * _size(state)
    norm = _length(_free_gradient(bounds, new, gradient))
    is_better = jnp.isfinite(value) & (norm <= _length(g) / 2)
    ended = state.status != RUNNING
    was_found = (state.status == CONVERGED) | (state.status == STALLED)
    moves = was_found & is_minimum & (is_short | is_better)
    # if the Hessian is singular there is no Newton step, and the gradient decides
    by_gradient = jnp.where(indefinite.any(), SADDLE, CONVERGED)
    by_step = jnp.where(is_short, CONVERGED, jnp.where(is_better, RUNNING, STALLED))
    converged = jnp.where(is_minimum, by_step, by_gradient)
    stalled = jnp.where(is_minimum, by_step, STALLED)
    status = jnp.where(state.status == CONVERGED, converged, state.status)
    status = jnp.where(state.status == STALLED, stalled, status)
    return (
        state._replace(
            z=jnp.where(moves, new, z),
            value=jnp.where(moves, value, state.value),
            gradient=jnp.where(moves, gradient, state.gradient),
            start_norm=jnp.where(moves, norm, state.start_norm),
            status=jnp.where(ended, status, RUNNING).astype(jnp.int32),
        ),
        definite[1],
    )


# ------------------------------------------------------------------ the memory


def _empty(z: Vector) -> Memory:
    zeros = jnp.zeros((PAIRS, z.size), z.dtype)
    return Memory(zeros, zeros, jnp.int32(0))


def _added(memory: Memory, s: Vector, y: Vector) -> Memory:
    """Return the memory with one more pair, unless its curvature is not positive."""
    at = memory.following
    is_positive = s @ y > jnp.finfo(s.dtype).eps * (y @ y)
    added = Memory(memory.steps.at[at].set(s), memory.changes.at[at].set(y), (at + 1) % PAIRS)
    return jax.tree.map(lambda a, b: jnp.where(is_positive, a, b), added, memory)


def _direction(state: State, bounds: Box | None) -> Vector:
    """Return the inverse L-BFGS matrix of the free coordinates times their gradient.

    Two loops over the pairs; Nocedal and Wright, algorithm 7.4.
    """
    z, memory = state.z, state.memory
    free = jnp.ones_like(z) if bounds is None else 1.0 - bounds.is_active(z, state.gradient)
    free = free.astype(z.dtype)
    g = free * state.gradient
    S, Y = memory.steps * free, memory.changes * free
    products = (S * Y).sum(1)
    changes2 = (Y * Y).sum(1)
    is_pair = products > jnp.finfo(z.dtype).eps * changes2
    weights = jnp.where(is_pair, 1 / jnp.where(is_pair, products, 1), 0)
    newest_first = (memory.following - 1 - jnp.arange(PAIRS)) % PAIRS

    def backward(q: Vector, i: Count) -> tuple[Vector, Scalar]:
        a = weights[i] * (S[i] @ q)
        return q - a * Y[i], a

    def forward(p: Vector, pair: tuple[Count, Scalar]) -> tuple[Vector, None]:
        i, a = pair
        return p + (a - weights[i] * (Y[i] @ p)) * S[i], None

    q, shares = lax.scan(backward, g, newest_first)
    last = newest_first[jnp.argmax(is_pair[newest_first])]
    scale = products[last] / jnp.where(is_pair[last], changes2[last], 1)
    p, _ = lax.scan(forward, scale * q, (newest_first[::-1], shares[::-1]))
    length, norm = _length(z), _length(g)
    first = jnp.where(length > 0, FIRST_STEP * length, 1) / jnp.where(norm > 0, norm, 1) * g
    is_descent = is_pair.any() & (g @ p > 0) & jnp.isfinite(p).all()
    return jnp.where(is_descent, p, first)


# ------------------------------------------------------------------ the search


class Trial(NamedTuple):
    """A point of a search, at the step t, and the steps between which the next one lies."""

    z: Vector
    value: Scalar
    gradient: Vector
    is_accepted: Flag
    t: Scalar
    low: Scalar
    high: Scalar
    count: Count


def _search(fn: Callable[[Vector], Scalar], bounds: Box | None, state: State, p: Vector) -> Trial:
    """Return a point along the projection of z - t p at which f and its slope are lower."""
    z, f, g = state.z, state.value, state.gradient
    noise = jnp.finfo(z.dtype).eps ** HIDDEN_CHANGE * abs(f)
    zero = jnp.zeros((), z.dtype)

    def attempt(last: Trial) -> Trial:
        t = last.t
        ahead = z - t * p
        new = ahead if bounds is None else bounds.project(ahead)
        value, gradient = jax.value_and_grad(fn)(new)
        slope, slope_left = g @ (z - new), gradient @ (z - new)
        is_lower = (value < f) & (value <= f - ARMIJO * slope)
        is_hidden = (value <= f + noise) & (slope_left >= (2 * ARMIJO - 1) * slope)
        is_finite = jnp.isfinite(value) & jnp.isfinite(gradient).all()
        is_low = is_finite & (slope > 0) & (is_lower | is_hidden)
        # along a bound, a longer step is no longer one along p
        is_far = (slope_left <= WOLFE * slope) | (new != ahead).any()
        low, high = jnp.where(is_low, t, last.low), jnp.where(is_low, last.high, t)
        return Trial(
            z=new,
            value=value,
            gradient=gradient,
            is_accepted=is_low & (is_far | (last.count + 1 >= MOST_TRIALS)),
            t=jnp.where(jnp.isfinite(high), (low + high) / 2, 2 * t),
            low=low,
            high=high,
            count=last.count + 1,
        )

    first = Trial(z, f, g, jnp.bool_(False), zero + 1, zero, zero + jnp.inf, jnp.int32(0))
    return lax.while_loop(
        lambda trial: ~trial.is_accepted & (trial.count < MOST_TRIALS), attempt, first
    )


# ------------------------------------------------------------------ small things


def _length(v: Vector) -> Scalar:
    return jnp.sqrt(v @ v)


def _size(state: State) -> Scalar:
    """Return the size with which steps are compared."""
    return _length(state.z) + TRAVELLED * _length(state.z - state.start)


def _free_gradient(bounds: Box | None, z: Vector, g: Vector) -> Vector:
    return g if bounds is None else bounds.free_gradient(z, g)
