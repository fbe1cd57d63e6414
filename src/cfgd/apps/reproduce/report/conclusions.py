"""The outcome of all experiments in five sentences, for the top of the page."""

from __future__ import annotations

from collections.abc import Sequence

from cfgd.apps.reproduce.report.claim import FAILS, HOLDS, HOLDS_FOR, NOT_COMPARABLE, Outcome
from cfgd.apps.reproduce.report.result import ExperimentResult

MAX_QUOTES = 4  # claims quoted in a sentence; the table has all of them

Outcomes = list[tuple[ExperimentResult, Outcome]]


def conclusions(results: Sequence[ExperimentResult]) -> list[str]:
    """Return what holds, holds for some cases, fails, is not comparable, and the networks."""
    holds, some, fails, not_comparable = (
        _with_verdict(results, verdict) for verdict in (HOLDS, HOLDS_FOR, FAILS, NOT_COMPARABLE)
    )
    judged = len(holds) + len(some) + len(fails)
    complete = [result.title for result in results if _all_hold(result)]
    all_on = f"; every claim holds for: {'; '.join(complete)}" if complete else ""
    missing = [result.missing for result in results if result.missing]
    own = [result.conclusion for result in results if result.conclusion]
    return [
        f"{len(holds)} of the {judged} claims that could be judged hold{all_on}.",
        f"{_counted(some, 'holds', 'hold')} for some cases only{_quoted(some)}.",
        f"{_counted(fails, 'fails', 'fail')}{_quoted(fails)}.",
        _compared(not_comparable)
        + (f"; the paper does not give {'; '.join(missing)}." if missing else "."),
        " ".join(own) or _our_claims(results),
    ]


def _with_verdict(results: Sequence[ExperimentResult], verdict: str) -> Outcomes:
    return [
        (result, outcome)
        for result in results
        for outcome in result.outcomes
        if outcome.verdict == verdict and not outcome.ours
    ]


def _all_hold(result: ExperimentResult) -> bool:
    verdicts = {outcome.verdict for outcome in result.outcomes if not outcome.ours}
    return HOLDS in verdicts and verdicts <= {HOLDS, NOT_COMPARABLE}


def _counted(outcomes: Outcomes, singular: str, plural: str) -> str:
    count = len(outcomes)
    return f"{count} claims {plural}" if count > 1 else f"{count or 'No'} claim {singular}"


def _compared(not_comparable: Outcomes) -> str:
    if not not_comparable:
        return "All claims can be compared"
    return _counted(not_comparable, "cannot be compared", "cannot be compared")


def _quoted(outcomes: Outcomes) -> str:
    """Quote the claims without their parentheses, and name the cases for which they hold."""
    if not outcomes:
        return ""
    quotes = []
    for result, outcome in outcomes[:MAX_QUOTES]:
        cases = f", for {outcome.holding_cases}" if outcome.verdict == HOLDS_FOR else ""
        quotes.append(f"“{outcome.says.split(' (')[0]}” ({result.name}{cases})")
    more = f"; and {len(outcomes) - MAX_QUOTES} more" if len(outcomes) > MAX_QUOTES else ""
    return f": {'; '.join(quotes)}{more}"


def _our_claims(results: Sequence[ExperimentResult]) -> str:
    ours = [outcome for result in results for outcome in result.outcomes if outcome.ours]
    held = sum(outcome.verdict == HOLDS for outcome in ours)
    return f"{held} of {len(ours)} claims that are not in the paper hold; see their table."
