"""Numbers, arrays and trees of them in the words of JSON, and back: bit for bit.

JSON has no word for what is not finite: that is the text "nan", "inf" or "-inf". All NaNs are one.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
ARRAYS = ("numpy", "jax", "scalar")  # a scalar is a number of NumPy's
CONTAINERS: dict[str, type] = {"list": list, "tuple": tuple}


class DamageError(ValueError):
    """A field is not what it should be."""

    def __init__(self, field: str, wanted: str, got: object) -> None:
        said = str(got)
        self.parts = field, wanted, said if len(said) <= 80 else f"{said[:77]}..."
        super().__init__("`{}` must {}, got {}".format(*self.parts))


def to_plain(field: str, tree: Any) -> Any:
    """A number, an array, or dicts, lists and tuples of them, in the words of JSON."""
    if isinstance(tree, np.generic):
        return _array_to(field, "scalar", np.asarray(tree))
    if isinstance(tree, np.ndarray):
        return _array_to(field, "numpy", tree)
    if isinstance(tree, jax.Array):
        return _array_to(field, "jax", tree)
    if isinstance(tree, float) and not math.isfinite(tree):
        return str(tree)
    if tree is None or type(tree) in (bool, int, float):
        return tree
    if type(tree) is dict:
        for key in tree:
            if type(key) not in (str, int):
                raise DamageError(field, "have strings or integers as keys", repr(key))
        # pairs, since JSON would make a string of an integer
        return {"dict": [[k, to_plain(f"{field}[{k!r}]", v)] for k, v in tree.items()]}
    if type(tree) in (list, tuple):  # and none of its subclasses, which would not come back
        name = type(tree).__name__
        return {name: [to_plain(f"{field}[{i}]", v) for i, v in enumerate(tree)]}
    wanted = "be made of dicts, lists, tuples, None, numbers and arrays to be saved"
    raise DamageError(field, wanted, named(tree))


def _array_to(field: str, kind: str, array: Any) -> dict[str, Any]:
    dtype = str(array.dtype)
    if dtype not in DTYPES:
        raise DamageError(field, f"be of dtype {', '.join(DTYPES)} to be saved", dtype)
    flat = np.ravel(np.asarray(array))
    if dtype.startswith("complex"):
        flat = np.ravel(np.stack([flat.real, flat.imag], -1))
    if "float" in dtype:
        flat = flat.astype(np.float64)  # exact; bfloat16 has no numbers of Python
    entries = flat.tolist()
    if not np.all(np.isfinite(flat)):
        entries = [entry if math.isfinite(entry) else str(entry) for entry in entries]
    return {kind: dtype, "shape": list(array.shape), "values": entries}


def from_plain(field: str, given: Any) -> Any:
    """What `to_plain` was given; whatever else it finds is a damage to the field."""
    if given is None or isinstance(given, bool | int):
        return given
    if isinstance(given, float | str):
        return real(field, given)
    if isinstance(given, dict):
        for kind in ARRAYS:
            if set(given) == {kind, "shape", "values"}:
                return _array_from(field, given[kind], given["shape"], given["values"], kind)
        for kind in ("dict", *CONTAINERS):
            if set(given) == {kind} and isinstance(given[kind], list):
                return _container_from(field, kind, given[kind])
    wanted = "be a number, an array, or a dict, list or tuple of them"
    raise DamageError(field, wanted, named(given))


def _container_from(field: str, kind: str, entries: list[Any]) -> Any:
    if kind != "dict":
        return CONTAINERS[kind](from_plain(f"{field}[{i}]", v) for i, v in enumerate(entries))
    tree: dict[Any, Any] = {}
    for pair in entries:
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (str, int)):
            raise DamageError(field, "be pairs of a key and what it stands for", named(pair))
        if pair[0] in tree:
            raise DamageError(field, "have every key once", f"{pair[0]!r} twice")
        tree[pair[0]] = from_plain(f"{field}[{pair[0]!r}]", pair[1])
    return tree


def _array_from(field: str, dtype: Any, shape: Any, values: Any, kind: str) -> Any:
    if dtype not in DTYPES:
        raise DamageError(field, f"have a dtype of {', '.join(DTYPES)}", repr(dtype))
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise DamageError(field, "have a shape of integers", shape)
    if kind == "scalar" and shape:
        raise DamageError(field, "have the shape [] of a scalar", shape)
    if not isinstance(values, list):
        raise DamageError(field, "have a list of values", named(values))
    is_complex = dtype.startswith("complex")
    wanted = math.prod(shape) * (2 if is_complex else 1)
    if len(values) != wanted:
        raise DamageError(field, f"have {wanted} values for its shape {shape}", len(values))
    array = _flat_from(field, dtype, values)
    if is_complex:
        array = array.view(dtype)
    array = array.reshape(shape)
    if kind == "jax":
        with jax.enable_x64(True):  # else JAX would round what is wider
            return jnp.asarray(array)
    return array[()] if kind == "scalar" else array


def _flat_from(field: str, dtype: str, values: list[Any]) -> Any:
    """The values, each of which has to be exactly a number of this dtype."""
    if "int" in dtype or dtype == "bool":
        kind = bool if dtype == "bool" else int
        for entry in values:
            if type(entry) is not kind:
                raise DamageError(field, f"have values of dtype {dtype}", repr(entry))
        try:
            return np.array(values, dtype)
        except OverflowError:
            info = np.iinfo(dtype)
            beyond = next(v for v in values if not info.min <= v <= info.max)
            raise DamageError(field, f"have values of dtype {dtype}", beyond) from None
    dtype = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    wide = np.array([real(field, entry) for entry in values], np.float64)
    with np.errstate(over="ignore"):
        array = wide.astype(dtype)
    rounded = ~((array.astype(np.float64) == wide) | np.isnan(wide))
    if rounded.any():
        raise DamageError(field, f"have values of dtype {dtype}", wide[np.argmax(rounded)])
    return array


def real(field: str, given: Any) -> float:
    if isinstance(given, str) and given in WORDS:
        return WORDS[given]
    # JSON allows 1e999, which would become infinite
    try:
        if type(given) in (int, float) and math.isfinite(float(given)):
            return float(given)
    except OverflowError:
        pass
    raise DamageError(field, 'be a number, "nan", "inf" or "-inf"', named(given))


def named(given: Any) -> str:
    """How something is named in an error: itself if it is short."""
    if given is None or isinstance(given, bool | int | float | str):
        return repr(given)
    return f"a {type(given).__name__}"
