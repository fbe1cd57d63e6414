"""What the project says of itself, held against the standings of a run."""

from __future__ import annotations

import numpy as np

from cfgd.bench.field.standing import OURS, Standing


def verdicts(standings: list[Standing]) -> list[str]:
    """A sentence for each claim of the project that these medians can judge."""
    problems = list(dict.fromkeys(one.problem for one in standings))
    by = {(one.problem, one.solver): one for one in standings}

    def against(problem: str, solver: str) -> tuple[Standing, Standing] | None:
        ours, theirs = by.get((problem, OURS)), by.get((problem, solver))
        return (ours, theirs) if ours is not None and theirs is not None else None

    found = []
    if pair := against("random d = 20", "CG, Jacobi"):
        ratio = pair[0].score[0] / pair[1].score[0]
        found.append(_verdict("random d = 20: products of Auto over those of CG", ratio, 1.3))
    if gas := by.get(("gas", OURS)):  # two products an iteration
        words = "gas: iterations of Auto to a relative error of 1e-8"
        found.append(_verdict(words, gas.score[0] / 2, 4000))
    networks = [pair for p in problems if (pair := against(p, "L-BFGS-B")) and _by_loss(pair[0])]
    if networks:
        wanted = -(-5 * len(networks) // 6)
        better = sum(ours.score[0] <= theirs.score[0] for ours, theirs in networks)
        words = "networks: at equal work the loss of Auto is at most that of L-BFGS-B"
        found.append(_count(words, better, len(networks), wanted))
        shares = [ours.to_reference / theirs.seconds[0] for ours, theirs in networks]
        quick = sum(share <= 0.2 for share in shares)
        words = "networks: Auto is at the final loss of L-BFGS-B in a fifth of its time"
        words += f" ({min(shares):.2g} to {max(shares):.2g})"
        found.append(_count(words, quick, len(networks), wanted))
    smooth = [
        pair
        for p in problems
        if (pair := against(p, "L-BFGS-B")) and by[(p, OURS)].group == "smooth"
    ]
    solved = [pair for pair in smooth if np.isfinite(pair[1].score[0])]
    if solved:
        ratio = float(np.median([ours.score[0] / theirs.score[0] for ours, theirs in solved]))
        found.append(_verdict("smooth problems: gradients of Auto over L-BFGS-B, median", ratio, 3))
        missed = [ours.problem for ours, theirs in solved if ours.solved < theirs.solved]
        words = f"Auto solves what L-BFGS-B solves; missed: {', '.join(missed) or 'none'}"
        found.append(f"smooth problems: {words}: {_holds(not missed)}")
    return found


def _verdict(what: str, ratio: float, most: float) -> str:
    return f"{what}: {ratio:.4g} (wanted at most {most:g}): {_holds(ratio <= most)}"


def _count(what: str, count: int, of: int, wanted: int) -> str:
    return f"{what} in {count} of {of} cases (wanted {wanted}): {_holds(count >= wanted)}"


def _holds(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"


def _by_loss(one: Standing) -> bool:
    return one.group == "network"
