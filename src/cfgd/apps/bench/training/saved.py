"""The saved result of an optimizer on a problem: written after its run, read by --resume."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cfgd import __version__
from cfgd.apps.bench.training.optimizers import MAKERS, Optimizer
from cfgd.apps.bench.training.problem import TrainingProblem
from cfgd.apps.bench.training.trainer import Curves
from cfgd.apps.json_schema import (
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
from cfgd.apps.resumable import MAX_SECONDS, machine, save_result

FOLDER = "training"  # separate from the results of `cfgd bench`
DIGITS = 6  # of the saved losses and errors


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """The curves of an optimizer on a problem. `key` holds the settings of the run."""

    name: str
    key: dict[str, Any]
    curves: Curves

    def save(self, folder: Path) -> None:
        content = dataclasses.asdict(self)
        for field in ("losses", "errors"):
            content["curves"][field] = _rounded(content["curves"][field])
        save_result(folder / FOLDER, self.name, content)


def result_name(problem: TrainingProblem, optimizer: Optimizer) -> str:
    """Return the name of the file of a result."""
    words = f"{problem.name} {optimizer.name}".replace("(-", "minus ")
    return re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-")


def training_key(problem: TrainingProblem, seeds: int, rates: tuple[float, ...]) -> dict[str, Any]:
    """Return the settings that must be equal for a saved result to be reused."""
    return {
        "what": problem.what,
        "steps": problem.steps,
        "batch": problem.batch,
        "seeds": seeds,
        "rates": list(rates),
        "version": __version__,
        "machine": machine(),
    }


def load_results(folder: Path, warn: Callable[[str], None]) -> dict[str, TrainingResult]:
    """Return the results that earlier runs saved, by name; `warn` is called for unusable files."""
    return stored(folder / FOLDER, RESULT, warn)


def _rounded(numbers: Any) -> Any:
    return [
        [[float(f"{x:.{DIGITS}g}") for x in of_seed] for of_seed in of_rate]
        for of_rate in numbers.tolist()
    ]


def _cube(value: Any, place: str) -> Any:
    """Check an array of the axes rate, seed and checkpoint."""
    inner = listing(listing(listing(number)))(value, place)
    try:
        found = np.array(inner, dtype=float)
    except ValueError:
        found = np.zeros(0)
    if found.ndim != 3:
        raise ValueError(f"{place} must be an array of rates, seeds and checkpoints")
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
        "seconds": between(0, MAX_SECONDS),
        "timed": truth,
    },
    Curves,
)
RESULT = record({"name": name, "key": _key, "curves": _curves}, TrainingResult)
