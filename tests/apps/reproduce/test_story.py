"""The five sentences on the first screen."""

from __future__ import annotations

import dataclasses
from typing import Any

from test_saved import ONE

from cfgd.apps.reproduce.report.claim import Claim
from cfgd.apps.reproduce.report.part import Part
from cfgd.apps.reproduce.report.story import story


def part(name: str, *measured: Any, **more: Any) -> Part:
    """A part whose claims, at most 1 each, measure these; a text is an excuse, None is ours."""
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
    plain = {"missing": "", "story": ""}
    return dataclasses.replace(
        ONE, name=name, title=name.upper(), outcomes=tuple(outcomes), **(plain | more)
    )


def test_what_holds_what_holds_for_some_what_does_not_and_what_is_not_given() -> None:
    parts = [
        part("whole", 0.5, 1.0, None),
        part("mixed", {"h1": 0.5, "h2": 2.0}, 3.0, 0.1),
        part("short", "too short", missing="the start", story="It ended below."),
    ]
    assert story(parts) == [
        "3 of the 5 sentences that could be judged hold, all of them on: WHOLE.",
        "1 holds for some cases only: “It is so” (mixed, for h1).",
        "1 fails: “It is so” (mixed).",
        "1 is not comparable; the paper does not give the start.",
        "It ended below.",
    ]


def test_a_sentence_quotes_at_most_four() -> None:
    _, some, fails, open_, _ = story([part("bad", *[2.0] * 6)])
    assert some == "None holds for some cases only."
    assert fails.startswith("6 fail: “It is so” (bad); ")
    assert fails.count("“") == 4
    assert fails.endswith("; and 2 more.")
    assert open_ == "None is not comparable."


def test_without_a_story_of_its_own_the_fifth_is_about_rows_of_ours() -> None:
    *_, last = story([part("whole", 0.5, None)])
    assert last == "1 of 1 rows that are ours and not the paper's hold; they stand apart."
