"""Whether a Tikhonov step has anything left to gain, and whether the Hessian agrees."""

from __future__ import annotations

from typing import NamedTuple

from cfgd.algebra import inner, size as size_of
from cfgd.either import chosen, on_host, repeat
from cfgd.method.base import ending
from cfgd.method.damped import System
from cfgd.method.outcome import Outcome, TikhonovState, goes, stays
from cfgd.method.plan import is_quiet, plan_of_probes
from cfgd.method.probe import directions, looked_around
from cfgd.method.trial import Around
from cfgd.objective.base import Objective
from cfgd.objective.line import Point
from cfgd.types import Count, Flag, Number, Scalar

# The power of the tolerance to which a promise must fall before the verdict is asked for: a step
# more costs less than the verdict, and gives as many digits again.
FURTHER = 1.5
# how often a step may be shortened
MOST_TRIES = 40


def promises_nothing(state: TikhonovState, model: System, tolerance: Number) -> tuple[Flag, Flag]:
    """Whether the step without gamma promises no more than asked for, and than is easily had."""
    p = model.undamped()
    P = model.own()
    around = Around(None, state.point, state.start, P)  # type: ignore[arg-type]
    gain, length = inner(state.point.gradient, p) / 2, size_of(p, P)
    quiet, settled = (
        is_quiet(around, p, gain, length, each) for each in (tolerance, tolerance**FURTHER)
    )
    return quiet, settled


class Walk(NamedTuple):
    t: Scalar
    tries: Count
    good: Flag


def looked(
    objective: Objective,
    state: TikhonovState,
    point: Point,
    model: System,
    quiet: Flag,
    tolerance: Number,
) -> Outcome:
    """Whether the Hessian agrees that nothing is to gain; else a step of its own.

    Where that does not help and the model is `quiet`, what the Hessian promised is its rounding.
    """
    if objective.model_is_exact:
        return stays(state, model.cost, ending(converged=quiet, stalled=~quiet))
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
