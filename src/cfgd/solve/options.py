"""The keywords that `minimize` and `sweep` share, checked before any work starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from cfgd import _check
from cfgd.solve.solution import Solution

MAPPING = "be a mapping of names to functions of x"


@dataclasses.dataclass(frozen=True)
class Options:
    """The checked keywords of `minimize` and `sweep`."""

    owner: str
    max_iterations: int
    tolerance: Any
    time_limit: float | None
    record: Mapping[str, Any]
    every: int
    callback: Callable[[Solution], Any] | None
    progress: bool

    def __post_init__(self) -> None:
        _check.integer(self.owner, "max_iterations", self.max_iterations)
        _check.integer(self.owner, "every", self.every)
        tolerance = _check.number(
            self.owner, "tolerance", self.tolerance, "be a number of at least 0", lambda v: v >= 0
        )
        if tolerance.ndim != 0:
            _check.fail(self.owner, "tolerance", "be one number", f"shape {tolerance.shape}")
        if self.time_limit is not None:
            _check.positive(self.owner, "time_limit", self.time_limit)
        if not isinstance(self.record, Mapping):
            _check.fail(self.owner, "record", MAPPING, repr(self.record))
        for name, fn in self.record.items():
            if not isinstance(name, str):
                _check.fail(self.owner, "record", MAPPING, f"the name {name!r}")
            if not callable(fn) and not isinstance(fn, str):
                wanted = "be a function of x or the name of a number that the method keeps"
                _check.fail(self.owner, f"record[{name!r}]", wanted, repr(fn))
            if name in ("iteration", "value"):
                wanted = "use other names than 'iteration' and 'value'"
                _check.fail(self.owner, "record", wanted, repr(name))
        if self.callback is not None and not callable(self.callback):
            _check.fail(self.owner, "callback", "be a function", repr(self.callback))
