"""How runs are compared: pure tables, no training."""

from __future__ import annotations

import numpy as np
import pytest

from cfgd.apps.bench.training.optimizers import Optimizer
from cfgd.apps.bench.training.report import rows, tables
from cfgd.apps.bench.training.table import GRADIENTS, SECONDS, STEPS, place, spread, standings
from cfgd.apps.bench.training.training import PLACES, Curves
from cfgd.apps.bench.training.verdicts import compared, pairs, verdicts

FALL = np.linspace(3.0, 0.1, PLACES)  # a loss is that of the last but one


def curves(optimizer, seconds, *factors, problem="p", rates=None, seeds=3):
    """Loss and error fall alike, times a factor for each learning rate and 1, 2, ... for seeds."""
    scale = np.array(factors)[:, None, None] * np.arange(1.0, seeds + 1)[None, :, None]
    losses = scale * FALL
    return Curves(
        problem, optimizer, rates or tuple(range(1, len(factors) + 1)), losses, losses / 10, seconds
    )


SGD, ADAM = Optimizer("SGD"), Optimizer("Adam")
OURS = Optimizer("cfgd", -0.25, 1)


def found(some, measure):
    return {one.optimizer.name: one for one in standings(some) if one.measure == measure}


def test_equal_gradients_go_by_the_cost_of_a_step():
    some = [curves(SGD, 1.0, 1), curves(OURS, 1.0, 1), curves(Optimizer("AdaHessian-like"), 1.0, 1)]
    by = found(some, GRADIENTS)
    assert by["SGD"].loss[0] == pytest.approx(2 * FALL[28])
    assert by["cfgd (-0.25, 1)"].loss[0] == pytest.approx(2 * FALL[23])
    assert by["AdaHessian-like"].loss[0] == pytest.approx(2 * FALL[8])
    assert all(one.share == 1 for one in found(some, STEPS).values())


def test_equal_time_goes_by_time():
    """Twice as slow is half of the steps, whatever a step is counted as."""
    some = [curves(SGD, 1.0, 1), curves(ADAM, 2.0, 1), curves(OURS, 1.0, 1)]
    by = found(some, SECONDS)
    assert by["SGD"].loss[0] == by["cfgd (-0.25, 1)"].loss[0] == pytest.approx(2 * FALL[28])
    assert by["Adam"].loss[0] == pytest.approx(2 * FALL[13])
    assert by["Adam"].error[0] == pytest.approx(0.2 * FALL[13])
    assert by["Adam"].share == 0.5


def test_somebody_very_slow_is_looked_at_once():
    assert place(curves(SGD, 1e6, 1), SECONDS, [curves(ADAM, 1.0, 1)]) == 1


def test_the_rate_is_the_best_at_that_place():
    some = [curves(SGD, 1.0, 2, 0.5, 1), curves(ADAM, 1.0, 0.5, 1, 2)]
    by = found(some, GRADIENTS)
    assert (by["SGD"].rate, by["SGD"].at_the_edge) == (2, False)
    assert (by["Adam"].rate, by["Adam"].at_the_edge) == (1, True)


def test_the_spread_takes_numbers_that_are_there():
    assert spread([5.0, 1.0, 4.0, 2.0, 3.0]) == (3, 2, 4)
    assert spread([1.0, 2.0, 3.0, np.inf, np.inf]) == (3, 2, np.inf)
    assert spread([1.0, 2.0]) == (2, 1, 2)  # of two the worse
    assert spread([7.0]) == (7, 7, 7)


def test_who_wins_is_said():
    assert compared(1.5, 1.0) == ("ours lose", 1.5)
    assert compared(0.5, 1.0) == ("ours win", 0.5)
    assert compared(1.01, 1.0)[0] == "the same"
    assert compared(np.inf, 1.0)[0] == "ours lose"
    assert compared(1.0, 0.0)[0] == "ours lose"


def test_pairs_are_against_gamma_of_zero():
    some = [
        *(curves(SGD, 1.0, 1, problem=problem) for problem in "ab"),
        curves(OURS, 1.0, 2, problem="a"),
        curves(OURS, 1.0, 8, problem="b"),
    ]
    (pair,) = [one for one in pairs(standings(some)) if one.measure == STEPS]
    assert pair.ratios == pytest.approx({"a": 2, "b": 8})
    assert pair.mean == pytest.approx(4)


def test_verdicts_say_where_ours_lose():
    other = Optimizer("cfgd", 1.0, 1)
    some = [
        one
        for problem, factor in (("a", 5), ("b", 0.01), ("c", 4))
        for one in (
            curves(SGD, 1.0, 1, problem=problem, seeds=1),
            curves(OURS, 1.0, factor, problem=problem, seeds=1),
            curves(other, 1.0, 7, problem=problem, seeds=1),
        )
    ]
    said = verdicts(standings(some))
    assert any(one.startswith("a, with equal gradients: ours lose.") for one in said)
    assert any(one.startswith("b, in equal time: ours win.") for one in said)
    timed = "cfgd (-0.25, 1) against SGD, in equal time: "
    assert f"{timed}ours lose on a (5.00), c (4.00); ours win on b (0.01)." in said
    last = said[-1]
    assert "of 2 pairs, (gamma, lag) = (-0.25, 1)" in last
    assert "chosen by the other problems has on a" in last


def test_the_spread_is_mentioned():
    some = [curves(SGD, 1.0, 1, seeds=5), curves(OURS, 1.0, 1.1, seeds=5)]
    said = verdicts(standings(some))
    assert any("in equal time: ours lose, within the spread." in one for one in said)


def test_rows_mark_the_least_and_the_edge():
    some = standings([curves(SGD, 1e-6, 1, 0.5), curves(ADAM, 1e-6, 1, 0.4, 0.6)])
    sgd, adam = rows(some)
    assert sgd[:4] == ("SGD", "2!", "0.2 [0.1, 0.3]", "")
    assert not sgd[2].endswith("*")
    assert adam[2].endswith("*")
    assert adam[1] == "2"
    assert sgd[-1] == "1"


def test_rows_mark_where_ours_lose():
    _, lost = rows(standings([curves(SGD, 1e-6, 1), curves(OURS, 1e-6, 1)]))
    assert lost[3].endswith(" ✗")  # fewer steps
    assert lost[7] == "1.00"


def test_a_spike_is_no_loss():
    one = curves(SGD, 1.0, 1, seeds=1)
    one.losses[:, :, -1] = 1e3
    assert standings([one])[0].loss[0] == pytest.approx(FALL[27])


def test_without_runs_there_is_nothing():
    assert standings([]) == []
    assert verdicts([]) == []
    assert tables([], []) == []
