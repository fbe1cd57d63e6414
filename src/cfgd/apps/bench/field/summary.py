"""Summaries over seeds: every solver compared with Auto, by problem."""

from __future__ import annotations

import dataclasses

import numpy as np

from cfgd.apps.bench.field.instance import AUTO, SolverRun


@dataclasses.dataclass(frozen=True)
class SolverSummary:
    """A solver on a problem: (median, least, largest) over the seeds."""

    problem: str
    group: str
    measure: str
    solver: str
    score: tuple[float, float, float]  # work; for networks the loss or the relative error
    seconds: tuple[float, float, float]
    solved: int
    seeds: int
    winner: bool
    ratio: float  # score of Auto / score of the solver: above one, Auto is worse
    seconds_ratio: float
    to_reference: float  # median seconds to the reference loss, on networks
    value: float  # median loss


def summarize(runs: list[SolverRun]) -> list[SolverSummary]:
    """Return one summary for each problem and solver; the winner has the lowest median score."""
    summaries: list[SolverSummary] = []
    for problem in dict.fromkeys(run.problem for run in runs):
        of_problem = [run for run in runs if run.problem == problem]
        by_solver = {
            solver: [run for run in of_problem if run.solver == solver]
            for solver in dict.fromkeys(run.solver for run in of_problem)
        }
        scores = {
            solver: _median_range([_score(run) for run in some])
            for solver, some in by_solver.items()
        }
        seconds = {
            solver: _median_range([run.seconds for run in some])
            for solver, some in by_solver.items()
        }
        best = min(score[0] for score in scores.values())
        for solver, some in sorted(by_solver.items(), key=lambda item: item[0] != AUTO):
            references = [np.nan_to_num(run.to_reference, nan=np.inf) for run in some]
            summaries.append(
                SolverSummary(
                    problem=problem,
                    group=of_problem[0].group,
                    measure=of_problem[0].measure,
                    solver=solver,
                    score=scores[solver],
                    seconds=seconds[solver],
                    solved=sum(run.solved for run in some),
                    seeds=len(some),
                    winner=scores[solver][0] == best < float("inf"),
                    ratio=_ratio(scores[AUTO][0], scores[solver][0]),
                    seconds_ratio=_ratio(seconds[AUTO][0], seconds[solver][0]),
                    to_reference=float(np.median(references)),
                    value=float(np.median([run.value for run in some])),
                )
            )
    return summaries


def auto_loses(auto: SolverRun, other: SolverRun, converged: SolverRun | None = None) -> bool:
    """Return whether the other solves the problem and Auto does not.

    Auto also loses if its own convergence test (`converged`) ends the run unconverged at a higher
    value.
    """
    stuck = converged is not None and not converged.solved and converged.value > other.value
    return other.solved and (stuck or not auto.solved)


def _score(run: SolverRun) -> float:
    if run.group == "pinn":
        return run.relative_error
    return run.value if run.group == "networks" else run.work


def _median_range(numbers: list[float]) -> tuple[float, float, float]:
    return float(np.median(numbers)), min(numbers), max(numbers)


def _ratio(auto: float, other: float) -> float:
    return auto / other if np.isfinite(other) and other > 0 else 0.0
