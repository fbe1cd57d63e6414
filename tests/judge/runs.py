"""Run and judge problems by family and seed, and say in a table what is wrong."""

from typing import NamedTuple

import cfgd
from judge.families import problem_of
from judge.verdict import judge


class Run(NamedTuple):
    """One judged run."""

    family: str
    seed: int
    status: str
    kind: str
    why: str


def judged(family: str, seed: int) -> Run:
    """Solve the problem of a family and seed, and judge the solution."""
    problem = problem_of(family, seed)
    try:
        solution = cfgd.minimize(
            problem.objective, problem.x0, problem.method, args=problem.args, **problem.options
        )
    except Exception as error:  # an exception is a false answer like any other
        return Run(family, seed, "raised", "false", f"{type(error).__name__}: {error}")
    return Run(family, seed, solution.status.name, *judge(problem, solution))


def table(runs: list[Run]) -> str:
    """Return a line for each run that is not right."""
    return "".join(
        f"  {run.family} {run.seed}: {run.status} is {run.kind}: {run.why}\n"
        for run in runs
        if run.kind
    )
