"""How an input error is worded: owner, field, what was wanted, what was given.

A check looks at concrete values. Inside `jax.jit` values are traced and unknown; there only
shapes and dtypes are checked.
"""

from __future__ import annotations

import contextlib
import math
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import sharding
from cfgd._core.arrays import as_array
from cfgd._core.types import Values

# what loops count in
MAX_INT32 = 2**31 - 1
# what JAX says where a value must be known that is not
UNKNOWN = (jax.errors.JAXTypeError, jax.errors.JAXIndexError)


def fail(
    owner: str, field: str, wanted: str, got: object, cause: Exception | None = None
) -> NoReturn:
    raise ValueError(f"`{owner}({field}=...)` must {wanted}, got {got}.") from cause


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points to the line of the user's that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    """A frame of cfgd, or of what wraps or calls its functions."""
    package = frame.f_globals.get("__name__", "").split(".")[0]
    return package in ("cfgd", "equinox", "jaxtyping", "beartype", "scipy")


def is_traced(value: object) -> bool:
    return isinstance(value, jax.core.Tracer)


def is_integer_or_bool(value: Values) -> bool:
    """Whether it holds integers or labels, which have no precision of their own."""
    return jnp.issubdtype(value.dtype, jnp.integer) or value.dtype == bool


def real(owner: str, field: str, value: Any, wanted: str = "be an array of numbers") -> Values:
    """`value` as an array of real numbers of whatever kind; JAX arrays stay JAX arrays."""
    if is_traced(value):
        return value
    unmasked(owner, field, value)
    try:
        value = as_array(value)
    except ValueError:
        fail(owner, field, wanted, "rows of different lengths")
    # numpy's kind of an extension float (bfloat16) is "V", hence jax's own test
    if not jnp.issubdtype(value.dtype, jnp.floating) and not is_integer_or_bool(value):
        fail(owner, field, wanted, f"an array of dtype {value.dtype}")
    return value


def floating(owner: str, field: str, value: Any, wanted: str = "be an array of numbers") -> Values:
    """`value` as a floating array; integers become float64."""
    value = real(owner, field, value, wanted)
    if is_traced(value) or not is_integer_or_bool(value):
        return value
    if sharding.is_sharded(value):
        return sharding.as_float64(value)
    return np.asarray(value).astype(np.float64)


def array(owner: str, field: str, value: Any, wanted: str = "be an array of numbers") -> Values:
    """`value` as a finite floating array."""
    value = floating(owner, field, value, wanted)
    if not is_traced(value):
        finite(owner, field, value)
    return value


def unmasked(owner: str, field: str, value: Any) -> None:
    """What is masked would count as a number once the mask is gone."""
    if isinstance(value, list | tuple):
        for i, part in enumerate(value):
            if isinstance(part, np.ma.MaskedArray):
                unmasked(owner, f"{field}[{i}]", part)
    elif isinstance(value, np.ma.MaskedArray) and np.any(value.mask):
        masked = np.argwhere(np.ma.getmaskarray(value))
        first = tuple(int(i) for i in masked[0])
        got = "one" if len(masked) == 1 else f"{len(masked)}, the first"
        fail(owner, field, "have no masked entries", got + _at(first))


def finite(owner: str, field: str, value: Values) -> None:
    """Say where the first entry that is not finite stands."""
    if sharding.is_sharded(value):
        no_entry(owner, field, "be finite", _is_infinite, value)
        return
    bad = ~np.isfinite(np.asarray(value, dtype=np.float64))
    if not bad.any():
        return
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    worth = np.asarray(value, dtype=np.float64)[first]
    fail(owner, field, "be finite", f"{worth}{_at(first)}")


def _is_infinite(values: Any) -> Any:
    return ~jnp.isfinite(values)


def no_entry(owner: str, field: str, wanted: str, bad: sharding.Test, value: Values) -> None:
    """Say where the first entry stands of which `bad` is true."""
    if sharding.any_entry(bad, value):
        place, worth = sharding.first_entry(bad, value)
        fail(owner, field, wanted, f"{worth}{_at(place)}")


def _at(index: tuple[int, ...]) -> str:
    return "" if not index else f" at index {index[0] if len(index) == 1 else index}"


def shape(owner: str, field: str, value: Values, wanted: tuple[int, ...]) -> Values:
    if tuple(value.shape) != wanted:
        fail(owner, field, f"have shape {wanted}", tuple(value.shape))
    return value


def flag(owner: str, field: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        fail(owner, field, "be True or False", repr(value))
    return bool(value)


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
    if type(value) is float and math.isfinite(value) and holds(np.asarray(value)):
        return np.asarray(value)  # as nearly always: the rest takes as long as a step
    if isinstance(value, str | bytes) or value is None:
        fail(owner, field, wanted, repr(value))
    value = array(owner, field, value, wanted)
    if sharding.is_sharded(value):
        no_entry(owner, field, wanted, lambda v: ~holds(v), value)
    elif not is_traced(value) and not np.all(holds(np.asarray(value))):
        got = value if value.ndim == 0 else np.asarray(value)[~holds(np.asarray(value))][0]
        fail(owner, field, wanted, got)
    return value


def in_open_unit_interval(owner: str, field: str, value: Any) -> Values:
    return number(owner, field, value, "lie in (0, 1)", lambda v: (v > 0) & (v < 1))


def positive(owner: str, field: str, value: Any) -> Values:
    return number(owner, field, value, "be positive", lambda v: v > 0)


def integer(owner: str, field: str, value: Any, least: int = 1) -> int:
    wanted = f"be an integer of at least {least}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        fail(owner, field, wanted, repr(value))
    if value < least:
        fail(owner, field, wanted, value)
    if value > MAX_INT32:
        fail(owner, field, f"be at most {MAX_INT32}", value)
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
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if getattr(value, "dtype", None) == np.uint32 and value.ndim == 1:
        return value if is_traced(value) else np.asarray(value)
    fail(owner, "key", "be an integer or a JAX key", value)


def instance(owner: str, field: str, value: Any, kind: type, known: Sequence[str]) -> Any:
    if not isinstance(value, kind):
        fail(owner, field, f"be one of {', '.join(known)}", repr(value))
    return value


def function(owner: str, field: str, value: Any, wanted: str) -> None:
    """A class is callable too, but what it returns is an instance of it."""
    if not callable(value) or isinstance(value, type):
        fail(owner, field, wanted, repr(value))


def input_eps(value: Any) -> float:
    """Of numbers as they were given; 0 where they have no type of their own."""
    dtype = getattr(value, "dtype", None)
    known = isinstance(dtype, np.dtype) and jnp.issubdtype(dtype, jnp.floating)
    return float(jnp.finfo(dtype).eps) if known else 0.0


@contextlib.contextmanager
def traceable(owner: str, field: str, instead: str = "") -> Iterator[None]:
    """A function of the user's runs in here that is called with values yet unknown."""
    try:
        yield
    except UNKNOWN as error:
        wanted = f"be written in JAX (jax.numpy for NumPy, jnp.where for `if`, no float()){instead}"
        fail(owner, field, wanted, f"a {type(error).__name__}", error)


@contextlib.contextmanager
def concrete(owner: str) -> Iterator[None]:
    """What runs in here looks at numbers, so that none of them may be unknown."""
    try:
        yield
    except UNKNOWN as error:
        raise ValueError(
            f"`{owner}` must be called with numbers that are known, outside of jit, vmap and grad "
            "(for many starts or settings there is `sweep`), and with rules that are written in "
            f"JAX, got a {type(error).__name__}."
        ) from error


def scalar_function(
    owner: str, field: str, fn: Callable[..., Any], *args: Any, instead: str = ""
) -> None:
    """A function that is minimised returns one real number."""

    def complaint(out: Any) -> tuple[str, str] | None:
        if isinstance(out, bool | int | float | complex):
            out = jnp.asarray(out)
        if not hasattr(out, "shape") or out.shape != ():
            return "return a scalar", describe(out)
        if not jnp.issubdtype(out.dtype, jnp.floating):
            return "return a real number", f"dtype {out.dtype}"
        return None

    known, shapes = checked_signatures(fn), signature_of(args)
    if shapes in known:
        return
    with traceable(owner, field, instead):
        _look_at_return(owner, field, complaint, fn, *args)
    known.add(shapes)


# what functions have been looked at with: many small solves of one function look once
_looked_at: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()


def checked_signatures(fn: Any) -> set[Any]:
    """What is known of a function: shapes that it was looked at with."""
    try:
        return _looked_at.setdefault(fn, set())
    except TypeError:  # cannot be hashed, or referred to weakly
        return set()


def signature_of(args: Any) -> Any:
    leaves, treedef = jax.tree.flatten(args)
    each = tuple((np.shape(leaf), str(getattr(leaf, "dtype", type(leaf)))) for leaf in leaves)
    return treedef, each, jnp.result_type(float)


def numbers_function(owner: str, field: str, fn: Callable[..., Any], *args: Any) -> int:
    """A function that is recorded returns numbers: how many, found out without any work."""
    count = 0

    def complaint(out: Any) -> tuple[str, str] | None:
        nonlocal count
        try:
            numbers = jnp.asarray(out)
        except (TypeError, ValueError):  # also JAX's own, of a list that holds no numbers
            return "return numbers", describe(out)
        if not jnp.issubdtype(numbers.dtype, jnp.number) and numbers.dtype != bool:
            return "return numbers", f"dtype {numbers.dtype}"
        count = numbers.size
        return None

    with traceable(owner, field):
        _look_at_return(owner, field, complaint, fn, *args)
    return count


def _look_at_return(
    owner: str,
    field: str,
    complaint: Callable[[Any], tuple[str, str] | None],
    fn: Callable[..., Any],
    *args: Any,
) -> None:
    """Call fn with values yet unknown, and complain about what it returns."""
    found: list[tuple[str, str]] = []

    def call(*args: Any) -> None:
        said = complaint(fn(*args))
        found.extend([said] if said else [])

    jax.eval_shape(call, *args)
    for wanted, got in found:  # out here, where JAX adds no notes to an error
        fail(owner, field, wanted, got)


def describe(value: Any) -> str:
    """What was given instead, in few words."""
    return f"shape {value.shape}" if hasattr(value, "shape") else f"a {type(value).__name__}"
