"""The step to try next, and what it promises: from steps that were made, or from probes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd._core.either import branch, chosen, smaller, space
from cfgd._core.linalg import inner, size as size_of
from cfgd._core.types import Flag, Number, Offset, Scalar, Vector
from cfgd.methods.auto.probe import noise
from cfgd.methods.auto.scaling import first_step, furthest
from cfgd.methods.auto.subspace import best_direction, looked_direction
from cfgd.methods.auto.trial import AWAY, Around, Trial, no_offset
from cfgd.objectives.base import Objective

# a valley along which x has grown by this factor is taken to lead to infinity
FAR = 1e2
# how far to look along a valley that is flat, as a part of the size of x: a minimum here may be a
# saddle there, as where two terms of a sum have become one and the same
ASIDE = 2.0


class Plan(NamedTuple):
    """The step to try next, and what the model says of the point."""

    trial: Trial
    quiet: Flag  # it promises no more than the tolerance
    endless: Flag  # it leads to infinity
    flat: Vector  # a direction without curvature to look along, or zero
    convex: Flag  # all curvatures are known, and positive


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
    no = near & ~near
    return Plan(trial, quiet, no, 0 * p, no)


def plan_of_probes(
    around: Around,
    near: Flag,
    tolerance: Number,
    aside: Offset | None = None,
    stuck: Flag | None = None,
    blur: Any = None,
) -> Plan:
    """Newton's step of the curvature around the point, or `aside`, and whether it promises much.

    `blur` is what is not known of curvatures, where it is more than rounding.
    A saddle is left where the gradient is `near` zero, and where no step helps (`stuck`), if its
    curvature is clear beside the largest one in the units of x, too.
    """
    memory, point, start, P = around
    g, x, xp, size = point.gradient, point.x, space(point.x), around.size()
    far = abs(x) > FAR * (abs(start.x) + xp.sqrt((start.x**2).mean()))
    far = far & (start.x != 0).any()
    blur = noise(g) if blur is None else blur
    found = looked_direction(memory, g, P, size, blur, far)
    down, one = found.downwards, 0 * size + 1
    clear = -found.least > noise(g) * inner(down, down) * P.max()
    leaves = (found.least < 0) & (near if stuck is None else near | (stuck & clear))
    size = chosen(size > 0, size, one)
    p = chosen(leaves, size * down, found.p)
    p = chosen(leaves | (inner(g, p) > 0), p, g / P)  # the latter without any curvature
    trial = _trial(around, p, inner(g, p), one, one, 0 * one, leaves)
    if aside is not None:
        trial = trial._replace(aside=chosen(leaves, aside, 0 * aside))
    quiet = is_quiet(around, p, found.decrease, found.length, tolerance)
    endless, flat = ~(found.length < np.inf), _aside(around, size * found.flat)
    return Plan(trial, quiet, endless, flat, found.convex)


def _aside(around: Around, flat: Vector) -> Vector:
    """As far along a flat valley as its scaled size says, and as x is large."""
    x, x0, xp = around.point.x, around.start.x, space(flat)
    sizes = abs(x) + xp.sqrt(xp.maximum(inner(x, x), inner(x0, x0)) / x.size)
    furthest = (abs(flat) / xp.where(sizes > 0, sizes, 1)).max()
    return ASIDE * flat / xp.maximum(furthest, 1) * (sizes > 0).all()


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
    return Trial(p, slope, t, none, eta, gamma, none - 1, leaves, no_offset(p))


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
