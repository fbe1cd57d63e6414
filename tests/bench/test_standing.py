"""What `cfgd bench` makes of its runs: medians, winners, profiles, and every loss."""

from __future__ import annotations

import numpy as np
import pytest

from cfgd.bench.field.profiles import profile
from cfgd.bench.field.standing import OURS, Run, table
from cfgd.bench.field.verdicts import verdicts


def of(solver, seed, work, seconds=1.0, problem="p", value=0.0, group="smooth", **more):
    solved = bool(np.isfinite(work))
    return Run(problem, group, "gradients", solver, seed, work, seconds, value, solved, **more)


def test_every_loss_is_in_the_table():
    runs = [of(OURS, s, 10.0 + s, seconds=2.0) for s in range(3)]
    runs += [of("fast", s, 5.0) for s in range(3)]
    runs += [of("slow", s, [40.0, np.inf, 44.0][s]) for s in range(3)]
    of_solver = {one.solver: one for one in table(runs)}
    assert of_solver[OURS].score == (11.0, 10.0, 12.0)
    assert of_solver["fast"].winner
    assert not of_solver[OURS].winner
    assert of_solver["fast"].ratio == pytest.approx(11 / 5)
    assert of_solver["slow"].ratio == pytest.approx(11 / 44)
    assert (of_solver["slow"].solved, of_solver["slow"].seeds) == (2, 3)
    assert of_solver["slow"].seconds_ratio == 2.0


def test_networks_are_judged_by_their_loss():
    runs = [of(OURS, 0, 8.0, value=0.5, group="network", to_reference=0.1)]
    runs += [of("L-BFGS-B", 0, 8.0, value=0.25, group="network")]
    of_solver = {one.solver: one for one in table(runs)}
    assert of_solver["L-BFGS-B"].winner
    assert of_solver["L-BFGS-B"].ratio == 2.0
    loss, time = verdicts([*of_solver.values()])
    assert "the loss of Auto" in loss
    assert "in 0 of 1 cases (wanted 1): DOES NOT HOLD" in loss
    assert "a fifth of its time (0.1 to 0.1) in 1 of 1 cases (wanted 1): holds" in time


@pytest.mark.parametrize(("products", "holds"), [(8000.0, ": holds"), (8002.0, "NOT HOLD")])
def test_the_gas_data_are_judged_by_iterations(products, holds):
    runs = [of(OURS, 0, products, problem="gas", group="least squares")]
    (said,) = verdicts(table(runs))
    assert said.endswith(holds), said


def test_a_profile_counts_what_was_not_solved():
    runs = [of(OURS, 0, 10.0), of("other", 0, 20.0), of(OURS, 1, np.inf), of("other", 1, 3.0)]
    assert profile(runs, "smooth", "work") == {OURS: [1.0, np.inf], "other": [2.0, 1.0]}
