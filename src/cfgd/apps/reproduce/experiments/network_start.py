"""A rule, fixed before the runs, that infers which start the paper's networks had.

The paper does not state its initial weights, which of the two readings of its formula it ran, nor
which loss it draws. It gives four numbers for h1. The rule uses only these, so that its choice can
be tested on h2 and h3, for which the paper gives no numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from cfgd.apps.reproduce.experiments.network_runs import (
    LOSSES,
    READINGS,
    Curve,
    TrainingRun,
)

# section 4.3: the loss of a method after so many iterations
PAPER_LOSSES = {
    ("descent", 20_000): 1e-1,
    ("terminal", 20_000): 1e-3,
    ("descent", 100_000): 6e-4,
    ("terminal", 100_000): 2e-4,
}
EARLY, LATE = 20_000, 100_000
# Pairs of start and formula that are run to 1e5 iterations. All twenty starts would take two hours;
# with two finalists the first round does not decide alone.
FINALISTS = 2

RULE = (
    "For each start of the family, each reading of the formula and each reading of the loss: the "
    "median over seeds of the loss on h1, of gradient descent and of the adaptive terminal with "
    "the middle gamma, 40. The distance is the root mean square of log10(ours / the paper's) over "
    "the paper's numbers. By its two numbers at 2e4 iterations the two nearest pairs of start and "
    "formula are run to 1e5; of these the nearest by all four numbers is chosen. Then it is "
    "applied to h2 and h3 unchanged."
)
REASON = (
    "Logarithms, because the levels are read off a logarithmic axis; four numbers, because the "
    "paper gives no others; the median, because one seed in five may be an outlier."
)


class StartChoice(NamedTuple):
    """A start, a reading of formula and loss, and the distance from the paper's numbers."""

    start: str
    formula: str
    loss: str
    distance: float

    @property
    def description(self) -> str:
        return f"start {self.start}, the formula {self.formula}, the loss a {self.loss}"


# The choice of the rule in a full run. A quick run is too short for the rule and uses this one.
RECORDED_CHOICE = StartChoice("2/1", "printed", "mean", 0.386)


def median_loss(
    curves: Mapping[TrainingRun, Curve], start: str, how: str, iteration: int, function: str = "h1"
) -> float:
    """Return the median of f over the seeds at an iteration."""
    selected = function, start, how
    return float(
        np.median(
            [
                curve.at(iteration)
                for run, curve in curves.items()
                if (run.function, run.start, run.how) == selected
            ]
        )
    )


def distance(
    curves: Mapping[TrainingRun, Curve],
    start: str,
    formula: str,
    loss: str,
    iterations: Iterable[int],
) -> float:
    """Return the distance from the paper's numbers at these iterations."""
    logs = []
    for (method, iteration), level in PAPER_LOSSES.items():
        if iteration in iterations:
            how = formula if method == "terminal" else method
            ours = median_loss(curves, start, how, iteration) * LOSSES[loss]
            logs.append(np.log10(ours / level))
    return float(np.sqrt(np.mean(np.square(logs))))


def rank_choices(
    curves: Mapping[TrainingRun, Curve], pairs: Iterable[tuple[str, str]], iterations: Iterable[int]
) -> list[StartChoice]:
    """Return all readings of the loss for all pairs of start and formula, the nearest first."""
    iterations = tuple(iterations)
    choices = [
        StartChoice(start, formula, loss, distance(curves, start, formula, loss, iterations))
        for start, formula in pairs
        for loss in LOSSES
    ]
    return sorted(choices, key=lambda choice: choice.distance)


def finalists(ranking: Iterable[StartChoice]) -> list[tuple[str, str]]:
    """Return the nearest pairs of start and formula."""
    pairs = dict.fromkeys((choice.start, choice.formula) for choice in ranking)
    return list(pairs)[:FINALISTS]


def start_formula_pairs(starts: Iterable[str]) -> list[tuple[str, str]]:
    return [(start, formula) for start in starts for formula in READINGS]
