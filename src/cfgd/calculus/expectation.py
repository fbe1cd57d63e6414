"""The average of a curve over the memory, T = c + U (x - c): what both functions are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array

from cfgd._core.types import DType, Numbers, Values

Curve: TypeAlias = Callable[[Any], Any]  # the user's
Rule: TypeAlias = tuple[Numbers, Numbers]  # nodes and weights, of shape (nodes, *alpha.shape)
Rules: TypeAlias = tuple[Rule, Rule]  # one, and the one that it is compared with
Sized: TypeAlias = tuple[Numbers, Numbers]  # values, and how large their summands are


class Average(NamedTuple):
    mean: Numbers
    size: Numbers
    largest: Numbers


BLOCK = 64  # nodes at once: memory grows with the points, not with the nodes


def derivative(f: Curve, n: int) -> Curve:
    for _ in range(n):
        f = _slope_of(f)
    return f


def _slope_of(f: Curve) -> Curve:
    return lambda t: jax.jvp(f, (t,), (jnp.ones_like(t),))[1]


def on_every(f: Curve, t: Numbers) -> Array:
    return jax.vmap(f)(t.reshape(-1)).reshape(t.shape)


def precision(x: Values, *others: Values) -> DType:
    """The common dtype; a companion of x that is one number takes the precision of x."""
    kinds = [jax.dtypes.canonicalize_dtype(a.dtype) for a in (x, *others) if a is x or a.ndim]
    return jnp.result_type(*(k if jnp.issubdtype(k, jnp.floating) else float for k in kinds))


def shard_rows_like(dtype: DType, x: Array, *others: Array) -> tuple[Numbers, ...]:
    """All in one precision; x and the terminal, which is next to it, in the shape of all."""
    shape = jnp.broadcast_shapes(*(a.shape for a in (x, *others)))
    x, c, *numbers = (jnp.asarray(a, dtype) for a in (x, *others))
    return jnp.broadcast_to(x, shape), jnp.broadcast_to(c, shape), *numbers


def expectation(g: Callable[[Numbers], Sized], rule: Rule, ndim: int) -> Average:
    """E[value], E[size] and the largest size, of g(u) = (value, size) with 1 + ndim axes."""
    u, w = (a.reshape(a.shape[:1] + (1,) * (1 + ndim - a.ndim) + a.shape[1:]) for a in rule)

    def add(total: Average, block: Rule) -> tuple[Average, None]:
        u, w = block
        value, size = g(u)
        return Average(
            total.mean + jnp.sum(w * value, axis=0),
            total.size + jnp.sum(w * size, axis=0),
            jnp.maximum(total.largest, jnp.max(size, axis=0)),
        ), None

    zero = jnp.zeros(jax.eval_shape(g, u)[0].shape[1:], u.dtype)
    nothing = Average(zero, zero, zero)
    if len(u) <= BLOCK:
        return add(nothing, (u, w))[0]
    more = ((0, -len(u) % BLOCK),) + ((0, 0),) * ndim  # to a whole number of blocks, weightless
    blocks = jnp.pad(u, more, "edge"), jnp.pad(w, more)
    blocks = jax.tree.map(lambda a: a.reshape(-1, BLOCK, *a.shape[1:]), blocks)
    return jax.lax.scan(add, nothing, blocks)[0]
