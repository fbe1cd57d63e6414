"""The saved results of a problem: written when the problem is finished, read by --resume."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cfgd import __version__
from cfgd.apps.bench.fractional.competitors import Competitor
from cfgd.apps.bench.fractional.problems import FractionalProblem
from cfgd.apps.bench.fractional.scores import Judged
from cfgd.apps.json_schema import finite, listing, name, record, stored, text, whole, wrong
from cfgd.apps.resumable import save_result

FOLDER = "fractional"


@dataclasses.dataclass(frozen=True)
class ProblemResult:
    """The results of all rules on a problem; `key` and `digests` identify the settings."""

    name: str
    key: dict[str, Any]
    digests: dict[str, str]
    rules: dict[str, Judged]

    def save(self, folder: Path) -> None:
        save_result(folder / FOLDER, self.name, dataclasses.asdict(self))


def problem_file(problem: FractionalProblem) -> str:
    """Return the name of the file of a problem."""
    return "".join(c if c.isalnum() else "-" for c in problem.name)


def key_of(problem: FractionalProblem, seeds: int, tuning_seeds: int) -> dict[str, Any]:
    """Return the settings that must be equal for a saved result to be reused."""
    return {
        "what": problem.what,
        "gradients": problem.gradients,
        "accuracy": problem.accuracy,
        "seeds": seeds,
        "tuning": tuning_seeds,
        "version": __version__,
    }


def digest_of(one: Competitor) -> str:
    """Return the digest of a rule and its grid; a saved result is reused if it is the same."""
    grid = hashlib.sha256(repr((one.names, one.settings)).encode()).hexdigest()[:16]
    return f"{one.digest} {grid}".strip()


def load_results(folder: Path, warn: Callable[[str], None]) -> dict[str, ProblemResult]:
    """Return the results that earlier runs saved; `warn` is called for unusable files."""
    return stored(folder / FOLDER, RESULT, warn)


def _by_name(inner: Any) -> Any:
    def check(value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise wrong(place, "an object", value)
        return {text(key, place): inner(one, f"{place}.{key}") for key, one in value.items()}

    return check


def _or_none(value: Any, place: str) -> Any:
    return None if value is None else finite(value, place)


def _numbers(inner: Any) -> Any:
    return lambda value, place: tuple(listing(inner)(value, place))


def _curve(value: Any, place: str) -> Any:
    found = listing(listing(finite))(value, place)
    if len(found) != 2 or len(found[0]) != len(found[1]):
        raise ValueError(f"{place} must be two lists of one length")
    return tuple(tuple(part) for part in found)


JUDGED = record(
    {
        "setting": _by_name(finite),
        "tuning": finite,
        "solved": _numbers(_or_none),
        "gaps": _numbers(finite),
        "ends": _numbers(finite),
        "norms": _numbers(finite),
        "cost": finite,
        "curve": _curve,
    },
    Judged,
)
KEY = record(
    {
        "what": text,
        "gradients": whole,
        "accuracy": finite,
        "seeds": whole,
        "tuning": whole,
        "version": text,
    }
)
RESULT = record(
    {"name": name, "key": KEY, "digests": _by_name(text), "rules": _by_name(JUDGED)},
    ProblemResult,
)
