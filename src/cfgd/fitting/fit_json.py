"""Convert a Fit to JSON and back with all digits, as `solve/solution_json.py` does for a Solution.

The file is one JSON object with one field on each line; the solution is the object of its own file.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfgd._core import checks
from cfgd.solve import solution_json
from cfgd.solve.solution import Solution
from cfgd.solve.solution_json import FieldError, decode, encode

if TYPE_CHECKING:
    from cfgd.fitting.fit import Fit

FORMAT = "cfgd fit 1"
KINDS = ("least squares", "sandwich")
# the names of fields in files of earlier versions
FORMER_NAMES = {"freedom": "dof", "deviation": "residual_std"}


def to_text(fit: Fit) -> str:
    """Return the fields of a fit as JSON, one field on each line."""
    names = [each.name for each in dataclasses.fields(Solution)]
    solution = {name: getattr(fit.solution, name) for name in names}
    encoded: dict[str, Any] = {"format": FORMAT}
    try:
        for name in DECODERS:
            value = getattr(fit, name)
            if name == "solution":
                encoded[name] = json.loads(solution_json.to_text(solution))
            elif DECODERS[name] in (_strings, _kind, _flag):
                encoded[name] = value
            else:
                encoded[name] = encode(name, value)
    except FieldError as error:
        checks.fail("Fit", *error.parts)
    lines = [f"{json.dumps(n)}: {json.dumps(e, allow_nan=False)}" for n, e in encoded.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read(path: Path) -> dict[str, Any]:
    """Return the fields of the fit in a file; raise a ValueError that names a bad field."""
    raw = path.read_bytes()
    try:
        encoded = json.loads(
            raw,
            object_pairs_hook=solution_json.unique,
            parse_constant=solution_json.refuse_constant,
        )
        return _decode_fields(encoded)
    except FieldError as error:
        raise ValueError(f"The file {path} is damaged: {error}.") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The file {path} must hold a fit in JSON, got: {error}.") from None


def _decode_fields(encoded: Any) -> dict[str, Any]:
    found = encoded.get("format") if isinstance(encoded, dict) else encoded
    if found != FORMAT:
        got = repr(found) if isinstance(found, str) else f"a {type(found).__name__}"
        raise FieldError("format", f"be {FORMAT!r}", got)
    encoded = {FORMER_NAMES.get(name, name): value for name, value in encoded.items()}
    for name in encoded:
        if name not in DECODERS and name != "format":
            raise FieldError(name, f"be one of {', '.join(DECODERS)}", "an unknown field")
    for name in DECODERS:
        if name not in encoded:
            raise FieldError(name, "be present", "nothing")
    fields = {name: decoder(name, encoded[name]) for name, decoder in DECODERS.items()}
    size = len(fields["names"])
    if np.shape(fields["covariance"]) != (size, size):
        shape = np.shape(fields["covariance"])
        raise FieldError("covariance", f"have shape {(size, size)}", shape)
    if not hasattr(fields["solution"].x, "ndim") or fields["solution"].x.size < size:
        raise FieldError("solution", f"have an x of at least {size} numbers", "fewer")
    return fields


def _strings(field: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise FieldError(field, "be a list of strings", f"a {type(value).__name__}")
    return value


def _kind(field: str, value: object) -> str:
    if value not in KINDS:
        raise FieldError(field, f"be one of {', '.join(KINDS)}", repr(value))
    return str(value)


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise FieldError(field, "be true or false", repr(value))
    return value


def _number(field: str, encoded: object) -> float:
    found = decode(field, encoded)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise FieldError(field, "be a number", f"a {type(found).__name__}")
    return float(found)


def _count(field: str, encoded: object) -> int:
    if isinstance(encoded, bool) or not isinstance(encoded, int):
        raise FieldError(field, "be an integer", f"a {type(encoded).__name__}")
    return encoded


def _matrix(field: str, encoded: object) -> np.ndarray:
    found = decode(field, encoded)
    if not isinstance(found, np.ndarray) or found.dtype.kind != "f":
        raise FieldError(field, "be an array of real numbers", f"a {type(found).__name__}")
    return found


def _named(field: str, encoded: object) -> dict[str, Any]:
    found = decode(field, encoded)
    if not isinstance(found, dict):
        raise FieldError(field, "be a dict", f"a {type(found).__name__}")
    return found


def _solution(field: str, encoded: object) -> Solution:
    try:
        return Solution(**solution_json.decode_fields(encoded))
    except FieldError as error:
        inner, wanted, got = error.parts
        raise FieldError(f"{field}: {inner}", wanted, got) from None


# the fields in the order of the file: the long ones come last
DECODERS: dict[str, Callable[[str, Any], Any]] = {
    "names": _strings,
    "parameters": decode,
    "values": _named,
    "errors": _named,
    "at_bound": _strings,
    "chi_square": _number,
    "dof": _count,
    "n_points": _count,
    "residual_std": _number,
    "dispersion": _number,
    "r_squared": _number,
    "absolute_sigma": _flag,
    "covariance_kind": _kind,
    "warnings": _strings,
    "covariance": _matrix,
    "solution": _solution,
}
