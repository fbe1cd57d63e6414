"""How far along its step an exact model leads: halved or doubled, until that helps no more.

Newton's step on counts may be a hundred times too long, and on labels that can almost be told
apart half as long as it should be. Along a line of predictions a value costs next to nothing, and
another matrix a lot.
"""

from __future__ import annotations

from typing import NamedTuple

from cfgd._core.either import chosen, on_host, repeat
from cfgd._core.types import Flag, Scalar, Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation

# A gain this near to what the model promises needs no search.
NEAR = 0.1
# how often a step may be halved, and doubled: beyond that the model is of another place
MOST_HALVINGS, MOST_DOUBLINGS = 30, 3


class Reach(NamedTuple):
    eta: Scalar
    value: Scalar
    tries: Scalar
    more: Flag


def searches(gain: Scalar) -> Flag:
    return ~(abs(gain - 1) <= NEAR)


def reach(objective: Objective, point: Evaluation, p: Vector, value: Scalar, gain: Scalar) -> Reach:
    """From `value` at x - p, of which `gain` is the decrease beside the one promised."""
    line = objective.line(point, p)
    one, f = 0 * gain + 1, point.value
    longer = gain > 1
    factor = chosen(longer, 2 * one, one / 2)
    most = chosen(longer, MOST_DOUBLINGS * one, MOST_HALVINGS * one)

    def once(at: Reach) -> Reach:
        eta = factor * at.eta
        new = line.values(eta[None])[0]
        # on the way back from where f is higher or no number, any step is one
        better = (new < at.value) | (~longer & ~(at.value < f))
        value = chosen(better, new, at.value)
        return Reach(chosen(better, eta, at.eta), value, at.tries + 1, better)

    first = Reach(one, value, 0 * one, one > 0)
    return repeat(lambda at: at.more & (at.tries < most), once, first, on_host(p))
