"""Jacobians of JAX functions: the cheaper mode, in blocks, or sample by sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from cfgd._core.types import Column, Rows, Vector

# Largest number of entries of the derivatives of one block: 8 MiB in float64. A network needs about
# fifty intermediate numbers for each of them, which bounds a block by about half a gigabyte.
BLOCK_NUMBERS = 2**20
# Numbers of a Jacobian up to which all samples are one block: reverse mode keeps for each sample
# its activations, which are fewer than its derivatives.
SAMPLED_NUMBERS = 2**25


def jacobian(fn: Callable[[Vector], Column], x: Vector) -> Rows:
    """Return the derivative of fn at x.

    Forward mode takes a pass for each of the d coordinates of x, reverse mode one for each of the m
    entries of fn(x): the one with fewer passes is taken, in blocks. A function that has no forward
    mode, such as an ODE solver with a custom adjoint, is differentiated in reverse mode.
    """
    m, d = jax.eval_shape(fn, x).size, x.size
    if d <= m:
        try:
            return _columns(lambda v: jax.jvp(fn, (x,), (v,))[1], d, m, x).T
        except TypeError as error:
            if not has_no_forward_mode(error):
                raise
    r, back = jax.vjp(fn, x)
    return _columns(lambda v: back(v)[0], m, d, r)


def has_no_forward_mode(error: TypeError) -> bool:
    """Return whether JAX complained that a function is differentiable in reverse mode alone."""
    return "forward-mode" in str(error)


def _columns(apply: Callable[[Any], Any], n: int, size: int, like: Any) -> Any:
    """Return a linear map applied to the n unit vectors, as rows of `size` numbers."""
    block = max(1, BLOCK_NUMBERS // size)
    if n <= block:
        return jax.vmap(apply)(jnp.eye(n, dtype=like.dtype))

    def of_unit_vector(j: Any) -> Any:
        return apply(jnp.zeros(n, like.dtype).at[j].set(1))

    return jax.lax.map(of_unit_vector, jnp.arange(n), batch_size=block)


def jacobian_by_samples(
    fn: Callable[[Vector, Any], Column], x: Vector, samples: tuple[Any, ...]
) -> Rows:
    """Return the derivative in x of fn(x, sample) for all samples, in their order.

    The derivative of one sample takes a pass for each of its k residuals in reverse mode, or one
    for each coordinate of x in forward mode.
    """
    first = jax.tree.map(lambda leaf: leaf[0], samples)
    n, k = len(jax.tree.leaves(samples)[0]), jax.eval_shape(fn, x, first).size

    def of_sample(sample: Any) -> Rows:
        mode = jax.jacrev if k <= x.size else jax.jacfwd
        return mode(fn)(x, sample)

    block = max(1, SAMPLED_NUMBERS // (k * x.size))
    size = None if n <= block else block
    rows = (
        jax.vmap(of_sample)(samples)
        if size is None
        else jax.lax.map(of_sample, samples, batch_size=size)
    )
    return rows.reshape(n * k, x.size)


def jacobian_times(fn: Callable[[Vector], Column], x: Vector, v: Vector) -> Column:
    """Return Jv with the derivative J of fn at x."""
    try:
        return jax.jvp(fn, (x,), (v,))[1]
    except TypeError as error:
        if not has_no_forward_mode(error):
            raise
    # J'u is linear in u, and its own derivative in reverse mode is J
    r, back = jax.vjp(fn, x)
    _, twice = jax.vjp(lambda u: back(u)[0], jnp.zeros_like(r))
    return twice(v)[0]
