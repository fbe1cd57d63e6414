"""The fields of a solution as JSON, and back: bit for bit, without pickle.

Everything that a file says is checked, since anything may have happened to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import jax
import numpy as np

from cfgd._core import checks
from cfgd.solve.covariance import Information
from cfgd.solve.plain import DamageError, from_plain, named, real, to_plain
from cfgd.status import Status

FORMAT = "cfgd solution 1"


def text(fields: Mapping[str, Any]) -> str:
    """The fields of a solution as JSON, one on each line."""
    try:
        plain = {name: write(name, fields[name]) for name, (write, _) in FIELDS.items()}
        _check_axes(fields)
    except DamageError as damage:
        checks.fail("Solution", *damage.parts)
    lines = [
        f"{json.dumps(name)}: {json.dumps(entry, allow_nan=False)}"
        for name, entry in {"format": FORMAT, **plain}.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read(path: Path) -> dict[str, Any]:
    """The fields of the solution in a file."""
    raw = path.read_bytes()
    try:
        return _fields(json.loads(raw, object_pairs_hook=_once, parse_constant=_no_json))
    except DamageError as damage:
        raise ValueError(f"The file {path} is damaged: {damage}.") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The file {path} must hold a solution in JSON, got: {error}.") from None


def _fields(given: Any) -> dict[str, Any]:
    said = given.get("format") if isinstance(given, dict) else given
    if said != FORMAT:
        raise DamageError("format", f"be {FORMAT!r}", named(said))
    for name in given:
        if name not in FIELDS and name != "format":
            raise DamageError(name, f"be one of {', '.join(FIELDS)}", "a field that is not known")
    for name in FIELDS:
        if name not in given:
            raise DamageError(name, "be there", "nothing")
    fields = {name: load(name, given[name]) for name, (_, load) in FIELDS.items()}
    _check_axes(fields)
    return fields


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, whose names stand once."""
    found: dict[str, Any] = {}
    for name, entry in pairs:
        if name in found:
            raise DamageError(name, "stand once", "it twice")
        found[name] = entry
    return found


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"the word {word}, which JSON does not have")


def _check_axes(fields: Mapping[str, Any]) -> None:
    """The leading axes: settings of a sweep, then rows of the history."""
    lead = () if isinstance(fields["status"], Status) else (len(fields["status"]),)
    for name in ("value", "gradient_norm", "iterations", "evaluations", "resets"):
        if np.shape(fields[name]) not in ((), lead):
            raise DamageError(name, f"have shape {lead}", np.shape(fields[name]))
    for path, leaf in jax.tree_util.tree_leaves_with_path(fields["x"]):
        _check_lead("x" + jax.tree_util.keystr(path), leaf, lead)
    if isinstance(fields["details"], list) and (len(fields["details"]),) != lead:
        wanted = f"be {lead[0]} sentences, as many as settings" if lead else "be one sentence"
        raise DamageError("details", wanted, f"{len(fields['details'])} of them")
    rows = np.shape(fields["history"].get("iteration"))
    for name, entry in fields["history"].items():
        _check_lead(f"history[{name!r}]", entry, rows if name == "iteration" else lead + rows)


def _check_lead(name: str, leaf: Any, lead: tuple[int, ...]) -> None:
    if np.shape(leaf)[: len(lead)] != lead:
        raise DamageError(name, f"have leading axes {lead}", f"shape {np.shape(leaf)}")


def _numbers(field: str, given: Any) -> Any:
    found = from_plain(field, given)
    if isinstance(found, bool) or not (hasattr(found, "dtype") or isinstance(found, int | float)):
        raise DamageError(field, "be a number or an array", named(given))
    return found


def _integers(field: str, given: Any) -> Any:
    found = _numbers(field, given)
    if np.asarray(found).dtype.kind not in "iu":
        raise DamageError(field, "be integers", named(given))
    return found


def _real_or_none(field: str, given: Any) -> float | None:
    return None if given is None else real(field, given)


def _plain_real(field: str, value: Any) -> Any:
    return None if value is None else to_plain(field, float(value))


def _sentence(field: str, given: Any) -> str:
    if not isinstance(given, str):
        raise DamageError(field, "be a text", named(given))
    return given


def _sentences(field: str, given: Any) -> Any:
    if isinstance(given, list):
        return [_sentence(f"{field}[{i}]", entry) for i, entry in enumerate(given)]
    return _sentence(field, given)


def _plain_status(field: str, status: Any) -> Any:
    return status.name if isinstance(status, Status) else [one.name for one in status]


def _status(field: str, given: Any) -> Any:
    words = _sentences(field, given)
    for word in [words] if isinstance(words, str) else words:
        if word not in Status.__members__:
            raise DamageError(field, f"be one of {', '.join(Status.__members__)}", repr(word))
    return Status[words] if isinstance(words, str) else [Status[word] for word in words]


def _plain_history(field: str, history: Mapping[str, Any]) -> Any:
    return {name: to_plain(f"{field}[{name!r}]", entry) for name, entry in history.items()}


def _history(field: str, given: Any) -> Any:
    if not isinstance(given, dict):
        raise DamageError(field, "be an object of arrays", named(given))
    return {name: from_plain(f"{field}[{name!r}]", entry) for name, entry in given.items()}


def _plain_information(field: str, known: Information | None) -> Any:
    if known is None:
        return None
    return {name: to_plain(f"{field}.{name}", entry) for name, entry in known._asdict().items()}


def _information(field: str, given: Any) -> Information | None:
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) != set(Information._fields):
        raise DamageError(field, f"have {', '.join(Information._fields)}", named(given))
    matrix, root = (_numbers(f"{field}.{name}", given[name]) for name in ("matrix", "root"))
    d = np.size(root)
    for name, entry, shape in (("root", root, (d,)), ("matrix", matrix, (d, d))):
        if np.shape(entry) != shape:
            raise DamageError(f"{field}.{name}", f"have shape {shape}", np.shape(entry))
    return Information(matrix, root, real(f"{field}.factor", given["factor"]))


# in the order of the file: what is long comes last
Codec = tuple[Callable[[str, Any], Any], Callable[[str, Any], Any]]
FIELDS: dict[str, Codec] = {
    "status": (_plain_status, _status),
    "details": (_sentences, _sentences),
    "value": (to_plain, _numbers),
    "gradient_norm": (to_plain, _numbers),
    "iterations": (to_plain, _integers),
    "evaluations": (to_plain, _numbers),
    "resets": (to_plain, _integers),
    "seconds": (_plain_real, real),
    "compile_seconds": (_plain_real, real),
    "how": (_sentence, _sentence),
    "rate": (_plain_real, _real_or_none),
    "x": (to_plain, from_plain),
    "information": (_plain_information, _information),
    "history": (_plain_history, _history),
}
