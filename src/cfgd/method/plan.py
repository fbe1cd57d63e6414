"""The step to try next, and what it promises: from steps that were made, or from probes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd.algebra import inner, size as size_of
from cfgd.either import branch, chosen, smaller, space
from cfgd.method.probe import noise
from cfgd.method.scaling import first_step, furthest
from cfgd.method.subspace import best_direction, looked_direction
from cfgd.method.trial import AWAY, Around, Trial
from cfgd.objective.base import Objective
from cfgd.types import Flag, Number, Scalar, Vector

# a valley along which x has grown by this factor is taken to lead to infinity
FAR = 1e2


class Plan(NamedTuple):
    """The step to try next, and what the model says of the point."""

    trial: Trial
    quiet: Flag  # it promises no more than the tolerance
    endless: Flag  # it leads to infinity


def plan_of_steps(
    objective: Objective,
    around: Around,
    step: Vector,
    reach: Scalar,
    first: Flag,
    near: Flag,
    tolerance: Number,
) -> Plan:
    """The step that the memory knows of, and, near the end, whether it promises anything."""
    memory, point, start, P = around
    g = point.gradient
    p, slope, eta, gamma = best_direction(memory, g, P, step)
    if objective.scaled_by is None:
        # nothing is known of the scale yet
        blind = first & (start.norm > 0)
        p = branch(blind, lambda: first_step(point.x, g), lambda: p)
        slope = branch(blind, lambda: inner(g, p), lambda: slope)
    trial = _trial(around, p, slope, reach, eta, gamma, near & ~near)
    quiet = branch(
        near,
        lambda: is_quiet(around, p, slope / 2, size_of(p, P), tolerance),
        lambda: near,
    )
    return Plan(trial, quiet, near & ~near)


def plan_of_probes(around: Around, near: Flag, tolerance: Number) -> Plan:
    """Newton's step of the curvature around the point, and whether it promises anything."""
    memory, point, start, P = around
    g, x, xp, size = point.gradient, point.x, space(point.x), around.size()
    far = abs(x) > FAR * (abs(start.x) + xp.sqrt((start.x**2).mean()))
    far = far & (start.x != 0).any()
    found = looked_direction(memory, g, P, size, noise(g), far)
    leaves, one = near & (found.least < 0), 0 * size + 1
    p = chosen(leaves, chosen(size > 0, size, one) * found.downwards, found.p)
    p = chosen(leaves | (inner(g, p) > 0), p, g / P)  # the latter without any curvature
    trial = _trial(around, p, inner(g, p), one, one, 0 * one, leaves)
    quiet = is_quiet(around, p, found.decrease, found.length, tolerance)
    return Plan(trial, quiet, ~(found.length < np.inf))


def _trial(
    around: Around,
    p: Vector,
    slope: Scalar,
    reach: Scalar,
    eta: Scalar,
    gamma: Scalar,
    leaves: Flag,
) -> Trial:
    none = 0 * around.memory.newest
    part = smaller(furthest(around.point.x, around.start.x, p), reach)
    t = chosen(leaves, reach, part)  # at a saddle the size of x may say nothing
    return Trial(p, slope, t, none, eta, gamma, none - 1, leaves)


def is_quiet(
    around: Around, p: Vector, decrease: Scalar, length: Scalar, tolerance: Number
) -> Flag:
    """Whether a step that lowers f by `decrease` and is of some `length` is no more than asked."""
    x, x0 = around.point.x, around.start.x
    typical = space(x).sqrt((x * x).mean())
    sizes = abs(x) + AWAY * (abs(x - x0) + typical)
    small = (decrease <= tolerance / 100 * abs(around.point.value)) & (
        abs(p) <= tolerance**0.5 * sizes
    ).all()
    return small | (length <= tolerance * around.size())
