"""Precision follows the data: NumPy in, NumPy out, in the precision of what came in.

JAX turns float64 into float32 unless told otherwise. The user's own configuration is never
touched: float64 data is worked on inside `jax.enable_x64(True)` and leaves it as NumPy, since
outside of it JAX would round a float64 array of its own at the first operation.

Nor do the user's checks reach into cfgd, where types and ranks are mixed, and NaN means "none yet",
on purpose: in here promotion is JAX's default, and the solver looks for non-finite values itself.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeGuard, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core.arrays import as_array, compute_dtype
from cfgd._core.types import DType

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
P = ParamSpec("P")
R = TypeVar("R")


ARRAYS = (np.ndarray, np.generic, jax.Array)  # in the order in which asking is quick


def is_array(leaf: object) -> bool:
    return isinstance(leaf, ARRAYS)


def is_sharded(leaf: object) -> bool:
    """Whether it is an array on several devices, where it stays."""
    return _is_known(leaf) and len(leaf.sharding.device_set) > 1


def precision_of(*trees: Any) -> DType:
    """float32 if the floating arrays are at most that, else float64.

    A number has no precision of its own: a float64 that stands alone, Python's or NumPy's, does
    not widen float32 arrays.
    """
    kinds = {
        leaf.dtype
        for leaf in jax.tree.leaves(trees)
        if is_array(leaf) and (leaf.ndim > 0 or leaf.dtype.itemsize < 8)
    }
    sizes = [
        compute_dtype(dtype).itemsize for dtype in kinds if jnp.issubdtype(dtype, jnp.floating)
    ]
    return SINGLE if sizes and max(sizes) <= SINGLE.itemsize else DOUBLE


@contextlib.contextmanager
def standard_promotion() -> Iterator[None]:
    """JAX's default promotion of types and ranks, whatever the user wants for his own code."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@contextlib.contextmanager
def in_precision(dtype: DType) -> Iterator[None]:
    """Where cfgd's programs run: the one door to them."""
    wide = jax.enable_x64(True) if dtype == np.float64 else contextlib.nullcontext()
    with wide, standard_promotion(), jax.debug_nans(False), jax.debug_infs(False):
        yield


def cast(tree: Any, dtype: DType) -> Any:
    """Every floating array leaf as a JAX array of `dtype`; other leaves as they are."""
    return jax.tree.map(lambda leaf: _cast(leaf, dtype) if is_array(leaf) else leaf, tree)


def cast_on_host(tree: Any, dtype: DType) -> Any:
    """The same with NumPy's arrays, but for what is spread; what has the type is not copied."""
    if all(isinstance(leaf, np.ndarray) and leaf.dtype == dtype for leaf in jax.tree.leaves(tree)):
        return tree
    return jax.tree.map(lambda leaf: _cast(leaf, dtype, np) if is_array(leaf) else leaf, tree)


def _cast(array: Any, dtype: DType, xp: Any = jnp) -> Any:
    floats = jnp.issubdtype(array.dtype, jnp.floating)
    xp = jnp if is_sharded(array) else xp
    return xp.asarray(as_array(array), dtype if floats else None)


def to_numpy(tree: Any) -> Any:
    """Every JAX array as NumPy; what is traced, or spread in parts, stays as it is."""
    if all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(tree)):
        return tree

    def one(leaf: Any) -> Any:
        whole = _is_known(leaf) and (leaf.is_fully_replicated or not is_sharded(leaf))
        return np.asarray(leaf) if whole else leaf

    return jax.tree.map(one, tree)


def _is_known(leaf: object) -> TypeGuard[jax.Array]:
    return isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)


def numpy_in_numpy_out(fn: Callable[P, R]) -> Callable[P, R]:
    """NumPy arrays and numbers are computed on in their precision and come back as NumPy.

    JAX arrays, traced or not, pass untouched: under `jit`, `grad` and `vmap` the function is
    the plain JAX function it decorates, but for promotion. Where arrays are spread over devices,
    what is computed of them comes back as NumPy, unless it is spread as well.
    """

    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        leaves = jax.tree.leaves((args, kwargs))
        of_jax = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
        if of_jax and not any(map(is_sharded, of_jax)):
            with standard_promotion():
                return fn(*args, **kwargs)
        with in_precision(precision_of(leaves)):
            return to_numpy(fn(*args, **kwargs))

    return wrapper
