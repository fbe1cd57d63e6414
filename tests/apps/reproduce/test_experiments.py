"""The experiments in tiny size, and which of their claims must hold."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from cfgd.apps.data import gas
from cfgd.apps.data.random_least_squares import random_least_squares
from cfgd.apps.reproduce.experiment import Experiment, Setting, SilentMeter
from cfgd.apps.reproduce.experiments import random_data
from cfgd.apps.reproduce.experiments.catalogue import EXPERIMENTS, chosen
from cfgd.apps.reproduce.experiments.conditional import select_seeds
from cfgd.apps.reproduce.report.claim import FAILS, HOLDS, NOT_COMPARABLE
from problems import GAS, needs_gas

TINY = Setting("tiny")


@functools.cache
def tiny(name: str) -> Any:
    """Return the record of a tiny run, cached."""
    return EXPERIMENTS[name].run(TINY, SilentMeter())


NAMES = ["fig1", "smoothing", "tikhonov", "random", "uci", "networks", "quadrature", "orders"]


def test_experiments_are_in_the_order_of_the_paper() -> None:
    assert list(EXPERIMENTS) == NAMES


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no experiment 'fig9'; the known ones are: fig1, smoo"):
        chosen(["fig1", "fig9"])


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_claim_has_a_place_in_the_paper_and_a_number(experiment: Experiment) -> None:
    assert experiment.claims
    for one in experiment.claims:
        assert one.where.startswith(("section", "theorem", "not in the paper"))
        assert math.isfinite(one.expected)
        assert one.tolerance <= 0.01


@pytest.mark.one_case
@pytest.mark.parametrize("name", ["fig1", "smoothing", "tikhonov", "orders"])
def test_claims_hold_in_tiny_size(name: str) -> None:
    experiment = EXPERIMENTS[name]
    data = tiny(name).data
    outcomes = [one.judge(data) for one in experiment.claims]
    assert {outcome.says: outcome.verdict for outcome in outcomes if outcome.verdict == FAILS} == {}
    assert sum(outcome.verdict == HOLDS for outcome in outcomes) >= 4


@pytest.mark.slow
def test_best_gamma_reaches_accuracy_in_the_iterations_of_the_paper() -> None:
    p = random_least_squares(0, random_data.DIMENSION)
    iteration, errors = random_data.errors(SilentMeter(), p, 1, 40_000)
    assert errors.shape == (9, len(iteration))
    assert errors[random_data.BEST].min() <= random_data.MACHINE
    assert errors[:, -1].argmin() == random_data.BEST or errors[:, -1].min() <= random_data.MACHINE


@pytest.mark.slow
def test_short_run_is_not_comparable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_data, "LAGS", (1, 2))  # two programs to compile instead of four
    experiment = EXPERIMENTS["random"]
    data = experiment.run(TINY, SilentMeter()).data
    verdicts = [one.judge(data).verdict for one in experiment.claims]
    assert verdicts.count(NOT_COMPARABLE) == 6  # all but the condition number


def test_instances_are_selected_by_their_condition_number() -> None:
    """The first seeds that qualify are selected; none is skipped."""
    for seed in (0, 153):
        p = random_least_squares(seed, random_data.DIMENSION)
        condition = random_data.condition_of(seed)
        assert condition == pytest.approx(np.linalg.cond(p.X) ** 2, rel=1e-6)
    good = [abs(random_data.condition_of(seed) / 90_053 - 1) <= 0.1 for seed in range(240)]
    like = select_seeds(
        random_data.condition_of, lambda c: abs(c / 90_053 - 1) <= 0.1, 240, 1, "so"
    )
    assert like.seeds == [good.index(True)]
    assert like.share == sum(good) / 240
    assert like.rule == "so: the first 1 of the seeds 0 to 239, of which 0.83% qualify"


@pytest.mark.slow
def test_same_seed_gives_the_same_numbers() -> None:
    """All recorded numbers are equal: those of the solver and those of the plain loop."""
    first, second = tiny("tikhonov"), EXPERIMENTS["tikhonov"].run(TINY, SilentMeter())
    assert len(first.data["seeds"][0]["runs"]) == 7
    np.testing.assert_equal(first.data, second.data)
    np.testing.assert_equal(first.parameters, second.parameters)


@pytest.mark.slow
def test_claims_on_random_data_hold_in_full_size() -> None:
    experiment = EXPERIMENTS["random"]
    run = experiment.run(Setting("full"), SilentMeter()).data
    outcomes = [one.judge(run) for one in experiment.claims[:3]]
    assert [outcome.verdict for outcome in outcomes] == [HOLDS] * 3


@pytest.mark.slow
@needs_gas
def test_claims_on_the_gas_data_hold_in_full_size() -> None:
    experiment = EXPERIMENTS["uci"]
    run = experiment.run(Setting("full", gas=gas.read(GAS)), SilentMeter()).data
    condition, share, faster, descent = (one.judge(run) for one in experiment.claims)
    assert [one.verdict for one in (condition, faster, descent)] == [HOLDS] * 3
    # the claim decides whether that is "almost all"; these bounds detect a worse solver
    shares = {case.name: case.median for case in share.cases}
    assert shares["2e-5"] >= 0.8
    assert shares["1e-4"] >= 0.9
