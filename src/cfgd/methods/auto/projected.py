"""Tikhonov steps on the hidden weights of a network, whose output weights are the best for them.

Both layers have a gamma: that of the hidden one is the step's, with terminal x; that of the output
one, with terminal 0, falls with f, so that it never is more than a part of what is left to gain.
A network with more weights than samples begins with it. One with fewer has valleys that lead
nowhere, in which it would end more often: there steps on all weights go first and find a good one.
Where no more comes of it, steps on all weights go on and have the last word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cfgd._core.either import made, on_host, replaced
from cfgd._core.linalg import eps_of, inner
from cfgd._core.types import Count, Flag, Number, Scalar, Vector
from cfgd.methods.auto.attempt import tried
from cfgd.methods.auto.damped import system
from cfgd.methods.auto.outcome import FIRST, TikhonovState
from cfgd.methods.auto.tikhonov import Tikhonov
from cfgd.methods.base import Info, ending
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import is_wide
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.linear.sharded import host_of
from cfgd.objectives.network.projection import Features, Projection
from cfgd.status import Status

# Of the value at the start, where the hidden weights are taken alone, or iterations after which
LOW, AFTER = 1e-3, 100
# gamma of the output weights at first, beside what a feature's squares sum up to
AT_FIRST = 1e-4
# of f, what gamma/2 |a|^2 may be, and by how much gamma may fall at once because of that
PART, MOST_FALL = 0.1, 1e3
# by how much it falls where no step helps
FURTHER = 100.0
# so many steps in a row that gain less than this part of f are the end of it
PATIENCE, SLOW = 5, 3e-3


class ProjectedState(TikhonovState):
    """`point` is that of all weights, and `inner` that of the hidden ones with the best others."""

    inner: Evaluation
    output_gamma: Scalar
    least_gamma: Scalar  # of the output weights: below it rounding decides
    idle: Count  # slow steps in a row


class Projected(Tikhonov):
    """On all weights and on the hidden ones. A sweep, and what NumPy cannot see, go without."""

    def describe(self, objective: Objective) -> str:
        steps = super().describe(objective)
        if host_of(objective) is None:
            return steps
        return f"{steps}, in part with the output weights that are the best for the hidden ones"

    def step(
        self, objective: Objective, state: Any, floor: Number = 0.0, tolerance: Number = 0.0
    ) -> tuple[Any, Info]:
        if isinstance(state, ProjectedState):
            walked, info, goes_on = _walked(objective, state)
            return (walked if goes_on else _all_weights(walked)), info
        after, info = super().step(objective, state, floor, tolerance)
        running = on_host(state.k) and info.ending == Status.running.code
        if running and objective.hidden is not None and _turns(objective, state, after):
            after = _hidden_weights(objective, after)
        return after, info


def _turns(objective: Objective, before: TikhonovState, after: TikhonovState) -> Flag:
    """Whether it is here that the hidden weights are to be taken alone."""
    shape = objective.model_shape(after.point)
    if shape is None or not objective.affords(shape):
        return before.k < -1
    if is_wide(shape):
        return before.k < 0
    low = LOW * after.start.value
    falls = (after.point.value <= low) & (before.point.value > low)
    return (before.k >= 0) & (falls | ((before.k < AFTER) & (after.k >= AFTER)))


def _hidden_weights(objective: Any, state: TikhonovState) -> TikhonovState:
    """The state with which it goes on with the hidden weights."""
    n, x = objective.hidden, state.point.x
    features = objective.features(x[:n])
    typical = (features.phi**2).sum() / features.phi.shape[1]
    if not 0 < typical < np.inf:
        return state
    least = eps_of(x) ** 2 * typical
    gamma = max(least, min(AT_FIRST * typical, _gamma_for(state.point.value, x[n:])))
    more = {
        "D": state.D[:n],
        "inner": _settled(objective, gamma, x[:n], features),
        "output_gamma": gamma,
        "least_gamma": least,
        "idle": 0 * state.k,
    }
    return made(ProjectedState, **(state.__dict__ | more))


def _all_weights(state: ProjectedState) -> TikhonovState:
    """The state with which Tikhonov steps on all weights go on."""
    names = ("k", "point", "eta", "gamma", "seen", "norm2", "stuck", "start")
    fields = {name: getattr(state, name) for name in names}
    first = 0 * state.norm2 + FIRST
    return made(TikhonovState, **fields, next_gamma=first, D=0 * state.point.x)


def _gamma_for(value: Scalar, output: Any) -> Scalar:
    """The gamma that is worth a part of f."""
    squares = inner(output, output)
    return PART * 2 * value / squares if squares > 0 else value + np.inf


def _walked(objective: Any, state: ProjectedState) -> tuple[ProjectedState, Info, Flag]:
    """An iteration, and whether another one is worth while."""
    gamma, least, here = state.output_gamma, state.least_gamma, state.inner
    projection = Projection(objective, gamma, state.point.value)
    here = projection.ready(here, state.D)
    hidden = replaced(state, point=here, start=state.start._replace(x=state.start.x[: here.x.size]))
    walkable = projection.as_objective()
    model = system(walkable, here, state.D, state.norm2)
    outcome = tried(walkable, hidden, here, model)
    after = projection.evaluate(here.x - outcome.move) if outcome.moved else here
    slow = here.value - after.value <= SLOW * after.value
    idle = (state.idle + 1) * (slow & outcome.moved)

    known, next_gamma = after.aux, outcome.next_gamma
    wanted = max(_gamma_for(known.value, known.output), gamma / MOST_FALL)
    if not outcome.moved:
        wanted, next_gamma = gamma / FURTHER, 0 * gamma + FIRST
    if wanted < gamma / 2:  # each takes a factorisation
        gamma = max(least, wanted)
        after = _settled(objective, gamma, after.x, known.features)

    lower = after.aux.value < state.point.value
    point, norm2 = state.point, state.norm2
    if lower:
        x = np.concatenate([after.x, after.aux.output])
        at = objective.seen_at(x, after.aux.features)
        point = made(Evaluation, x=x, value=at.value, gradient=at.gradient, aux=None)
        norm2 = inner(point.gradient, point.gradient)
    new = replaced(
        state,
        k=state.k + lower,
        point=point,
        eta=0 * norm2 + 1 if lower else state.eta,
        gamma=outcome.gamma,
        seen=point.value,
        norm2=norm2,
        next_gamma=next_gamma,
        D=model.D,
        inner=after,
        output_gamma=gamma,
        idle=idle,
    )
    info = made(
        Info, norm2=norm2, cost=outcome.cost, reset=lower & ~lower, ending=ending(), moved=lower
    )
    return new, info, (idle < PATIENCE) & (lower | (gamma > least))


def _settled(objective: Any, gamma: Scalar, w: Vector, features: Features) -> Evaluation:
    return Projection(objective, gamma, gamma + np.inf).settled(w, features)
