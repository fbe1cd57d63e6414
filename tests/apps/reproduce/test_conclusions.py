"""The five sentences at the top of the page."""

from __future__ import annotations

import dataclasses
from typing import Any

from test_result import ONE

from cfgd.apps.reproduce.report.claim import Claim
from cfgd.apps.reproduce.report.conclusions import conclusions
from cfgd.apps.reproduce.report.result import ExperimentResult


def result(name: str, *measured: Any, **more: Any) -> ExperimentResult:
    """Return a result whose claims "at most 1" measure these values.

    A string is the excuse of a claim; None is a claim that is ours and holds.
    """
    outcomes = []
    for value in measured:
        excuse = value if isinstance(value, str) else None
        where = "not in the paper: a fact" if value is None else "figure 1"
        claim = Claim(
            "It is so (a ratio)",
            where,
            1,
            "at most",
            lambda run: run,
            excuse=lambda run, e=excuse: e,
        )
        outcomes.append(claim.judge(0.5 if excuse or value is None else value))
    empty = {"missing": "", "conclusion": ""}
    return dataclasses.replace(
        ONE, name=name, title=name.upper(), outcomes=tuple(outcomes), **(empty | more)
    )


def test_conclusions_count_and_quote_the_claims() -> None:
    results = [
        result("whole", 0.5, 1.0, None),
        result("mixed", {"h1": 0.5, "h2": 2.0}, 3.0, 0.1),
        result("short", "too short", missing="the start", conclusion="It ended below."),
    ]
    assert conclusions(results) == [
        "3 of the 5 claims that could be judged hold; every claim holds for: WHOLE.",
        "1 claim holds for some cases only: “It is so” (mixed, for h1).",
        "1 claim fails: “It is so” (mixed).",
        "1 claim cannot be compared; the paper does not give the start.",
        "It ended below.",
    ]


def test_sentence_quotes_at_most_four_claims() -> None:
    _, some, fails, not_comparable, _ = conclusions([result("bad", *[2.0] * 6)])
    assert some == "No claim holds for some cases only."
    assert fails.startswith("6 claims fail: “It is so” (bad); ")
    assert fails.count("“") == 4
    assert fails.endswith("; and 2 more.")
    assert not_comparable == "All claims can be compared."


def test_without_a_conclusion_of_an_experiment_the_last_is_about_our_claims() -> None:
    *_, last = conclusions([result("whole", 0.5, None)])
    assert last == "1 of 1 claims that are not in the paper hold; see their table."
