"""An instance of a benchmark problem, and the run of one solver on it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

AUTO = "cfgd Auto"
AUTO_CONVERGED = f"{AUTO}, converged"  # the same run, up to Auto's own convergence test

ShowStatus = Callable[[str], None]  # shows which solver is running


@dataclasses.dataclass(frozen=True)
class TracePoint:
    """Loss and relative error of the best point after some seconds."""

    seconds: float
    value: float
    error: float


@dataclasses.dataclass(frozen=True)
class SolverRun:
    """One solver on one instance; work and seconds are infinite if it missed the target."""

    problem: str
    group: str
    unit: str  # of the work
    solver: str
    seed: int
    work: float
    seconds: float
    value: float
    solved: bool
    # seconds to a reference loss: that of L-BFGS-B (equal work) or of the paper (equal time)
    to_reference: float = float("nan")
    error: str = ""
    digits: float = float("nan")  # correct digits of the parameters, if they are certified
    dimension: int = 0  # set in the groups whose tables show it
    status: str = ""  # the status of cfgd, in the group fits
    # differential equations: error against a reference solution, and its history
    relative_error: float = float("nan")
    history: tuple[TracePoint, ...] = ()

    @property
    def measure(self) -> str:
        """Return the quantity that is compared: work, or the loss or error of a network."""
        if self.group == "pinn":
            return "relative error"
        if self.group != "networks":
            return self.unit
        return "timed loss" if self.unit == "seconds" else "loss"


@dataclasses.dataclass(frozen=True)
class Instance:
    """A problem with a seed; `measure` runs all solvers and reports the name of the current one."""

    group: str
    problem: str
    seed: int
    measure: Callable[[ShowStatus], list[SolverRun]]
    data: str | None = None  # the digest of the data file that it needs

    @property
    def name(self) -> str:
        """Return the name of its file of results."""
        words = f"{self.group} {self.problem} {self.seed}"
        return re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-")

    @property
    def title(self) -> str:
        """Return its name on the console."""
        return f"{self.group}: {self.problem}, run {self.seed + 1}"
