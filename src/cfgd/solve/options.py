"""The keywords that `minimize` and `sweep` share, checked before any work starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cfgd import _check
from cfgd.solve.solution import Solution

# a norm is below twice its start at once, and the square of this is a number in every precision
LOOSEST = 2.0
RESERVED = ("iteration", "value", "gradient_norm")
MAPPING = "be a mapping of names to functions of x"


@dataclasses.dataclass(frozen=True)
class Options:
    """The checked keywords of `minimize` and `sweep`."""

    owner: str
    max_iterations: int
    tolerance: Any
    gradient_tolerance: Any
    time_limit: float | None
    record: Mapping[str, Any]
    every: int
    callback: Callable[[Solution], Any] | None
    progress: bool

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # the checked ones, in place of the given
        for count in ("max_iterations", "every"):
            put(count, _check.integer(self.owner, count, getattr(self, count)))
        put("tolerance", min(self._at_least_0("tolerance", self.tolerance), LOOSEST))
        if self.gradient_tolerance is not None:
            put(
                "gradient_tolerance",
                self._at_least_0("gradient_tolerance", self.gradient_tolerance),
            )
        if self.time_limit is not None:
            limit = _check.positive(self.owner, "time_limit", self.time_limit)
            if limit.ndim != 0:
                _check.fail(self.owner, "time_limit", "be one number", f"shape {limit.shape}")
            put("time_limit", float(limit))
        if not isinstance(self.record, Mapping):
            _check.fail(self.owner, "record", MAPPING, repr(self.record))
        for name, fn in self.record.items():
            if not isinstance(name, str):
                _check.fail(self.owner, "record", MAPPING, f"the name {name!r}")
            if not callable(fn) and not isinstance(fn, str):
                wanted = "be a function of x or the name of a number that the method keeps"
                _check.fail(self.owner, f"record[{name!r}]", wanted, repr(fn))
            if name in RESERVED:
                wanted = f"use other names than {', '.join(map(repr, RESERVED))}"
                _check.fail(self.owner, "record", wanted, repr(name))
        if self.callback is not None:
            _check.function(self.owner, "callback", self.callback, "be a function")
            put("callback", partial(_answer, self.owner, self.callback))

    def _at_least_0(self, name: str, value: Any) -> float:
        wanted = "be a number of at least 0"
        number = _check.number(self.owner, name, value, wanted, lambda v: v >= 0)
        if number.ndim != 0:
            _check.fail(self.owner, name, "be one number", f"shape {number.shape}")
        return float(number)


def _answer(owner: str, callback: Callable[[Solution], Any], solution: Solution) -> bool:
    """Whether the callback wants the run to end."""
    answer = callback(solution)
    try:
        return bool(answer)
    except (TypeError, ValueError) as error:
        got = _check.kind(answer)
        _check.fail(owner, "callback", "return something true or false", got, error)
