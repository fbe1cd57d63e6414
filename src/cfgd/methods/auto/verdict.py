"""Whether a Tikhonov step has anything left to gain, and whether the Hessian agrees."""

from __future__ import annotations

from typing import NamedTuple

from cfgd._core.either import branch, chosen, on_host, repeat
from cfgd._core.linalg import eps_of, inner, size as size_of
from cfgd._core.types import Count, Flag, Number, Scalar, Vector
from cfgd.methods.auto.damped import System
from cfgd.methods.auto.outcome import Outcome, TikhonovState, goes, stays
from cfgd.methods.auto.plan import is_quiet, plan_of_probes
from cfgd.methods.auto.probe import directions, looked_around
from cfgd.methods.auto.trial import Around
from cfgd.methods.base import ending
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation

# The power of the tolerance to which a promise must fall before the Hessian is asked: a step more
# costs less than its products, and gives as many digits again.
FURTHER = 1.5
# how often a step may be shortened
MOST_TRIES = 40


class Promise(NamedTuple):
    """Of the step without gamma: whether it is no more than asked for, and than is easily had."""

    p: Vector
    quiet: Flag
    settled: Flag


def promised(
    objective: Objective, state: TikhonovState, model: System, tolerance: Number
) -> Promise:
    p = model.undamped()
    P = model.own()
    around = Around(None, state.point, state.start, P)  # type: ignore[arg-type]
    gain, length = inner(state.point.gradient, p) / 2, size_of(p, P)
    quiet = is_quiet(around, p, gain, length, tolerance)
    if objective.model_is_exact:
        return Promise(p, quiet, quiet)
    return Promise(p, quiet, is_quiet(around, p, gain, length, tolerance**FURTHER))


def _last_of_newton(
    objective: Objective, state: TikhonovState, point: Evaluation, model: System, promise: Promise
) -> Outcome:
    """The matrix has judged; the step that it promised is there, and doubles the digits."""
    p, quiet = promise.p, promise.quiet
    ends, gamma = ending(converged=quiet, stalled=~quiet), 0 * state.norm2

    def is_better() -> Flag:
        at, f = objective.evaluate(point.x - p), point.value
        same = at.value <= f + 8 * eps_of(f) * abs(f)  # what is left to gain is rounding
        return same & (inner(at.gradient, at.gradient) < state.norm2 / 4)

    return chosen(
        branch(quiet, is_better, lambda: quiet),
        goes(state, p, gamma, state.next_gamma, model.cost)._replace(ending=ends),
        stays(state, model.cost + quiet, ends),
    )


class Walk(NamedTuple):
    t: Scalar
    tries: Count
    good: Flag


def looked(
    objective: Objective,
    state: TikhonovState,
    point: Evaluation,
    model: System,
    promise: Promise,
    tolerance: Number,
) -> Outcome:
    """Whether the Hessian agrees that nothing is to gain; else a step of its own.

    Where that does not help and the model is `quiet`, what the Hessian promised is its rounding.
    """
    quiet = promise.quiet
    if objective.model_is_exact:
        return _last_of_newton(objective, state, point, model, promise)
    around = looked_around(objective, point, state.start, model.own())
    sure, f, none = state.k >= 0, point.value, 0 * state.k
    plan = plan_of_probes(around, sure, tolerance)
    trial = plan.trial
    settled = plan.quiet & ~trial.leaves

    def once(last: Walk) -> Walk:
        t = last.t / 3
        value = objective.value(point.x - t * trial.p)
        good = (value <= f - 1e-4 * t * trial.slope) & (value < f)
        return Walk(t, last.tries + 1, good)

    end = repeat(
        lambda at: ~at.good & ~settled & (at.tries < MOST_TRIES),
        once,
        Walk(3 * trial.t, none, none > 0),
        on_host(point.x),
    )
    cost = model.cost + objective.product_cost * directions(point.x.size) + end.tries / 2
    done = settled | (quiet & ~plan.endless)
    ends = ending(saddle=trial.leaves, converged=done, stalled=sure)
    return chosen(
        end.good,
        goes(state, end.t * trial.p, 0 * f, state.next_gamma, cost),
        stays(state, cost, ends),
    )
