"""How the optimizers stand: medians over seeds, with equal gradients and in equal time.

Equal gradients: as many gradient equivalents as the steps of the run; who pays more for a step is
looked at earlier. Equal time: the shortest of all whole runs of the problem; who takes longer for
a step is looked at the last of the thirty places that lies within it. Each has the learning rate of
the grid with the least median training loss there. A loss or an error is the median of the last
three places: at a constant learning rate a single one may be a spike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from cfgd.apps.bench.training.optimizers import Optimizer
from cfgd.apps.bench.training.training import PLACES, Curves

GRADIENTS, SECONDS = "gradients", "seconds"
STEPS = "steps"  # with what a product costs left out: what the direction alone is worth
MEASURES = {GRADIENTS: "with equal gradients", SECONDS: "in equal time"}
LAST = 3
Spread = tuple[float, float, float]  # median, lower and upper quartile


@dataclasses.dataclass(frozen=True)
class Standing:
    """One optimizer on one problem, at its best learning rate."""

    problem: str
    optimizer: Optimizer
    measure: str
    rate: float
    at_the_edge: bool  # of the grid: a rate beyond it might be better
    share: float  # of the steps of a run
    loss: Spread
    error: Spread
    seconds: float  # of a step


def standings(curves: Sequence[Curves]) -> list[Standing]:
    found = []
    for problem in dict.fromkeys(one.problem for one in curves):
        some = [one for one in curves if one.problem == problem]
        for measure in (*MEASURES, STEPS):
            found += [_standing(one, measure, place(one, measure, some)) for one in some]
    return found


def place(one: Curves, measure: str, of: Sequence[Curves]) -> int:
    """How many of the places are within the budget; at least one."""
    share = {
        GRADIENTS: 1 / one.optimizer.cost,
        SECONDS: min(other.seconds for other in of) / one.seconds,
        STEPS: 1.0,
    }[measure]
    return max(1, int(PLACES * share + 1e-9))


def _standing(one: Curves, measure: str, places: int) -> Standing:
    last = slice(max(0, places - LAST), places)
    losses, errors = (np.median(all[:, :, last], axis=2) for all in (one.losses, one.errors))
    spreads = [spread(of_rate) for of_rate in losses]
    best = min(range(len(spreads)), key=lambda i: spreads[i][0])
    return Standing(
        one.problem,
        one.optimizer,
        measure,
        one.rates[best],
        len(one.rates) > 1 and best in (0, len(one.rates) - 1),
        places / PLACES,
        spreads[best],
        spread(errors[best]),
        one.seconds,
    )


def spread(numbers: Any) -> Spread:
    """Median and quartiles that are numbers of the list: between them may be an infinite one."""
    middle, low, high = (
        float(np.quantile(numbers, q, method=method))  # type: ignore[call-overload]
        for q, method in ((0.5, "higher"), (0.25, "lower"), (0.75, "higher"))
    )
    return middle, low, high
