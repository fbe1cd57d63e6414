"""What is said of fits and of CUTEst: against SciPy and scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfgd.apps.bench.field.standing import ENDED, OURS, Run, Standing, is_lost
from cfgd.apps.bench.field.words import at_most, count, holds, share

MANY = 50  # variables


def nist(runs: list[Run]) -> Iterator[str]:
    by = _by_solver(runs, "nist")
    ours = by.get(OURS, {})
    if not ours:
        return
    for solver, some in by.items():
        solved = sum(one.solved for one in some.values())
        digits = np.median([one.digits for one in some.values()])
        words = f"nist: {solver} has six digits in {solved} of {len(some)} starts"
        bad = [f"{one.problem} {one.seed + 1}" for one in some.values() if not one.solved]
        words += f" (median {digits:.3g} digits; missed: {', '.join(bad) or 'none'})"
        if solver == OURS:
            wanted = share(len(some), 53, 54)
            yield f"{words}, wanted {wanted}: {holds(solved >= wanted)}"
        else:
            yield words
    for solver in (name for name in by if name != OURS):
        ratio = _median_ratio(ours, by[solver])
        words = f"nist: Jacobians of Auto over those of {solver}, median"
        if solver == "SciPy lm":
            yield at_most(words, ratio, 1.2)
        else:
            yield f"{words}: {ratio:.4g}"


def glm(standings: list[Standing]) -> Iterator[str]:
    some = [one for one in standings if one.group == "glm"]
    ratios: dict[str, float] = {}
    for one in some:
        if one.solver != OURS:  # that to the fastest is the largest
            ratios[one.problem] = max(ratios.get(one.problem, 0.0), one.seconds_ratio)
    if not ratios:
        return
    shown = ", ".join(f"{problem} {ratio:.2g}" for problem, ratio in ratios.items())
    words = f"glm: Auto takes at most the time of the best solver of scikit-learn ({shown})"
    fast = sum(ratio <= 1 for ratio in ratios.values())
    yield count(words, fast, len(ratios), share(len(ratios), 4, 6), "sets")
    yield at_most("glm: Auto over the best solver, the largest", max(ratios.values()), 2)


def cutest(runs: list[Run]) -> Iterator[str]:
    by = _by_solver(runs, "cutest")
    ours, theirs = by.get(OURS, {}), by.get("L-BFGS-B", {})
    for words, wanted in ((f"fewer than {MANY}", True), (f"{MANY} or more", False)):
        some = {key: one for key, one in theirs.items() if (one.dimension < MANY) == wanted}
        if any(one.solved for one in some.values()):
            ratio = _median_ratio(ours, some)
            said = f"cutest: gradients of Auto over L-BFGS-B, {words} variables, median"
            yield at_most(said, ratio, 1.05)
    if not theirs:
        return
    ended = by.get(ENDED, {})
    lost = [key[0] for key, one in theirs.items() if is_lost(ours[key], one, ended.get(key))]
    more = [key[0] for key, one in theirs.items() if ours[key].solved and not one.solved]
    solved = sum(one.solved for one in theirs.values())
    said = f"cutest: Auto loses {len(lost)} of the {solved} problems that L-BFGS-B solves"
    said += f" ({', '.join(lost) or 'none'}) and solves {len(more)} others (wanted 0 lost)"
    yield f"{said}: {holds(not lost)}"


def _by_solver(runs: list[Run], group: str) -> dict[str, dict[tuple[str, int], Run]]:
    found: dict[str, dict[tuple[str, int], Run]] = {}
    for run in runs:
        if run.group == group:
            found.setdefault(run.solver, {})[(run.problem, run.seed)] = run
    return found


def _median_ratio(ours: dict[tuple[str, int], Run], theirs: dict[tuple[str, int], Run]) -> float:
    """Where they solve it; what is lost counts as infinite."""
    ratios = [ours[key].work / one.work for key, one in theirs.items() if one.solved]
    return float(np.median(ratios))
