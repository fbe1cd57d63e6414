"""What `cfgd bench` makes of its runs: medians, winners, profiles, and every loss."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from cfgd.apps.bench.field.profiles import profile
from cfgd.apps.bench.field.standing import ENDED, OURS, Run, table
from cfgd.apps.bench.field.tables import by_line
from cfgd.apps.bench.field.verdicts import verdicts


def of(solver, seed, work, seconds=1.0, problem="p", value=0.0, group="smooth", **more):
    solved, unit = bool(np.isfinite(work)), more.pop("unit", "gradients")
    return Run(problem, group, unit, solver, seed, work, seconds, value, solved, **more)


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
    runs = [of(OURS, 0, 8.0, value=0.5, group="networks", to_reference=0.1)]
    runs += [of("L-BFGS-B", 0, 8.0, value=0.25, group="networks")]
    of_solver = {one.solver: one for one in table(runs)}
    assert of_solver["L-BFGS-B"].winner
    assert of_solver["L-BFGS-B"].ratio == 2.0
    loss, time = verdicts(runs)
    assert "the loss of Auto" in loss
    assert "in 0 of 1 cases (wanted 1): DOES NOT HOLD" in loss
    assert "a fifth of its time (0.1 to 0.1) in 1 of 1 cases (wanted 1): holds" in time


@pytest.mark.parametrize(
    ("ours", "seconds", "words"),
    [
        (1.0, 0.1, ("others in 1 of 1 cases (wanted 1): holds", "0.1 (wanted at most 0.2): holds")),
        (
            3.0,
            np.nan,
            ("others (h1, N: other) in 0 of 1 cases (wanted 1): DOES NOT", "inf (wanted at most"),
        ),
    ],
)
def test_networks_at_equal_time(ours, seconds, words):
    common = {"problem": "h1, N", "group": "networks", "unit": "seconds"}
    runs = [of(OURS, 0, 0.5, value=ours, to_reference=seconds, **common)]
    runs += [of("other", 0, 0.5, value=2.0, **common)]
    for said, wanted in zip(verdicts(runs), words, strict=True):
        assert wanted in said


@pytest.mark.parametrize(("products", "holds"), [(8000.0, ": holds"), (8002.0, "NOT HOLD")])
def test_the_gas_data_are_judged_by_iterations(products, holds):
    runs = [of(OURS, 0, products, problem="gas", group="least-squares")]
    (said,) = verdicts(runs)
    assert said.endswith(holds), said


def nist(ours, theirs):
    runs = []
    for solver, works in ((OURS, ours), ("SciPy lm", theirs), ("SciPy trf", theirs)):
        for i, work in enumerate(works):
            more = {"group": "nist", "problem": f"P{i // 2}", "digits": 7.0 if work < 99 else 2.0}
            runs.append(of(solver, i % 2, work, **more))
    return runs


def test_nist_is_judged_by_starts_and_by_the_median_of_ratios():
    found = verdicts(nist([6.0, 12.0, 11.0, np.inf], [5.0, 10.0, 10.0, np.inf]))
    ours, lm, _, ratio, other = found
    assert "in 3 of 4 starts (median 7 digits; missed: P1 2), wanted 4: DOES NOT HOLD" in ours
    assert "SciPy lm has six digits in 3 of 4 starts" in lm
    assert ratio.endswith("median: 1.2 (wanted at most 1.2): holds")
    assert other.endswith("SciPy trf, median: 1.2")
    # what only the other solves counts as lost
    found = verdicts(nist([6.0, np.inf, np.inf], [5.0, 10.0, 10.0]))
    assert "median: inf (wanted at most 1.2): DOES NOT HOLD" in found[3]


def test_the_starts_of_nist_stand_in_lines():
    shown = Console(file=io.StringIO(), width=100)
    shown.print(by_line(nist([6.0, np.inf], [5.0, 10.0]), "nist"))
    lines = shown.file.getvalue().splitlines()
    (first,) = [line for line in lines if "P0, start 1" in line]
    assert "1.2 ✗" in first
    (second,) = [line for line in lines if "P0, start 2" in line]
    assert "lost ✗" in second
    assert "never   2.0" in second


def test_linear_models_are_judged_against_the_best_solver():
    runs = []
    for i, ours in enumerate([1.0, 2.0, 1.0, 3.0, 1.5, 2.0]):
        common = {"problem": f"set {i}", "group": "glm", "unit": "seconds"}
        for solver, seconds in ((OURS, ours), ("slow", 4.0), ("best", 2.0), ("lost", np.inf)):
            runs.append(of(solver, 0, seconds, seconds=seconds, **common))
    some, most = verdicts(runs)
    assert "set 3 1.5," in some
    assert some.endswith("in 5 of 6 sets (wanted 4): holds")
    assert most.endswith("1.5 (wanted at most 2): holds")


def test_estimators_are_judged_over_the_core_and_beside_the_best_solver():
    runs = []
    for name, seconds in (("CaputoRidge", 1.15), ("CaputoRegressor", 1.3)):
        common = {"problem": name, "group": "estimators", "unit": "seconds"}
        runs.append(of(OURS, 0, seconds, seconds=seconds, **common))
        runs.append(of("the core, by hand", 0, 1.0, seconds=1.0, **common))
    for name, ours in (("a", 1.0), ("b", 3.0)):
        common = {"problem": f"fit: {name}", "group": "estimators", "unit": "seconds"}
        for solver, seconds in ((OURS, ours), ("slow", 4.0), ("best", 2.0), ("lost", np.inf)):
            runs.append(of(solver, 0, seconds, seconds=seconds, **common))
    over, beside = verdicts(runs)
    assert "(CaputoRidge 1.15, CaputoRegressor 1.3), the most: 1.3 (wanted at most 1.2): " in over
    assert over.endswith("DOES NOT HOLD")
    assert beside.endswith("best solver of scikit-learn: a 0.5, b 1.5; lost: b")


def test_cutest_is_judged_apart_for_few_and_many_variables():
    runs = []
    for i, (ours, theirs, d) in enumerate(
        [(10, 10, 2), (30, 20, 3), (9, 10, 49), (11, 10, 50), (np.inf, 5, 60), (7, np.inf, 70)]
    ):
        common = {"problem": f"P{i}", "group": "cutest", "dimension": d}
        runs += [of(OURS, 0, float(ours), **common), of("L-BFGS-B", 0, float(theirs), **common)]
    few, many, lost = verdicts(runs)
    assert "fewer than 50 variables, median: 1 (wanted at most 1.05): holds" in few
    assert "50 or more variables, median: inf" in many
    assert "loses 1 of the 5 problems that L-BFGS-B solves (P4) and solves 1 others" in lost
    assert lost.endswith("DOES NOT HOLD")


@pytest.mark.parametrize(
    ("work", "value", "lost"), [(np.inf, 3.0, True), (np.inf, 1.0, False), (20.0, 3.0, False)]
)
def test_a_run_that_ends_stuck_above_the_other_is_lost(work, value, lost):
    common = {"problem": "P", "group": "cutest", "dimension": 2}
    runs = [of(OURS, 0, 5.0, value=9.0, **common), of(ENDED, 0, work, value=value, **common)]
    runs.append(of("L-BFGS-B", 0, 6.0, value=2.0, **common))
    assert verdicts(runs)[-1].endswith("DOES NOT HOLD" if lost else ": holds")
    shown = Console(file=io.StringIO(), width=100)
    shown.print(by_line(runs, "cutest"))
    assert ("lost ✗" in shown.file.getvalue()) == lost


def test_a_profile_counts_what_was_not_solved():
    runs = [of(OURS, 0, 10.0), of("other", 0, 20.0), of(OURS, 1, np.inf), of("other", 1, 3.0)]
    assert profile(runs, "smooth", "work") == {OURS: [1.0, np.inf], "other": [2.0, 1.0]}
