"""What a Tikhonov step starts from, and what comes of it."""

from __future__ import annotations

from typing import NamedTuple

from cfgd._core.either import space
from cfgd._core.types import Count, Flag, Number, Scalar, Vector
from cfgd.methods.auto.damped import LEAST
from cfgd.methods.auto.trial import Start
from cfgd.methods.base import State, ending

# gamma at the start
FIRST = 1e-3


class TikhonovState(State):
    """`k` is -1 until the start was looked at; `gamma` is that of the last step.

    Of its point, the value never grows by rounding.
    """

    gamma: Scalar
    seen: Scalar  # the value at the point, as it was computed
    norm2: Scalar  # |g|^2 there
    next_gamma: Scalar
    D: Vector
    stuck: Flag  # no step helps: the curvature has the last word
    start: Start


class Outcome(NamedTuple):
    """Of an iteration: where it goes, and what is known after it."""

    move: Vector
    gamma: Scalar
    next_gamma: Scalar
    cost: Scalar
    ending: Count
    moved: Flag
    stuck: Flag


def stays(
    state: TikhonovState,
    cost: Number = 0.0,
    ends: Count | None = None,
    stuck: Flag | None = None,
) -> Outcome:
    no, code = state.k < -1, ending() if ends is None else ends
    stuck = no if stuck is None else stuck
    zero = 0 * state.norm2
    return Outcome(0 * state.point.x, state.gamma, state.next_gamma, zero + cost, code, no, stuck)


def goes(
    state: TikhonovState, move: Vector, gamma: Scalar, next_gamma: Scalar, cost: Number
) -> Outcome:
    yes, zero = state.k >= 0, 0 * state.norm2
    next_gamma = space(gamma).maximum(next_gamma, LEAST)
    return Outcome(move, gamma, next_gamma, zero + cost, ending(), yes, ~yes)
