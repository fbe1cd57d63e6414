"""Looks around a point: what its gradients say of the curvature there."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfgd._core.either import branch, chosen, made, on_host, put, repeat, smaller, space
from cfgd._core.linalg import eps_of, inner, size as size_of
from cfgd._core.types import Count, Flag, Offset, Vector
from cfgd.methods.auto.subspace import Memory, is_small, terminals
from cfgd.methods.auto.trial import Around, Start, Trial, no_offset
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation


def probes(d: int) -> int:
    """Along every coordinate one and then another, or one along each of Krylov's directions."""
    return 2 * d if is_small(d) else terminals(d)


def is_half(number: Count, d: int) -> Flag:
    """Whether every coordinate was looked along once: that is often enough."""
    return number == (d - 1 if is_small(d) else -1)


def directions(d: int) -> int:
    """All coordinates, or as many of Krylov's."""
    return min(d, terminals(d))


def noise(g: Vector) -> Any:
    """What rounding leaves of curvatures from differences, as a part of the largest one."""
    return 8 * eps_of(g) ** (2 / 3 if is_small(g.size) else 1 / 2)


def one_sided_noise(g: Vector) -> Any:
    """What a change of the curvature along a probe leaves of them, if there is but one."""
    return 8 * eps_of(g) ** (1 / 3)


def probed(memory: Memory, number: Count, step: Vector, change: Vector) -> Memory:
    """With one probe more: of two along a coordinate, the difference."""
    d = step.size
    row, sign = (number % d, 1 - 2 * (number // d)) if is_small(d) else (number, 1)
    return memory.plus(row, sign * step, sign * change)


def next_probe(
    around: Around, first: Flag, last: Count, aside: Offset | None = None
) -> tuple[Memory, Trial]:
    """The memory, empty before the `first` probe, and the probe after the `last` one.

    Of two along a coordinate, what both have `aside` of x does not count.
    """
    memory = branch(first, around.memory.emptied, lambda: around.memory)
    trial = _probe(memory, around, chosen(first, 0 * last, last + 1))
    return memory, trial if aside is None else trial._replace(aside=aside)


def _probe(memory: Memory, around: Around, number: Count) -> Trial:
    """A trial that looks around x."""
    P, size, xp = around.P, around.size(), space(around.P)
    eps, one = eps_of(P), 0 * size + 1
    typical = chosen(size > 0, size, one)
    if is_small(P.size):
        j, x, x0 = number % P.size, around.point.x, around.start.x
        # a coordinate without curvature is moved no further than the others are large
        squares, first = inner(x, x), inner(x0, x0)
        others = xp.sqrt(chosen(squares < first, first, squares) / x.size)
        least = smaller(1e-3 * typical / xp.sqrt(P[j]), chosen(others > 0, others, one))
        reach = chosen(abs(x[j]) < least, least, abs(x[j]))
        ahead = eps ** (1 / 3) * reach
        p = put(xp.zeros_like(x), j, chosen(number < P.size, -ahead, ahead))
    else:
        p = _krylov(memory, around, number)
        p *= -(eps**0.5) * typical
    none, unknown = 0 * number, one * np.nan
    return Trial(p, 0 * one, one, none, unknown, unknown, number, size < 0, no_offset(p))


def _krylov(memory: Memory, around: Around, number: Count) -> Vector:
    """The next direction, orthonormal to the probes before it in the norm of P."""
    P, xp = around.P, space(around.P)
    steps, scale = memory.steps, memory.scale(P)

    # on the host in place: vectors may be long, and the memory has most of the room

    def unit(w: Vector) -> Vector:
        length = size_of(w, P)
        w /= chosen(length > 0, length, 0 * length + 1)
        return w

    def new(w: Vector) -> Vector:
        for _ in range(2):  # once is not enough
            w -= (scale * scale * (steps @ (P * w))) @ steps
        return w

    def chance() -> Vector:
        """Where there is nothing new, as at a saddle, numbers without a pattern may find it."""
        w = xp.arange(1, P.size + 1, dtype=P.dtype)
        w *= w
        return new(xp.sin((number + 1) * w) / xp.sqrt(P))

    rest = branch(
        number == 0,
        lambda: around.point.gradient / P,
        lambda: memory.changes[xp.maximum(number - 1, 0)] / P,
    )
    rest = new(unit(rest))
    return unit(branch(inner(P * rest, rest) > 1e-12, lambda: rest, chance))


def looked_around(objective: Objective, point: Evaluation, start: Start, P: Vector) -> Around:
    """The curvature around a point by products with the Hessian: exact, where that can be had."""
    xp, d, most = space(P), P.size, directions(P.size)
    kept = made(Evaluation, x=point.x, value=point.value, gradient=point.gradient, aux=None)

    def once(at: tuple[Memory, Count]) -> tuple[Memory, Count]:
        memory, j = at
        if is_small(d):
            step = (xp.arange(d) == j) / xp.sqrt(P)
        else:
            step = _krylov(memory, Around(memory, kept, start, P), j)
        return memory.plus(j, step, objective.hessian_times(point, step)), j + 1

    none = Memory.empty(point.x), xp.zeros((), np.int32)[()]
    memory, _ = repeat(lambda at: at[1] < most, once, none, on_host(P))
    return Around(memory, kept, start, P)
