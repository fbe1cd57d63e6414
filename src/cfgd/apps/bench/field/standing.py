"""What the runs of `cfgd bench` come to: how each solver stands on each problem."""

from __future__ import annotations

import dataclasses

import numpy as np

OURS = "cfgd Auto"
ENDED = f"{OURS}, converged"  # the same run, up to its own end


@dataclasses.dataclass(frozen=True)
class Run:
    """One solver on one instance; work and seconds are infinite where the target was not met."""

    problem: str
    group: str
    unit: str
    solver: str
    seed: int
    work: float
    seconds: float
    value: float
    solved: bool
    # seconds to a loss: at equal work the final one of L-BFGS-B, at equal time the paper's
    to_reference: float = float("nan")
    error: str = ""
    digits: float = float("nan")  # of the parameters that are right, where they are certified
    dimension: int = 0  # where problems are told apart by it

    @property
    def measure(self) -> str:
        """What is compared; on networks the loss, with equal work or in equal time."""
        if self.group != "networks":
            return self.unit
        return "timed loss" if self.unit == "seconds" else "loss"


@dataclasses.dataclass(frozen=True)
class Standing:
    """How a solver stands on a problem: medians over seeds with the smallest and the largest."""

    problem: str
    group: str
    measure: str
    solver: str
    score: tuple[float, float, float]  # median, least, most
    seconds: tuple[float, float, float]
    solved: int
    seeds: int
    winner: bool
    ratio: float  # ours to theirs: above one, cfgd loses
    seconds_ratio: float
    to_reference: float  # median seconds to that loss, on networks


def table(runs: list[Run]) -> list[Standing]:
    """Medians; the winner has the least of them, on networks the least loss."""
    standings: list[Standing] = []
    for problem in dict.fromkeys(run.problem for run in runs):
        of_problem = [run for run in runs if run.problem == problem]
        scores = {
            solver: [r for r in of_problem if r.solver == solver]
            for solver in dict.fromkeys(r.solver for r in of_problem)
        }
        medians = {
            solver: float(np.median([_score(r) for r in some])) for solver, some in scores.items()
        }
        times = {
            solver: float(np.median([r.seconds for r in some])) for solver, some in scores.items()
        }
        for solver, some in sorted(scores.items(), key=lambda item: item[0] != OURS):
            standings.append(
                Standing(
                    problem,
                    of_problem[0].group,
                    of_problem[0].measure,
                    solver,
                    _spread([_score(r) for r in some]),
                    _spread([r.seconds for r in some]),
                    sum(r.solved for r in some),
                    len(some),
                    medians[solver] == min(medians.values()) < float("inf"),
                    _ratio(medians[OURS], medians[solver]),
                    _ratio(times[OURS], times[solver]),
                    float(np.median([np.nan_to_num(r.to_reference, nan=np.inf) for r in some])),
                )
            )
    return standings


def is_lost(ours: Run, theirs: Run, ended: Run | None = None) -> bool:
    """They solve it and we do not, or we end without convergence at a higher value."""
    stuck = ended is not None and not ended.solved and ended.value > theirs.value
    return theirs.solved and (stuck or not ours.solved)


def _score(run: Run) -> float:
    return run.value if run.group == "networks" else run.work


def _spread(numbers: list[float]) -> tuple[float, float, float]:
    return float(np.median(numbers)), min(numbers), max(numbers)


def _ratio(ours: float, theirs: float) -> float:
    return ours / theirs if np.isfinite(theirs) and theirs > 0 else 0.0
