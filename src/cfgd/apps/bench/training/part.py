"""What is kept of an optimizer on a problem as soon as it has run, and read again by --resume."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cfgd import __version__
from cfgd._core.files import write
from cfgd.apps.bench.field.part import LONGEST, machine
from cfgd.apps.bench.training.optimizers import MAKERS, Optimizer
from cfgd.apps.bench.training.problem import Problem
from cfgd.apps.bench.training.training import Curves
from cfgd.apps.json_schema import (
    PARTS,
    between,
    finite,
    listing,
    name,
    number,
    one_of,
    record,
    stored,
    text,
    truth,
    whole,
)

FOLDER = "training"  # apart from those of `cfgd bench`
DIGITS = 6


@dataclasses.dataclass(frozen=True)
class Part:
    """`key` is the setting: a part is reused only in it."""

    name: str
    key: dict[str, Any]
    curves: Curves

    def save(self, folder: Path) -> None:
        kept = dataclasses.asdict(self)
        for field in ("losses", "errors"):
            kept["curves"][field] = _rounded(kept["curves"][field])
        write(folder / file_of(self.name), json.dumps(kept))


def name_of(problem: Problem, optimizer: Optimizer) -> str:
    words = f"{problem.name} {optimizer.name}".replace("(-", "minus ")
    return re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-")


def file_of(part: str) -> str:
    return f"{FOLDER}/{PARTS}/{part}.json"


def key_of(problem: Problem, seeds: int, rates: tuple[float, ...]) -> dict[str, Any]:
    """What must be equal for a saved part to stand for a run."""
    return {
        "what": problem.what,
        "steps": problem.steps,
        "batch": problem.batch,
        "seeds": seeds,
        "rates": list(rates),
        "version": __version__,
        "machine": machine(),
    }


def saved_parts(folder: Path, say: Callable[[str], None]) -> dict[str, Part]:
    """The parts that earlier runs left, by name; `say` is told of those that cannot be used."""
    return stored(folder / FOLDER, PART, say)


def _rounded(numbers: Any) -> Any:
    return [[[float(f"{x:.{DIGITS}g}") for x in of] for of in rate] for rate in numbers.tolist()]


def _cube(value: Any, place: str) -> Any:
    """[rate][seed][place], of one length each."""
    inner = listing(listing(listing(number)))(value, place)
    try:
        found = np.array(inner, dtype=float)
    except ValueError:
        found = np.zeros(0)
    if found.ndim != 3:
        raise ValueError(f"{place} must be a table of rates, seeds and places")
    return found


def _key(value: Any, place: str) -> Any:
    found = KEY(value, place)
    return {**found, "rates": list(found["rates"])}


def _curves(value: Any, place: str) -> Curves:
    found: Curves = CURVES(value, place)
    if not len(found.rates) == len(found.losses) or found.losses.shape != found.errors.shape:
        raise ValueError(f"{place} must have losses and errors for each of its rates")
    return found


KEY = record(
    {
        "what": text,
        "steps": whole,
        "batch": whole,
        "seeds": whole,
        "rates": listing(finite),
        "version": text,
        "machine": text,
    }
)
CURVES = record(
    {
        "problem": text,
        "optimizer": record(
            {"kind": one_of(tuple(MAKERS)), "gamma": finite, "lag": whole}, Optimizer
        ),
        "rates": listing(finite),
        "losses": _cube,
        "errors": _cube,
        "seconds": between(0, LONGEST),
        "timed": truth,
    },
    Curves,
)
PART = record({"name": name, "key": _key, "curves": _curves}, Part)
