"""Targets, sample weights and penalties of linear models, and sums over chunks of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks, sharding
from cfgd._core.arrays import own
from cfgd._core.types import Count, Data, DType, Samples, UserInput, Values


def targets(owner: str, y: UserInput, m: int, dtype: DType, X: UserInput = None) -> Samples:
    """Return one target for each of m samples, sharded like the rows of X.

    Integers and booleans take `dtype`, the precision of the data.
    """
    y = checks.real(owner, "y", y, "be a vector of numbers")
    is_integral = _is_integer_or_bool(y)
    y = checks.array(owner, "y", y)
    if y.shape == (m, 1):
        checks.warn(f"`{owner}(y=...)` has shape ({m}, 1) and is taken as ({m},).")
        y = y.reshape(m)
    checks.shape(owner, "y", y, (m,))
    return sharding.shard_rows_like(X, own(y.astype(dtype) if is_integral else y))


def given_weights(weights: Samples) -> Samples | None:
    """Return the weights for messages, or None if all of them are 1, the default."""
    return None if isinstance(weights, np.ndarray) and (weights == 1).all() else weights


def weights(
    owner: str, sample_weight: UserInput, m: int, dtype: DType, X: UserInput = None
) -> Samples:
    """Return one weight for each of m samples, sharded like the rows of X; ones by default.

    Integers and booleans take `dtype`, the precision of the data.
    """
    if sample_weight is None:
        return sharding.ones_like_rows(X, m, dtype)
    weight = checks.real(owner, "sample_weight", sample_weight)
    is_integral = _is_integer_or_bool(weight)
    weight = checks.array(owner, "sample_weight", weight)
    checks.shape(owner, "sample_weight", weight, (m,))
    if is_integral:
        weight = weight.astype(dtype)
    if not checks.is_traced(weight):
        checks.no_entry(owner, "sample_weight", "not be negative", is_negative, weight)
        if not sharding.any_entry(_is_positive, weight):
            checks.fail(owner, "sample_weight", "have a positive entry", "only zeros")
    return sharding.shard_rows_like(X, own(weight))


def is_negative(values: Values) -> Any:
    return values < 0


def _is_positive(values: Values) -> Any:
    return values > 0


def count_zero_weight(weight: Values) -> int:
    """Return the number of samples of weight 0, which do not count as data; 0 if traced."""
    return (
        0
        if checks.is_traced(weight)
        else weight.size - sharding.count_entries(_is_positive, weight)
    )


def penalties(
    owner: str, l2: UserInput, dtype: DType, shape: tuple[int, ...], intercept: bool
) -> Data:
    """Return l2 as one number for all coefficients, or as a vector with one for each.

    `shape` is that of the coefficients without the intercept, whose penalty is 0.
    """
    l2 = checks.number(owner, "l2", l2, "be a number of at least 0", lambda v: v >= 0)
    if l2.ndim == 0 and not intercept:
        return l2 if checks.is_traced(l2) else np.asarray(l2, dtype)
    if l2.shape not in ((), shape[:1], shape):
        wanted = f"be one number or have shape {shape}"
        checks.fail(owner, "l2", wanted, f"shape {l2.shape}")
    xp = jnp if checks.is_traced(l2) or isinstance(l2, jax.Array) else np
    each = xp.broadcast_to(l2.reshape(l2.shape + (1,) * (len(shape) - l2.ndim)), shape)
    if intercept:
        each = xp.concatenate([each, xp.zeros((1, *shape[1:]), each.dtype)])
    each = each.reshape(-1)
    return each if checks.is_traced(l2) else each.astype(dtype)


def penalty(owner: str, l2: UserInput, dtype: DType) -> Data:
    """Return l2 as one number of at least 0."""
    l2 = checks.number(owner, "l2", l2, "be a number of at least 0", lambda v: v >= 0)
    if l2.ndim != 0:
        checks.fail(owner, "l2", "be one number", f"shape {l2.shape}")
    return l2 if checks.is_traced(l2) else np.asarray(l2, dtype)


def _is_integer_or_bool(values: Values) -> bool:
    return not checks.is_traced(values) and checks.is_integer_or_bool(values)


def sum_of_parts(
    part: Callable[..., Any],
    m: int,
    size: int,
    arrays: tuple[Data, ...],
    shards: int = 1,
    axis: int = -1,
) -> Any:
    """Return the sum of part(weight, *chunk) over chunks of `size` of the m samples.

    The last chunk starts early enough to be full; its samples that belong to the chunk before get
    the weight 0. If samples are sharded, every shard sums its own and nothing is gathered.

    Parameters
    ----------
    part
        A function of the weights (1 or 0) and of a chunk of each of `arrays`.
    shards
        The number of shards of the samples.
    axis
        The axis of the samples in `arrays`, the first (0) or the last (-1).
    """
    if shards > 1:
        each = m // shards

        def split(a: Any) -> Any:
            if axis == 0:
                return a.reshape(shards, each, *a.shape[1:])
            return jnp.moveaxis(a.reshape(*a.shape[:-1], shards, each), -2, 0)

        own = jax.vmap(lambda *a: sum_of_parts(part, each, min(size, each), a, axis=axis))
        return jax.tree.map(lambda of: of.sum(0), own(*map(split, arrays)))
    ones = jnp.ones(size, jax.tree.leaves(arrays)[0].dtype)
    if size >= m:
        return part(ones, *arrays)

    def chunk(k: Count | int) -> Any:
        start = jnp.minimum(k * size, m - size)
        new = jnp.where(start + jnp.arange(size) < k * size, 0, ones)
        cut = (jax.lax.dynamic_slice_in_dim(a, start, size, axis) for a in arrays)
        return part(new, *cut)

    return jax.lax.fori_loop(
        1, -(-m // size), lambda k, sums: jax.tree.map(jnp.add, sums, chunk(k)), chunk(0)
    )
