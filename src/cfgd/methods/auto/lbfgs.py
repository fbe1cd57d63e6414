"""L-BFGS with a diagonal preconditioner, backtracking and a check of the curvature at the end.

In the paper's words a step lies in the span of P^-1 g, of x - c and of P^-1 times the gradients at
the last 16 terminals c, with the weights of L-BFGS; P is the diagonal by which coordinates are
scaled. References: Nocedal and Wright, section 7.2; the compact form of the inverse matrix is that
of Byrd, Nocedal and Schnabel, Mathematical Programming 63 (1994).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import clip_positive, eps_of, inner, solve_upper, weighted_norm
from cfgd._core.types import Scalar, Vector, Vectors
from cfgd.methods.auto.curvature_check import (
    FEWER,
    LONG,
    MOST_DIRECTIONS,
    Probes,
    assess,
    is_small,
    longest_part,
    one_sided_noise,
    probe_along_coordinates,
    probe_krylov,
)
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import (
    Goal,
    SolverState,
    Start,
    change_is_negligible,
    gradient_exploded,
)
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.status import Status

# Pairs that are remembered; a dozen to twenty are usual (Nocedal and Wright, section 7.2).
PAIRS = MOST_DIRECTIONS
# Share of the decrease along the slope that a step must achieve (Nocedal and Wright, section 3.1).
ACCEPT = 1e-4
# How often a step may be shortened, each time at least to its half: 2^-40 of it is rounding.
MOST_TRIES = 40
# Iterations without progress after which the curvature is checked, and after which the run ends.
IDLE, TOO_IDLE = 16, 40
# Iterations after which the curvature is measured anew in few dimensions, where that is cheap.
CHECK_EVERY = 30
# How much longer than the last accepted part of a direction the next one may begin.
LONGER = 8.0
# How much longer a step becomes where the last one met no curvature.
GROWTH = 4.0
# A pair is kept if the angle between step and change is less than a right angle beyond rounding.
LEAST_COSINE = 1e-12
# Part of the curvature met by the first step that all coordinates start with: the secant update
# adds to the diagonal where it sees more, and takes little away.
FIRST_CURVATURE = 0.1
# Size that a coordinate counts for at least in the first step, relative to the typical one.
SMALLEST = 1e-3


# ------------------------------------------------------------------ the memory of pairs


@functools.cache
def _oldest_first(n: int) -> np.ndarray:
    """Return, for each newest row of a ring of n, all rows in the order of their age."""
    rows = np.arange(n)
    return (rows[:, None] + 1 + rows) % n


@functools.cache
def _age_rank(n: int) -> np.ndarray:
    """Return, for each newest row of a ring of n, the place of each row in that order."""
    rows = np.arange(n)
    return (rows - 1 - rows[:, None]) % n


class Pair(NamedTuple):
    """A step and the change of the gradient along it."""

    step: Vector
    change: Vector
    product: Scalar  # <step, change>
    change2: Scalar  # <change, change>
    is_positive: bool  # the curvature along the step is, beyond rounding

    @classmethod
    def of(cls, step: Vector, change: Vector) -> Pair:
        product, change2 = inner(step, change), inner(change, change)
        lengths = np.sqrt(inner(step, step)) * np.sqrt(change2)
        return cls(step, change, product, change2, bool(product > LEAST_COSINE * lengths))


@dataclasses.dataclass
class Memory:
    """Pairs in a ring, whose arrays are overwritten in place; rows without a pair are zero."""

    steps: Vectors  # S
    changes: Vectors  # Y
    triangle: np.ndarray  # R: <s_i, y_j> for j not older than i, oldest first; else the identity
    newest: int  # row that was written last
    last: int  # row of the last pair
    product: Scalar  # <s, y> of it, or 0
    is_flat: bool  # along the last step the gradient did not grow

    @classmethod
    def empty(cls, x: Vector) -> Memory:
        n = PAIRS if x.size < LONG else FEWER
        steps, changes = np.zeros((n, x.size), x.dtype), np.zeros((n, x.size), x.dtype)
        return cls(steps, changes, np.eye(n, dtype=x.dtype), 0, 0, x.dtype.type(0), False)

    @classmethod
    def of_probes(cls, x: Vector, probes: Probes) -> Memory:
        """Take the probes around a point as pairs, of which the last one is the newest."""
        memory = cls.empty(x)
        n, m = len(memory.steps), len(probes.steps)
        memory.steps[:m], memory.changes[:m] = probes
        memory.newest = m - 1
        steps, changes = memory.steps, memory.changes
        order = _oldest_first(n)[memory.newest]
        lengths = np.sqrt((steps * steps).sum(1)) * np.sqrt((changes * changes).sum(1))
        products = (steps * changes).sum(1)
        is_pair = products > LEAST_COSINE * lengths
        steps[~is_pair] = 0
        changes[~is_pair] = 0
        memory.triangle = np.triu((steps @ changes.T)[order][:, order])
        memory.triangle += np.diag((~is_pair[order]).astype(x.dtype))
        memory.last = int(order[n - 1 - is_pair[order][::-1].argmax()])
        memory.product = products[memory.last] if is_pair[memory.last] else x.dtype.type(0)
        return memory

    def add(self, pair: Pair) -> None:
        """Put a pair in the place of the oldest one."""
        n = len(self.steps)
        j = (self.newest + 1) % n
        self.steps[j] = pair.step if pair.is_positive else 0
        self.changes[j] = pair.change if pair.is_positive else 0
        R, column = self.triangle, (self.steps @ self.changes[j])[_oldest_first(n)[j]]
        R[:-1, :-1] = R[1:, 1:]
        R[:, -1] = column
        R[-1, -1] = pair.product if pair.is_positive else 1
        self.newest = j
        self.is_flat = not pair.is_positive
        if pair.is_positive:
            self.last, self.product = j, pair.product
        elif self.last == j:  # its row was overwritten
            self.product = 0 * self.product


class Direction(NamedTuple):
    """p = eta (P^-1 g + gamma (x - c) + ...); a step goes to x - p."""

    p: Vector
    slope: Scalar  # <g, p>
    eta: Any
    gamma: Any  # of the last terminal


def direction(memory: Memory, g: Vector, P: Vector, last_step: Vector) -> Direction:
    """Return the inverse L-BFGS matrix times g, by two triangular systems.

    With R the products s_i'y_j of steps with changes that are not older, a = R^-1 S g and
    q = g - Y'a; then p = eta P^-1 q + S'b with R'b = D a - eta Y P^-1 q, where D is the diagonal of
    R and 1/eta the curvature y'P^-1 y / y's that the last step has met. Where the gradient did not
    grow along the last step, the next one is longer.
    """
    S, Y, R = memory.steps, memory.changes, memory.triangle
    order, rank = _oldest_first(len(S))[memory.newest], _age_rank(len(S))[memory.newest]
    a = solve_upper(R, (S @ g)[order])
    eta = 1.0
    if memory.product > 0:
        y = Y[memory.last]
        eta = memory.product / inner(y, y / P)
    p = g - a[rank] @ Y
    p *= eta / P
    b = solve_upper(R, R.diagonal() * a - (Y @ p)[order], transposed=True)
    p += b[rank] @ S
    if memory.is_flat:
        length, longer = weighted_norm(p, P), GROWTH * weighted_norm(last_step, P)
        if 0 < length < longer:
            p *= longer / length
    slope = inner(g, p)
    if 0 < slope < np.inf:
        return Direction(p, slope, eta, b[-1] / eta)
    return Direction(g / P, inner(g, g / P), 1.0, 0.0)


# ------------------------------------------------------------------ the preconditioner


def first_step(x: Vector, g: Vector) -> Vector:
    """Return a step along g that moves no coordinate by more than a tenth of its size.

    From x = 0 it has length one.
    """
    typical = np.sqrt((x * x).mean())
    if typical == 0:
        length = np.sqrt(inner(g, g))
    else:
        length = (10 * abs(g) / np.maximum(abs(x), SMALLEST * typical)).max()
    return g / (length if length > 0 else 1)


def first_diagonal(pair: Pair) -> Vector:
    """Return a constant diagonal with a part of the curvature that the first step met."""
    curvature = FIRST_CURVATURE * pair.change2 / pair.product if pair.product > 0 else 1.0
    return np.full_like(pair.step, curvature if curvature < np.inf else 1.0)


def secant_diagonal(D: Vector, pair: Pair) -> Vector:
    """Return the diagonal of the BFGS update of diag(D), or D where that is not positive."""
    weighted = D * pair.step
    size = inner(pair.step, weighted)
    if not (pair.is_positive and pair.change2 / pair.product < np.inf and size > 0):
        return D
    removed, added = weighted / size, pair.change / pair.product
    removed *= weighted
    added *= pair.change
    updated = D - removed
    updated += added
    return updated if updated.min() > 0 else D


# ------------------------------------------------------------------ the solver


class Search(NamedTuple):
    """The next line search, along x + offset - t p."""

    p: Vector
    slope: Scalar  # <g, p>
    t: Any  # that is tried first
    eta: Any = 1.0
    gamma: Any = 0.0
    leaves_saddle: bool = False
    offset: Any = 0.0  # where a saddle was found beside x


@dataclasses.dataclass(frozen=True)
class LBFGSState(SolverState):
    """State between two iterations."""

    memory: Memory = None  # type: ignore[assignment]
    scaling: Vector = None  # P, positive
    search: Search = None  # type: ignore[assignment]
    first_part: Any = 1.0  # part of a direction that is tried first
    needs_check: bool = False  # of the curvature, before the next step
    curvature_is_known: bool = False  # the memory is of probes around x
    is_stuck: bool = False  # no step lowers f
    checked_norm2: Any = np.inf  # |g|^2 where a check showed that f can be lowered further
    idle: int = 0  # iterations without progress
    since_check: int = 0
    least_norm2: Any = np.inf


class LBFGS:
    """Limited-memory BFGS; every accepted step lowers f."""

    def describe(self, objective: Objective) -> str:
        diagonal = objective.traits.diagonal
        by = "a secant diagonal" if diagonal is None else f"the {diagonal} diagonal"
        return f"L-BFGS (up to {PAIRS} pairs, scaled by {by})"

    def init(self, oracle: Oracle, x0: Vector) -> LBFGSState:
        at = oracle.evaluate(x0)
        start = Start.of(at)
        scaling = oracle.diagonal(at)
        P = np.ones_like(x0) if scaling is None else clip_positive(scaling)
        memory = Memory.empty(x0)
        p, slope, eta, gamma = direction(memory, at.gradient, P, 0 * x0)
        if scaling is None and start.norm > 0:  # nothing is known of the scale yet
            p = first_step(x0, at.gradient)
            slope = inner(at.gradient, p)
        norm2 = inner(at.gradient, at.gradient)
        search = Search(p, slope, longest_part(x0, x0, p), eta, gamma)
        return LBFGSState(
            evaluation=at,
            computed_value=at.value,
            norm2=norm2,
            start=start,
            memory=memory,
            scaling=P,
            search=search,
            needs_check=bool(norm2 == 0),
            least_norm2=norm2,
        )

    def step(self, oracle: Oracle, state: LBFGSState, goal: Goal) -> LBFGSState:
        """Make one iteration, or find that there is none to make."""
        while True:
            if state.needs_check:
                state = check_curvature(oracle, state, goal)
                if state.status is not Status.running:
                    return state
            found = line_search(oracle, state)
            if isinstance(found, Accepted):
                return advance(oracle, state, found, goal)
            if found is Status.unbounded:
                return dataclasses.replace(state, status=Status.unbounded)
            if state.curvature_is_known:
                ending = Status.saddle if state.search.leaves_saddle else Status.stalled
                ending = Status.unbounded if gradient_exploded(state) else ending
                return dataclasses.replace(state, status=ending)
            state = dataclasses.replace(state, is_stuck=True, needs_check=True)


class Accepted(NamedTuple):
    """The point that a line search accepted."""

    evaluation: Evaluation
    value: Scalar  # as it counts where rounding hides a decrease
    t: Any


def line_search(oracle: Oracle, state: LBFGSState) -> Accepted | Status:
    """Backtrack from the first trial until f decreases by a share of what the slope predicts."""
    origin, search = state.evaluation, state.search
    x, t = origin.x + search.offset if np.ndim(search.offset) else origin.x, search.t
    for _ in range(MOST_TRIES + 1):
        at = oracle.evaluate(x - t * search.p)
        norm2 = inner(at.gradient, at.gradient)
        enough, value = decreases(search, t, origin, at, oracle.resolution)
        if enough and abs(at.value) < np.inf and norm2 < np.inf:
            return Accepted(at, value, t)
        if state.start.is_far_above(at.value):
            return Status.unbounded
        # the minimum of the parabola through both values and the slope, within bounds
        parabola = search.slope * t * t / (2 * (value - origin.value + search.slope * t))
        t = min(max(parabola, t / 10), t / 2) if abs(parabola) < np.inf else t / 10
    return Status.stalled


def decreases(
    search: Search, t: Any, origin: Evaluation, at: Evaluation, resolution: float
) -> tuple[bool, Scalar]:
    """Return whether f(x - t p) <= f(x) - t <g, p> / 10^4, and the value as it counts.

    Where rounding may hide the decrease, any non-increase will do, and the slopes at both ends say
    what is none: a value larger by rounding counts as the old one.
    """
    value, eps = origin.value, eps_of(origin.value)
    enough = at.value <= value - ACCEPT * t * search.slope
    if search.leaves_saddle:
        return bool(enough and at.value < value), at.value
    if enough:
        return True, at.value
    tiny = np.finfo(value.dtype).tiny * resolution
    if not search.slope <= eps**0.6 * abs(value) + 1e3 * tiny:
        return False, at.value
    is_flat = inner(at.gradient, search.p) >= -0.8 * search.slope
    if is_flat and at.value <= value + eps**0.8 * abs(value) + tiny:
        counted = at.value if at.value < value else value
        return bool(counted <= value), counted
    return bool(at.value <= value), at.value


def advance(oracle: Oracle, state: LBFGSState, found: Accepted, goal: Goal) -> LBFGSState:
    """Return the state at an accepted point: update the memory and plan the next search."""
    search, old, at = state.search, state.evaluation, found.evaluation
    point = at._replace(value=found.value)
    norm2 = inner(at.gradient, at.gradient)
    start = state.start.with_scale_of(point)
    status = Status.unbounded if start.is_far_above(at.value) else Status.running
    memory, pair = state.memory, Pair.of(at.x - old.x, at.gradient - old.gradient)
    memory.add(pair)
    diagonal = oracle.diagonal(at)
    if diagonal is not None:
        P = clip_positive(diagonal)
    else:
        P = first_diagonal(pair) if state.iteration == 0 else state.scaling
        P = secant_diagonal(P, pair)
    rounding = 4 * eps_of(at.x) * abs(old.value)
    progress = found.value < old.value - rounding or norm2 < state.least_norm2 / 2
    idle = 0 if progress else state.idle + 1
    # where steps had to be shortened, the next one begins shorter, too
    first_part = min(LONGER * found.t, 1.0)
    p, slope, eta, gamma = direction(memory, at.gradient, P, pair.step)
    t = min(longest_part(at.x, start.x, p), first_part)
    is_small_gradient = norm2 <= goal.floor
    is_negligible = is_small_gradient and change_is_negligible(
        point, start, P, p, slope / 2, weighted_norm(p, P), goal.tolerance
    )
    is_stuck, since_check = idle >= TOO_IDLE, state.since_check + 1
    needs_check = (
        (is_negligible and norm2 <= state.checked_norm2 / 100)
        or idle == IDLE
        or is_stuck
        or (is_small(at.x.size) and since_check >= CHECK_EVERY and not memory.is_flat)
    )
    return dataclasses.replace(
        state,
        evaluation=point,
        computed_value=at.value,
        norm2=norm2,
        start=start,
        iteration=state.iteration + 1,
        eta=found.t * search.eta,
        gamma=search.gamma,
        status=status,
        scaling=P,
        search=Search(p, slope, t, eta, gamma),
        first_part=first_part,
        needs_check=bool(needs_check),
        curvature_is_known=False,
        is_stuck=is_stuck,
        idle=idle,
        since_check=since_check,
        least_norm2=min(norm2, state.least_norm2),
    )


def check_curvature(oracle: Oracle, state: LBFGSState, goal: Goal) -> LBFGSState:
    """Measure the curvature around x: end the run, or plan Newton's step or a way off a saddle."""
    evaluation, start, g = state.evaluation, state.start, state.evaluation.gradient
    is_stationary = bool(state.norm2 <= goal.floor)
    judge = functools.partial(
        assess,
        evaluation=evaluation,
        start=start,
        tolerance=goal.tolerance,
        is_stuck=state.is_stuck,
    )
    if not is_small(g.size):
        probes = probe_krylov(oracle, evaluation, start, state.scaling)
        found = judge(probes, scaling=state.scaling, is_stationary=is_stationary)
        return _after_check(state, probes, state.scaling, found, is_stationary)

    def scaling_of(probes: Probes) -> Vector:
        if oracle.traits.diagonal is not None:
            return state.scaling
        return clip_positive(probes.changes.diagonal() / probes.steps.diagonal(), 1e-30)

    ahead = probe_along_coordinates(oracle, evaluation, start, state.scaling, 1.0)
    probes, P = ahead, scaling_of(ahead)
    found = judge(probes, scaling=P, is_stationary=is_stationary, noise=one_sided_noise(g))
    if not found.is_convex:  # one side of each coordinate was not enough
        behind = probe_along_coordinates(oracle, evaluation, start, state.scaling, -1.0)
        probes = _central(ahead, behind)
        P = scaling_of(probes)
        found = judge(probes, scaling=P, is_stationary=is_stationary)
    after = _after_check(state, probes, P, found, is_stationary)
    if after.status is not Status.converged or not found.valley.any():
        return after
    # a flat direction leads through a minimum here: look at the curvature further along it
    for offset in (found.valley, -found.valley):
        ahead, behind = (
            probe_along_coordinates(oracle, evaluation, start, state.scaling, sign, offset)
            for sign in (1.0, -1.0)
        )
        probes = _central(ahead, behind)
        P = scaling_of(probes)
        beside = judge(probes, scaling=P, is_stationary=True)
        if beside.leaves_saddle:
            way_out = _after_check(state, probes, P, beside, is_stationary, offset)
            return dataclasses.replace(way_out, idle=0)  # a way out is new
    return after


def _central(ahead: Probes, behind: Probes) -> Probes:
    return Probes(ahead.steps - behind.steps, ahead.changes - behind.changes)


def _after_check(
    state: LBFGSState,
    probes: Probes,
    scaling: Vector,
    found: Any,
    is_stationary: bool,
    offset: Any = 0.0,
) -> LBFGSState:
    """Return the state after a check: its memory is that of the probes."""
    is_over = state.idle >= TOO_IDLE and np.ndim(offset) == 0
    is_minimum = (
        not found.leaves_saddle and found.is_negligible and (is_stationary or state.is_stuck)
    )
    status = Status.running
    if is_over and gradient_exploded(state):
        status = Status.unbounded
    elif is_minimum:
        status = Status.converged
    elif is_over:
        status = Status.stalled
    search = Search(found.step, found.slope, found.t, 1.0, 0.0, found.leaves_saddle, offset)
    return dataclasses.replace(
        state,
        memory=Memory.of_probes(state.evaluation.x, probes),
        scaling=scaling,
        search=search,
        first_part=1.0,
        needs_check=False,
        curvature_is_known=True,
        checked_norm2=state.norm2,
        since_check=0,
        status=status,
    )
