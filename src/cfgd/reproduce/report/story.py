"""The outcome in five sentences, for the first screen of the page."""

from __future__ import annotations

from collections.abc import Sequence

from cfgd.reproduce.report.claim import FAILS, HOLDS, HOLDS_FOR, NOT_COMPARABLE, Outcome
from cfgd.reproduce.report.part import Part


def story(parts: Sequence[Part]) -> list[str]:
    """What holds, what holds for some cases, what does not, what is not given; and the networks."""
    found = {verdict: _of(parts, verdict) for verdict in (HOLDS, HOLDS_FOR, FAILS, NOT_COMPARABLE)}
    judged = sum(len(found[verdict]) for verdict in (HOLDS, HOLDS_FOR, FAILS))
    whole = [part.title for part in parts if _all_hold(part)]
    all_of = f", all of them on: {'; '.join(whole)}" if whole else ""
    some = [f"{part.name} ({outcome.which})" for part, outcome in found[HOLDS_FOR]]
    missing = [part.missing for part in parts if part.missing]
    stories = [part.story for part in parts if part.story]
    ours = [outcome for part in parts for outcome in part.outcomes if outcome.ours]
    kept = sum(outcome.verdict == HOLDS for outcome in ours)
    apart = f"{kept} of {len(ours)} rows that are ours and not the paper's hold; they stand apart."
    return [
        f"{len(found[HOLDS])} of the {judged} sentences that could be judged hold{all_of}.",
        f"{len(some)} hold for some cases only{_listed(some)}.",
        f"{len(found[FAILS])} do not hold{_listed(_counted(found[FAILS]))}.",
        f"{len(found[NOT_COMPARABLE])} cannot be compared{_listed(_counted(found[NOT_COMPARABLE]))}"
        + (f"; the paper does not give {'; '.join(missing)}." if missing else "."),
        " ".join(stories) or apart,
    ]


def _of(parts: Sequence[Part], verdict: str) -> list[tuple[Part, Outcome]]:
    return [
        (part, outcome)
        for part in parts
        for outcome in part.outcomes
        if outcome.verdict == verdict and not outcome.ours
    ]


def _all_hold(part: Part) -> bool:
    verdicts = {outcome.verdict for outcome in part.outcomes if not outcome.ours}
    return HOLDS in verdicts and verdicts <= {HOLDS, NOT_COMPARABLE}


def _counted(found: list[tuple[Part, Outcome]]) -> list[str]:
    names = [part.name for part, _ in found]
    return [f"{name} ({names.count(name)})" for name in dict.fromkeys(names)]


def _listed(words: list[str]) -> str:
    return f": {', '.join(words)}" if words else ""
