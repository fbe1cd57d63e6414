"""Numbers as users give them, as arrays of a type that JAX computes with."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core.types import DType, Values


def compute_dtype(dtype: DType) -> DType:
    """The type in which numbers of `dtype` are computed with: float32 or float64.

    Halves lack linear algebra and JAX has neither long doubles nor foreign byte orders.
    """
    if not jnp.issubdtype(dtype, jnp.floating):
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)


def as_compute_dtype(array: Values) -> Values:
    """The array in that type: itself, where it has it already."""
    dtype = compute_dtype(array.dtype)
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):  # a long double too large for float64 is found by its inf
        return array.astype(dtype)


def as_array(value: Any) -> Values:
    """Whatever holds numbers as an array; JAX arrays stay JAX arrays, all else becomes NumPy."""
    if isinstance(value, jax.Array):
        return as_compute_dtype(value)
    array = np.asarray(value)
    if array.dtype == object and hasattr(value, "to_numpy"):
        array = _of_table(value, array)
    return as_compute_dtype(array)


def _of_table(table: Any, array: np.ndarray) -> np.ndarray:
    """A pandas table or column whose types NumPy does not know; what is missing becomes NaN."""
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
