"""Convert the fields of a Solution to JSON and back, bit for bit and without pickle.

The file is one JSON object with one field on each line. Within it

- a number is a JSON number, or the string "nan", "inf" or "-inf", for which JSON has no number;
- an array is {"numpy": dtype, "shape": [...], "values": [...]}, with the key "jax" for a JAX array
  and "scalar" for a NumPy scalar. The values are in row-major order; complex ones are stored as
  pairs of real and imaginary parts;
- a dict is {"dict": [[key, value], ...]}, which preserves integer keys; lists and tuples are
  {"list": [...]} and {"tuple": [...]}.

A file may have been edited or damaged, so the reader checks everything and names the bad field.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd.objectives.information import Information
from cfgd.status import Status

FORMAT = "cfgd solution 1"
SURROGATES = re.compile(r"[\ud800-\udfff]")  # which no encoding can write
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)

# fields that files of older versions do not have
ADDED = ("tolerance", "active_mask", "terms")


class FieldError(ValueError):
    """A field whose content is not what it must be."""

    def __init__(self, field: str, wanted: str, got: object) -> None:
        text = str(got)
        self.parts = field, wanted, text if len(text) <= 80 else f"{text[:77]}..."
        super().__init__("`{}` must {}, got {}".format(*self.parts))


def to_text(fields: Mapping[str, Any]) -> str:
    """Return the fields of a solution as JSON, one field on each line."""
    try:
        encoded = {name: _encode_field(name, fields[name]) for name in DECODERS}
        for name in ADDED:
            if encoded[name] is None:
                del encoded[name]  # a file of an older version is written as it was read
        _check_shapes(fields)
    except FieldError as error:
        checks.fail("Solution", *error.parts)
    named = {"format": FORMAT, **encoded}
    lines = [f"{json.dumps(n)}: {json.dumps(e, allow_nan=False)}" for n, e in named.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read(path: Path) -> dict[str, Any]:
    """Return the fields of the solution in a file; raise a ValueError that names a bad field."""
    raw = path.read_bytes()
    try:
        encoded = json.loads(raw, object_pairs_hook=unique, parse_constant=refuse_constant)
        return decode_fields(encoded)
    except FieldError as error:
        raise ValueError(f"The file {path} is damaged: {error}.") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The file {path} must hold a solution in JSON, got: {error}.") from None


def _encode_field(name: str, value: Any) -> Any:
    if name == "status":
        return value.name if isinstance(value, Status) else [status.name for status in value]
    if name in ("details", "how"):
        return _strings(name, value)
    if name in ("information", "history") and value is not None:
        entries = value if name == "history" else value.stored()
        return {key: encode(f"{name}[{key!r}]", entry) for key, entry in entries.items()}
    if name in ("seconds", "compile_seconds", "rate", "tolerance") and value is not None:
        value = float(value)  # without this a NumPy scalar would be stored with its dtype
    return encode(name, value)


def decode_fields(encoded: Any) -> dict[str, Any]:
    """Return the fields of a solution from an object of JSON."""
    found = encoded.get("format") if isinstance(encoded, dict) else encoded
    if found != FORMAT:
        raise FieldError("format", f"be {FORMAT!r}", _short(found))
    for name in encoded:
        if name not in DECODERS and name != "format":
            raise FieldError(name, f"be one of {', '.join(DECODERS)}", "an unknown field")
    encoded = {**dict.fromkeys(ADDED), **encoded}
    for name in DECODERS:
        if name not in encoded:
            raise FieldError(name, "be present", "nothing")
    fields = {name: decoder(name, encoded[name]) for name, decoder in DECODERS.items()}
    _check_shapes(fields)
    return fields


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; Python's own reader accepts a name that occurs twice."""
    found: dict[str, Any] = {}
    for name, entry in pairs:
        if name in found:
            raise FieldError(name, "occur once", "it twice")
        found[name] = entry
    return found


def refuse_constant(word: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python's own reader accepts."""
    raise ValueError(f"the word {word}, which JSON does not have")


def _check_shapes(fields: Mapping[str, Any]) -> None:
    """Check the leading axes: the settings of a sweep, then the rows of the history."""
    lead = () if isinstance(fields["status"], Status) else (len(fields["status"]),)
    for name in ("value", "gradient_norm", "iterations", "evaluations", "resets"):
        if np.shape(fields[name]) != lead:
            raise FieldError(name, f"have shape {lead}", np.shape(fields[name]))
    for path, leaf in jax.tree_util.tree_leaves_with_path(fields["x"]):
        _check_leading_axes("x" + jax.tree_util.keystr(path), leaf, lead)
    for name, term in (fields["terms"] or {}).items():
        if np.shape(term) != lead:
            raise FieldError(f"terms[{name!r}]", f"have shape {lead}", np.shape(term))
    details = fields["details"]
    if isinstance(details, list) and (len(details),) != lead:
        wanted = f"be {lead[0]} strings, one for each setting" if lead else "be one string"
        raise FieldError("details", wanted, f"{len(details)} strings")
    rows = np.shape(fields["history"].get("iteration"))
    for name, entry in fields["history"].items():
        axes = rows if name == "iteration" else lead + rows
        _check_leading_axes(f"history[{name!r}]", entry, axes)


def _check_leading_axes(field: str, array: Any, axes: tuple[int, ...]) -> None:
    if np.shape(array)[: len(axes)] != axes:
        raise FieldError(field, f"have leading axes {axes}", f"shape {np.shape(array)}")


def _status(field: str, encoded: object) -> Status | list[Status]:
    names = _strings(field, encoded)
    for name in [names] if isinstance(names, str) else names:
        if name not in Status.__members__:
            raise FieldError(field, f"be one of {', '.join(Status.__members__)}", repr(name))
    return Status[names] if isinstance(names, str) else [Status[name] for name in names]


def _string(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise FieldError(field, "be a string", _short(value))
    if SURROGATES.search(value):
        raise FieldError(field, "be a string of Unicode", "half of a surrogate pair")
    return value


def _strings(field: str, value: object) -> str | list[str]:
    if isinstance(value, list):
        return [_string(f"{field}[{i}]", entry) for i, entry in enumerate(value)]
    return _string(field, value)


def _numbers(field: str, encoded: object) -> Any:
    found = decode(field, encoded)
    if isinstance(found, bool) or not (hasattr(found, "dtype") or isinstance(found, int | float)):
        raise FieldError(field, "be a number or an array", _short(encoded))
    # an integer of Python that no dtype holds becomes an object
    if np.asarray(found).dtype.kind not in "fiuV":  # "V" is NumPy's kind of bfloat16
        raise FieldError(field, "be real numbers", _short(encoded))
    return found


def _counts(field: str, encoded: object) -> Any:
    found = _numbers(field, encoded)
    if not np.all(np.asarray(found) >= 0):
        raise FieldError(field, "be at least 0", _short(encoded))
    return found


def _integers(field: str, encoded: object) -> Any:
    found = _counts(field, encoded)
    if np.asarray(found).dtype.kind not in "iu":
        raise FieldError(field, "be integers", _short(encoded))
    return found


def _information(field: str, encoded: object) -> Information | None:
    if encoded is None:
        return None
    fields, defaults = Information._fields, Information._field_defaults
    if not isinstance(encoded, dict) or set(defaults | encoded) != set(fields):
        raise FieldError(field, f"have {', '.join(fields)}", _short(encoded))
    matrix, root = (_numbers(f"{field}[{name!r}]", encoded[name]) for name in ("matrix", "root"))
    d = np.size(root)
    for name, entry, shape in (("root", root, (d,)), ("matrix", matrix, (d, d))):
        if np.shape(entry) != shape:
            raise FieldError(f"{field}[{name!r}]", f"have shape {shape}", np.shape(entry))
    given = set(encoded) - {"matrix", "root"}
    rest: Any = {key: _real(f"{field}[{key!r}]", encoded[key]) for key in given}
    found = Information(matrix, root, **rest)
    if found.classes not in range(1, d + 1) or d % found.classes:
        raise FieldError(f"{field}['classes']", f"divide {d}", _short(found.classes))
    return found._replace(classes=int(found.classes))


def _terms(field: str, encoded: object) -> dict[str, Any]:
    found = decode(field, encoded)
    is_dict = isinstance(found, dict) and all(isinstance(name, str) for name in found)
    if not is_dict or not all(isinstance(term, float | np.ndarray) for term in found.values()):
        raise FieldError(field, "be a dict of names to numbers", _short(encoded))
    return found


def _history(field: str, encoded: object) -> dict[str, Any]:
    if not isinstance(encoded, dict):
        raise FieldError(field, "be an object of arrays", _short(encoded))
    found = {key: decode(f"{field}[{key!r}]", entry) for key, entry in encoded.items()}
    for key, entry in found.items():
        if not hasattr(entry, "dtype"):
            raise FieldError(f"{field}[{key!r}]", "be an array", _short(encoded[key]))
    labels = found.get("iteration", np.zeros(1))
    if labels.ndim != 1 or labels.dtype.kind not in "iuf":
        got = f"shape {labels.shape} of dtype {labels.dtype}"
        raise FieldError(f"{field}['iteration']", "be a vector of numbers", got)
    return found


# -------------------------------------------------------------------- numbers, arrays and pytrees


def encode(field: str, tree: PyTree) -> Any:
    """Return a number, an array, or a dict, list or tuple of them, as objects of JSON."""
    if isinstance(tree, np.generic):
        return _encode_array(field, "scalar", np.asarray(tree))
    if isinstance(tree, np.ndarray):
        return _encode_array(field, "numpy", tree)
    if isinstance(tree, jax.Array):
        return _encode_array(field, "jax", tree)
    if isinstance(tree, float) and not math.isfinite(tree):
        return str(tree)
    # exact types: a subclass, such as a named tuple, would not be restored
    if tree is None or type(tree) in (bool, int, float):
        return tree
    if type(tree) is dict:
        for key in tree:
            if type(key) not in (str, int):
                raise FieldError(field, "have strings or integers as keys", repr(key))
        return {"dict": [[k, encode(f"{field}[{k!r}]", v)] for k, v in tree.items()]}
    if type(tree) in (list, tuple):
        name = type(tree).__name__
        return {name: [encode(f"{field}[{i}]", v) for i, v in enumerate(tree)]}
    wanted = "be made of dicts, lists, tuples, None, numbers and arrays to be saved"
    raise FieldError(field, wanted, _short(tree))


def decode(field: str, encoded: object) -> Any:
    """Return what `encode` was given."""
    if encoded is None or isinstance(encoded, bool | int):
        return encoded
    if isinstance(encoded, float | str):
        return _real(field, encoded)
    if isinstance(encoded, dict):
        keys = set(encoded)
        for kind in ("numpy", "jax", "scalar"):
            if keys == {kind, "shape", "values"}:
                return _decode_array(field, kind, encoded)
        for container in (list, tuple):
            entries = encoded.get(container.__name__)
            if keys == {container.__name__} and isinstance(entries, list):
                return container(decode(f"{field}[{i}]", v) for i, v in enumerate(entries))
        if keys == {"dict"} and isinstance(encoded["dict"], list):
            return _decode_dict(field, encoded["dict"])
    wanted = "be a number, an array, or a dict, list or tuple of them"
    raise FieldError(field, wanted, _short(encoded))


def _decode_dict(field: str, pairs: list[Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (str, int)):
            raise FieldError(field, "be pairs of a key and its value", _short(pair))
        key, entry = pair
        if key in found:
            raise FieldError(field, "have every key once", f"{key!r} twice")
        found[key] = decode(f"{field}[{key!r}]", entry)
    return found


def _encode_array(field: str, kind: str, array: Any) -> dict[str, Any]:
    dtype = str(array.dtype)
    if dtype not in DTYPES:
        raise FieldError(field, f"be of dtype {', '.join(DTYPES)} to be saved", dtype)
    flat = np.ravel(np.asarray(array))
    if dtype.startswith("complex"):
        flat = np.ravel(np.stack([flat.real, flat.imag], -1))
    if "float" in dtype:
        flat = flat.astype(np.float64)  # exact, and `tolist` knows no bfloat16
    values = flat.tolist()
    if not np.all(np.isfinite(flat)):
        values = [value if math.isfinite(value) else str(value) for value in values]
    return {kind: dtype, "shape": list(array.shape), "values": values}


def _decode_array(field: str, kind: str, encoded: dict[str, Any]) -> Any:
    dtype, shape, values = encoded[kind], encoded["shape"], encoded["values"]
    if dtype not in DTYPES:
        raise FieldError(field, f"have a dtype of {', '.join(DTYPES)}", repr(dtype))
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise FieldError(field, "have a shape of integers", shape)
    if kind == "scalar" and shape:
        raise FieldError(field, "have the shape [] of a scalar", shape)
    if not isinstance(values, list):
        raise FieldError(field, "have a list of values", _short(values))
    parts = {"complex64": "float32", "complex128": "float64"}.get(dtype)
    count = math.prod(shape) * (2 if parts else 1)
    if len(values) != count:
        raise FieldError(field, f"have {count} values for its shape {shape}", len(values))
    flat = _exact_array(field, parts or dtype, values).view(dtype)
    try:
        array = flat.reshape(shape)
    except (ValueError, OverflowError):  # no values, and a length that no array has
        raise FieldError(field, "have a shape that NumPy allows", shape) from None
    if kind == "jax":
        with jax.enable_x64(True):  # otherwise JAX would round float64 to float32
            return jnp.asarray(array)
    return array[()] if kind == "scalar" else array


def _exact_array(field: str, dtype: str, values: list[Any]) -> Any:
    """Return an array of the values; refuse a value that its dtype cannot represent exactly."""
    wanted = f"have values of dtype {dtype}"
    if "float" in dtype:
        wide = np.array([_real(field, value) for value in values], np.float64)
        with np.errstate(over="ignore"):
            array = wide.astype(dtype)
        inexact = ~((array.astype(np.float64) == wide) | np.isnan(wide))
        if inexact.any():
            raise FieldError(field, wanted, wide[np.argmax(inexact)])
        return array
    kind: Any = bool if dtype == "bool" else int
    least, largest = 0, 1
    if kind is int:
        least, largest = np.iinfo(dtype).min, np.iinfo(dtype).max
    for value in values:
        if type(value) is not kind or not least <= value <= largest:
            raise FieldError(field, wanted, repr(value))
    return np.array(values, dtype)


def _real(field: str, encoded: Any) -> float:
    if isinstance(encoded, str) and encoded in NOT_FINITE:
        return NOT_FINITE[encoded]
    try:
        # JSON allows 1e999, which Python reads as infinity, and integers that overflow a float
        if type(encoded) in (int, float) and math.isfinite(float(encoded)):
            return float(encoded)
    except OverflowError:
        pass
    raise FieldError(field, 'be a number, "nan", "inf" or "-inf"', _short(encoded))


def _short(value: object) -> str:
    """Return a short value itself, and the type of any other one, for an error message."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return f"a {type(value).__name__}"


# the fields of a solution in the order of the file: the long ones come last
DECODERS: dict[str, Callable[[str, Any], Any]] = {
    "status": _status,
    "details": _strings,
    "value": _numbers,
    "gradient_norm": _numbers,
    "iterations": _integers,
    "evaluations": _counts,
    "resets": _integers,
    "seconds": _real,
    "compile_seconds": _real,
    "how": _string,
    "rate": lambda field, encoded: None if encoded is None else _real(field, encoded),
    "tolerance": lambda field, encoded: None if encoded is None else _real(field, encoded),
    "x": decode,
    "active_mask": lambda field, encoded: None if encoded is None else decode(field, encoded),
    "terms": lambda field, encoded: None if encoded is None else _terms(field, encoded),
    "information": _information,
    "history": _history,
}
