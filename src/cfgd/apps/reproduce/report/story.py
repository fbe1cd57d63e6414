"""The outcome in five sentences, for the first screen of the page."""

from __future__ import annotations

from collections.abc import Sequence

from cfgd.apps.reproduce.report.claim import FAILS, HOLDS, HOLDS_FOR, NOT_COMPARABLE, Outcome
from cfgd.apps.reproduce.report.part import Part

QUOTED = 4  # at most so many in a sentence: the table has them all

Found = list[tuple[Part, Outcome]]


def story(parts: Sequence[Part]) -> list[str]:
    """What holds, what holds for some cases, what does not, what is not given; and the networks."""
    holds, some, fails, open_ = (
        found(parts, verdict) for verdict in (HOLDS, HOLDS_FOR, FAILS, NOT_COMPARABLE)
    )
    judged = len(holds) + len(some) + len(fails)
    whole = [part.title for part in parts if all_hold(part)]
    all_of = f", all of them on: {'; '.join(whole)}" if whole else ""
    missing = [part.missing for part in parts if part.missing]
    stories = [part.story for part in parts if part.story]
    return [
        f"{len(holds)} of the {judged} sentences that could be judged hold{all_of}.",
        f"{several(some)} for some cases only{quoted(some)}.",
        f"{several(fails, 'fails', 'fail')}{quoted(fails)}.",
        f"{several(open_, 'is not comparable', 'are not comparable')}"
        + (f"; the paper does not give {'; '.join(missing)}." if missing else "."),
        " ".join(stories) or about_ours(parts),
    ]


def found(parts: Sequence[Part], verdict: str) -> Found:
    return [
        (part, outcome)
        for part in parts
        for outcome in part.outcomes
        if outcome.verdict == verdict and not outcome.ours
    ]


def all_hold(part: Part) -> bool:
    verdicts = {outcome.verdict for outcome in part.outcomes if not outcome.ours}
    return HOLDS in verdicts and verdicts <= {HOLDS, NOT_COMPARABLE}


def several(of: Found, one: str = "holds", more: str = "hold") -> str:
    return f"{len(of) or 'None'} {one if len(of) <= 1 else more}"


def quoted(of: Found) -> str:
    """The sentences without what stands in brackets, and the cases for which they hold."""
    if not of:
        return ""
    words = []
    for part, outcome in of[:QUOTED]:
        which = f", for {outcome.which}" if outcome.verdict == HOLDS_FOR else ""
        words.append(f"“{outcome.says.split(' (')[0]}” ({part.name}{which})")
    rest = f"; and {len(of) - QUOTED} more" if len(of) > QUOTED else ""
    return f": {'; '.join(words)}{rest}"


def about_ours(parts: Sequence[Part]) -> str:
    ours = [outcome for part in parts for outcome in part.outcomes if outcome.ours]
    held = sum(outcome.verdict == HOLDS for outcome in ours)
    return f"{held} of {len(ours)} rows that are ours and not the paper's hold; they stand apart."
