"""Validation of user input, with uniform messages: owner, field, what was wanted, what was given.

Most functions take (owner, field, value), raise a `ValueError` that names all three, and return the
value as an array. Values are checked only if they are concrete. Inside `jax.jit` they are traced,
and only shapes and dtypes can be checked.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import sharding
from cfgd._core.arrays import DOUBLE, SINGLE, as_array, own
from cfgd._core.failing import fail as fail, warn as warn
from cfgd._core.interruptible import interruptible_trace
from cfgd._core.types import UserInput, Values
from cfgd._core.weak_table import WeakTable

# iteration counters are int32
MAX_INT32 = 2**31 - 1
# raised by JAX where Python code needs the value of a traced array
TRACER_ERRORS = (jax.errors.JAXTypeError, jax.errors.JAXIndexError)


def is_traced(value: UserInput) -> bool:
    """Return whether `value` is a JAX tracer, whose numbers are unknown."""
    return isinstance(value, jax.core.Tracer)


def is_integer_or_bool(value: Values) -> bool:
    """Return whether an array holds integers or booleans, which have no floating precision."""
    kind = getattr(value.dtype, "kind", "")  # keys of random numbers have none
    if kind and kind in "fbiu":
        return kind != "f"
    return jnp.issubdtype(value.dtype, jnp.integer)  # JAX has types that NumPy does not know


def real(owner: str, field: str, value: Any, wanted: str = "be an array of numbers") -> Values:
    """Return `value` as an array of real numbers: floating, integer or boolean.

    JAX arrays stay JAX arrays, everything else becomes NumPy.
    """
    if type(value) is np.ndarray and value.dtype in (DOUBLE, SINGLE):
        return value  # the common case
    if is_traced(value):
        return value
    unmasked(owner, field, value)
    try:
        value = as_array(value)
    except ValueError:
        fail(owner, field, wanted, "rows of different lengths")
    # NumPy reports the kind "V" for bfloat16, so JAX's test is needed
    if not jnp.issubdtype(value.dtype, jnp.floating) and not is_integer_or_bool(value):
        fail(owner, field, wanted, f"an array of dtype {value.dtype}")
    return value


def floating(owner: str, field: str, value: Any, wanted: str = "be an array of numbers") -> Values:
    """Return `value` as a floating array; integers and booleans become float64."""
    value = real(owner, field, value, wanted)
    if is_traced(value) or not is_integer_or_bool(value):
        return value
    if sharding.is_sharded(value):
        return sharding.as_float64(value)
    return np.asarray(value).astype(np.float64)


def array(
    owner: str, field: str, value: UserInput, wanted: str = "be an array of numbers"
) -> Values:
    """Return `value` as a floating array, all of whose entries are finite."""
    value = floating(owner, field, value, wanted)
    if not is_traced(value):
        finite(owner, field, value)
    return value


def unmasked(owner: str, field: str, value: UserInput) -> None:
    """Refuse masked entries: the conversion to an array would drop the mask and use them."""
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
    """Refuse an array with a NaN or infinity, and name the index of the first one."""
    if sharding.is_sharded(value):
        no_entry(owner, field, "be finite", _is_nonfinite, value)
        return
    is_finite = np.isfinite(np.asarray(value, dtype=np.float64))
    if is_finite.all():
        return
    first = tuple(int(i) for i in np.argwhere(~is_finite)[0])
    entry = np.asarray(value, dtype=np.float64)[first]
    fail(owner, field, "be finite", f"{entry}{_at(first)}")


def _is_nonfinite(values: Values) -> Values:
    return ~jnp.isfinite(values)


def no_entry(owner: str, field: str, wanted: str, bad: sharding.Test, value: Values) -> None:
    """Refuse an array with an entry for which `bad` is true, and name the first such entry."""
    if sharding.any_entry(bad, value):
        index, entry = sharding.first_entry(bad, value)
        fail(owner, field, wanted, f"{entry}{_at(index)}")


def _at(index: tuple[int, ...]) -> str:
    return "" if not index else f" at index {index[0] if len(index) == 1 else index}"


def shape(owner: str, field: str, value: Values, wanted: tuple[int, ...]) -> Values:
    """Return `value` if it has the shape `wanted`."""
    if tuple(value.shape) != wanted:
        fail(owner, field, f"have shape {wanted}", tuple(value.shape))
    return value


def flag(owner: str, field: str, value: UserInput) -> bool:
    """Return `value` as a Python bool; only booleans are accepted."""
    if not isinstance(value, bool | np.bool_):
        fail(owner, field, "be True or False", repr(value))
    return bool(value)


def matrix(owner: str, field: str, value: UserInput) -> Values:
    """Return `value` as a finite floating matrix with at least one entry."""
    value = array(owner, field, value, "be a matrix of numbers")
    if value.ndim != 2 or 0 in value.shape:
        fail(owner, field, "be a matrix", f"shape {tuple(value.shape)}")
    return value


def number(
    owner: str,
    field: str,
    value: UserInput,
    wanted: str,
    is_valid: Callable[[Any], Any],
) -> Values:
    """Return `value` as a finite floating array for whose entries `is_valid` is true, copied."""
    if type(value) is float and math.isfinite(value) and is_valid(np.asarray(value)):
        return np.asarray(value)  # the common case; the general one takes as long as a step
    if isinstance(value, str | bytes) or value is None:
        fail(owner, field, wanted, repr(value))
    value = array(owner, field, value, wanted)
    if sharding.is_sharded(value):
        no_entry(owner, field, wanted, lambda v: ~is_valid(v), value)
    elif not is_traced(value) and not np.all(is_valid(np.asarray(value))):
        got = value if value.ndim == 0 else np.asarray(value)[~is_valid(np.asarray(value))][0]
        fail(owner, field, wanted, got)
    return own(value)


def in_open_unit_interval(owner: str, field: str, value: UserInput) -> Values:
    """Return `value` as an array of numbers in (0, 1)."""
    return number(owner, field, value, "lie in (0, 1)", lambda v: (v > 0) & (v < 1))


def positive(owner: str, field: str, value: UserInput) -> Values:
    """Return `value` as an array of positive numbers."""
    return number(owner, field, value, "be positive", lambda v: v > 0)


def one_positive(owner: str, field: str, value: UserInput) -> float:
    """Return `value` as a positive Python float."""
    array = positive(owner, field, value)
    if array.ndim != 0:
        fail(owner, field, "be one number", f"shape {tuple(array.shape)}")
    return float(array)


def choice(owner: str, field: str, value: UserInput, known: Collection[str]) -> str:
    """Return `value` if it is one of the words in `known`."""
    if not isinstance(value, str) or value not in known:
        fail(owner, field, f"be one of {', '.join(known)}", repr(value))
    return value


def names(owner: str, field: str, value: UserInput) -> list[str]:
    """Return a name, or a list of names, as a list."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable) or not all(isinstance(name, str) for name in value):
        fail(owner, field, "be a name or a list of names", repr(value))
    return list(value)


def integer(owner: str, field: str, value: UserInput, least: int = 1) -> int:
    """Return `value` as a Python int of at least `least` that fits into an int32."""
    wanted = f"be an integer of at least {least}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        fail(owner, field, wanted, repr(value))
    if value < least:
        fail(owner, field, wanted, value)
    if value > MAX_INT32:
        fail(owner, field, f"be at most {MAX_INT32}", value)
    return int(value)


def exactly_one_of(owner: str, beta: UserInput, gamma: UserInput) -> None:
    """Refuse a call that gives both `beta` and `gamma`, or neither."""
    if (beta is None) == (gamma is None):
        neither = "neither (beta=0 is the Caputo derivative without smoothing)"
        got = neither if beta is None else f"beta={beta} and gamma={gamma}"
        raise ValueError(f"`{owner}` takes exactly one of `beta` and `gamma`, got {got}.")


def broadcastable(owner: str, field: str, value: Values, other_field: str, other: Values) -> None:
    """Refuse `value` if its shape does not broadcast with that of the other field."""
    try:
        np.broadcast_shapes(value.shape, other.shape)
    except ValueError:
        wanted = f"fit {other_field} of shape {tuple(other.shape)}"
        fail(owner, field, wanted, f"shape {value.shape}")


def key(owner: str, field: str, value: Any) -> Any:
    """Return the data of a random key, from a seed, a generator or a key.

    The value is an integer seed, a NumPy Generator (from which one integer is drawn), a JAX key or
    the data of one. The result is a NumPy array unless the key is traced.
    """
    if isinstance(value, np.random.Generator):
        value = value.integers(np.iinfo(np.int32).max)  # int32: all that JAX takes without x64
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return np.asarray(jax.random.key_data(jax.random.key(int(value))))
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if getattr(value, "dtype", None) == np.uint32 and value.ndim == 1:
        return value if is_traced(value) else own(np.asarray(value))
    fail(owner, field, "be an integer, a NumPy Generator or a JAX key", value)


def instance(owner: str, field: str, value: UserInput, kind: type, known: Sequence[str]) -> Any:
    """Return `value` if it is an instance of `kind`; `known` names the choices in the message."""
    if not isinstance(value, kind):
        fail(owner, field, f"be one of {', '.join(known)}", repr(value))
    return value


def function(owner: str, field: str, value: UserInput, wanted: str) -> None:
    """Refuse a value that is no function; a class is callable, but calling it makes an instance."""
    if not callable(value) or isinstance(value, type):
        fail(owner, field, wanted, repr(value))


def input_eps(value: UserInput) -> float:
    """Return the machine epsilon of an input's own dtype; 0 if it has no floating dtype."""
    dtype = getattr(value, "dtype", None)
    is_floating = isinstance(dtype, np.dtype) and jnp.issubdtype(dtype, jnp.floating)
    return float(jnp.finfo(dtype).eps) if is_floating else 0.0


@contextlib.contextmanager
def traceable(owner: str, field: str, instead: str = "") -> Iterator[None]:
    """Report a user function that fails under tracing as one that is not written in JAX."""
    try:
        yield
    except TRACER_ERRORS as error:
        wanted = f"be written in JAX (jax.numpy for NumPy, jnp.where for `if`, no float()){instead}"
        fail(owner, field, wanted, f"a {type(error).__name__}", error)


@contextlib.contextmanager
def concrete(owner: str) -> Iterator[None]:
    """Report a traced value in code that needs concrete numbers."""
    try:
        yield
    except TRACER_ERRORS as error:
        raise ValueError(
            f"`{owner}` must be called with concrete numbers, outside of jit, vmap and grad "
            "(for many starts or settings there is `sweep`), and with rules that are written in "
            f"JAX, got a {type(error).__name__}."
        ) from error


def scalar_function(
    owner: str, field: str, fn: Callable[..., Any], *args: Any, instead: str = ""
) -> None:
    """Refuse a function that does not return one real number.

    `fn` is traced with `args` and not executed. A function that passed once is not traced again
    for arguments of the same structure, shapes and dtypes.
    """

    def problem_with(out: Any) -> tuple[str, str] | None:
        if isinstance(out, bool | int | float | complex):
            out = jnp.asarray(out)
        if not hasattr(out, "shape") or out.shape != ():
            return "return a scalar", describe(out)
        if not jnp.issubdtype(out.dtype, jnp.floating):
            return "return a real number", f"dtype {out.dtype}"
        return None

    checked, signature = checked_signatures(fn), signature_of(args)
    if signature in checked:
        return
    with traceable(owner, field, instead):
        _check_output(owner, field, problem_with, fn, *args)
    checked.add(signature)


# signatures with which a function passed its check: many small solves of one function check it once
_checked: WeakTable[set[Any]] = WeakTable()


def checked_signatures(fn: object) -> set[Any]:
    """Return the mutable set of the signatures with which `fn` has passed its check.

    `fn` is a function or a module that holds functions: an equal module has the same set.
    """
    return _checked.of(fn, set)


def signature_of(args: object) -> Any:
    """Return a hashable key: the structure, shapes and dtypes of `args`, and JAX's precision."""
    leaves, treedef = jax.tree.flatten(args)
    each = tuple((np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves)
    config: Any = jax.config
    return treedef, each, config.jax_enable_x64


def numbers_function(owner: str, field: str, fn: Callable[..., Any], *args: object) -> int:
    """Return how many numbers a recorded function returns; refuse one that returns anything else.

    `fn` is traced and not executed.
    """
    count = 0

    def problem_with(out: object) -> tuple[str, str] | None:
        nonlocal count
        try:
            numbers = jnp.asarray(out)
        except (TypeError, ValueError):  # JAX raises both for a list that holds no numbers
            return "return numbers", describe(out)
        if not jnp.issubdtype(numbers.dtype, jnp.number) and numbers.dtype != bool:
            return "return numbers", f"dtype {numbers.dtype}"
        count = numbers.size
        return None

    with traceable(owner, field):
        _check_output(owner, field, problem_with, fn, *args)
    return count


def _check_output(
    owner: str,
    field: str,
    problem_with: Callable[[Any], tuple[str, str] | None],
    fn: Callable[..., Any],
    *args: object,
) -> None:
    """Trace `fn` and raise if `problem_with` finds something wrong with its output."""
    problems: list[tuple[str, str]] = []

    def call(*args: object) -> None:
        problem = problem_with(interruptible_trace(fn, *args))
        if problem is not None:
            problems.append(problem)

    eqx.filter_eval_shape(call, *args)
    for wanted, got in problems:  # raised outside of the trace, where JAX adds no notes to it
        fail(owner, field, wanted, got)


def describe(value: UserInput) -> str:
    """Describe a value in a message by its shape or type."""
    return f"shape {value.shape}" if hasattr(value, "shape") else f"a {type(value).__name__}"
