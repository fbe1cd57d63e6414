"""Arrays that are sharded over several devices, of one process or of several.

Such an array may be too large for one process, and a process cannot fetch shards of another one. So
questions about its entries are answered by compiled reductions, whose results are replicated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from cfgd._core.arrays import in_precision, is_sharded as is_sharded
from cfgd._core.types import DType, Values

P = ParamSpec("P")
R = TypeVar("R")
WIDE = np.dtype(np.float64)


def any_sharded(tree: PyTree) -> bool:
    """Return whether any leaf of `tree` is sharded."""
    return any(map(is_sharded, jax.tree.leaves(tree)))


def is_on_cpu(array: Any) -> bool:
    """Return whether all devices of an array are CPUs."""
    return all(device.platform == "cpu" for device in array.sharding.device_set)


def devices_across_processes(tree: PyTree) -> list[jax.Device]:
    """Return the devices of those arrays in `tree` that are sharded over several processes."""
    if jax.process_count() == 1:
        return []
    sharded = [leaf for leaf in jax.tree.leaves(tree) if is_sharded(leaf)]
    global_arrays = [leaf for leaf in sharded if not leaf.is_fully_addressable]
    devices = {device for leaf in global_arrays for device in leaf.sharding.device_set}
    return sorted(devices, key=lambda device: device.id)


def n_shards(array: Any) -> int:
    """Return into how many shards the rows of an array are split."""
    if not is_sharded(array):
        return 1
    return array.shape[0] // array.sharding.shard_shape(array.shape)[0]


def is_sharded_by_rows(array: Any) -> bool:
    """Return whether the sharding is a `NamedSharding` that splits the first axis alone."""
    shard = array.sharding.shard_shape(array.shape)
    return isinstance(array.sharding, NamedSharding) and shard[1:] == array.shape[1:]


def shard_rows_like(X: Any, array: Any) -> Any:
    """Shard an array with one row for each row of X in the way that the rows of X are sharded."""
    if not is_sharded(X) or is_sharded(array):
        return array
    rows = NamedSharding(X.sharding.mesh, PartitionSpec(*X.sharding.spec[:1]))
    host = np.asarray(array)
    return jax.make_array_from_callback(
        host.shape, rows, lambda index: np.ascontiguousarray(host[index])
    )


def shard_like(other: Any, array: np.ndarray) -> Any:
    """Shard an array that every process holds in the way that `other` is sharded."""
    if not is_sharded(other):
        return array
    return jax.make_array_from_callback(
        array.shape, other.sharding, lambda index: np.ascontiguousarray(array[index])
    )


def ones_like_rows(X: object, m: int, dtype: DType) -> Any:
    """Return m ones, sharded like the rows of X; each process allocates only its own."""
    one = np.ones((), dtype)
    return shard_rows_like(X, np.broadcast_to(one, m)) if is_sharded(X) else np.ones(m, dtype)


def keep_float64(fn: Callable[P, R]) -> Callable[P, R]:
    """Wrap `fn` so that it runs with float64 enabled if any of its arguments is sharded."""

    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if not any(map(is_sharded, (*args, *kwargs.values()))):
            return fn(*args, **kwargs)
        with in_precision(WIDE):
            return fn(*args, **kwargs)

    return wrapper


def as_float64(array: jax.Array) -> jax.Array:
    """Convert a sharded array to float64."""
    with in_precision(WIDE):
        return array.astype(WIDE)


# ------------------------------------------------------------------ questions about entries

Test = Callable[[Any], Any]  # array -> boolean array; for a sharded array it is compiled


def any_entry(test: Test, array: Values) -> bool:
    """Return whether `test` is true for any entry."""
    if not is_sharded(array):
        return bool(np.any(test(np.asarray(array))))
    with in_precision(WIDE):
        return bool(_any(test, array))


def first_entry(test: Test, array: Values) -> tuple[tuple[int, ...], Any]:
    """Return index and value of the first entry for which `test` is true; there must be one."""
    if not is_sharded(array):
        array = np.asarray(array)
        index = np.unravel_index(int(np.argmax(test(array))), array.shape)
        return tuple(map(int, index)), array[index]
    with in_precision(WIDE):
        index, entry = jax.device_get(_first(test, array))
    return tuple(map(int, index)), entry


def max_entry(array: Values) -> Any:
    """Return the largest entry."""
    if not is_sharded(array):
        return np.max(np.asarray(array))
    with in_precision(WIDE):
        return np.asarray(_max(array))


def count_entries(test: Test, array: Values) -> int:
    """Return for how many entries `test` is true."""
    if not is_sharded(array):
        return int(np.count_nonzero(test(np.asarray(array))))
    with in_precision(WIDE):
        return int(_count(test, array))


_max = jax.jit(jnp.max)


@functools.partial(jax.jit, static_argnums=0)
def _any(test: Test, array: object) -> Any:
    return jnp.any(test(array))


@functools.partial(jax.jit, static_argnums=0)
def _count(test: Test, array: object) -> Any:
    return jnp.sum(test(array), dtype=jnp.int64)


@functools.partial(jax.jit, static_argnums=0)
def _first(test: Test, array: Any) -> Any:
    """Find the first entry by sums and minima: indexing would gather the sharded array."""
    candidates, index = test(array), []
    for axis in range(array.ndim):
        position = jax.lax.broadcasted_iota(jnp.int32, array.shape, axis)
        first = jnp.min(jnp.where(candidates, position, array.shape[axis]))
        candidates = candidates & (position == first)
        index.append(first)
    return index, jnp.sum(jnp.where(candidates, array, 0))


# ------------------------------------------------------------------ transfer to the host


def to_host(tree: PyTree, most_rows: float = np.inf) -> Any:
    """Convert the JAX arrays in `tree` to NumPy; a tree without JAX arrays is returned unchanged.

    A sharded array is gathered on every process, unless it has more than `most_rows` rows: then it
    stays a sharded JAX array.
    """
    leaves, treedef = jax.tree.flatten(tree)
    jax_arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
    if not jax_arrays:
        return tree
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax_arrays):
        return jax.device_get(tree)  # raises JAX's error for traced arrays
    if len(jax_arrays) > 1 and not is_on_cpu(jax_arrays[0]):
        for leaf in jax_arrays:  # start all transfers before waiting for the first
            if leaf.is_fully_replicated:
                leaf.copy_to_host_async()

    def fetch(leaf: object) -> Any:
        if not isinstance(leaf, jax.Array):
            return leaf
        if leaf.is_fully_replicated:
            return np.asarray(leaf)
        if leaf.shape[0] > most_rows:
            return leaf
        if not leaf.is_fully_addressable:
            sharding: Any = leaf.sharding
            leaf = _gather_program(sharding.mesh)(leaf)
        return np.asarray(leaf)

    return jax.tree.unflatten(treedef, map(fetch, leaves))


@functools.cache
def _gather_program(mesh: Mesh) -> Callable[[Any], Any]:
    """Return the compiled identity whose output is replicated on all devices of `mesh`."""
    return jax.jit(lambda array: array, out_shardings=NamedSharding(mesh, PartitionSpec()))
