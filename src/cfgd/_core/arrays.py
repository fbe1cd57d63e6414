"""Array inputs and their precision: NumPy in, NumPy out, in the precision of the data.

JAX converts float64 to float32 unless `jax_enable_x64` is set. cfgd never changes the user's global
configuration: it computes with float64 data inside `jax.enable_x64(True)` and returns NumPy arrays,
because outside of that context JAX would round its own float64 arrays at the first operation.

The user's debugging settings do not apply to cfgd's own programs either. Those programs mix dtypes
and ranks on purpose and use NaN for "no value yet", so they run with JAX's standard promotion and
without `jax_debug_nans`; the solver tests for non-finite values itself.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, ParamSpec, TypeGuard, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from cfgd._core.types import DType, Values

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
ARRAY_TYPES = (np.ndarray, np.generic, jax.Array)  # cheapest isinstance test first
P = ParamSpec("P")
R = TypeVar("R")


# ------------------------------------------------------------------ types of arrays


def is_array(leaf: object) -> bool:
    """Return whether `leaf` is an array or scalar of NumPy or an array of JAX."""
    return isinstance(leaf, ARRAY_TYPES)


def is_sharded(leaf: object) -> bool:
    """Return whether `leaf` is a concrete JAX array on more than one device."""
    if isinstance(leaf, np.ndarray):  # a test for JAX arrays takes ten times as long
        return False
    return _is_concrete(leaf) and len(leaf.sharding.device_set) > 1


def _is_concrete(leaf: object) -> TypeGuard[jax.Array]:
    return isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)


# ------------------------------------------------------------------ arrays from user input


def compute_dtype(dtype: DType) -> DType:
    """Return the dtype used to compute with numbers of `dtype`: float32 or float64.

    float16 and bfloat16 lack linear algebra, and JAX supports neither long doubles nor non-native
    byte orders. A dtype that is not floating is returned unchanged.
    """
    if not jnp.issubdtype(dtype, jnp.floating):
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)


def as_compute_dtype(array: Values) -> Values:
    """Convert `array` to its `compute_dtype`, without a copy if it already has that dtype."""
    dtype = compute_dtype(array.dtype)
    if array.dtype == dtype:
        return array
    # a long double beyond the range of float64 becomes inf, which `checks.finite` reports
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def as_array(value: object) -> Values:
    """Convert any array-like to an array: JAX arrays stay JAX arrays, all else becomes NumPy."""
    if isinstance(value, jax.Array):
        return as_compute_dtype(value)
    array = np.asarray(value)
    if array.dtype == object and hasattr(value, "to_numpy"):
        array = _from_pandas(value, array)
    return as_compute_dtype(array)


def own(value: Any) -> Any:
    """Return an array that the caller cannot change later: a read-only copy of a NumPy array.

    Some arrays are returned as they are: JAX arrays, which are immutable; NumPy arrays that are
    read-only and own their memory; and memory-mapped arrays, which may not fit into memory.
    """
    if not isinstance(value, np.ndarray) or _is_memory_mapped(value):
        return value
    if value.flags.owndata and not value.flags.writeable:
        return value
    copied = np.array(value)
    copied.flags.writeable = False
    return copied


def _is_memory_mapped(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def equal_trees(one: PyTree, other: PyTree) -> bool:
    """Return whether two pytrees have the same structure and equal leaves; NaN equals NaN."""
    if len({jax.tree.structure(one), jax.tree.structure(other)}) > 1:
        return False
    return all(map(_equal_leaves, jax.tree.leaves(one), jax.tree.leaves(other)))


def _equal_leaves(one: Any, other: Any) -> bool:
    numbers = (*ARRAY_TYPES, int, float)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return np.array_equal(numbers_of(one), numbers_of(other), equal_nan=True)
    return bool(one == other)


def numbers_of(leaf: Any) -> np.ndarray:
    """Return a number or an array as a NumPy array, of a key of random numbers its data."""
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def _from_pandas(table: Any, array: np.ndarray) -> np.ndarray:
    """Convert a DataFrame or Series with extension dtypes; missing entries become NaN.

    `array`, the conversion by NumPy, is returned for columns that do not hold numbers.
    """
    columns = table.dtypes if table.ndim == 2 else [table.dtype]
    try:
        dtype = np.result_type(*(getattr(column, "numpy_dtype", column) for column in columns))
    except TypeError:  # text, categories, dates
        return array
    if dtype.kind in "biu" and not np.any(np.asarray(table.isna())):
        return table.to_numpy(dtype=dtype)
    if dtype.kind not in "biuf":
        return array
    return table.to_numpy(dtype=dtype if dtype.kind == "f" else np.float64, na_value=np.nan)


# ------------------------------------------------------------------ precision of a computation


def precision_of(*trees: PyTree) -> DType:
    """Return float32 if every floating array in `trees` has at most that precision, else float64.

    Single numbers do not count: a float64 scalar of Python or NumPy does not promote float32
    arrays.
    """
    dtypes = {
        leaf.dtype
        for leaf in jax.tree.leaves(trees)
        if is_array(leaf) and (leaf.ndim > 0 or leaf.dtype.itemsize < 8)
    }
    if DOUBLE in dtypes:  # the common case
        return DOUBLE
    sizes = [
        compute_dtype(dtype).itemsize for dtype in dtypes if jnp.issubdtype(dtype, jnp.floating)
    ]
    return SINGLE if sizes and max(sizes) <= SINGLE.itemsize else DOUBLE


@contextlib.contextmanager
def standard_promotion() -> Iterator[None]:
    """Use JAX's default promotion of dtypes and ranks, whatever the user has configured."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@contextlib.contextmanager
def in_precision(dtype: DType) -> Iterator[None]:
    """Configure JAX for a computation in `dtype`: every program of cfgd runs in this context."""
    x64 = jax.enable_x64(True) if dtype == np.float64 else contextlib.nullcontext()
    with x64:
        if _is_standard():  # then there is nothing else to set, which takes as long as a small step
            yield
            return
        with standard_promotion(), jax.debug_nans(False), jax.debug_infs(False):
            yield


def _is_standard() -> bool:
    """Return whether promotion and debugging are configured as cfgd's programs need them."""
    config: Any = jax.config
    return (
        config.jax_numpy_dtype_promotion == "standard"
        and config.jax_numpy_rank_promotion == "allow"
        and not config.jax_debug_nans
        and not config.jax_debug_infs
    )


def cast(tree: PyTree, dtype: DType) -> Any:
    """Convert array leaves to JAX arrays, floating ones to `dtype`; leave other leaves as they are.

    Integer and boolean arrays keep their dtype.
    """
    return jax.tree.map(lambda leaf: _cast(leaf, dtype, jnp) if is_array(leaf) else leaf, tree)


def cast_on_host(tree: PyTree, dtype: DType) -> Any:
    """Convert array leaves to NumPy arrays, floating ones to `dtype`; keep sharded JAX arrays.

    A tree whose arrays are NumPy arrays of `dtype` or of integers is returned without a copy.
    """

    def is_unchanged(leaf: object) -> bool:
        if isinstance(leaf, np.ndarray):
            return leaf.dtype == dtype or leaf.dtype.kind in "biu"
        return not is_array(leaf)

    if all(map(is_unchanged, jax.tree.leaves(tree))):
        return tree
    return jax.tree.map(lambda leaf: _cast(leaf, dtype, np) if is_array(leaf) else leaf, tree)


def _cast(array: Values | np.generic, dtype: DType, xp: ModuleType) -> Values:
    is_floating = jnp.issubdtype(array.dtype, jnp.floating)
    xp = jnp if is_sharded(array) else xp
    return xp.asarray(as_array(array), dtype if is_floating else None)


def to_numpy(tree: PyTree) -> Any:
    """Convert JAX arrays to NumPy, except those that are traced or partitioned over devices."""
    if all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(tree)):
        return tree

    def convert(leaf: object) -> Any:
        can_fetch = _is_concrete(leaf) and (leaf.is_fully_replicated or not is_sharded(leaf))
        return np.asarray(leaf) if can_fetch else leaf

    return jax.tree.map(convert, tree)


def numpy_in_numpy_out(fn: Callable[P, R]) -> Callable[P, R]:
    """Wrap a JAX function so that NumPy arrays and numbers give NumPy arrays in their precision.

    With JAX arrays, traced or not, the wrapper only sets the promotion rules: under `jit`, `grad`
    and `vmap` it is the plain JAX function. With sharded arrays the results are NumPy arrays unless
    they are sharded themselves.
    """

    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        leaves = jax.tree.leaves((args, kwargs))
        jax_arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
        if jax_arrays and not any(map(is_sharded, jax_arrays)):
            with standard_promotion():
                return fn(*args, **kwargs)
        with in_precision(precision_of(leaves)):
            return to_numpy(fn(*args, **kwargs))

    return wrapper
