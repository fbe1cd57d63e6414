"""Validate JSON files: the files are not trusted, so every field is checked.

A check is a function of a value and its place in the file, such as `terms[0].coefficient`. It
returns the value, converted if need be, or raises a `ValueError` with the place, what is wanted and
what was found. `record` and `listing` combine checks into those of objects and lists.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cfgd._core.files import reason

PARTS = "parts"  # the folder of finished results, each saved as soon as it is complete
Check = Callable[[Any, str], Any]
MEGABYTES = 50  # limit of the size of a file; those that are written have less than one
DEPTH = 5  # limit of the nesting of parameters
SURROGATES = re.compile(r"[\ud800-\udfff]")  # which no encoding can write
CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def stored(folder: Path, part: Check, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the valid results of earlier runs by name; call `say` for each that is not used."""
    found = {}
    for path in sorted((folder / PARTS).glob("*.json")):
        try:
            found[path.stem] = read(path, part)
        except ValueError as error:
            say(f"{path} is not used: {error}.")
    return found


def read(path: Path, part: Check) -> Any:
    """Return the checked content of a file whose field `name` is the name of the file."""
    found = part(content(path), "")
    if found.name != path.stem:
        raise ValueError(f"name must be {path.stem!r} as in the file's name, got {found.name!r}")
    return found


def content(path: Path) -> Any:
    """Return the content of a JSON file; raise a `ValueError` for anything else."""
    if path.is_symlink() or not path.is_file():
        raise ValueError("it is no ordinary file")
    try:
        with path.open("rb") as file:
            raw = file.read(MEGABYTES * 1_000_000 + 1)
    except OSError as error:
        raise ValueError(reason(error)) from None
    if len(raw) > MEGABYTES * 1_000_000:
        raise ValueError(f"it is larger than {MEGABYTES} MB")
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno} is not JSON ({error.msg})") from None
    except (ValueError, RecursionError):  # not UTF-8, too many digits, too deeply nested
        raise ValueError("it is not JSON") from None


def wrong(place: str, wanted: str, value: Any) -> ValueError:
    """Return the error of a value that is not what is wanted."""
    shown = repr(value)[:40]
    if isinstance(value, dict | list):
        shown = "an object" if isinstance(value, dict) else "a list"
    return ValueError(f"{place or 'it'} must be {wanted}, got {shown}")


def text(value: Any, place: str) -> str:
    """Check for text without control characters, which a terminal would obey."""
    if not isinstance(value, str):
        raise wrong(place, "text", value)
    if CONTROL_CHARACTERS.search(value):
        raise wrong(place, "text without control characters", value)
    return value


def any_text(value: Any, place: str) -> str:
    """Return a text, which may hold control characters: whatever displays it must escape it."""
    if not isinstance(value, str) or SURROGATES.search(value):
        raise wrong(place, "text", value)
    return value


def name(value: Any, place: str) -> str:
    """Check for a name that is safe as the name of a file."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", value):
        raise wrong(place, "a name of letters and digits", value)
    return value


def number(value: Any, place: str) -> float:
    """Check for a number; infinity is one, as the result of a run that diverged."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    raise wrong(place, "a number", value)


def finite(value: Any, place: str) -> float:
    """Check for a finite number."""
    if not math.isfinite(number(value, place)):
        raise wrong(place, "a finite number", value)
    return float(value)


def whole(value: Any, place: str) -> int:
    """Check for an integer of at least 0."""
    if type(value) is int and value >= 0:
        return value
    raise wrong(place, "a whole number", value)


def truth(value: Any, place: str) -> bool:
    """Check for true or false."""
    if isinstance(value, bool):
        return value
    raise wrong(place, "true or false", value)


def between(low: float, high: float) -> Check:
    def check(value: Any, place: str) -> float:
        if not low <= number(value, place) <= high:
            raise wrong(place, f"a number from {low:g} to {high:g}", value)
        return float(value)

    return check


def one_of(choices: tuple[str, ...]) -> Check:
    def check(value: Any, place: str) -> str:
        if not isinstance(value, str) or value not in choices:
            raise wrong(place, " or ".join(map(repr, choices)), value)
        return value

    return check


def maybe(inner: Check) -> Check:
    """Return a check that also allows null."""
    return lambda value, place: None if value is None else inner(value, place)


def listing(inner: Check) -> Check:
    """Return the check of a list whose items pass a check; it returns a tuple."""

    def check(value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise wrong(place, "a list", value)
        return tuple(inner(entry, f"{place}[{i}]") for i, entry in enumerate(value))

    return check


def record(fields: Mapping[str, Check], make: Callable[..., Any] = dict) -> Check:
    """Return the check of an object with exactly these fields; it returns `make(**fields)`."""

    def check(value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise wrong(place, "an object", value)
        odd = sorted(fields.keys() ^ value.keys())
        if odd:
            known = "is missing" if odd[0] in fields else "is unknown"
            raise ValueError(f"the field {odd[0][:40]!r} of {place or 'the part'} {known}")
        dot = f"{place}." if place else ""
        return make(**{field: inner(value[field], dot + field) for field, inner in fields.items()})

    return check


def parameters(value: Any, place: str) -> dict[str, Any]:
    """Check for an object of plain values; their meaning is up to the experiment."""
    if not isinstance(value, dict):
        raise wrong(place, "an object", value)
    _check_plain(value, place, DEPTH)
    return value


def _check_plain(value: Any, place: str, depth: int) -> None:
    """Raise a `ValueError` for deep nesting, control characters and numbers that are not finite."""
    if depth == 0:
        raise ValueError(f"{place} must not be nested deeper than {DEPTH} times")
    if isinstance(value, dict):
        for key, entry in value.items():
            _check_plain(entry, f"{place}.{text(key, place)[:40]}", depth - 1)
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            _check_plain(entry, f"{place}[{i}]", depth - 1)
    elif isinstance(value, str):
        text(value, place)
    elif (
        value is not None
        and not isinstance(value, bool)
        and not math.isfinite(number(value, place))
    ):
        raise wrong(place, "a finite number", value)
