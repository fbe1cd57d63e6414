"""L-BFGS with a diagonal preconditioner, backtracking and a check of the curvature at the end.

In the paper's words a step lies in the span of P^-1 g, of x - c and of P^-1 times the gradients at
the last 16 terminals c, with the weights of L-BFGS; P is the diagonal by which coordinates are
scaled. Reference: Nocedal and Wright, section 7.2.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from cfgd._core.linalg import clip_positive, eps_of, inner, weighted_norm
from cfgd._core.records import changed
from cfgd._core.types import Column, Number, Scalar, Vector, Vectors
from cfgd.methods.auto.curvature_check import (
    LONG,
    Assessment,
    Probes,
    assess,
    is_small,
    one_sided_noise,
    probe_along_coordinates,
    probe_krylov,
)
from cfgd.methods.auto.face import face_of
from cfgd.methods.auto.flat_directions import (
    MOST_LOOKS,
    coordinate_sizes,
    flat_directions,
    is_saddle,
    lower_point,
    valley_leads_to_saddle,
)
from cfgd.methods.auto.lbfgs_memory import (
    PAIRS,
    Memory,
    Pair,
    first_step,
    next_direction,
    secant_diagonal,
)
from cfgd.methods.auto.line_search import Accepted, Search, line_search
from cfgd.methods.auto.longest_step import longest_fraction
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.plateau import has_lost_coordinates
from cfgd.methods.auto.state import (
    HIDDEN_UNITS,
    Goal,
    Solver,
    SolverState,
    Start,
    change_is_negligible,
    decrease_is_hidden,
    detect_unbounded,
    makes_progress,
)
from cfgd.objectives.base import Objective
from cfgd.status import Status

# Iterations without progress after which the curvature is checked: as many as the memory has pairs.
IDLE = PAIRS
# Iterations without progress after which the run ends: the probes of the check have become the
# memory, have been replaced by new pairs since, and neither has lowered f.
TOO_IDLE = 40
# Iterations between two checks in which all coordinates are probed, in up to 16 dimensions: at most
# about half of the evaluations are then for probes.
CHECK_EVERY = 30
# Ratio of the first trial of a search to the last accepted fraction of a direction: three halvings
# are undone in one step.
LONGER = 8.0
# If a predicted decrease is above this share of f, f is mostly excess over its minimum.
EXCESS = 0.1
# Least entry of a diagonal of curvatures, relative to the largest: units may differ by 1e15 from
# one coordinate to another, and by 1e60 in the check of the curvature in float64.
LEAST_CURVATURE = 1e-30
LEAST_CHECKED = {np.dtype(np.float64): 1e-120, np.dtype(np.float32): LEAST_CURVATURE}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LBFGSState(SolverState):
    """State between two iterations; `memory` is updated in place."""

    memory: Memory
    scaling: Vector  # P, positive
    search: Search
    needs_check: bool  # of the curvature, before the next step
    curvature_is_known: bool = False  # the memory consists of probes around x
    is_stuck: bool = False  # no step lowers f
    checked_norm2: Number = np.inf  # |g|^2 where a check showed that f can be lowered further
    idle: int = 0  # iterations without progress
    since_check: int = 0
    least_norm2: Scalar
    decrease: Number = np.inf  # that the last check predicted
    looks: int = 0  # along flat directions that found a lower value
    first_iteration: int = 0  # of L-BFGS, in a run that began with other steps


class LBFGS(Solver[LBFGSState]):
    """Limited-memory BFGS; every accepted step lowers f."""

    def describe(self, objective: Objective) -> str:
        diagonal = objective.traits.diagonal
        scaling = "adaptive diagonal" if diagonal is None else f"{diagonal} diagonal"
        return f"L-BFGS ({PAIRS} pairs, {scaling} scaling)"

    def init(self, oracle: Oracle, x0: Vector) -> LBFGSState:
        at = oracle.evaluate(x0)
        start = Start.of(at)
        scaling = oracle.diagonal(at)
        P = np.ones_like(x0) if scaling is None else clip_positive(scaling, LEAST_CURVATURE)
        memory = Memory.empty(x0)
        p, slope, eta, gamma = next_direction(memory, at, P, np.zeros_like(x0), oracle.box)
        if scaling is None and start.norm > 0:  # nothing is known of the scale yet
            p = first_step(x0, oracle.free_gradient(at))
            p = p if oracle.box is None else x0 - oracle.box.project(x0 - p)
            slope = inner(at.gradient, p)
        norm2 = oracle.norm2(at)
        search = Search(p, slope, longest_fraction(x0, x0, p), eta, gamma)
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
        while True:
            if state.needs_check:
                state = check_curvature(oracle, state, goal)
                if state.status is not Status.running:
                    return state
            found = line_search(oracle, state.evaluation, state.search, state.start)
            if isinstance(found, Accepted):
                return advance(oracle, state, found, goal)
            if found is Status.unbounded:
                return changed(state, status=Status.unbounded)
            if state.curvature_is_known:
                state = end_without_step(oracle, state, goal)
                if state.status is not Status.running:
                    return state
                continue
            state = changed(state, is_stuck=True, needs_check=True)


def end_without_step(oracle: Oracle, state: LBFGSState, goal: Goal) -> LBFGSState:
    """Return the status of a point from which no search found a lower value.

    At a saddle the other side is searched first; the status is `saddle` only if the negative
    curvature is confirmed.
    """
    evaluation, search, start = state.evaluation, state.search, state.start
    is_done = state.norm2 <= goal.floor and decrease_is_hidden(
        evaluation, start, state.scaling, state.decrease, goal.tolerance
    )
    ending = Status.converged if is_done else Status.stalled
    # if most of f is excess, the minimum is zero, and curvatures are small relative to f
    is_excess = is_done and state.decrease > EXCESS * abs(evaluation.value)
    if np.ndim(search.offset):  # x passed the check, and the search along its valley failed
        if not is_excess and valley_leads_to_saddle(
            oracle, evaluation, start, search.offset, search.p
        ):
            ending = Status.saddle
        return changed(state, status=ending)
    if search.leaves_saddle:
        if not search.is_second:
            second = search._replace(p=-search.p, slope=-search.slope, is_second=True)
            return changed(state, search=second)
        along = search.p / (abs(search.p) / coordinate_sizes(evaluation.x, start)).max()
        flat = along[None], np.zeros(1, along.dtype)
        after = look_along(oracle, changed(state, status=Status.saddle), flat, goal)
        if after.status is Status.running:
            return after
        if not is_excess and is_saddle(oracle, evaluation, start, along):
            return after
        # the curvature was rounding: take the step of the memory, which consists of the probes
        no_step = np.zeros_like(evaluation.x)
        p, slope, eta, gamma = next_direction(
            state.memory, evaluation, state.scaling, no_step, oracle.box
        )
        t = longest_fraction(evaluation.x, start.x, p)
        return changed(state, search=Search(p, slope, t, eta, gamma))
    return changed(state, status=ending)


def advance(oracle: Oracle, state: LBFGSState, found: Accepted, goal: Goal) -> LBFGSState:
    """Return the state at an accepted point, with an updated memory and the next search."""
    search, old, at = state.search, state.evaluation, found.evaluation
    point = at._replace(value=found.value)
    norm2 = oracle.norm2(at)
    start, is_unbounded = detect_unbounded(oracle, state.start, point)
    status = Status.unbounded if is_unbounded else Status.running
    memory, pair = state.memory, Pair.between(old, at)
    memory.add(pair)
    diagonal = oracle.diagonal(at)
    if diagonal is not None:
        P = clip_positive(diagonal, LEAST_CURVATURE)
    else:
        P = secant_diagonal(state.scaling, pair)
    idle = 0 if makes_progress(old, found.value, norm2, state.least_norm2) else state.idle + 1
    p, slope, eta, gamma = next_direction(memory, at, P, pair.step, oracle.box)
    # if a step was shortened, the next search starts with a shorter one
    t = min(longest_fraction(at.x, start.x, p), LONGER * found.t, 1.0)
    is_small_gradient = norm2 <= goal.floor
    is_negligible = is_small_gradient and change_is_negligible(
        point, start, P, p, slope / 2, weighted_norm(p, P), goal.tolerance
    )
    is_stuck, since_check = idle >= TOO_IDLE, state.since_check + 1
    needs_check = (
        # a check that failed is repeated where |g| has fallen to a tenth
        (is_negligible and norm2 <= state.checked_norm2 / 100)
        or idle == IDLE
        or is_stuck
        or (is_small(at.x.size) and since_check >= CHECK_EVERY and not memory.is_flat)
    )
    return changed(
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
        needs_check=bool(needs_check),
        curvature_is_known=False,
        is_stuck=is_stuck,
        idle=idle,
        since_check=since_check,
        least_norm2=min(norm2, state.least_norm2),
    )


def check_curvature(oracle: Oracle, state: LBFGSState, goal: Goal) -> LBFGSState:
    """Check the curvature around x, in the coordinates that are not at active bounds."""
    face = face_of(oracle, state.evaluation)
    if face is None:
        return check_free_curvature(oracle, state, goal)
    if not face.free.any():
        return changed(state, status=Status.converged)
    memory = Memory.empty(state.evaluation.x[face.free])
    on_face = face.restrict_state(state, memory=memory, scaling=state.scaling[face.free])
    after = check_free_curvature(face, on_face, goal)
    scaling, search = state.scaling.copy(), after.search
    scaling[face.free] = after.scaling
    offset = face.embed(search.offset) if np.ndim(search.offset) else search.offset
    n = len(state.memory.steps)  # long vectors have fewer
    probes = Probes(face.embed(after.memory.steps[-n:]), face.embed(after.memory.changes[-n:]))
    return changed(
        after,
        evaluation=state.evaluation,
        start=after.start._replace(x=face.embed_point(after.start.x, state.start.x)),
        memory=Memory.of_probes(state.evaluation.x, probes),
        scaling=scaling,
        search=search._replace(p=face.embed(search.p), offset=offset),
    )


def check_free_curvature(oracle: Oracle, state: LBFGSState, goal: Goal) -> LBFGSState:
    """Measure the curvature around x; end the run, or set up a Newton step or one off a saddle."""
    evaluation, start, g = state.evaluation, state.start, state.evaluation.gradient
    is_stationary, fall = bool(state.norm2 <= goal.floor), start.value - evaluation.value
    assess_probes = functools.partial(
        assess,
        evaluation=evaluation,
        start=start,
        tolerance=goal.tolerance,
        is_stuck=state.is_stuck,
    )
    if not is_small(g.size):
        # the pairs are no longer needed: the probes take their place, also if the run ends here
        out = Probes(state.memory.steps, state.memory.changes)
        probes = probe_krylov(oracle, evaluation, start, state.scaling, out)
        found = assess_probes(probes, scaling=state.scaling, is_stationary=is_stationary)
        is_long = g.size >= LONG  # the directions would take more memory than the run
        flat = None if is_long else flat_directions(probes, evaluation.x, start, fall)
        after = _after_check(state, probes, state.scaling, found, goal)
        return after if flat is None else look_along(oracle, after, flat, goal)

    def scaling_of(probes: Probes) -> Vector:
        if oracle.traits.diagonal is not None:
            return state.scaling
        curvatures = probes.changes.diagonal() / probes.steps.diagonal()
        return clip_positive(curvatures, LEAST_CHECKED[curvatures.dtype])

    ahead = probe_along_coordinates(oracle, evaluation, start, state.scaling, 1.0)
    probes, P, noise = ahead, scaling_of(ahead), one_sided_noise(g)
    found = assess_probes(probes, scaling=P, is_stationary=is_stationary, noise=noise)
    if not found.is_convex:  # one-sided differences did not show that
        behind = probe_along_coordinates(oracle, evaluation, start, state.scaling, -1.0)
        probes = _central(ahead, behind)
        P, noise = scaling_of(probes), None
        found = assess_probes(probes, scaling=P, is_stationary=is_stationary)
    if found.is_negligible and not state.forgot_start and start.is_bad_for(evaluation, P):
        # compare with sizes near x from now on; the check is the same, without other evaluations
        start = Start.of(evaluation)
        state = changed(state, start=start, forgot_start=True)
        assess_probes = functools.partial(assess_probes, start=start)
        found = assess_probes(probes, scaling=P, is_stationary=is_stationary, noise=noise)
    flat = flat_directions(probes, evaluation.x, start, fall)
    after = look_along(oracle, _after_check(state, probes, P, found, goal), flat, goal)
    if after.status is not Status.converged:
        return after
    if has_lost_coordinates(oracle, evaluation, probes, start):
        return changed(after, status=Status.stalled)
    if not found.valley.any():
        return after
    # the minimum lies in a flat valley, which may lead to a saddle: check the curvature there, too
    for offset in (found.valley, -found.valley):
        ahead, behind = (
            probe_along_coordinates(oracle, evaluation, start, state.scaling, sign, offset)
            for sign in (1.0, -1.0)
        )
        probes = _central(ahead, behind)
        P = scaling_of(probes)
        off_x = assess_probes(probes, scaling=P, is_stationary=True)
        if off_x.leaves_saddle:
            way_out = _after_check(state, probes, P, off_x, goal, offset)
            # a search that fails ends the run at x, with the scaling and predictions at x
            return changed(way_out, idle=0, scaling=after.scaling, decrease=after.decrease)
    return after


def _central(ahead: Probes, behind: Probes) -> Probes:
    """Return the central differences of probes to both sides.

    Where a bound makes both probes go to the same side, the first one is taken alone.
    """
    steps, changes = ahead.steps - behind.steps, ahead.changes - behind.changes
    is_central = steps.any(axis=1)[:, None]
    return Probes(
        np.where(is_central, steps, ahead.steps), np.where(is_central, changes, ahead.changes)
    )


def _after_check(
    state: LBFGSState,
    probes: Probes,
    scaling: Vector,
    found: Assessment,
    goal: Goal,
    offset: Any = 0.0,
) -> LBFGSState:
    """Return the state after a check, whose probes become the memory."""
    is_stationary = bool(state.norm2 <= goal.floor)
    decrease = np.inf if found.is_unbounded else found.decrease
    is_done = is_stationary and decrease_is_hidden(
        state.evaluation, state.start, scaling, decrease, goal.tolerance
    )
    is_over = state.idle >= TOO_IDLE and np.ndim(offset) == 0
    # a few directions of many may miss those along which f falls: then no step lowers it because
    # they are badly scaled, unless only rounding is left to gain
    f = state.evaluation.value
    is_seen = is_small(state.evaluation.x.size) or decrease <= HIDDEN_UNITS * eps_of(f) * abs(f)
    is_minimum = (
        not found.leaves_saddle
        and found.is_negligible
        and (is_stationary or (state.is_stuck and is_seen))
    )
    status = Status.running
    if is_minimum:
        status = Status.converged
    elif is_over:
        status = Status.converged if is_done and not found.leaves_saddle else Status.stalled
    search = Search(found.step, found.slope, found.t, 1.0, 0.0, found.leaves_saddle, offset)
    return changed(
        state,
        memory=Memory.of_probes(state.evaluation.x, probes),
        scaling=scaling,
        search=search,
        needs_check=False,
        curvature_is_known=True,
        checked_norm2=state.norm2,
        since_check=0,
        status=status,
        decrease=decrease,
    )


def look_along(
    oracle: Oracle, state: LBFGSState, flat: tuple[Vectors, Column], goal: Goal
) -> LBFGSState:
    """Search along the nearly flat directions of a last point; continue if f is lower there."""
    if state.status is Status.running or state.looks == MOST_LOOKS:
        return state
    offset = lower_point(oracle, state.evaluation, state.start, *flat, goal.tolerance)
    if offset is None:
        return state
    search = Search(-offset, state.norm2.dtype.type(0), 1.0, leaves_saddle=True)
    return changed(state, search=search, idle=0, looks=state.looks + 1, status=Status.running)
