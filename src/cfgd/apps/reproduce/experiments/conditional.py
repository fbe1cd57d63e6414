"""Random instances like the paper's, where it says something about its own.

Seeds are drawn in order, 0, 1, ..., and those whose instance fulfils a stated condition are kept:
nobody looks at how a run on them comes out. The share that qualifies is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

ANY = "any instance"


class Drawn(NamedTuple):
    """The first seeds that qualify, and how many of the draws do."""

    seeds: list[int]
    share: float
    words: str  # the rule


def drawn(
    condition: Callable[[int], float],
    qualifies: Callable[[float], bool],
    draws: int,
    keep: int,
    words: str,
) -> Drawn:
    """`condition` gives the condition number of a seed's instance."""
    good = [seed for seed in range(draws) if qualifies(condition(seed))]
    share = len(good) / draws
    said = f"{words}: the first {keep} of the seeds 0 to {draws - 1}, of which {share:.2%} qualify"
    return Drawn(good[:keep], share, said)
