"""How an input error is worded: owner, field, what was wanted, what was given.

A check looks at concrete values. Inside `jax.jit` values are traced and unknown; there only
shapes and dtypes are checked.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NoReturn

import jax
import numpy as np
from jax.typing import ArrayLike

from cfgd.types import Values


def fail(owner: str, field: str, wanted: str, got: object) -> NoReturn:
    raise ValueError(f"`{owner}({field}=...)` must {wanted}, got {got}.")


def warn(message: str) -> None:
    """A warning that points to the line of the user's that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    """A frame of cfgd, or of what wraps its functions."""
    package = frame.f_globals.get("__name__", "").split(".")[0]
    return package in ("cfgd", "equinox", "jaxtyping", "beartype")


def traced(value: object) -> bool:
    return isinstance(value, jax.core.Tracer)


def array(owner: str, field: str, value: Any, wanted: str = "be an array of numbers") -> Values:
    """`value` as a finite floating array; integers become float64, JAX arrays stay JAX arrays."""
    if traced(value):
        return value
    if not isinstance(value, jax.Array):
        try:
            value = np.asarray(value)
        except ValueError:
            fail(owner, field, wanted, "rows of different lengths")
    if value.dtype.kind in "biu":
        value = np.asarray(value).astype(np.float64)
    # numpy's kind of an extension float (bfloat16) is "V", hence jax's own test
    if not jax.numpy.issubdtype(value.dtype, jax.numpy.floating):
        fail(owner, field, wanted, f"an array of dtype {value.dtype}")
    finite(owner, field, value)
    return value


def finite(owner: str, field: str, value: Values) -> None:
    """Say where the first entry that is not finite stands."""
    bad = ~np.isfinite(np.asarray(value, dtype=np.float64))
    if not bad.any():
        return
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    worth = np.asarray(value, dtype=np.float64)[first]
    place = "" if not first else f" at index {first[0] if len(first) == 1 else first}"
    fail(owner, field, "be finite", f"{worth}{place}")


def shape(owner: str, field: str, value: Values, wanted: tuple[int, ...]) -> Values:
    if tuple(value.shape) != wanted:
        fail(owner, field, f"have shape {wanted}", tuple(value.shape))
    return value


def matrix(owner: str, field: str, value: Any) -> Values:
    value = array(owner, field, value, "be a matrix of numbers")
    if value.ndim != 2 or 0 in value.shape:
        fail(owner, field, "be a matrix", f"shape {tuple(value.shape)}")
    return value


def number(
    owner: str,
    field: str,
    value: Any,
    wanted: str,
    holds: Callable[[np.ndarray], np.ndarray | np.bool_],
) -> Values:
    """`value` as a floating array of which `holds` is true in every entry."""
    if isinstance(value, str | bytes) or value is None:
        fail(owner, field, wanted, repr(value))
    value = array(owner, field, value, wanted)
    if not traced(value) and not np.all(holds(np.asarray(value))):
        got = value if value.ndim == 0 else np.asarray(value)[~holds(np.asarray(value))][0]
        fail(owner, field, wanted, got)
    return value


def order(owner: str, field: str, value: Any) -> Values:
    return number(owner, field, value, "lie in (0, 1)", lambda v: (v > 0) & (v < 1))


def positive(owner: str, field: str, value: Any) -> Values:
    return number(owner, field, value, "be positive", lambda v: v > 0)


def integer(owner: str, field: str, value: Any, least: int = 1) -> int:
    wanted = f"be an integer of at least {least}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        fail(owner, field, wanted, repr(value))
    if value < least:
        fail(owner, field, wanted, value)
    return int(value)


def one_of(owner: str, beta: Any, gamma: Any) -> None:
    if (beta is None) == (gamma is None):
        got = "neither" if beta is None else f"beta={beta} and gamma={gamma}"
        raise ValueError(f"`{owner}` takes exactly one of `beta` and `gamma`, got {got}.")


def fits(owner: str, field: str, value: Values, other: str, beside: Values) -> None:
    """Two fields that are combined entry by entry."""
    try:
        np.broadcast_shapes(value.shape, beside.shape)
    except ValueError:
        fail(owner, field, f"fit {other} of shape {tuple(beside.shape)}", f"shape {value.shape}")


def key(owner: str, value: Any) -> Any:
    """The data of a JAX key, as NumPy: an integer, a key of either kind, or its data."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return np.asarray(jax.random.key_data(jax.random.key(int(value))))
    if isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if getattr(value, "dtype", None) == np.uint32 and value.ndim == 1:
        return value if traced(value) else np.asarray(value)
    fail(owner, "key", "be an integer or a JAX key", value)


def instance(owner: str, field: str, value: Any, kind: type, known: Sequence[str]) -> Any:
    if not isinstance(value, kind):
        fail(owner, field, f"be one of {', '.join(known)}", repr(value))
    return value


def symmetric_psd(owner: str, field: str, A: Values) -> None:
    """Symmetric, and every 2 x 2 minor non-negative: O(d^2), necessary but not sufficient."""
    if traced(A):
        return
    A = np.asarray(A)
    tiny = 1e3 * float(jax.numpy.finfo(A.dtype).eps)
    scale = float(np.abs(A).max(initial=0.0))
    gap = float(np.abs(A - A.T).max(initial=0.0))
    if gap > tiny * scale:
        fail(owner, field, "be symmetric", f"a difference of {gap:.3g} between A and A'")
    diagonal = np.diag(A)
    wanted = "be positive semi-definite"
    if (diagonal < -tiny * scale).any():
        i = int(np.argmin(diagonal))
        fail(owner, field, wanted, f"the diagonal entry {diagonal[i]:.6g} at index {i}")
    root = np.sqrt(np.maximum(diagonal, 0.0))
    excess = np.abs(A) - np.outer(root, root)
    if excess.max(initial=0.0) > tiny * scale:
        row, column = divmod(int(np.argmax(excess)), len(A))
        fail(owner, field, wanted, f"a negative minor of rows and columns {row} and {column}")


def scalar_function(owner: str, field: str, fn: Callable[..., ArrayLike], x: Values) -> None:
    """A function that is minimised returns one real number."""
    out = jax.eval_shape(fn, x)
    if not hasattr(out, "shape") or out.shape != ():
        got = f"shape {out.shape}" if hasattr(out, "shape") else f"a {type(out).__name__}"
        fail(owner, field, "return a scalar", got)
    if not jax.numpy.issubdtype(out.dtype, jax.numpy.floating):
        fail(owner, field, "return a real number", f"dtype {out.dtype}")
