"""What is said of the networks: at equal time, and at equal work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfgd.apps.bench.field.clocked import SECONDS
from cfgd.apps.bench.field.standing import OURS, Standing
from cfgd.apps.bench.field.words import at_most, count, share

SOON = 0.2  # seconds to where the paper ends on h1


def equal_time(standings: list[Standing]) -> Iterator[str]:
    some = [one for one in standings if one.group == "networks" and one.measure == "timed loss"]
    problems = list(dict.fromkeys(one.problem for one in some))
    if not problems:
        return
    best = [one.problem for one in some if one.winner and one.solver == OURS]
    lost = {one.problem: one.solver for one in some if one.winner and one.problem not in best}
    words = f"networks: after {SECONDS:g} s the loss of Auto is below all others"
    if lost:
        words += f" ({', '.join(f'{problem}: {solver}' for problem, solver in lost.items())})"
    yield count(words, len(best), len(problems), share(len(problems), 5, 6))
    ours = [one for one in some if one.solver == OURS and one.problem.startswith("h1,")]
    if ours:
        soon = max(one.to_reference for one in ours)
        yield at_most("networks: seconds to where the paper ends on h1", soon, SOON)


def equal_work(standings: list[Standing]) -> Iterator[str]:
    some = [one for one in standings if one.group == "networks" and one.measure == "loss"]
    ours = {one.problem: one for one in some if one.solver == OURS}
    pairs = [(ours[one.problem], one) for one in some if one.solver == "L-BFGS-B"]
    if not pairs:
        return
    wanted = share(len(pairs), 5, 6)
    better = sum(mine.score[0] <= theirs.score[0] for mine, theirs in pairs)
    words = "networks: at equal work the loss of Auto is at most that of L-BFGS-B"
    yield count(words, better, len(pairs), wanted)
    shares = [mine.to_reference / theirs.seconds[0] for mine, theirs in pairs]
    words = "networks: Auto is at the final loss of L-BFGS-B in a fifth of its time"
    words += f" ({np.min(shares):.2g} to {np.max(shares):.2g})"
    yield count(words, sum(one <= 0.2 for one in shares), len(pairs), wanted)
