"""Claims and how they are checked."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

from cfgd.apps.reproduce.report.claim import (
    FAILS,
    HOLDS,
    HOLDS_FOR,
    NOT_COMPARABLE,
    SEED_SHARE,
    Claim,
)
from cfgd.apps.reproduce.report.result import OUTCOME


def claim(relation: Any, expected: float, tolerance: float = 0.0, **more: Any) -> Claim:
    return Claim("it is so", "figure 1", expected, relation, lambda run: run, tolerance, **more)


@pytest.mark.parametrize(
    ("one", "measured", "verdict"),
    [
        (claim("at most", 4), 4, HOLDS),
        (claim("at most", 4), 5, FAILS),
        (claim("at least", 4), 4, HOLDS),
        (claim("at least", 4), 3, FAILS),
        (claim("equals", -10, 0.1), -11, HOLDS),
        (claim("equals", -10, 0.1), -11.1, FAILS),
        (claim("about", 6e-4), 2.1e-4, HOLDS),
        (claim("about", 6e-4), 1.9e-4, FAILS),
        (claim("about", 6e-4), 1.9e-3, FAILS),
        (claim("at most", 4), math.nan, FAILS),
        (claim("at most", 4), math.inf, FAILS),
        (claim("at least", 1), [2.0] * 9 + [0.0], HOLDS),
        (claim("at least", 1), [2.0] * 8 + [0.0] * 2, FAILS),
        (claim("at most", 4, excuse=lambda run: "too short"), 1, NOT_COMPARABLE),
        (claim("at most", 4), {"h1": 3, "h2": [4, 4]}, HOLDS),
        (claim("at most", 4), {"h1": 3, "h2": [4, 5]}, HOLDS_FOR),
        (claim("at most", 4), {"h1": 5, "h2": [4, 5]}, FAILS),
        (claim("at most", 4, excuse=lambda run: "too short"), {"h1": 3, "h2": 5}, NOT_COMPARABLE),
    ],
)
def test_verdict_depends_on_relation_and_tolerance(one: Claim, measured: Any, verdict: str) -> None:
    assert one.judge(measured).verdict == verdict


def test_outcome_has_median_and_fraction_and_is_read_back_equal() -> None:
    outcome = claim("at most", 1).judge([0.5, 0.25, 3.0])
    assert (outcome.median, outcome.fraction) == (0.5, pytest.approx(2 / 3))
    assert outcome.measured == "median 0.5, 2 of 3"
    assert outcome.fraction < SEED_SHARE
    assert outcome.verdict == FAILS
    assert OUTCOME(json.loads(json.dumps(dataclasses.asdict(outcome))), "") == outcome


def test_outcome_names_the_cases_for_which_it_holds() -> None:
    measured = {"h1": [0.5, 0.7], "h2": [2.0, 0.1, 3.0], "h3": 1.0}
    outcome = claim("at most", 1).judge(measured)
    assert outcome.verdict_text == "holds for h1, h3"
    assert outcome.measured == "h1: 0.6, 2 of 2; h2: 2, 1 of 3; h3: 1"
    assert len(outcome.values) == 6
    assert OUTCOME(json.loads(json.dumps(dataclasses.asdict(outcome))), "") == outcome


def test_claim_that_is_not_in_the_paper_is_ours() -> None:
    assert not claim("at most", 1).judge(1).ours
    ours = Claim("it is so", "not in the paper: a fact", 1, "at most", lambda run: run)
    assert ours.judge(1).ours
