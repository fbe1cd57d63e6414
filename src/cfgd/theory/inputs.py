"""The checks of the arguments: each error names the function, the argument and what it must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
# NumPy's ArrayLike contains tuples for static type checkers, but not for beartype
ArrayInput = ArrayLike | Sequence[Any]
Numbers = float | ArrayInput  # one number, or one for each coordinate or stage


def require(holds: bool | np.bool_, owner: str, field: str, wanted: str, got: object) -> None:
    """Raise the `ValueError` for a bad argument unless `holds`."""
    if not holds:
        raise ValueError(f"`{owner}({field}=...)` must {wanted}, got {got}.")


def real(owner: str, field: str, value: object) -> Array:
    """Return `value` as a float64 array of finite numbers."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        wanted, got = "be a number or an array of numbers", repr(value)
        raise ValueError(f"`{owner}({field}=...)` must {wanted}, got {got}.") from None
    require(np.isfinite(array).all(), owner, field, "be finite", value)
    return array


def number(owner: str, field: str, value: object) -> float:
    """Return `value` as a float."""
    array = real(owner, field, value)
    require(array.ndim == 0, owner, field, "be one number", f"shape {array.shape}")
    return float(array)


def integer(owner: str, field: str, value: object, least: int) -> int:
    """Return `value` as an int of at least `least`."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(is_integer, owner, field, f"be an integer of at least {least}", repr(value))
    require(value >= least, owner, field, f"be at least {least}", value)  # type: ignore[operator]
    return int(value)  # type: ignore[call-overload]


def shaped(owner: str, field: str, value: object, *shapes: tuple[int, ...]) -> Array:
    """Return `value` as a float64 array of one of the `shapes`."""
    array = real(owner, field, value)
    wanted = f"have shape {' or '.join(map(str, shapes))}"
    require(array.shape in shapes, owner, field, wanted, array.shape)
    return array


def symmetric(owner: str, A: object) -> Array:
    """Return A as a float64 array, checked to be square and symmetric."""
    A = real(owner, "A", A)
    square = A.ndim == 2 and A.shape[0] == A.shape[1] > 0
    require(square, owner, "A", "be a square matrix", f"shape {A.shape}")
    gap = np.abs(A - A.T).max()
    # 1e-6: A may come from single precision
    require(gap <= 1e-6 * np.abs(A).max(), owner, "A", "be symmetric", f"a gap of {gap:.3g}")
    return A


def gamma_times_D(owner: str, A: Array, gamma: object) -> Array:
    """Return gamma D as a matrix."""
    return np.diag(shaped(owner, "gamma", gamma, (), A.shape[:1]) * np.diag(A))
