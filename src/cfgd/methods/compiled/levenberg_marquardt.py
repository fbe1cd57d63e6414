"""The method of Levenberg and Marquardt for one small problem, in plain JAX.

The code is that of one problem: `jax.vmap` makes it a batch, in which every problem has its own
damping and status. A step minimises the model f - g'p + p'Hp / 2 with gamma p'Dp / 2 added to it,
inside the bounds; H is the Gauss-Newton matrix of residuals or the Hessian of a function, D its
diagonal, kept from shrinking. Every iteration evaluates one trial point. The rules are those of
`methods/auto/levenberg_marquardt.py` without its curved steps and its looks along flat directions.
References: Moré (1978), "The Levenberg-Marquardt algorithm"; Nocedal and Wright, section 10.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from cfgd._core.box import Box
from cfgd._core.types import Column, Count, Flag, Matrix, Number, Scalar, Vector
from cfgd.methods.compiled.linear_systems import solve_definite
from cfgd.status import Status

# Share of the predicted decrease that a step must achieve (Nocedal and Wright, section 4.1).
ACCEPT = 1e-4
# Shares of the predicted decrease beyond which the damping falls, and below which it grows (Nocedal
# and Wright, algorithm 4.1).
GOOD_MODEL, BAD_MODEL = 0.75, 0.25
# By how much the damping falls, and grows where a step is rejected; the second factor doubles with
# every rejection, as in Nielsen, "Damping parameter in Marquardt's method" (1999).
SHRINK, GROW = 5.0, 4.0
# Damping of the first step (Press et al., Numerical Recipes, section 15.5).
FIRST_DAMPING = 1e-3
# Least damping in rounding units, below which a factorisation may fail by rounding, and the largest
# one, with which a step is nothing but rounding.
LEAST_UNITS, MOST_DAMPING = 64.0, 1e14
# Longest step relative to the size of z and of its distance from the start, in the norm of D: a
# longer one leaves the region in which residuals are linear.
LONGEST = 3.0
# Entries of D fall by at most this factor from one point to the next: by enough to forget a bad
# start in a few steps, and not so much that D jumps with z.
MOST_SHRINKAGE = 1e6
# Share of the distance from the start that is added to the size of z, with which steps are
# compared: at a solution near zero the size of z alone would be nothing.
TRAVELLED = 1e-3
# A predicted decrease below so many rounding units of f is hidden by rounding, and f itself is then
# known to about eps^0.8 |f|.
HIDDEN_UNITS, HIDDEN_CHANGE = 1e3, 0.8
# Power of the tolerance below which the predicted change must be at the end: one more step costs
# little and doubles the correct digits.
TIGHTER = 1.5
# Guesses of the active bounds of one step. A handful is usual; a step that is not found by then is
# projected, and the damping grows if it is not good enough.
MOST_GUESSES = 10
# Longest last step relative to z: that of the test for convergence in float64, so that the values
# at both points are the same to rounding.
LAST_STEP = 1e-6

RUNNING, CONVERGED, STALLED, NONFINITE, MAX_ITERATIONS, SADDLE = (
    Status[name].code
    for name in ("running", "converged", "stalled", "nonfinite", "max_iterations", "saddle")
)


class Model(NamedTuple):
    """The quadratic model f - g'p + p'Hp / 2 of the values at z - p."""

    value: Scalar
    gradient: Vector
    matrix: Matrix


class Problem(NamedTuple):
    """What is minimised.

    Attributes
    ----------
    model
        z -> the model at z.
    hessian
        z -> the Hessian at z; None where it is the matrix of the model.
    bounds
        The bounds of z, or None.
    """

    model: Callable[[Vector], Model]
    hessian: Callable[[Vector], Matrix] | None
    bounds: Box | None


class State(NamedTuple):
    """A run between two iterations, with the step that the next one tries.

    `status` is a code of `Status`.
    """

    z: Vector
    model: Model
    scaling: Vector  # D
    damping: Scalar
    growth: Scalar  # by which the damping grows if the step is rejected
    step: Vector
    predicted: Scalar  # decrease of f by the step; not positive if the step is not to be taken
    start: Vector
    start_norm: Scalar  # of the gradient
    iteration: Count
    status: Count


def least_squares(residuals: Callable[[Vector], Column], bounds: Box | None = None) -> Problem:
    """Return the problem of minimising |r|^2 / 2, with the Gauss-Newton matrix as a model."""

    def model(z: Vector) -> Model:
        r, along = jax.linearize(residuals, z)
        columns = [*(along(e) for e in jnp.eye(z.size, dtype=z.dtype)), r]
        H = _symmetric(z.size + 1, lambda i, j: columns[i] * columns[j])
        return Model(H[-1, -1] / 2, H[-1, :-1], H[:-1, :-1])

    def hessian(z: Vector) -> Matrix:
        """Return J'J plus the residuals times their second derivatives."""

        def columns(z: Vector) -> list[Column]:
            _, along = jax.linearize(residuals, z)
            return [along(e) for e in basis]

        basis = jnp.eye(z.size, dtype=z.dtype)
        J, along = jax.linearize(columns, z)
        r, second = residuals(z), [along(e) for e in basis]
        return _symmetric(z.size, lambda i, j: J[i] * J[j] + r * second[i][j])

    return Problem(model, hessian, bounds)


def _symmetric(size: int, terms: Callable[[int, int], Column]) -> Matrix:
    """Return the symmetric matrix whose entries are the sums of these terms.

    They are one reduction, which reads every array once: in a batch it takes a third of the time of
    separate sums, and a fifth of that of a product of matrices.
    """
    pairs = [(i, j) for i in range(size) for j in range(i + 1)]
    all_terms = tuple(terms(i, j) for i, j in pairs)
    zeros = tuple(jnp.zeros((), each.dtype) for each in all_terms)
    sums = lax.reduce(all_terms, zeros, lambda a, b: tuple(map(jnp.add, a, b)), (0,))
    known = dict(zip(pairs, sums, strict=True))
    entries = [known[max(i, j), min(i, j)] for i in range(size) for j in range(size)]
    return jnp.stack(entries).reshape(size, size)


def smooth(fn: Callable[[Vector], Scalar], bounds: Box | None = None) -> Problem:
    """Return the problem of minimising a function, with its Hessian as a model."""

    def model(z: Vector) -> Model:
        value, g = jax.value_and_grad(fn)(z)
        return Model(value, g, jax.jacfwd(jax.grad(fn))(z))

    return Problem(model, None, bounds)


def init(z: Vector, bounds: Box | None = None) -> State:
    """Return a state before the first evaluation, which `step` makes at z moved into the bounds."""
    z = z if bounds is None else bounds.project(z)
    zero, zeros = jnp.zeros((), z.dtype), jnp.zeros_like(z)
    return State(
        z=z,
        model=Model(zero, zeros, jnp.zeros((z.size, z.size), z.dtype)),
        scaling=zeros,
        damping=zero,
        growth=zero,
        step=zeros,
        predicted=zero,
        start=z,
        start_norm=zero,
        iteration=jnp.int32(-1),
        status=jnp.int32(RUNNING),
    )


def step(problem: Problem, state: State, tolerance: Number) -> State:
    """Try a step, accept or reject it, adapt the damping, and propose the next step."""
    trial_z = state.z - state.step
    if problem.bounds is not None:
        trial_z = problem.bounds.project(trial_z)  # rounding may leave them
    trial = problem.model(trial_z)
    tried = _try(problem, state, trial_z, trial)
    is_first = state.iteration < 0
    new = _select(is_first, _begin(problem, state, trial), tried.state)
    return _judge_and_propose(problem, new, ~is_first & tried.is_stuck, tolerance)


def _begin(problem: Problem, state: State, model: Model) -> State:
    """Return the state at the start, which has been evaluated."""
    g = _free_gradient(problem, state.z, model.gradient)
    dtype = state.z.dtype
    status = jnp.where(_is_finite(model), RUNNING, NONFINITE)
    return state._replace(
        model=model,
        scaling=_keep_from_shrinking(state.scaling, model.matrix),
        damping=jnp.asarray(FIRST_DAMPING, dtype),
        growth=jnp.asarray(GROW, dtype),
        start_norm=jnp.sqrt(_inner(g, g)),
        iteration=jnp.int32(0),
        status=status.astype(jnp.int32),
    )


class Tried(NamedTuple):
    """The state after a trial, and whether steps with more damping would be in vain."""

    state: State
    is_stuck: Flag


def _try(problem: Problem, state: State, trial_z: Vector, trial: Model) -> Tried:
    """Accept or reject a trial point."""
    z, f, D, damping = state.z, state.model.value, state.scaling, state.damping
    eps, least = jnp.finfo(z.dtype).eps, _least_damping(z)
    is_step = state.predicted > 0
    ratio = (f - trial.value) / jnp.where(is_step, state.predicted, 1)
    is_lower = (trial.value < f) & (ratio >= ACCEPT)
    is_hidden = is_step & (state.predicted <= HIDDEN_UNITS * eps * abs(f))
    norm2 = _scaled_norm2(problem, z, state.model.gradient, D)
    new_norm2 = _scaled_norm2(problem, trial_z, trial.gradient, D)
    is_same = trial.value <= f + eps**HIDDEN_CHANGE * abs(f)
    is_better = is_lower | (is_hidden & is_same & (new_norm2 <= norm2 / 4))
    is_accepted = is_step & is_better & _is_finite(trial)

    unchanged = jnp.where(ratio < BAD_MODEL, 2 * damping, damping)
    accepted = state._replace(
        z=trial_z,
        model=trial._replace(value=jnp.minimum(trial.value, f)),
        scaling=_keep_from_shrinking(D, trial.matrix),
        damping=jnp.maximum(jnp.where(ratio > GOOD_MODEL, damping / SHRINK, unchanged), least),
        growth=jnp.full_like(damping, GROW),
    )
    grown = state.growth * damping
    rejected = state._replace(
        damping=grown,
        # a step that was too long says nothing about the model
        growth=jnp.where(is_step, 2 * state.growth, state.growth),
    )
    new = _select(is_accepted, accepted, rejected)
    # a shorter step would be hidden by rounding, too
    is_stuck = ~is_accepted & (is_hidden | ~(grown < MOST_DAMPING))
    return Tried(new._replace(iteration=state.iteration + 1), is_stuck)


def _judge_and_propose(problem: Problem, state: State, is_stuck: Flag, tolerance: Number) -> State:
    """End the run where the undamped step is negligible or no step improves, else propose a step.

    The undamped step is scaled by the diagonal of H itself.
    """
    z, (_, g, H) = state.z, state.model
    diagonal = _keep_from_shrinking(jnp.zeros_like(z), H)
    added = jnp.stack([_least_damping(z) * diagonal, state.damping * state.scaling])
    steps, definite = jax.vmap(lambda each: _minimise(problem, H + jnp.diag(each), z, g))(added)
    is_negligible = _negligible(state, diagonal, steps[0])
    norm2 = _norm2(problem, state)
    is_small = norm2 <= (tolerance * state.start_norm) ** 2
    ends = (is_small & definite[0] & is_negligible(tolerance**TIGHTER)) | (norm2 == 0)
    converged = ends | (is_stuck & definite[0] & is_negligible(tolerance))
    status = jnp.where(converged, CONVERGED, jnp.where(is_stuck, STALLED, state.status))
    status = jnp.where(state.status == RUNNING, status, state.status)

    p = steps[1]
    predicted = _inner(g, p) - _inner(p, _times(H, p)) / 2
    size = _norm(z, state.scaling) + _norm(z - state.start, state.scaling)
    is_long = (size > 0) & (_norm(p, state.scaling) > LONGEST * size)
    is_step = definite[1] & (predicted < jnp.inf) & ~is_long
    return state._replace(
        step=jnp.where(is_step, p, 0),
        predicted=jnp.where(is_step, predicted, 0),
        status=status.astype(jnp.int32),
    )


def _negligible(state: State, D: Vector, p: Vector) -> Callable[[Number], Flag]:
    """Return whether the undamped step p changes neither f nor z, or z by next to nothing."""
    z, f, g = state.z, state.model.value, state.model.gradient
    decrease, length = _inner(g, p) / 2, _norm(p, D)
    typical = jnp.minimum(_norm(z, D) / jnp.sqrt(z.size * D), jnp.sqrt((z * z).mean()))
    sizes = abs(z) + TRAVELLED * (abs(z - state.start) + typical)
    size = _norm(z, D) + TRAVELLED * _norm(z - state.start, D)

    def is_below(tolerance: Number) -> Flag:
        small = (decrease <= tolerance / 100 * abs(f)) & (abs(p) <= tolerance**0.5 * sizes).all()
        return small | (length <= tolerance * size)

    return is_below


def is_running(state: State, max_iterations: Number) -> Flag:
    """Return whether a run goes on."""
    return (state.status == RUNNING) & (state.iteration < max_iterations)


def solve(problem: Problem, z: Vector, tolerance: Number, max_iterations: Number) -> State:
    """Take steps until the status says how the run ended."""
    state = lax.while_loop(
        lambda state: is_running(state, max_iterations),
        lambda state: step(problem, state, tolerance),
        init(z, problem.bounds),
    )
    return end(problem, state)


def end(problem: Problem, state: State) -> State:
    """Give a run its final status, and take the last Newton step of one that has converged.

    The Hessian tells a minimum from a saddle point. Its Newton step, which is below the tolerance,
    doubles the number of correct digits; it is not taken where it is not small.
    """
    z, (_, g, H) = state.z, state.model
    hessian = H if problem.hessian is None else problem.hessian(z)
    D = _keep_from_shrinking(jnp.zeros_like(z), H)
    unit = 1 / jnp.sqrt(D)
    free = jnp.ones_like(z, bool) if problem.bounds is None else ~problem.bounds.is_active(z, g)
    A = jnp.where(free & free[:, None], hessian * unit * unit[:, None], 0)
    # curvatures below this shift are rounding errors
    shifts = jnp.where(free, jnp.array([[jnp.finfo(z.dtype).eps ** 0.5], [0.0]], z.dtype), 1)
    b = jnp.where(free, unit * g, 0)[:, None]
    p, definite = jax.vmap(lambda shift: solve_definite(A + jnp.diag(shift), b))(shifts)
    p = unit * p[1, :, 0]
    new = z - p if problem.bounds is None else problem.bounds.project(z - p)
    is_small = _norm(p, D) <= LAST_STEP * (_norm(z, D) + TRAVELLED * _norm(z - state.start, D))
    status = jnp.where(state.status == RUNNING, MAX_ITERATIONS, state.status)
    is_converged, is_saddle = status == CONVERGED, jnp.isfinite(A).all() & ~definite[0]
    moves = is_converged & definite.all() & is_small
    return state._replace(
        z=jnp.where(moves, new, z),
        status=jnp.where(is_converged & is_saddle, SADDLE, status).astype(jnp.int32),
    )


# ------------------------------------------------------------------ the damped model in the box


def _minimise(problem: Problem, M: Matrix, z: Vector, g: Vector) -> tuple[Vector, Flag]:
    """Minimise -g'p + p'Mp / 2 over the p for which z - p lies in the bounds.

    Return p and whether M is positive definite. Bounds that are active are found by the primal-dual
    active set method of `methods/auto/box_step.py`.
    """
    diagonal = jnp.diagonal(M)
    unit = 1 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1))
    A, b = M * unit * unit[:, None], g * unit
    if problem.bounds is None:
        p, is_definite = solve_definite(A, b[:, None])
        return unit * p[:, 0], is_definite
    lower, upper = (z - problem.bounds.upper) / unit, (z - problem.bounds.lower) / unit
    is_fixed = problem.bounds.lower == problem.bounds.upper

    class Guess(NamedTuple):
        p: Vector
        side: Any  # 1 above the upper bound of p, -1 below the lower one, 0 between them
        is_definite: Flag
        changed: Flag
        count: Count

    def improve(guess: Guess) -> Guess:
        side = guess.side
        free = side == 0
        at_bounds = jnp.where(side > 0, upper, jnp.where(side < 0, lower, 0))
        rest = jnp.where(free, b - _times(A, at_bounds), at_bounds)
        on_face = jnp.where(free & free[:, None], A, jnp.eye(z.size, dtype=z.dtype))
        p, is_definite = solve_definite(on_face, rest[:, None])
        p = p[:, 0]
        slope = b - _times(A, p)
        is_wrong = ((side > 0) & (slope < 0)) | ((side < 0) & (slope > 0))
        beyond = (p > upper).astype(jnp.int32) - (p < lower)
        new = jnp.where(is_fixed, side, jnp.where(free, beyond, jnp.where(is_wrong, 0, side)))
        return Guess(p, new, is_definite, (new != side).any(), guess.count + 1)

    first = Guess(
        jnp.zeros_like(z),
        is_fixed.astype(jnp.int32),
        jnp.bool_(True),
        jnp.bool_(True),
        jnp.int32(0),
    )
    found = lax.while_loop(lambda s: s.changed & (s.count < MOST_GUESSES), improve, first)
    return unit * jnp.clip(found.p, lower, upper), found.is_definite


# ------------------------------------------------------------------ small things


def _select(condition: Flag, a: State, b: State) -> State:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), a, b)


def _inner(a: Vector, b: Vector) -> Scalar:
    return (a * b).sum()


def _times(A: Matrix, v: Vector) -> Vector:
    return (A * v).sum(-1)


def _norm(v: Vector, weight: Vector) -> Scalar:
    return jnp.sqrt((weight * v * v).sum())


def _free_gradient(problem: Problem, z: Vector, g: Vector) -> Vector:
    return g if problem.bounds is None else problem.bounds.free_gradient(z, g)


def _norm2(problem: Problem, state: State) -> Scalar:
    g = _free_gradient(problem, state.z, state.model.gradient)
    return _inner(g, g)


def _scaled_norm2(problem: Problem, z: Vector, g: Vector, D: Vector) -> Scalar:
    free = _free_gradient(problem, z, g)
    return (free * free / D).sum()


def _is_finite(model: Model) -> Flag:
    return (
        jnp.isfinite(model.value)
        & jnp.isfinite(model.gradient).all()
        & jnp.isfinite(model.matrix).all()
    )


def _keep_from_shrinking(old: Vector, H: Matrix) -> Vector:
    """Return the larger of two diagonals, `old` counting for at most 10^6 times that of H.

    Zeros on the diagonal of H leave the entries of `old`; entries are 1 where both are zero.
    """
    new = abs(jnp.diagonal(H))
    D = jnp.maximum(new, jnp.where(new > 0, jnp.minimum(old, MOST_SHRINKAGE * new), old))
    return jnp.where(D > 0, D, 1)


def _least_damping(z: Vector) -> Number:
    return LEAST_UNITS * float(jnp.finfo(z.dtype).eps)
