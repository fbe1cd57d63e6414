"""The data of a fit: x, y and their uncertainties, in one data set or several."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import as_array
from cfgd.fitting.model import Measured

MISSING = ("raise", "drop")


@dataclasses.dataclass(frozen=True, eq=False)
class DataSet:
    """One data set as the user gave it, with arrays in place of lists.

    Attributes
    ----------
    name : str
        Its name in a fit of several data sets, "" if it is the only one.
    x, y, sigma : array
        The data; x may be a dict or tuple of arrays, sigma None, a number, an array or a matrix.
        Missing entries of y are NaN.
    measured : Measured
        The same as numbers for the residuals.
    n_points : int
        The number of points of y: complex ones count twice, missing ones not at all.
    """

    name: str
    x: Any
    y: Any
    sigma: Any
    measured: Measured
    n_points: int


def read_data(
    owner: str, x: Any, y: Any, *, sigma: Any, weights: Any, sigma_x: Any, missing: str
) -> list[DataSet]:
    """Return the data sets of a call: one, or several if y is a dict or x and y are lists."""
    checks.choice(owner, "missing", missing, MISSING)
    keys = _data_set_keys(x, y)
    if keys is None:
        return [_read(owner, "", x, y, sigma, weights, sigma_x, missing)]
    if not keys:
        checks.fail(owner, "y", "hold at least one data set", "none")
    fields = {"x": x, "sigma": sigma, "weights": weights, "sigma_x": sigma_x}
    each = {name: _by_key(owner, name, value, keys) for name, value in fields.items()}
    return [
        _read(
            owner,
            str(key),
            each["x"][key],
            y[key],
            each["sigma"][key],
            each["weights"][key],
            each["sigma_x"][key],
            missing,
        )
        for key in keys
    ]


def _data_set_keys(x: Any, y: Any) -> list[Any] | None:
    """Return the names of the data sets, None if there is one only.

    Lists of arrays are data sets where both x and y are such lists; a tuple x holds variables.
    """
    if isinstance(y, Mapping):
        return list(y)
    are_lists = isinstance(y, list | tuple) and isinstance(x, list) and len(x) == len(y)
    if are_lists and all(np.ndim(each) > 0 and not isinstance(each, list | tuple) for each in y):
        return list(range(len(y)))
    return None


def _by_key(owner: str, field: str, value: Any, keys: list[Any]) -> Mapping[Any, Any]:
    """Return what each data set has of a field: its own, or the one for all."""
    if isinstance(value, Mapping) and (field != "x" or set(value) & set(keys)):
        if set(value) != set(keys):
            names = ", ".join(map(str, value))
            wanted = f"have the names {', '.join(map(str, keys))} of the data sets in y"
            checks.fail(owner, field, wanted, names)
        return value
    if isinstance(value, list) and keys == list(range(len(keys))):
        if len(value) != len(keys):
            wanted = f"have an entry for each of {len(keys)} data sets"
            checks.fail(owner, field, wanted, f"{len(value)} entries")
        return dict(enumerate(value))
    return dict.fromkeys(keys, value)


def _read(
    owner: str, name: str, x: Any, y: Any, sigma: Any, weights: Any, sigma_x: Any, missing: str
) -> DataSet:
    """Check the numbers of one data set."""
    at = f"[{name}]" if name else ""
    x = _read_x(owner, f"x{at}", x, missing)
    y = _read_y(owner, f"y{at}", y, missing)
    present = _present(owner, f"x{at}", x, y) if missing == "drop" else np.ones(y.shape, bool)
    if weights is not None:
        weights = checks.floating(owner, f"weights{at}", weights)
        weights = _filled(owner, f"weights{at}", weights, y, present)
        checks.number(owner, f"weights{at}", weights, "not be negative", lambda w: w >= 0)
        present = present & (np.asarray(weights) > 0)
    if not present.any():
        wanted = "have at least one point that is not missing and has a weight above 0"
        checks.fail(owner, f"y{at}", wanted, "none")
    deviations, whitening, kept = _uncertainties(owner, at, sigma, weights, y, present)
    numbers = y if present.all() else np.where(present, np.asarray(y), 0)
    is_complex = jnp.issubdtype(y.dtype, jnp.complexfloating)
    count, shown = int(present.sum()) * (1 + is_complex), present
    if is_complex:
        numbers = np.stack([np.real(numbers), np.imag(numbers)], -1)
        present = present[..., None]
    measured = Measured(
        x=_with_valid_x(x, shown),
        y=numbers,
        sigma=deviations,
        whitening=whitening,
        present=None if present.all() else present,
        sigma_x=_read_sigma_x(owner, f"sigma_x{at}", sigma_x, x),
    )
    return DataSet(name, x, y, kept, measured, count)


def _is_complex(value: Any) -> bool:
    try:
        return bool(np.iscomplexobj(value))
    except ValueError:  # rows of different lengths, which the next check refuses
        return False


def _read_x(owner: str, field: str, x: Any, missing: str) -> Any:
    def leaf_of(leaf: Any) -> Any:
        if _is_complex(leaf):
            return np.asarray(leaf)
        if missing == "drop":
            return checks.floating(owner, field, _unmasked(leaf))
        return checks.array(owner, field, leaf)

    return jax.tree.map(leaf_of, x) if isinstance(x, dict | tuple) else leaf_of(x)


def _read_y(owner: str, field: str, y: Any, missing: str) -> Any:
    """Return y as an array, with NaN for missing entries if they may be missing."""
    y = _unmasked(y) if missing == "drop" else y
    if _is_complex(y):
        checks.unmasked(owner, field, y)
        y = as_array(y)
    else:
        y = checks.floating(owner, field, y)
    parts = [y.real, y.imag] if jnp.issubdtype(y.dtype, jnp.complexfloating) else [y]
    for part in parts:
        if missing == "raise" and np.isnan(np.asarray(part)).any():
            index = tuple(int(i) for i in np.argwhere(np.isnan(np.asarray(part)))[0])
            at = index[0] if len(index) == 1 else index
            wanted = "be finite (missing='drop' leaves points out whose y is NaN)"
            checks.fail(owner, field, wanted, f"nan at index {at}")
        checks.finite(owner, field, np.where(np.isnan(part), 0, part))
    return y


def _unmasked(value: Any) -> Any:
    """Return an array with NaN for masked entries; other values as they are."""
    if not isinstance(value, np.ma.MaskedArray):
        return value
    is_complex = np.iscomplexobj(value)
    return np.ma.filled(value.astype(complex if is_complex else float), np.nan)


def _variables_first(leaf: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return a leaf of x as (variables, *shape of y), or None if it has no axes of points.

    x has the shape of y, with an axis of variables before (as in SciPy) or behind it.
    """
    n = len(shape)
    if leaf.ndim >= n and leaf.shape[leaf.ndim - n :] == shape:
        return leaf.reshape(-1, *shape)
    if leaf.shape[:n] == shape:
        return np.moveaxis(leaf.reshape(*shape, -1), -1, 0)
    return None


def _present(owner: str, field: str, x: PyTree, y: Any) -> np.ndarray:
    """Return where neither y nor x is NaN."""
    present = ~np.isnan(np.asarray(y))
    for leaf in jax.tree.leaves(x):
        variables = _variables_first(np.asarray(leaf), y.shape)
        if variables is not None:
            present = present & ~np.isnan(variables).any(0)
        elif np.isnan(np.asarray(leaf)).any():
            wanted = f"be finite, or have the shape {y.shape} of y, so that its points are known"
            checks.fail(owner, field, wanted, f"nan in shape {leaf.shape}")
    return present


def _with_valid_x(x: PyTree, present: np.ndarray) -> Any:
    """Return x with a present point in place of missing ones, where the model may be NaN."""
    if present.all():
        return x

    def filled(leaf: Any) -> Any:
        variables = _variables_first(np.asarray(leaf), present.shape)
        if variables is None:
            return leaf
        first = variables[(slice(None), *(index[0] for index in np.nonzero(present)))]
        found = np.where(present, variables, first.reshape(-1, *(1,) * present.ndim))
        are_last = leaf.shape[leaf.ndim - present.ndim :] == present.shape
        return (found if are_last else np.moveaxis(found, 0, -1)).reshape(leaf.shape)

    return jax.tree.map(filled, x)


def _filled(owner: str, field: str, value: Any, y: Any, present: np.ndarray) -> np.ndarray:
    """Return numbers in the shape of y, with 1 where y is missing and they do not count.

    One number stands for all of y, one vector for all points of a model with several results.
    """
    value = np.asarray(value)
    if value.shape not in ((), y.shape) and (y.ndim < 2 or value.shape != y.shape[-1:]):
        checks.fail(owner, field, f"have shape {y.shape}", f"shape {value.shape}")
    return np.where(present, value, np.ones((), value.dtype))


def _uncertainties(
    owner: str, at: str, sigma: Any, weights: Any, y: Any, present: np.ndarray
) -> tuple[Any, Any, Any]:
    """Return standard deviations, a whitening matrix, and sigma as an array; each may be None."""
    field, is_complex = f"sigma{at}", jnp.issubdtype(y.dtype, jnp.complexfloating)
    if sigma is not None and _is_complex(sigma):
        wanted = "be real: it applies to the real and to the imaginary part"
        checks.fail(owner, field, wanted, "complex")
    sigma = None if sigma is None else checks.floating(owner, field, sigma)
    if sigma is not None and _is_matrix(sigma, y):
        if is_complex or weights is not None:
            wanted = "be standard deviations where y is complex or weights are given"
            checks.fail(owner, field, wanted, "a matrix")
        return None, _whitening(owner, field, sigma, y, present), sigma
    if sigma is not None:
        sigma = sigma if sigma.ndim == 0 else _filled(owner, field, sigma, y, present)
        sigma = np.asarray(checks.positive(owner, field, sigma))
    if weights is not None:
        scaled = 1 / np.sqrt(np.where(present, weights, 1))
        sigma = scaled if sigma is None else sigma * scaled
    is_vector = sigma is not None and sigma.ndim > 0
    return sigma[..., None] if is_complex and is_vector else sigma, None, sigma


def _is_matrix(sigma: Any, y: Any) -> bool:
    """Return whether sigma is a covariance matrix: two axes where y has fewer, or (size, size)."""
    if sigma.ndim != 2:
        return False
    return y.ndim < 2 or (sigma.shape == (y.size, y.size) and sigma.shape != y.shape)


def _whitening(owner: str, field: str, sigma: Any, y: Any, present: np.ndarray) -> np.ndarray:
    """Return the inverse Cholesky factor of a covariance matrix.

    The covariance of what is present is the block of its rows and columns; the other rows and
    columns are those of the identity.
    """
    checks.shape(owner, field, sigma, (y.size, y.size))
    both = np.outer(present, present)
    sigma = np.where(both, np.asarray(sigma, float), np.eye(y.size))
    checks.finite(owner, field, sigma)
    # far above the rounding of a product of matrices
    if not np.allclose(sigma, sigma.T, rtol=1e-8, atol=1e-8 * np.min(np.diagonal(sigma))):
        checks.fail(owner, field, "be symmetric", "a matrix that is not")
    try:
        lower = np.linalg.cholesky(sigma)
    except np.linalg.LinAlgError:
        checks.fail(owner, field, "be positive definite", "a matrix that is not")
    return np.linalg.inv(lower)


def _read_sigma_x(owner: str, field: str, sigma_x: Any, x: Any) -> list[Any] | None:
    """Return the standard deviations of each leaf of x, None for a leaf that is exact."""
    if sigma_x is None:
        return None
    if isinstance(x, dict):
        if not isinstance(sigma_x, Mapping) or not set(sigma_x) <= set(x):
            wanted = f"be a dict with names among {', '.join(map(str, x))}"
            checks.fail(owner, field, wanted, checks.describe(sigma_x))
        each = [(x[name], sigma_x.get(name)) for name in sorted(x)]
    elif isinstance(x, tuple):
        if not isinstance(sigma_x, list | tuple) or len(sigma_x) != len(x):
            wanted = f"be a tuple of {len(x)} entries, as x"
            checks.fail(owner, field, wanted, checks.describe(sigma_x))
        each = list(zip(x, sigma_x, strict=True))
    else:
        each = [(x, sigma_x)]
    return [_sigma_of_leaf(owner, field, *pair) for pair in each]


def _sigma_of_leaf(owner: str, field: str, leaf: Any, sigma: Any) -> Any:
    if sigma is None:
        return None
    if np.iscomplexobj(leaf):
        checks.fail(owner, field, "be left out for a complex x", checks.describe(sigma))
    sigma = np.asarray(checks.positive(owner, field, sigma), leaf.dtype)
    try:
        return np.broadcast_to(sigma, leaf.shape).copy()
    except ValueError:
        checks.fail(owner, field, f"fit x of shape {leaf.shape}", f"shape {sigma.shape}")
