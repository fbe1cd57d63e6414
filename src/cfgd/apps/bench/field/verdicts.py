"""What the project says of itself, held against the runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfgd.apps.bench.field.standing import OURS, Run, Standing, table
from cfgd.apps.bench.field.verdicts_estimators import estimators
from cfgd.apps.bench.field.verdicts_fits import cutest, glm, nist
from cfgd.apps.bench.field.verdicts_networks import equal_time, equal_work
from cfgd.apps.bench.field.words import at_most, holds


def verdicts(runs: list[Run]) -> list[str]:
    """A sentence for each claim of the project that these runs can judge."""
    standings = table(runs)
    return [
        *nist(runs),
        *glm(standings),
        *estimators(standings),
        *equal_time(standings),
        *equal_work(standings),
        *_least_squares(standings),
        *_smooth(standings),
        *cutest(runs),
    ]


def _least_squares(standings: list[Standing]) -> Iterator[str]:
    by = {(one.problem, one.solver): one for one in standings}
    ours, theirs = by.get(("random d = 20", OURS)), by.get(("random d = 20", "CG, Jacobi"))
    if ours is not None and theirs is not None:
        words = "random d = 20: products of Auto over those of CG"
        yield at_most(words, ours.score[0] / theirs.score[0], 1.3)
    if gas := by.get(("gas", OURS)):  # two products an iteration
        words = "gas: iterations of Auto to a relative error of 1e-8"
        yield at_most(words, gas.score[0] / 2, 4000)


def _smooth(standings: list[Standing]) -> Iterator[str]:
    some = [one for one in standings if one.group == "smooth"]
    ours = {one.problem: one for one in some if one.solver == OURS}
    solved = [one for one in some if one.solver == "L-BFGS-B" and np.isfinite(one.score[0])]
    pairs = [(ours[theirs.problem], theirs) for theirs in solved if theirs.problem in ours]
    if pairs:
        ratio = float(np.median([mine.score[0] / theirs.score[0] for mine, theirs in pairs]))
        yield at_most("smooth problems: gradients of Auto over L-BFGS-B, median", ratio, 3)
        missed = [mine.problem for mine, theirs in pairs if mine.solved < theirs.solved]
        words = f"Auto solves what L-BFGS-B solves; missed: {', '.join(missed) or 'none'}"
        yield f"smooth problems: {words}: {holds(not missed)}"
