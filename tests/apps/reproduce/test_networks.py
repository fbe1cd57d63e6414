"""The networks: the rule and what it chooses, the family, directions that separate causes."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd.apps.data.network_starts import FAMILY
from cfgd.apps.reproduce.experiment import Setting, Silent
from cfgd.apps.reproduce.experiments.catalogue import EXPERIMENTS
from cfgd.apps.reproduce.experiments.network_causes import Noise, RandomSign
from cfgd.apps.reproduce.experiments.network_choice import (
    EARLY,
    LATE,
    PAPER,
    finalists,
    pairs_of,
    ranked,
)
from cfgd.apps.reproduce.experiments.network_claims import CLAIMS
from cfgd.apps.reproduce.experiments.network_plan import Plan, total_work
from cfgd.apps.reproduce.experiments.network_runs import Curve, Run, problem
from cfgd.apps.reproduce.report.claim import NOT_COMPARABLE
from cfgd.methods.paper.direction import direction

# The rule, on made-up curves.


def curve(early: float, late: float) -> Curve:
    k, loss = np.array([0, EARLY, LATE]), np.array([10.0, early, late])
    return Curve(k, loss, k, loss, 1.0)


def curves(levels: dict[tuple[str, str], tuple[float, float]]) -> dict[Run, Curve]:
    """Five seeds each, of which two are far off: a median does not mind."""
    return {
        Run("h1", start, seed, how, 0.0, LATE): curve(early * bad, late * bad)
        for (start, how), (early, late) in levels.items()
        for seed, bad in enumerate((1.0, 1.0, 1.0, 1e3, 1e-3))
    }


NUMBERS = PAPER["descent", EARLY], PAPER["descent", LATE]
OURS = PAPER["terminal", EARLY], PAPER["terminal", LATE]


def made(factor: float) -> dict[Run, Curve]:
    """The start "b" has the paper's numbers as printed, in f times the factor of a loss."""
    paper = {"descent": NUMBERS, "terminal": OURS}
    f = {who: (early / factor, late / factor) for who, (early, late) in paper.items()}
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
def test_the_rule_finds_the_start_and_both_readings(loss: str, factor: float) -> None:
    best = ranked(made(factor), pairs_of(["a", "b"]), (EARLY, LATE))[0]
    assert best[:3] == ("b", "printed", loss)
    assert best.distance < 1e-12


def test_the_distance_is_the_root_mean_square_of_logarithms() -> None:
    exact = next(
        one
        for one in ranked(made(1.0), pairs_of(["b"]), (EARLY, LATE))
        if one[1:3] == ("exact", "half sum")
    )
    apart = [0, np.log10(NUMBERS[0] / OURS[0]), 0, np.log10(NUMBERS[1] / OURS[1])]
    assert exact.distance == pytest.approx(np.sqrt(np.mean(np.square(apart))))
    # the first round knows two numbers
    early = next(
        one
        for one in ranked(made(1.0), pairs_of(["b"]), (EARLY,))
        if one[1:3] == ("exact", "half sum")
    )
    assert early.distance == pytest.approx(np.sqrt(apart[1] ** 2 / 2))


def test_two_pairs_of_start_and_formula_go_on() -> None:
    ranking = ranked(made(0.02), pairs_of(["a", "b"]), (EARLY,))
    pairs = finalists(ranking)
    assert pairs[0] == ("b", "printed")
    assert len(set(pairs)) == 2


def test_the_rule_looks_at_h1_alone() -> None:
    found = made(0.02)
    other = {
        dataclasses.replace(run, function=name): Curve(*np.full((5, 3), 1e-9))
        for run in found
        for name in ("h2", "h3")
    }
    both = [ranked(known, pairs_of(["a", "b"]), (EARLY, LATE)) for known in (found, found | other)]
    assert both[0] == both[1]


# How much is run.


def test_the_full_plan_is_an_hours_work_and_has_five_seeds() -> None:
    """In iterations with ten nodes, of which two cores were seen to make 12.8 million an hour."""
    plan = Plan.of(Setting("full"))
    assert total_work(plan) < 11.7e6
    assert list(plan.seeds) == [0, 1, 2, 3, 4]
    assert list(Plan.of(Setting("quick")).seeds) == [0, 1]
    assert plan.family["h1"] == EARLY
    assert plan.panel == LATE
    assert len(set(plan.of_family("h1"))) == 20 * 5 * 3


# The family.


def test_the_family_has_the_deviations_that_its_names_say() -> None:
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


# The causes.


@pytest.fixture(scope="module")
def moved() -> Any:
    """A network after a step, so that c is not x, with directions by name."""
    with jax.enable_x64(True):
        return {name: np.asarray(value) for name, value in directions().items()}


def directions() -> dict[str, Any]:
    network = jax.tree.map(jnp.asarray, problem("h1", "2/1", 0, 10).network)
    x, c = (jnp.asarray(FAMILY["2/1"].draw(network, seed)) for seed in (0, 1))
    c = x + 0.01 * (c - x)
    point = network.evaluate(x)
    found = {"x": x, "c": c, "g": point.gradient}
    for name, kind in (("random", RandomSign), ("noise", Noise)):
        method: Any = kind(0.7, gamma=20.0, nodes=2, reading="printed")
        state, memory = method.start(network, x), method.order.prepare(2)
        later = dataclasses.replace(state, k=state.k + 1)
        found[name] = method.direction_at(network, state, c, memory)
        found[f"{name} later"] = method.direction_at(network, later, c, memory)
    for reading in ("exact", "printed"):
        found[reading] = direction(network, point, c, memory, reading)
    return found


def test_a_random_sign_is_right_by_chance(moved: Any) -> None:
    """Where x > c the signs of both readings are +1: half of the random ones agree."""
    right = moved["x"] > moved["c"]
    agrees = np.isclose(moved["random"], moved["exact"], rtol=1e-10)
    printed = np.isclose(moved["random"], moved["printed"], rtol=1e-10)
    assert 0.3 < np.mean(agrees[right]) < 0.7
    # where x < c the random one is the exact or the printed one
    assert np.all(agrees[~right] | printed[~right])
    assert 0.3 < np.mean(agrees[~right]) < 0.7
    assert np.mean(moved["random"] == moved["random later"]) < 0.7


def test_the_noise_is_as_long_as_the_push_in_each_layer(moved: Any) -> None:
    noise, push = (moved[name] - moved["g"] for name in ("noise", "printed"))
    for layer in (slice(100), slice(100, None)):
        length = np.linalg.norm(push[layer])
        np.testing.assert_allclose(np.linalg.norm(noise[layer]), length, rtol=1e-10)
        cosine = noise[layer] @ push[layer] / length**2
        assert abs(cosine) < 0.5
    assert np.abs(noise - (moved["noise later"] - moved["g"])).max() > 0


# The experiment in a tiny setting.


@pytest.mark.slow
def test_networks_and_quadrature_run_and_their_claims_are_judged() -> None:
    record = EXPERIMENTS["networks"].run(Setting("tiny"), Silent())
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
    record = EXPERIMENTS["quadrature"].run(Setting("tiny"), Silent())
    for claim in EXPERIMENTS["quadrature"].claims:
        assert set(claim.measure(record.data)) == {"h1", "h2", "h3"}
