"""Reading saved parts: whoever could write to the folder may have changed them, so all is checked.

A check takes a value and its place in the file, gives the value back as a `Part` has it, or says
what was wanted and what is there.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from cfgd.output import reason
from cfgd.reproduce.experiment import Size
from cfgd.reproduce.report.claim import VERDICTS, Case, Outcome
from cfgd.reproduce.report.part import PARTS, PNG, Part
from cfgd.reproduce.report.svg import check_svg

Check = Callable[[Any, str], Any]
MEGABYTES = 50  # a part has less than one
DEPTH = 5  # of parameters in parameters
LONGEST = 1e9  # seconds
UNSHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def saved_parts(folder: Path, say: Callable[[str], None]) -> dict[str, Part]:
    """The parts that earlier runs left, by name; `say` is told of those that cannot be used."""
    found = {}
    for path in sorted((folder / PARTS).glob("*.json")):
        try:
            found[path.stem] = read_part(path)
        except ValueError as error:
            say(f"{path} is not used: {error}.")
    return found


def read_part(path: Path) -> Part:
    """The part in a file; a `ValueError` says what is wrong with it."""
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
        saved = json.loads(raw)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno} is not JSON ({error.msg})") from None
    except (ValueError, RecursionError):  # no text, too many digits, too many brackets
        raise ValueError("it is not JSON") from None
    part: Part = PART(saved, "")
    if part.name != path.stem:
        raise ValueError(f"name must be {path.stem!r} as in the file's name, got {part.name!r}")
    return part


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


def between(low: float, high: float) -> Check:
    def check(value: Any, place: str) -> float:
        if not low <= number(value, place) <= high:
            raise wrong(place, f"a number from {low:g} to {high:g}", value)
        return float(value)

    return check


def seeds(value: Any, place: str) -> int | None:
    if value is None or (type(value) is int and value >= 1):
        return value
    raise wrong(place, "null or a number of seeds", value)


def whole(value: Any, place: str) -> int:
    if type(value) is int and 0 <= value < 2**53:
        return value
    raise wrong(place, "a count", value)


def truth(value: Any, place: str) -> bool:
    if isinstance(value, bool):
        return value
    raise wrong(place, "true or false", value)


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


def panel(value: Any, place: str) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise wrong(place, "a title and an SVG", value)
    title, svg = (text(entry, f"{place}[{i}]") for i, entry in enumerate(value))
    try:
        check_svg(svg)
    except ValueError as error:
        raise ValueError(f"{place}[1] {error}") from None
    return title, svg


def picture(value: Any, place: str) -> str:
    try:
        raw = base64.b64decode(text(value, place), validate=True)
    except ValueError:
        raw = b""
    if not raw.startswith(PNG):
        raise wrong(place, "a PNG file in base64", value)
    return str(value)


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


CASE = record({"name": text, "median": number, "hits": whole, "count": whole, "holds": truth}, Case)
OUTCOME = record(
    {
        "says": text,
        "where": text,
        "wanted": text,
        "values": listing(number),
        "median": number,
        "fraction": between(0, 1),
        "verdict": one_of(VERDICTS),
        "why": text,
        "cases": listing(CASE),
    },
    Outcome,
)
KEY = record({"size": one_of(get_args(Size)), "seeds": seeds, "data": maybe(text), "version": text})
PART = record(
    {
        "name": name,
        "title": text,
        "where": text,
        "about": text,
        "missing": text,
        "story": text,
        "key": KEY,
        "outcomes": listing(OUTCOME),
        "parameters": parameters,
        "notes": listing(text),
        "panels": listing(listing(panel)),
        "picture": picture,
        "seconds": between(0, LONGEST),
    },
    Part,
)
