"""The Levenberg-Marquardt method for one small problem, in plain JAX.

The code is that of one problem: `jax.vmap` makes it a batch, in which every problem has its own
damping and status. A step minimises the model f - g'p + p'Hp / 2 with gamma p'Dp / 2 added to it,
inside the bounds; H is the Gauss-Newton matrix of residuals or the Hessian of a function, D its
diagonal, kept from shrinking. Every iteration evaluates one trial point. The rules are those of
`methods/auto/levenberg_marquardt.py` without curved steps and searches along flat directions.
References: Moré (1978), "The Levenberg-Marquardt algorithm"; Nocedal and Wright, section 10.3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from cfgd._core.box import Box
from cfgd._core.types import Count, Flag, Matrix, Number, Scalar, Vector
from cfgd.methods.compiled.linear_systems import solve_definite
from cfgd.methods.compiled.problem import Model, Problem
from cfgd.status import Status

# Share of the predicted decrease that a step must achieve (Nocedal and Wright, section 4.1).
ACCEPT = 1e-4
# Shares of the predicted decrease beyond which the damping falls, and below which it grows (Nocedal
# and Wright, algorithm 4.1).
GOOD_MODEL, BAD_MODEL = 0.75, 0.25
# Factors by which the damping falls after a good step and grows after a rejected one; the second
# factor doubles with every rejection, as in Nielsen, "Damping parameter in Marquardt's method"
# (1999).
SHRINK, GROW = 5.0, 4.0
# Damping of the first step. In 1,000 fits of each of five curves it leads to the best known minimum
# in 99.5 % of the cases. The 1e-3 of Numerical Recipes (section 15.5), whose first step is often
# too long, leads there in 96.8 % and takes more iterations. On NIST's regressions with 1,134 starts
# the numbers are 964 and 949.
FIRST_DAMPING = 0.1
# Least damping in rounding units, below which a factorisation may fail by rounding, and the largest
# one, with which a step is nothing but rounding.
LEAST_UNITS, MOST_DAMPING = 64.0, 1e14
# Longest step relative to the size of z and of its distance from the start, in the norm of D: a
# longer one leaves the region in which residuals are linear.
LONGEST = 3.0
# The largest factor by which entries of D decrease from one point to the next: large enough for the
# influence of a bad start to vanish in a few steps, and small enough that D does not jump with z.
MOST_SHRINKAGE = 1e6
# Share of the distance from the start that is added to the size of z before steps are compared with
# it: at a solution near zero the size of z alone would be too small.
TRAVELLED = 1e-3
# A predicted decrease below so many rounding units of f is hidden by rounding, and f itself is then
# known to about eps^0.8 |f|.
HIDDEN_UNITS, HIDDEN_CHANGE = 1e3, 0.8
# Power of the tolerance below which the predicted change must be at the end: one more step costs
# little and doubles the correct digits.
TIGHTER = 1.5
# Guesses of the active bounds of one step. A handful is usual; a step that is not found after these
# is projected, and rejected if it does not lower f enough.
MOST_GUESSES = 10
# Longest last step relative to z: that of the test for convergence in float64, or the root of the
# rounding unit, so that the values at both points are the same to rounding.
LAST_STEP = 1e-6

RUNNING, CONVERGED, STALLED, NONFINITE, MAX_ITERATIONS, SADDLE = (
    Status[name].code
    for name in ("running", "converged", "stalled", "nonfinite", "max_iterations", "saddle")
)


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


def init(z: Vector, bounds: Box | None = None) -> State:
    """Return a state before the first evaluation, which `step` makes at z moved into the bounds.

    The value before it is infinite, so that a first point with a finite one is accepted, and the
    damping falls to that of the first step.
    """
    z = z if bounds is None else bounds.project(z)
    zeros = jnp.zeros_like(z)
    return State(
        z=z,
        model=Model(_number(jnp.inf, z), zeros, jnp.zeros((z.size, z.size), z.dtype)),
        scaling=zeros,
        damping=_number(SHRINK * FIRST_DAMPING, z),
        growth=_number(GROW, z),
        step=zeros,
        predicted=_number(1.0, z),
        start=z,
        start_norm=_number(0.0, z),
        iteration=jnp.int32(-1),
        status=jnp.int32(RUNNING),
    )


def step(problem: Problem, state: State, tolerance: Number) -> State:
    """Try a step, accept or reject it, adapt the damping, and propose the next step."""
    z, f, D, damping = state.z, state.model.value, state.scaling, state.damping
    eps = jnp.finfo(z.dtype).eps
    trial_z = z - state.step
    if problem.bounds is not None:
        trial_z = problem.bounds.project(trial_z)  # rounding may leave them
    trial = problem.model(trial_z)
    new_D = _keep_from_shrinking(D, trial.matrix)

    is_first, is_step = state.iteration < 0, state.predicted > 0
    ratio = (f - trial.value) / lax.select(is_step, state.predicted, _number(1.0, z))
    is_lower = (trial.value < f) & (ratio >= ACCEPT)
    is_hidden = is_step & (state.predicted <= HIDDEN_UNITS * eps * abs(f)) & ~is_first
    free_gradient = _free_gradient(problem, trial_z, trial.gradient)
    old_gradient = _free_gradient(problem, z, state.model.gradient)
    gradient_falls = _inner(free_gradient, free_gradient / new_D) <= (
        _inner(old_gradient, old_gradient / new_D) / 4
    )
    is_same = trial.value <= f + eps**HIDDEN_CHANGE * abs(f)
    is_better = is_lower | (is_hidden & is_same & gradient_falls)
    is_accepted = is_step & is_better & _is_finite(trial)

    factor = jnp.where(ratio > GOOD_MODEL, 1 / SHRINK, jnp.where(ratio < BAD_MODEL, 2.0, 1.0))
    accepted = state._replace(
        z=trial_z,
        model=trial._replace(value=jnp.minimum(trial.value, f)),
        scaling=new_D,
        damping=jnp.maximum(damping * factor, _least_damping(z)),
        growth=_number(GROW, z),
    )
    grown = state.growth * damping
    # a step that was too long says nothing about the model
    growth = lax.select(is_step, 2 * state.growth, state.growth)
    rejected = state._replace(damping=grown, growth=growth)
    new = select(is_accepted, accepted, rejected)._replace(
        start_norm=lax.select(is_first, _norm(free_gradient), state.start_norm),
        iteration=state.iteration + 1,
        status=jnp.where(is_first & ~is_accepted, NONFINITE, state.status).astype(jnp.int32),
    )
    # a shorter step would be hidden by rounding, too
    is_stuck = ~is_accepted & ~is_first & (is_hidden | ~(grown < MOST_DAMPING))
    return _end_or_propose(problem, new, is_stuck, tolerance)


class Prediction(NamedTuple):
    """A step p and what the model predicts for it; norms are those with weights D."""

    step: Vector
    is_definite: Flag
    decrease: Scalar  # of f, by the model without damping
    length: Scalar  # |p|
    size: Scalar  # |z|
    travelled: Scalar  # |z - start|


def _predict(problem: Problem, state: State, damping: Scalar, D: Vector) -> Prediction:
    z, (_, g, H) = state.z, state.model
    p, is_definite = _minimise(problem, H + jnp.diag(damping * D), z, g)
    length, size, travelled = jnp.sqrt((D * jnp.stack([p, z, z - state.start]) ** 2).sum(1))
    return Prediction(p, is_definite, (p * (g - _times(H, p) / 2)).sum(), length, size, travelled)


def _end_or_propose(problem: Problem, state: State, is_stuck: Flag, tolerance: Number) -> State:
    """End the run if the undamped step is negligible or no step improves, else propose a step.

    The undamped step is scaled by the diagonal of H itself.
    """
    z, (_, g, H) = state.z, state.model
    dampings = jnp.stack([_number(_least_damping(z), z), state.damping])
    scalings = jnp.stack([_keep_from_shrinking(jnp.zeros_like(z), H), state.scaling])
    both = jax.vmap(lambda damping, D: _predict(problem, state, damping, D))(dampings, scalings)
    newton, damped = (jax.tree.map(lambda each, i=i: each[i], both) for i in range(2))

    norm = _norm(_free_gradient(problem, z, g))
    may_end = newton.is_definite & (is_stuck | (norm <= tolerance * state.start_norm))
    limit = jnp.where(is_stuck, tolerance, tolerance**TIGHTER)
    converged = (may_end & _is_negligible(state, scalings[0], newton, limit)) | (norm == 0)
    ended = jnp.where(converged, CONVERGED, jnp.where(is_stuck, STALLED, RUNNING))
    status = jnp.where(state.status == RUNNING, ended, state.status).astype(jnp.int32)

    size = damped.size + damped.travelled
    is_long = (size > 0) & (damped.length > LONGEST * size)
    is_step = damped.is_definite & (damped.decrease < jnp.inf) & ~is_long
    return state._replace(
        step=lax.select(is_step, damped.step, jnp.zeros_like(z)),
        predicted=lax.select(is_step, damped.decrease, _number(0.0, z)),
        status=status,
    )


def _is_negligible(state: State, D: Vector, newton: Prediction, tolerance: Number) -> Flag:
    """Return whether the changes of f and z by the undamped step are below the tolerance."""
    z, f = state.z, state.model.value
    typical = jnp.minimum(newton.size / jnp.sqrt(z.size * D), jnp.sqrt((z * z).mean()))
    sizes = abs(z) + TRAVELLED * (abs(z - state.start) + typical)
    is_near = (abs(newton.step) <= tolerance**0.5 * sizes).all()
    small = (newton.decrease <= tolerance / 100 * abs(f)) & is_near
    return small | (newton.length <= tolerance * (newton.size + TRAVELLED * newton.travelled))


def is_running(state: State, max_iterations: Count | int) -> Flag:
    """Return whether a run has not ended."""
    return (state.status == RUNNING) & (state.iteration < max_iterations)


def solve(problem: Problem, z: Vector, tolerance: Number, max_iterations: Count | int) -> State:
    """Take steps until the run has ended."""
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
    is_small = _norm(p, D) <= longest_last_step(z) * (
        _norm(z, D) + TRAVELLED * _norm(z - state.start, D)
    )
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


def select(condition: Flag, a: State, b: State) -> State:
    """Return a where the condition holds, else b."""
    return jax.tree.map(lambda a, b: lax.select(condition, a, b), a, b)


def longest_last_step(z: Vector) -> float:
    """Return the longest last step relative to z."""
    return max(LAST_STEP, float(jnp.finfo(z.dtype).eps) ** 0.5)


def _number(value: float, z: Vector) -> Scalar:
    """Return a number in the precision of z."""
    return jnp.asarray(value, z.dtype)


def _inner(a: Vector, b: Vector) -> Scalar:
    return (a * b).sum()


def _times(A: Matrix, v: Vector) -> Vector:
    return (A * v).sum(-1)


def _norm(v: Vector, weight: Vector | float = 1.0) -> Scalar:
    return jnp.sqrt((weight * v * v).sum())


def _free_gradient(problem: Problem, z: Vector, g: Vector) -> Vector:
    return g if problem.bounds is None else problem.bounds.free_gradient(z, g)


def _is_finite(model: Model) -> Flag:
    """Return whether all numbers are finite: a sum that has one that is not is not finite."""
    return jnp.isfinite(model.value + model.gradient.sum() + model.matrix.sum())


def _keep_from_shrinking(old: Vector, H: Matrix) -> Vector:
    """Return the larger of two diagonals, `old` counting for at most 10^6 times that of H.

    Zeros on the diagonal of H leave the entries of `old`; entries are 1 where both are zero.
    """
    new = abs(jnp.diagonal(H))
    D = jnp.maximum(new, jnp.where(new > 0, jnp.minimum(old, MOST_SHRINKAGE * new), old))
    return jnp.where(D > 0, D, 1)


def _least_damping(z: Vector) -> float:
    return LEAST_UNITS * float(jnp.finfo(z.dtype).eps)
