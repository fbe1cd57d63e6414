"""Random instances whose condition number is like that of the paper's instance.

Seeds are tried in the order 0, 1, ..., and selected by a condition that is known before any run.
The share that satisfies it is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

ANY = "any instance"


class SelectedSeeds(NamedTuple):
    """The first seeds that qualify, the share of all draws that do, and the rule in words."""

    seeds: list[int]
    share: float
    rule: str


def select_seeds(
    condition: Callable[[int], float],
    qualifies: Callable[[float], bool],
    draws: int,
    count: int,
    rule: str,
) -> SelectedSeeds:
    """Return the first `count` of `draws` seeds whose condition number qualifies."""
    good = [seed for seed in range(draws) if qualifies(condition(seed))]
    share = len(good) / draws
    text = f"{rule}: the first {count} of the seeds 0 to {draws - 1}, of which {share:.2%} qualify"
    return SelectedSeeds(good[:count], share, text)
