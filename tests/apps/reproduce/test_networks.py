"""The networks: the rule that chooses a start, the plan, the starts, and the variants."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd.apps.data.network_starts import FAMILY
from cfgd.apps.reproduce.experiment import Setting, SilentMeter
from cfgd.apps.reproduce.experiments.catalogue import EXPERIMENTS
from cfgd.apps.reproduce.experiments.network_report import CLAIMS
from cfgd.apps.reproduce.experiments.network_runs import (
    Curve,
    Noise,
    RandomSign,
    TrainingRun,
    make_problem,
)
from cfgd.apps.reproduce.experiments.network_start import (
    EARLY,
    LATE,
    PAPER_LOSSES,
    finalists,
    rank_choices,
    start_formula_pairs,
)
from cfgd.apps.reproduce.experiments.networks import NetworkPlan
from cfgd.apps.reproduce.report.claim import NOT_COMPARABLE
from cfgd.methods.paper.direction import direction

# The rule, on given curves.


def curve(early: float, late: float) -> Curve:
    k, loss = np.array([0, EARLY, LATE]), np.array([10.0, early, late])
    return Curve(k, loss, k, loss, 1.0)


def curves(levels: dict[tuple[str, str], tuple[float, float]]) -> dict[TrainingRun, Curve]:
    """Return curves of five seeds each, two of them outliers that do not change the median."""
    return {
        TrainingRun("h1", start, seed, how, 0.0, LATE): curve(early * outlier, late * outlier)
        for (start, how), (early, late) in levels.items()
        for seed, outlier in enumerate((1.0, 1.0, 1.0, 1e3, 1e-3))
    }


DESCENT = PAPER_LOSSES["descent", EARLY], PAPER_LOSSES["descent", LATE]
TERMINAL = PAPER_LOSSES["terminal", EARLY], PAPER_LOSSES["terminal", LATE]


def paper_curves(factor: float) -> dict[TrainingRun, Curve]:
    """Return curves in which the start "b" with the printed formula has the paper's numbers.

    f times the factor is the loss of the paper.
    """
    paper = {"descent": DESCENT, "terminal": TERMINAL}
    f = {method: (early / factor, late / factor) for method, (early, late) in paper.items()}
    return curves(
        {
            ("a", "descent"): f["terminal"],
            ("a", "exact"): f["terminal"],
            ("a", "printed"): f["terminal"],
            ("b", "descent"): f["descent"],
            ("b", "exact"): f["descent"],
            ("b", "printed"): f["terminal"],
        }
    )


@pytest.mark.parametrize(("loss", "factor"), [("mean", 0.02), ("half sum", 1.0)])
def test_rule_finds_the_start_and_both_readings(loss: str, factor: float) -> None:
    best = rank_choices(paper_curves(factor), start_formula_pairs(["a", "b"]), (EARLY, LATE))[0]
    assert best[:3] == ("b", "printed", loss)
    assert best.distance < 1e-12


def test_distance_is_the_root_mean_square_of_logarithms() -> None:
    exact = next(
        one
        for one in rank_choices(paper_curves(1.0), start_formula_pairs(["b"]), (EARLY, LATE))
        if one[1:3] == ("exact", "half sum")
    )
    logs = [0, np.log10(DESCENT[0] / TERMINAL[0]), 0, np.log10(DESCENT[1] / TERMINAL[1])]
    assert exact.distance == pytest.approx(np.sqrt(np.mean(np.square(logs))))
    # the first round uses two of the numbers
    early = next(
        one
        for one in rank_choices(paper_curves(1.0), start_formula_pairs(["b"]), (EARLY,))
        if one[1:3] == ("exact", "half sum")
    )
    assert early.distance == pytest.approx(np.sqrt(logs[1] ** 2 / 2))


def test_two_pairs_of_start_and_formula_are_finalists() -> None:
    ranking = rank_choices(paper_curves(0.02), start_formula_pairs(["a", "b"]), (EARLY,))
    pairs = finalists(ranking)
    assert pairs[0] == ("b", "printed")
    assert len(set(pairs)) == 2


def test_rule_depends_on_h1_only() -> None:
    found = paper_curves(0.02)
    other = {
        dataclasses.replace(run, function=name): Curve(*np.full((5, 3), 1e-9))
        for run in found
        for name in ("h2", "h3")
    }
    both = [
        rank_choices(known, start_formula_pairs(["a", "b"]), (EARLY, LATE))
        for known in (found, found | other)
    ]
    assert both[0] == both[1]


# The plan.


def test_full_plan_takes_less_than_an_hour_and_has_five_seeds() -> None:
    """Work is in iterations with ten nodes; two cores make 12.8 million of them in an hour."""
    plan = NetworkPlan.for_setting(Setting("full"))
    assert plan.total_work() < 11.7e6
    assert list(plan.seeds) == [0, 1, 2, 3, 4]
    assert list(NetworkPlan.for_setting(Setting("quick")).seeds) == [0, 1]
    assert plan.family["h1"] == EARLY
    assert plan.panel == LATE
    assert len(set(plan.family_runs("h1"))) == 20 * 5 * 3


# The starts.


def test_starts_have_the_deviations_in_their_names() -> None:
    assert len(FAMILY) == 9 * 2 + 2
    z = np.linspace(-1, 1, 3)
    network = cfgd.ShallowNetwork(z, z, 4000)
    for name, (hidden, output) in {"1/1": (1, 1), "2.5/0.14": (2.5, 0.14)}.items():
        x = FAMILY[name].draw(network, 3)
        np.testing.assert_allclose(np.std(x[:8000]), hidden, rtol=0.05)
        np.testing.assert_allclose(np.std(x[8000:]), output, rtol=0.05)
    x = FAMILY["PyTorch"].draw(network, 3)
    assert np.abs(x[:8000]).max() == pytest.approx(1, rel=1e-3)
    assert np.abs(x[8000:]).max() == pytest.approx(1 / np.sqrt(4000), rel=1e-2)
    x = FAMILY["Xavier"].draw(network, 3)
    assert not x[4000:8000].any()
    np.testing.assert_allclose(np.std(x[:4000]), np.sqrt(2 / 4001), rtol=0.05)
    np.testing.assert_allclose(np.std(x[8000:]), np.sqrt(2 / 4001), rtol=0.05)


# The variants that separate the causes.


@pytest.fixture(scope="module")
def moved() -> Any:
    """Return directions by name at a point x with a terminal c that differs from x."""
    with jax.enable_x64(True):
        return {name: np.asarray(value) for name, value in directions().items()}


def directions() -> dict[str, Any]:
    network = jax.tree.map(jnp.asarray, make_problem("h1", "2/1", 0, 10).network)
    x, c = (jnp.asarray(FAMILY["2/1"].draw(network, seed)) for seed in (0, 1))
    c = x + 0.01 * (c - x)
    point = network.evaluate(x)
    found = {"x": x, "c": c, "g": point.gradient}
    for name, kind in (("random", RandomSign), ("noise", Noise)):
        method: Any = kind(0.7, gamma=20.0, nodes=2, reading="printed")
        state, memory = method.init(network, x), method.order.prepare(2)
        later = dataclasses.replace(state, k=state.k + 1)
        found[name] = method.direction_at(network, state, c, memory)
        found[f"{name} later"] = method.direction_at(network, later, c, memory)
    for reading in ("exact", "printed"):
        found[reading] = direction(network, point, c, memory, reading)
    return found


@pytest.mark.slow
def test_random_sign_agrees_with_half_of_the_signs(moved: Any) -> None:
    """Where x > c the signs of both readings are +1, and half of the random ones agree."""
    right = moved["x"] > moved["c"]
    agrees = np.isclose(moved["random"], moved["exact"], rtol=1e-10)
    printed = np.isclose(moved["random"], moved["printed"], rtol=1e-10)
    assert 0.3 < np.mean(agrees[right]) < 0.7
    # where x < c the random one is the exact or the printed one
    assert np.all(agrees[~right] | printed[~right])
    assert 0.3 < np.mean(agrees[~right]) < 0.7
    assert np.mean(moved["random"] == moved["random later"]) < 0.7


def test_noise_has_the_norm_of_the_printed_term_in_each_layer(moved: Any) -> None:
    noise, added = (moved[name] - moved["g"] for name in ("noise", "printed"))
    for layer in (slice(100), slice(100, None)):
        length = np.linalg.norm(added[layer])
        np.testing.assert_allclose(np.linalg.norm(noise[layer]), length, rtol=1e-10)
        cosine = noise[layer] @ added[layer] / length**2
        assert abs(cosine) < 0.5
    assert np.abs(noise - (moved["noise later"] - moved["g"])).max() > 0


# The experiment in tiny size.


@pytest.mark.slow
def test_networks_and_quadrature_run_and_their_claims_are_checked() -> None:
    record = EXPERIMENTS["networks"].run(Setting("tiny"), SilentMeter())
    assert {run.how for run in record.data["causes"]} == {
        "descent",
        "exact",
        "printed",
        "random sign",
        "noise",
    }
    assert "root mean square" in record.parameters["rule"]
    for one in record.data["panel"].values():
        assert np.isfinite(one.loss).all()
        assert np.isfinite(one.test).all()
        assert one.loss[-1] < one.loss[0]
        assert one.test_iteration[-1] == one.iteration[-1]
    outcomes = [claim.judge(record.data) for claim in CLAIMS]
    assert [outcome.verdict for outcome in outcomes].count(NOT_COMPARABLE) == 1
    record = EXPERIMENTS["quadrature"].run(Setting("tiny"), SilentMeter())
    for claim in EXPERIMENTS["quadrature"].claims:
        assert set(claim.measure(record.data)) == {"h1", "h2", "h3"}
