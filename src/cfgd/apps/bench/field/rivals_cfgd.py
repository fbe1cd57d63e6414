"""Methods of cfgd as rivals: Auto, the paper's method, and two that the textbook has as well."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cfgd
from cfgd.apps.bench.field.cases import Case
from cfgd.apps.bench.field.work import MOST, Outcome, Rival


def of_cfgd(method_of: Callable[[Case], Any]) -> Rival:
    """A method of cfgd as one that competes."""

    def solve(case: Case, tolerance: float) -> Outcome:
        method = method_of(case)
        most = MOST if case.budget is None else _fitting(case, method_of)
        ends = cfgd.minimize(
            case.objective,
            case.x0,
            method,
            tolerance=tolerance if case.budget is None else 0.0,
            max_iterations=most,
            time_limit=case.patience if case.budget is None else None,
            every=10,
        )
        # a look at a least-squares problem takes a product with X and one with X'
        work = ends.evaluations * (2 if case.group == "least-squares" else 1)
        return Outcome(ends.x, work, ends.history["value"])

    return solve


@functools.lru_cache(maxsize=8)
def _fitting(case: Case, method_of: Callable[[Case], Any]) -> int:
    """How many iterations the budget pays for; what one costs depends on the search."""
    assert case.budget is not None
    most = case.budget
    while True:
        ends = cfgd.minimize(
            case.objective, case.x0, method_of(case), tolerance=0.0, max_iterations=most, every=10
        )
        if ends.evaluations <= case.budget or most <= 1:
            return most
        most = max(1, int(0.98 * ends.iterations * case.budget / ends.evaluations))


auto = of_cfgd(lambda case: cfgd.Auto())
paper = of_cfgd(lambda case: case.paper)


def _descent(case: Case) -> Any:
    """Gradient descent with the exact step; on networks with the paper's search."""
    return cfgd.GradientDescent(
        cfgd.NetworkStep() if case.group == "networks" else cfgd.ExactStep()
    )


gradient_descent = of_cfgd(_descent)
heavy_ball = of_cfgd(lambda case: cfgd.AdaptiveTerminal(gamma="best", step=cfgd.FixedStep("best")))
