"""Arrays that are spread over devices, of one process or of several, and stay where they are.

No process may fetch such an array, nor is there one that could hold it. What is asked of it is
answered by compiled sums, whose results every process has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from cfgd._core.arrays import in_precision, is_sharded as is_sharded

P = ParamSpec("P")
R = TypeVar("R")
WIDE = np.dtype(np.float64)


def any_sharded(tree: Any) -> bool:
    return any(map(is_sharded, jax.tree.leaves(tree)))


def is_on_cpu(array: Any) -> bool:
    return all(device.platform == "cpu" for device in array.sharding.device_set)


def devices_across_processes(tree: Any) -> list[jax.Device]:
    """Those that its arrays are on, if some of them belong to other processes."""
    spread = [leaf for leaf in jax.tree.leaves(tree) if is_sharded(leaf)]
    across = [leaf for leaf in spread if not leaf.is_fully_addressable]
    found = {device for leaf in across for device in leaf.sharding.device_set}
    return sorted(found, key=lambda device: device.id)


def n_shards(array: Any) -> int:
    """In how many parts its rows are."""
    if not is_sharded(array):
        return 1
    return array.shape[0] // array.sharding.shard_shape(array.shape)[0]


def is_sharded_by_rows(array: Any) -> bool:
    """Whether rows are whole, and their place has a name."""
    part = array.sharding.shard_shape(array.shape)
    return isinstance(array.sharding, NamedSharding) and part[1:] == array.shape[1:]


def shard_rows_like(X: Any, array: Any) -> Any:
    """An array with a row for each row of X, on the devices that X is on."""
    if not is_sharded(X) or is_sharded(array):
        return array
    rows = NamedSharding(X.sharding.mesh, PartitionSpec(*X.sharding.spec[:1]))
    here = np.asarray(array)
    return jax.make_array_from_callback(
        here.shape, rows, lambda place: np.ascontiguousarray(here[place])
    )


def shard_like(other: Any, array: np.ndarray) -> Any:
    """An array that every process has, spread as another one is."""
    if not is_sharded(other):
        return array
    return jax.make_array_from_callback(
        array.shape, other.sharding, lambda place: np.ascontiguousarray(array[place])
    )


def ones_like_rows(X: Any, m: int, dtype: Any) -> Any:
    """A one for each of the m rows of X; no process makes those of all."""
    one = np.ones((), dtype)
    return shard_rows_like(X, np.broadcast_to(one, m)) if is_sharded(X) else np.ones(m, dtype)


def keep_float64(fn: Callable[P, R]) -> Callable[P, R]:
    """Given arrays that are spread, fn runs where JAX rounds no float64 to float32."""

    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if not any(map(is_sharded, (*args, *kwargs.values()))):
            return fn(*args, **kwargs)
        with in_precision(WIDE):
            return fn(*args, **kwargs)

    return wrapper


def as_float64(array: Any) -> Any:
    with in_precision(WIDE):
        return array.astype(WIDE)


# ------------------------------------------------------------------ looks at their entries

Test = Callable[[Any], Any]  # of an array, entry by entry


def any_entry(test: Test, array: Any) -> bool:
    """Whether it is true of any entry; for what is spread, `test` is compiled."""
    if not is_sharded(array):
        return bool(np.any(test(np.asarray(array))))
    with in_precision(WIDE):
        return bool(_any(test, array))


def first_entry(test: Test, array: Any) -> tuple[tuple[int, ...], Any]:
    """Place and worth of the first entry of which it is true: there is one."""
    if not is_sharded(array):
        array = np.asarray(array)
        place = np.unravel_index(int(np.argmax(test(array))), array.shape)
        return tuple(map(int, place)), array[place]
    with in_precision(WIDE):
        place, worth = jax.device_get(_first(test, array))
    return tuple(map(int, place)), worth


def max_entry(array: Any) -> Any:
    if not is_sharded(array):
        return np.max(np.asarray(array))
    with in_precision(WIDE):
        return np.asarray(_max(array))


def count_entries(test: Test, array: Any) -> int:
    """Of how many entries it is true."""
    if not is_sharded(array):
        return int(np.count_nonzero(test(np.asarray(array))))
    with in_precision(WIDE):
        return int(_count(test, array))


_max = jax.jit(jnp.max)


@functools.partial(jax.jit, static_argnums=0)
def _any(test: Test, array: Any) -> Any:
    return jnp.any(test(array))


@functools.partial(jax.jit, static_argnums=0)
def _count(test: Test, array: Any) -> Any:
    return jnp.sum(test(array), dtype=jnp.int64)


@functools.partial(jax.jit, static_argnums=0)
def _first(test: Test, array: Any) -> Any:
    """By sums and minima alone: an index into what is spread would gather it."""
    found, place = test(array), []
    for axis in range(array.ndim):
        at = jax.lax.broadcasted_iota(jnp.int32, array.shape, axis)
        first = jnp.min(jnp.where(found, at, array.shape[axis]))
        found = found & (at == first)
        place.append(first)
    return place, jnp.sum(jnp.where(found, array, 0))


# ------------------------------------------------------------------ what can be had of them


def to_host(tree: Any, most_rows: float = np.inf) -> Any:
    """JAX's arrays as NumPy's; a tree without any as it is, which is for nothing.

    What is spread comes whole to every process; if it has more than so many rows, it stays.
    """
    leaves, treedef = jax.tree.flatten(tree)
    ours = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
    if not ours:
        return tree
    if any(isinstance(leaf, jax.core.Tracer) for leaf in ours):
        return jax.device_get(tree)  # which says what is wrong
    if len(ours) > 1 and not is_on_cpu(ours[0]):
        for leaf in ours:  # all on their way before the first is waited for
            if leaf.is_fully_replicated:
                leaf.copy_to_host_async()

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return leaf
        if leaf.is_fully_replicated:
            return np.asarray(leaf)
        if leaf.shape[0] > most_rows:
            return leaf
        there = not leaf.is_fully_addressable
        place: Any = leaf.sharding
        return np.asarray(_gathering(place.mesh)(leaf) if there else leaf)

    return jax.tree.unflatten(treedef, map(one, leaves))


@functools.cache
def _gathering(mesh: Any) -> Callable[[Any], Any]:
    return jax.jit(lambda array: array, out_shardings=NamedSharding(mesh, PartitionSpec()))
