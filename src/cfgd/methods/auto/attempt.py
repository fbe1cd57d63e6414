"""The step of the model, with gamma as large as it takes."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.either import branch, chosen, on_host, repeat, smaller, space
from cfgd._core.linalg import eps_of, inner, size as size_of
from cfgd._core.types import Count, Flag, Scalar, Vector
from cfgd.methods.auto.damped import LEAST, Step, System
from cfgd.methods.auto.outcome import Outcome, TikhonovState, goes, stays
from cfgd.methods.auto.reach import reach, searches
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation

# by how much gamma falls where the model proves true, and grows at first where a step fails
FALL, GROW = 5.0, 4.0
TRUE, WRONG = 0.75, 0.25
# of a first step that should be Newton's: where the matrix is singular, rounding decides how far
# it goes to where nothing changes, and this part is left of what it decides
SLIGHT = 1e-7
# how often a step may be shortened
MOST_TRIES = 40
# times the size of x that a step may be long, in the norm of D: as it is, or to be shortened
FURTHEST, FURTHEST_SEARCHED = 3.0, 1e3
# a step is followed by its second derivative if that bends it by no more than this part of itself
BEND, AHEAD = 0.75, 0.1


class Try(NamedTuple):
    """A step that was tried, the last one so far."""

    move: Vector  # x - move is tried
    value: Scalar
    promise: Scalar  # decrease that the model promises
    gamma: Scalar
    growth: Scalar  # of gamma if it fails
    cost: Scalar  # in gradients
    tries: Count
    good: Flag


def tried(objective: Objective, state: TikhonovState, point: Evaluation, model: System) -> Outcome:
    zero, none = 0 * state.norm2, 0 * state.k
    no, gamma = none > 0, state.next_gamma
    if objective.model_is_exact:  # then Newton's step is the best guess of the first one, too
        gamma = chosen(state.k == 0, zero + SLIGHT, gamma)
    first = Try(0 * point.x, zero + np.inf, zero, gamma, zero + GROW, zero, none, no)
    end = repeat(
        lambda at: ~at.good & (at.tries < MOST_TRIES),
        partial(_once, objective, state, point, model),
        first,
        on_host(point.x),
    )
    gain = (point.value - end.value) / end.promise
    gamma = chosen(gain > TRUE, end.gamma / FALL, chosen(gain < WRONG, 2 * end.gamma, end.gamma))
    cost = model.cost + end.cost
    return branch(
        end.good & (end.gamma < 1 / LEAST),  # beyond it a step is rounding
        lambda: goes(state, end.move, end.gamma, gamma, cost),
        lambda: stays(state, cost, stuck=~no),
    )


def _once(
    objective: Objective, state: TikhonovState, point: Evaluation, model: System, last: Try
) -> Try:
    """One more try."""
    gamma, D, f = last.gamma, model.D, point.value
    step = model.step(gamma)
    p = step.p
    squares = inner(D * p, p)
    promise = (inner(point.gradient, p) + gamma * squares) / 2
    size = size_of(point.x, D) + size_of(point.x - state.start.x, D)
    furthest = FURTHEST_SEARCHED if objective.model_is_exact else FURTHEST
    long = (squares > (furthest * size) ** 2) & (size > 0)
    fine = (promise > 0) & (promise < np.inf)
    usable = fine & ~long
    move, looks = branch(
        usable,
        lambda: _bent(objective, point, model, step, squares),
        lambda: (p, 0 * gamma),
    )
    value = branch(usable, lambda: objective.value(point.x - move), lambda: 0 * f + np.inf)
    hidden = promise <= 1e3 * eps_of(f) * abs(f)
    share = 0 * f + 1
    if objective.model_is_exact:
        gain = (f - value) / promise
        found = branch(
            usable & ~hidden & searches(gain),
            lambda: reach(objective, point, p, value, gain)[:2],
            lambda: (share, value),
        )
        (eta, value), looks = found, looks + (found[0] != 1)
        move, share = eta * move, smaller(eta, share)
    good = value <= f - 1e-4 * share * promise
    # where rounding hides the decrease, the gradient shows it
    unseen = usable & hidden & ~good
    same = branch(unseen, lambda: value <= f + eps_of(f) ** 0.8 * abs(f), lambda: unseen)

    def falls() -> Flag:
        g = objective.evaluate(point.x - move).gradient
        return inner(g, g / D) <= inner(point.gradient, point.gradient / D) / 4

    good = good | branch(same, falls, lambda: same)
    # rounding hides what a shorter step would gain, too
    tries = chosen(usable & hidden & ~good, 0 * last.tries + MOST_TRIES, last.tries + 1)
    return Try(
        move,
        value,
        promise,
        branch(good, lambda: gamma, lambda: space(gamma).maximum(gamma, LEAST) * last.growth),
        chosen(long, last.growth, 2 * last.growth),
        last.cost + step.cost + looks + usable / 2,
        tries,
        good,
    )


def _bent(
    objective: Objective, point: Evaluation, model: System, step: Step, squares: Scalar
) -> tuple[Vector, Scalar]:
    """The step as a curve: with the acceleration of the residuals along it (Transtrum, Sethna).

    To second order r(x - t p) is r - t Jp + t^2 k / 2, and the curve -p t + a t^2 with
    (H + gamma D) a = -J'k / 2 is where the model goes. One that bends too much is not followed.
    """
    here: Any = objective.residuals(point)
    if here is None or step.bent is None or model.image is None:
        return step.p, 0 * squares
    ahead: Any = objective.residuals(objective.evaluate(point.x - AHEAD * step.p))
    k = 2 / AHEAD * ((ahead - here) / AHEAD + model.image(step.p))
    a = -step.bent(k) / 2
    little = 4 * inner(model.D * a, a) <= BEND**2 * squares
    return chosen(little, step.p - a, step.p), 0 * squares + 0.5
