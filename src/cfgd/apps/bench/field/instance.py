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
    """One solver on one instance; work and seconds are infinite where the target was not met."""

    problem: str
    group: str
    unit: str  # of the work
    solver: str
    seed: int
    work: float
    seconds: float
    value: float
    solved: bool
    # seconds to a reference loss: at equal work that of L-BFGS-B, at equal time the paper's
    to_reference: float = float("nan")
    error: str = ""
    digits: float = float("nan")  # correct digits of the parameters, where these are certified
    dimension: int = 0  # set in the groups whose tables show it
    status: str = ""  # of cfgd, where it is judged
    # against a reference solution, on differential equations, and its history
    relative_error: float = float("nan")
    history: tuple[TracePoint, ...] = ()

    @property
    def measure(self) -> str:
        """Return what is compared: work, or on networks loss or error at equal work or time."""
        if self.group == "pinn":
            return "relative error"
        if self.group != "networks":
            return self.unit
        return "timed loss" if self.unit == "seconds" else "loss"


@dataclasses.dataclass(frozen=True)
class Instance:
    """A problem with a seed; `measure` runs all solvers on it and reports which one is running."""

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
        return f"{self.group}: {self.problem}, {self.seed}"
