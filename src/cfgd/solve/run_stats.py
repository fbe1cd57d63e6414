"""The numbers of each run that the loops report to the driver, and the convergence test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from cfgd._core.linalg import array_namespace
from cfgd._core.types import Counts, Data, Flags, Reals
from cfgd.status import Status

Rows: TypeAlias = dict[str, Any]  # of the history: one iteration, or several along the first axis

RUNNING, CONVERGED, NONFINITE, STALLED = (
    status.code for status in (Status.running, Status.converged, Status.nonfinite, Status.stalled)
)


class Tolerances(NamedTuple):
    """A run has converged when |g| <= `relative` |g_0| or |g| <= `absolute`."""

    relative: Data
    absolute: Data

    def floor(self, norm2: Reals) -> Reals:
        """Return the squared norm at which a run that starts with `norm2` has converged."""
        xp = array_namespace(norm2)
        return xp.maximum(self.relative**2 * norm2, self.absolute**2)


class RunStats(NamedTuple):
    """Numbers of a run so far, or of each run of a sweep."""

    iterations: Counts
    evaluations: Reals
    resets: Counts
    norm2: Reals
    floor: Reals  # the squared norm at which the run has converged
    least_norm2: Reals
    idle: Counts  # iterations without a smaller value or gradient
    code: Counts  # of a Status
    needs_recheck: Flags  # the updated gradient meets the tolerance: recompute it

    @property
    def is_open(self) -> Any:
        """Whether the run has not ended."""
        return self.code == RUNNING

    @property
    def last_iteration(self) -> int:
        """The iteration that the run furthest ahead has reached."""
        return int(self.iterations.max())


class LoopSettings(NamedTuple):
    """Settings of the loop that do not change during a run.

    `every` is the number of iterations between two rows of the history, `capacity` how many rows a
    chunk may write, `block` the number of compiled iterations between two updates of the stats (it
    divides `every`), `is_batched` whether there is a leading axis of settings.
    """

    records: Mapping[str, Callable[[Any], Any]]
    every: int
    capacity: int
    block: int
    is_batched: bool
