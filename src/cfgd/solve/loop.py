"""The contract between the driver and the two loops: `CompiledLoop` and `HostLoop`."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from cfgd._core.types import Points
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation
from cfgd.solve.history import History
from cfgd.solve.run_stats import Rows, RunStats, Tolerances


class Loop(abc.ABC):
    """A run, or all runs of a sweep; in a sweep all arrays have a leading axis of settings.

    Attributes
    ----------
    block
        The number of iterations between two updates of the stats.
    value0, gradient0
        Value and gradient at the start, as NumPy arrays.
    """

    block: int
    value0: Any
    gradient0: Any

    @abc.abstractmethod
    def begin(self, start: Points, tolerances: Tolerances) -> Rows:
        """Evaluate the start and return the row of iteration 0."""

    @abc.abstractmethod
    def run(self, length: int, last: int, history: History) -> None:
        """Make at most `length` iterations, none beyond `last`; add their rows to the history."""

    @abc.abstractmethod
    def stats(self) -> RunStats:
        """Return the numbers of the run so far, as NumPy arrays."""

    @abc.abstractmethod
    def best_value(self) -> Any:
        """Return the least value so far."""

    @abc.abstractmethod
    def recheck_final(self) -> None:
        """Test whether the last point, from which no step was made, meets the tolerance."""

    @abc.abstractmethod
    def result(self) -> tuple[Evaluation, Any]:
        """Return the evaluation of the point to return, and how many evaluations that took."""

    @abc.abstractmethod
    def known_result(self) -> tuple[Evaluation, bool]:
        """Return the same without another evaluation, and whether all of it is known exactly.

        Where the best point is not the last one, its gradient may be unknown: then it is NaN.
        """

    @abc.abstractmethod
    def curvature_at(self, x: np.ndarray) -> Curvature | None:
        """Return the curvature at x, or None where it would have to be compiled."""

    def note(self) -> str:
        """Return a sentence about the run for the details of a solution, or an empty string."""
        return ""

    # ------------------------------------------------------------------ checkpoints

    @abc.abstractmethod
    def can_checkpoint(self) -> bool:
        """Return whether the run can resume from a snapshot that is taken now."""

    @abc.abstractmethod
    def snapshot(self) -> Any:
        """Return everything that the run needs to resume; every process of a run must call it."""

    @abc.abstractmethod
    def restore(self, snapshot: Any) -> None:
        """Resume from a snapshot of the same run."""

    @abc.abstractmethod
    def fingerprint(self, x: np.ndarray) -> tuple[Any, ...]:
        """Return value and gradient at x, by which a checkpoint identifies the objective."""
