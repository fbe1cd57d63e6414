"""L-BFGS for one problem with many unknowns, in plain JAX; `jax.vmap` makes it a batch.

Under bounds the step is that of the free coordinates, in which the pairs of the memory are taken,
and the search follows its projection (Bertsekas (1982), "Projected Newton methods"). A search
bisects until the conditions of Armijo and Wolfe hold (Lewis and Overton (2013), "Nonsmooth
optimization via quasi-Newton methods"), or, where rounding hides a decrease of f, the approximate
ones of Hager and Zhang (2005). At the end, conjugate gradients with the Hessian tell a minimum from
a saddle point and take a last Newton step.
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
    LAST_STEP,
    MAX_ITERATIONS,
    NONFINITE,
    RUNNING,
    SADDLE,
    STALLED,
    TRAVELLED,
)

# Pairs of steps and changes of the gradient in the memory: SciPy's default.
PAIRS = 10
# Share of the decrease along the slope that a step must achieve, and the largest share of the slope
# that may be left (Nocedal and Wright, section 3.1).
ARMIJO, WOLFE = 1e-4, 0.9
# Evaluations of one search: doubling or halving as often changes a step by a factor of 10^12.
MOST_TRIALS = 40
# Length of the first step relative to that of z: it leaves the range in which f is quadratic only
# where that is short; at z = 0 the length is one.
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
    """The last state, and whether the Hessian is positive definite there."""

    state: State
    is_regular: Flag


def solve(
    fn: Callable[[Vector], Scalar],
    bounds: Box | None,
    z: Vector,
    tolerance: Number,
    max_iterations: Number,
) -> End:
    """Take steps until the status says how the run ended."""
    state = lax.while_loop(
        lambda state: (state.status == RUNNING) & (state.iteration < max_iterations),
        lambda state: _step(fn, bounds, state, tolerance),
        _init(fn, bounds, z),
    )
    return _end(fn, bounds, state, tolerance)


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
    """Search along the step of the memory, update the memory, and judge the new point."""
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
    g = _free_gradient(bounds, new.z, new.gradient)
    is_small = _length(g) <= tolerance * state.start_norm
    is_short = _length(_direction(new, bounds)) <= jnp.sqrt(tolerance) * _size(new)
    # the first direction of a memory without pairs says nothing about the distance
    is_known = (new.memory.steps != 0).any()
    converged = (is_small & is_short & is_known) | ~g.any()
    is_stuck = ~found.is_accepted & ~had_pairs
    status = jnp.where(converged, CONVERGED, jnp.where(is_stuck, STALLED, RUNNING))
    return new._replace(status=status.astype(jnp.int32))


def _end(
    fn: Callable[[Vector], Scalar], bounds: Box | None, state: State, tolerance: Number
) -> End:
    """Give a run its final status, and take the last Newton step of one that has converged."""
    z = state.z
    g = _free_gradient(bounds, z, state.gradient)
    _, times = jax.linearize(face_gradient(fn, bounds), z)
    # a random vector meets directions without curvature to which the gradient is orthogonal
    probe = jax.random.normal(jax.random.key(0), z.shape, z.dtype)
    steps, definite, indefinite = jax.vmap(lambda b: solve_by_products(times, b))(
        jnp.stack([g, probe])
    )
    p, is_regular = steps[0], definite[1]
    length, size = _length(p), _size(state)
    is_minimum = definite[0] & is_regular
    new = z - p if bounds is None else bounds.project(z - p)
    status = jnp.where(state.status == RUNNING, MAX_ITERATIONS, state.status)
    # a search that fails by rounding has converged if the Newton step is negligible
    is_done = (status == STALLED) & is_minimum & (length <= tolerance * size)
    status = jnp.where(is_done, CONVERGED, status)
    status = jnp.where((status == CONVERGED) & indefinite.any(), SADDLE, status)
    moves = (status == CONVERGED) & is_minimum & (length <= LAST_STEP * size)
    return End(
        state._replace(z=jnp.where(moves, new, z), status=status.astype(jnp.int32)), is_regular
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

    def forget(q: Vector, i: Count) -> tuple[Vector, Scalar]:
        a = weights[i] * (S[i] @ q)
        return q - a * Y[i], a

    def recall(p: Vector, pair: tuple[Count, Scalar]) -> tuple[Vector, None]:
        i, a = pair
        return p + (a - weights[i] * (Y[i] @ p)) * S[i], None

    q, shares = lax.scan(forget, g, newest_first)
    last = newest_first[jnp.argmax(is_pair[newest_first])]
    scale = products[last] / jnp.where(is_pair[last], changes2[last], 1)
    p, _ = lax.scan(recall, scale * q, (newest_first[::-1], shares[::-1]))
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
