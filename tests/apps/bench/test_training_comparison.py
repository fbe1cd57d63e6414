"""Comparison of optimizers from given curves, without training."""

from __future__ import annotations

import numpy as np
import pytest

from cfgd.apps.bench.training.comparison import (
    GRADIENTS,
    SECONDS,
    STEPS,
    checkpoints_in_budget,
    compare,
    conclusions,
    gamma_lag_ratios,
    quartiles,
    summarize,
)
from cfgd.apps.bench.training.optimizers import Optimizer
from cfgd.apps.bench.training.report import rows, tables
from cfgd.apps.bench.training.trainer import CHECKPOINTS, Curves

DECREASE = np.linspace(3.0, 0.1, CHECKPOINTS)  # the median of the last three is the last but one


def curves(optimizer, seconds, *factors, problem="p", rates=None, seeds=3):
    """Return decreasing curves, times a factor for each learning rate and 1, 2, ... for seeds."""
    scale = np.array(factors)[:, None, None] * np.arange(1.0, seeds + 1)[None, :, None]
    losses = scale * DECREASE
    return Curves(
        problem, optimizer, rates or tuple(range(1, len(factors) + 1)), losses, losses / 10, seconds
    )


SGD, ADAM = Optimizer("SGD"), Optimizer("Adam")
OURS = Optimizer("cfgd", -0.25, 1)


def by_optimizer(some, measure):
    return {one.optimizer.name: one for one in summarize(some) if one.measure == measure}


def test_equal_gradients_use_the_cost_of_a_step():
    some = [curves(SGD, 1.0, 1), curves(OURS, 1.0, 1), curves(Optimizer("AdaHessian-like"), 1.0, 1)]
    summaries = by_optimizer(some, GRADIENTS)
    assert summaries["SGD"].loss[0] == pytest.approx(2 * DECREASE[28])
    assert summaries["cfgd (-0.25, 1)"].loss[0] == pytest.approx(2 * DECREASE[23])
    assert summaries["AdaHessian-like"].loss[0] == pytest.approx(2 * DECREASE[8])
    assert all(one.share == 1 for one in by_optimizer(some, STEPS).values())


def test_equal_time_uses_the_seconds_of_a_step():
    """An optimizer that is twice as slow makes half of the steps, whatever their cost."""
    some = [curves(SGD, 1.0, 1), curves(ADAM, 2.0, 1), curves(OURS, 1.0, 1)]
    summaries = by_optimizer(some, SECONDS)
    assert (
        summaries["SGD"].loss[0]
        == summaries["cfgd (-0.25, 1)"].loss[0]
        == pytest.approx(2 * DECREASE[28])
    )
    assert summaries["Adam"].loss[0] == pytest.approx(2 * DECREASE[13])
    assert summaries["Adam"].error[0] == pytest.approx(0.2 * DECREASE[13])
    assert summaries["Adam"].share == 0.5


def test_very_slow_optimizer_has_one_checkpoint():
    assert checkpoints_in_budget(curves(SGD, 1e6, 1), SECONDS, [curves(ADAM, 1.0, 1)]) == 1


def test_learning_rate_is_the_best_at_the_checkpoint():
    some = [curves(SGD, 1.0, 2, 0.5, 1), curves(ADAM, 1.0, 0.5, 1, 2)]
    summaries = by_optimizer(some, GRADIENTS)
    assert (summaries["SGD"].rate, summaries["SGD"].at_the_edge) == (2, False)
    assert (summaries["Adam"].rate, summaries["Adam"].at_the_edge) == (1, True)


def test_quartiles_are_elements():
    assert quartiles([5.0, 1.0, 4.0, 2.0, 3.0]) == (3, 2, 4)
    assert quartiles([1.0, 2.0, 3.0, np.inf, np.inf]) == (3, 2, np.inf)
    assert quartiles([1.0, 2.0]) == (2, 1, 2)  # the larger of two
    assert quartiles([7.0]) == (7, 7, 7)


def test_compare_returns_the_result_and_the_ratio():
    assert compare(1.5, 1.0) == ("higher", 1.5)
    assert compare(0.5, 1.0) == ("lower", 0.5)
    assert compare(1.01, 1.0)[0] == "equal"
    assert compare(np.inf, 1.0)[0] == "higher"
    assert compare(1.0, 0.0)[0] == "higher"


def test_ratios_are_to_the_optimizer_with_gamma_zero():
    some = [
        *(curves(SGD, 1.0, 1, problem=problem) for problem in "ab"),
        curves(OURS, 1.0, 2, problem="a"),
        curves(OURS, 1.0, 8, problem="b"),
    ]
    (pair,) = [one for one in gamma_lag_ratios(summarize(some)) if one.measure == STEPS]
    assert pair.ratios == pytest.approx({"a": 2, "b": 8})
    assert pair.mean == pytest.approx(4)


def test_conclusions_name_the_problems_where_ours_lose():
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
    sentences = conclusions(summarize(some))
    assert sentences[0].startswith("a, at equal gradients: cfgd (-0.25, 1), the best of 2 cfgd")
    assert "optimizers, has a higher loss than SGD, the best other (" in sentences[0]
    assert "has a lower loss than SGD" in sentences[3]  # b, at equal time
    timed = "cfgd (-0.25, 1), at equal time, loss compared with SGD (ratio): "
    assert f"{timed}higher on a (5.00), c (4.00); lower on b (0.01)." in sentences
    last = sentences[-1]
    assert "of 2 pairs (gamma, lag), (-0.25, 1)" in last
    assert "with the pair selected on the others: a" in last


def test_conclusions_mention_overlapping_quartiles():
    some = [curves(SGD, 1.0, 1, seeds=5), curves(OURS, 1.0, 1.1, seeds=5)]
    sentences = conclusions(summarize(some))
    assert any("a higher loss" in one and "the quartiles overlap;" in one for one in sentences)


def test_rows_mark_the_least_loss_and_the_edge_of_the_grid():
    some = summarize([curves(SGD, 1e-6, 1, 0.5), curves(ADAM, 1e-6, 1, 0.4, 0.6)])
    sgd, adam = rows(some)
    assert sgd[:4] == ("SGD", "2!", "0.2 [0.1, 0.3]", "")
    assert not sgd[2].endswith("*")
    assert adam[2].endswith("*")
    assert adam[1] == "2"
    assert sgd[-1] == "1"


def test_rows_mark_where_ours_lose():
    _, lost = rows(summarize([curves(SGD, 1e-6, 1), curves(OURS, 1e-6, 1)]))
    assert lost[3].endswith(" ✗")  # fewer steps
    assert lost[7] == "1.00"


def test_spike_at_the_last_checkpoint_is_ignored():
    one = curves(SGD, 1.0, 1, seeds=1)
    one.losses[:, :, -1] = 1e3
    assert summarize([one])[0].loss[0] == pytest.approx(DECREASE[27])


def test_no_curves_give_no_results():
    assert summarize([]) == []
    assert conclusions([]) == []
    assert tables([], []) == []
