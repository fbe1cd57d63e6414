"""The keywords that `minimize` and `sweep` share, checked before any work starts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd._core.files import is_there, reason
from cfgd._core.interruptible import interruptible
from cfgd._core.records import changed
from cfgd._core.types import DType
from cfgd.solve.checkpoint_file import previous_path
from cfgd.solve.compiling import not_counted
from cfgd.solve.solution import Solution

# `tolerance` where the user gives none: about sqrt(eps), below which values of f no longer show a
# decrease. In float32, 86 of 88 random fits of eleven objectives by `Auto` meet 1e-4, and two
# networks stall; with 1e-8 nearly all fits stall.
DEFAULT_TOLERANCE = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}
# Every start meets a tolerance above 1. Larger ones are reduced to this number, so that their
# squares do not overflow in float32.
MAX_TOLERANCE = 2.0
RESERVED = ("iteration", "value", "gradient_norm")
MAPPING = "be a mapping of names to functions of x"


@dataclasses.dataclass(frozen=True)
class Options:
    """The checked keywords of `minimize` and `sweep`."""

    owner: str
    max_iterations: int
    tolerance: Any  # None until `in_precision` replaces it by the default
    gradient_tolerance: Any
    time_limit: float | None
    record: Mapping[str, Any]
    every: int
    callback: Callable[[Solution], Any] | None
    progress: bool
    checkpoint: Any = None
    checkpoint_every: Any = 60.0
    writes: bool = True  # whether this process writes the files
    resample: Any = None  # checked with the problem

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # replaces a value by its checked form
        for count in ("max_iterations", "every"):
            put(count, checks.integer(self.owner, count, getattr(self, count)))
        if self.tolerance is not None:
            put("tolerance", min(self._at_least_0("tolerance", self.tolerance), MAX_TOLERANCE))
        if self.gradient_tolerance is not None:
            put(
                "gradient_tolerance",
                self._at_least_0("gradient_tolerance", self.gradient_tolerance),
            )
        if self.time_limit is not None:
            put("time_limit", checks.one_positive(self.owner, "time_limit", self.time_limit))
        put("checkpoint_every", self._at_least_0("checkpoint_every", self.checkpoint_every))
        put("progress", checks.flag(self.owner, "progress", self.progress))
        if self.checkpoint is not None:
            put("checkpoint", _writable_path(self.owner, self.checkpoint, self.writes))
        _check_record(self.owner, self.record)
        if self.callback is not None:
            checks.function(self.owner, "callback", self.callback, "be a function")
            put("callback", partial(_wants_to_stop, self.owner, self.callback))

    def in_precision(self, dtype: DType) -> Options:
        """Return the options with the default tolerance of this precision, if none was given."""
        if self.tolerance is not None:
            return self
        return changed(self, tolerance=DEFAULT_TOLERANCE[np.dtype(dtype)])  # without new checks

    def _at_least_0(self, name: str, value: object) -> float:
        wanted = "be a number of at least 0"
        number = checks.number(self.owner, name, value, wanted, lambda v: v >= 0)
        if number.ndim != 0:
            checks.fail(self.owner, name, "be one number", f"shape {number.shape}")
        return float(number)


def _check_record(owner: str, record: object) -> None:
    """Raise unless `record` maps names to functions or to names of numbers."""
    if not isinstance(record, Mapping):
        checks.fail(owner, "record", MAPPING, repr(record))
    for name, fn in record.items():
        if not isinstance(name, str):
            checks.fail(owner, "record", MAPPING, f"the name {name!r}")
        if not callable(fn) and not isinstance(fn, str):
            wanted = "be a function of x or the name of a number of the method"
            checks.fail(owner, f"record[{name!r}]", wanted, repr(fn))
        if name in RESERVED:
            wanted = f"use other names than {', '.join(map(repr, RESERVED))}"
            checks.fail(owner, "record", wanted, repr(name))


def _writable_path(owner: str, given: object, writes: bool) -> Path:
    """Return the path of a checkpoint; the process that writes it checks that it can."""
    wanted = "be the name of a file in a folder that exists and is writable"
    if not isinstance(given, str | os.PathLike):
        checks.fail(owner, "checkpoint", wanted, repr(given))
    path = Path(given)
    folder = path.parent
    if not writes:
        return path
    if not path.name:
        checks.fail(owner, "checkpoint", wanted, f"{os.fspath(given)!r}")
    try:
        # the name of the file before this one is longer
        for file in (path, previous_path(path)):
            is_free = not is_there(file) or file.is_file()
            if not (is_free and folder.is_dir() and os.access(folder, os.W_OK)):
                checks.fail(owner, "checkpoint", wanted, f"{os.fspath(given)!r}")
    except OSError as error:
        checks.fail(owner, "checkpoint", wanted, f"{os.fspath(given)!r} ({reason(error)})")
    return path


def _wants_to_stop(owner: str, callback: Callable[[Solution], Any], solution: Solution) -> bool:
    """Return whether the callback wants the run to end."""
    with not_counted():
        answer = interruptible(callback, solution)
    try:
        return bool(answer)
    except (TypeError, ValueError) as error:
        got = checks.describe(answer)
        checks.fail(owner, "callback", "return something true or false", got, error)
