"""What is said of the estimators: over the core, and beside scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator

from cfgd.apps.bench.field.estimators import COLUMNS, CORE, GROUP, ROWS
from cfgd.apps.bench.field.standing import OURS, Standing
from cfgd.apps.bench.field.words import at_most

OVERHEAD = 1.2  # times what the core takes


def estimators(standings: list[Standing]) -> Iterator[str]:
    some = [one for one in standings if one.group == GROUP and one.solver != OURS]
    over = {one.problem: one.seconds_ratio for one in some if one.solver == CORE}
    if over:
        shown = ", ".join(f"{problem} {ratio:.3g}" for problem, ratio in over.items())
        words = (
            f"estimators: time over that of the core at {ROWS:,} x {COLUMNS} ({shown}), the most"
        )
        yield at_most(words, max(over.values()), OVERHEAD)
    beside: dict[str, float] = {}
    for one in some:
        if one.solver != CORE:  # that to the fastest is the largest
            beside[one.problem] = max(beside.get(one.problem, 0.0), one.seconds_ratio)
    if beside:
        shown = ", ".join(f"{problem[5:]} {ratio:.2g}" for problem, ratio in beside.items())
        lost = [problem[5:] for problem, ratio in beside.items() if ratio > 1]
        yield (
            f"estimators: time over that of the best solver of scikit-learn: {shown}; "
            f"lost: {'; '.join(lost) or 'none'}"
        )
