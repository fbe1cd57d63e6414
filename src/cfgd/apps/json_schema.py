"""Reading what was stored: whoever could write to the folder may have changed it: all is checked.

A check takes a value and its place in the file, gives the value back as it is wanted, or says what
was wanted and what is there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cfgd._core.files import reason

PARTS = "parts"  # the folder of what is kept of a run as soon as it is finished
Check = Callable[[Any, str], Any]
MEGABYTES = 50  # a part has less than one
DEPTH = 5  # of parameters in parameters
UNSHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def stored(folder: Path, part: Check, say: Callable[[str], None]) -> dict[str, Any]:
    """The parts that earlier runs left, by name; `say` is told of those that cannot be used."""
    found = {}
    for path in sorted((folder / PARTS).glob("*.json")):
        try:
            found[path.stem] = read(path, part)
        except ValueError as error:
            say(f"{path} is not used: {error}.")
    return found


def read(path: Path, part: Check) -> Any:
    """The part in a file that has its name; a `ValueError` says what is wrong with it."""
    found = part(content(path), "")
    if found.name != path.stem:
        raise ValueError(f"name must be {path.stem!r} as in the file's name, got {found.name!r}")
    return found


def content(path: Path) -> Any:
    """What is in a file of JSON."""
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
    except (ValueError, RecursionError):  # no text, too many digits, too many brackets
        raise ValueError("it is not JSON") from None


def wrong(place: str, wanted: str, value: Any) -> ValueError:
    shown = repr(value)[:40]
    if isinstance(value, dict | list):
        shown = "an object" if isinstance(value, dict) else "a list"
    return ValueError(f"{place or 'it'} must be {wanted}, got {shown}")


def text(value: Any, place: str) -> str:
    """Text that can be written and shown: a terminal obeys control characters."""
    if not isinstance(value, str):
        raise wrong(place, "text", value)
    if UNSHOWN.search(value):
        raise wrong(place, "text without control characters", value)
    return value


def name(value: Any, place: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", value):
        raise wrong(place, "a name of letters and digits", value)
    return value


def number(value: Any, place: str) -> float:
    """Any float: of a run that diverged, infinity is what was measured."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    raise wrong(place, "a number", value)


def finite(value: Any, place: str) -> float:
    if not math.isfinite(number(value, place)):
        raise wrong(place, "a finite number", value)
    return float(value)


def whole(value: Any, place: str) -> int:
    if type(value) is int and value >= 0:
        return value
    raise wrong(place, "a whole number", value)


def truth(value: Any, place: str) -> bool:
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
    return lambda value, place: None if value is None else inner(value, place)


def listing(inner: Check) -> Check:
    def check(value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise wrong(place, "a list", value)
        return tuple(inner(entry, f"{place}[{i}]") for i, entry in enumerate(value))

    return check


def record(fields: Mapping[str, Check], make: Callable[..., Any] = dict) -> Check:
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
    """An object of what JSON has; what is in it is the experiment's own affair."""
    if not isinstance(value, dict):
        raise wrong(place, "an object", value)
    plain(value, place, DEPTH)
    return value


def plain(value: Any, place: str, depth: int) -> None:
    if depth == 0:
        raise ValueError(f"{place} must not be nested deeper than {DEPTH} times")
    if isinstance(value, dict):
        for key, entry in value.items():
            plain(entry, f"{place}.{text(key, place)[:40]}", depth - 1)
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            plain(entry, f"{place}[{i}]", depth - 1)
    elif isinstance(value, str):
        text(value, place)
    elif (
        value is not None
        and not isinstance(value, bool)
        and not math.isfinite(number(value, place))
    ):
        raise wrong(place, "a finite number", value)
