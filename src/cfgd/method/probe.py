"""Looks around a point: what its gradients say of the curvature there."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from cfgd.algebra import inner
from cfgd.method.subspace import Memory
from cfgd.method.trial import Around, Trial, chosen
from cfgd.types import Count, Flag, Vector

# directions that are looked along: as many as the memory of Auto has room for
DIRECTIONS = 16


def is_small(d: int) -> bool:
    """Whether the memory has room for a probe along every coordinate."""
    return d <= DIRECTIONS


def probes(d: int) -> int:
    """Two along every coordinate, or one along each of Krylov's directions."""
    return 2 * d if is_small(d) else DIRECTIONS


def noise(g: Vector) -> Any:
    """What rounding leaves of curvatures from differences, as a part of the largest one."""
    return 8 * jnp.finfo(g.dtype).eps ** (2 / 3 if is_small(g.size) else 1 / 2)


def probed(memory: Memory, number: Count, step: Vector, change: Vector) -> Memory:
    """With one probe more: of two along a coordinate, the difference."""
    row, sign = (number // 2, 1 - 2 * (number % 2)) if is_small(step.size) else (number, 1)
    steps = memory.steps.at[row].add(sign * step)
    return Memory(steps, memory.changes.at[row].add(sign * change))


def next_probe(around: Around, first: Flag, last: Count) -> tuple[Memory, Trial]:
    """The memory, empty before the `first` probe, and the probe after the `last` one."""
    memory = chosen(first, jax.tree.map(jnp.zeros_like, around.memory), around.memory)
    return memory, _probe(memory, around, jnp.where(first, 0, last + 1))


def _probe(memory: Memory, around: Around, number: Count) -> Trial:
    """A trial that looks around x."""
    P, size, eps = around.P, around.size, jnp.finfo(around.P.dtype).eps
    root = jnp.sqrt(P)
    typical = jnp.where(size > 0, size, 1)
    if is_small(P.size):
        own = jnp.arange(P.size) == number // 2
        x, x0 = around.point.x, around.start.x
        # a coordinate without curvature is moved no further than the others are large
        others = jnp.maximum(jnp.sqrt(jnp.mean(x**2)), jnp.sqrt(jnp.mean(x0**2)))
        least = jnp.minimum(1e-3 * typical / root, jnp.where(others > 0, others, 1))
        reach = jnp.maximum(jnp.abs(x), least)
        p = jnp.where(own, (2 * (number % 2) - 1) * eps ** (1 / 3) * reach, 0)
    else:
        p = -(eps**0.5) * typical * _krylov(memory, around, number)
    one, none = jnp.ones((), P.dtype), jnp.full((), jnp.nan, P.dtype)
    count = jnp.asarray(number, jnp.int32)
    return Trial(p, 0 * one, one, 0 * count, none, none, count, jnp.zeros((), bool))


def _krylov(memory: Memory, around: Around, number: Count) -> Vector:
    """The next direction, orthonormal to the probes before it in the norm of P."""
    P, u = around.P, around.point.gradient / around.P
    norms = jnp.sqrt(jnp.sum(memory.steps * P * memory.steps, 1))
    basis = memory.steps / jnp.where(norms > 0, norms, 1)[:, None]

    def unit(w: Vector) -> Vector:
        size = jnp.sqrt(inner(P * w, w))
        return w / jnp.where(size > 0, size, 1)

    def new(w: Vector) -> Vector:
        for _ in range(2):  # once is not enough
            w = w - (basis @ (P * w)) @ basis
        return w

    image = memory.changes[jnp.maximum(number - 1, 0)] / P
    rest = new(unit(jnp.where(number == 0, u, image)))
    # where there is nothing new, as at a saddle, chance may find it
    chance = jax.random.normal(jax.random.key(0), (DIRECTIONS, P.size), P.dtype)[number]
    found = jnp.sqrt(inner(P * rest, rest)) > 1e-6
    return unit(jnp.where(found, rest, new(chance / jnp.sqrt(P))))
