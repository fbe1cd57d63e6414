"""The next point to look at, and what came of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd.algebra import inner
from cfgd.either import chosen, space
from cfgd.method.subspace import Memory
from cfgd.objective.line import Point
from cfgd.types import Count, Flag, Scalar, Vector


class Trial(NamedTuple):
    """The next point to look at, x - t p, and why."""

    p: Vector
    slope: Scalar  # <g, p>
    t: Scalar
    tries: Count
    eta: Scalar
    gamma: Scalar
    probe: Count  # its number, or -1 for a step
    leaves: Flag  # it follows negative curvature away from a saddle


class Start(NamedTuple):
    """What is known of the start."""

    x: Vector
    value: Scalar
    norm: Scalar


class Around(NamedTuple):
    """A point and what is known around it."""

    memory: Memory
    point: Point
    start: Start
    P: Vector
    size: Scalar  # of x in the norm of P
    reach: Scalar  # of a direction, the part that is tried first


def judged(trial: Trial, point: Point, at: Point, least: Scalar) -> Scalar:
    """The value at a trial; below rounding the slopes at both ends say what is no increase.

    `least` is the difference of two values that is seen, however small they are.
    """
    value, eps = point.value, np.finfo(point.value.dtype).eps
    by_slopes = _hidden(trial, point, least) & (inner(at.gradient, trial.p) >= -0.8 * trial.slope)
    same = by_slopes & (at.value <= value + eps**0.8 * abs(value) + least)
    return chosen(same, space(value).minimum(at.value, value), at.value)


def _hidden(trial: Trial, point: Point, least: Scalar) -> Flag:
    """Whether rounding may hide the decrease that a trial promises."""
    value = point.value
    hides = trial.slope <= np.finfo(value.dtype).eps ** 0.6 * abs(value) + 1e3 * least
    return hides & ~trial.leaves


def decreases(trial: Trial, point: Point, value: Scalar, least: Scalar) -> Flag:
    """f(x - t p) <= f(x) - t <g, p> / 10^4, or any non-increase where rounding hides it."""
    enough = value <= point.value - 1e-4 * trial.t * trial.slope
    enough = enough & (~trial.leaves | (value < point.value))
    return enough | (_hidden(trial, point, least) & (value <= point.value))


def shorter(trial: Trial, point: Point, value: Scalar) -> Trial:
    t, slope = trial.t, trial.slope
    parabola = slope * t * t / (2 * (value - point.value + slope * t))
    inside = space(t).clip(parabola, t / 10, t / 2)
    finite = abs(parabola) < np.inf
    return trial._replace(t=chosen(finite, inside, t / 10), tries=trial.tries + 1)
