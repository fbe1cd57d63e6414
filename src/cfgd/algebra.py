"""Products of vectors, in the form that costs least inside a loop on a CPU."""

from __future__ import annotations

import jax.numpy as jnp

from cfgd.types import Column, Scalar, Vector


def inner(a: Column, b: Column) -> Scalar:
    """<a, b>."""
    return jnp.dot(a, b)


def size(v: Column, P: Column) -> Scalar:
    """The norm of v, its coordinates weighted by P."""
    return jnp.sqrt(inner(P * v, v))


def positive(D: Column, least: float = 1e-8) -> Vector:
    """|D|, not smaller than a fraction of its largest entry; ones where there is none."""
    sizes = jnp.abs(D)
    largest = jnp.max(sizes)
    usable = (largest > 0) & jnp.isfinite(largest)
    return jnp.where(usable, jnp.maximum(sizes, least * largest), 1)
