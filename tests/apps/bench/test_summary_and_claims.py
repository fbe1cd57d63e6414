"""Summaries, claims, tables and profiles of the runs of `cfgd bench`."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from cfgd.apps.bench.field.claims import check_claims
from cfgd.apps.bench.field.instance import AUTO, AUTO_CONVERGED, SolverRun
from cfgd.apps.bench.field.profiles import profile
from cfgd.apps.bench.field.summary import summarize
from cfgd.apps.bench.field.tables import error_table, line_table


def run_of(solver, seed, work, seconds=1.0, problem="p", value=0.0, group="smooth", **more):
    solved, unit = bool(np.isfinite(work)), more.pop("unit", "gradients")
    return SolverRun(problem, group, unit, solver, seed, work, seconds, value, solved, **more)


def test_summaries_have_medians_winner_and_ratios():
    runs = [run_of(AUTO, s, 10.0 + s, seconds=2.0) for s in range(3)]
    runs += [run_of("fast", s, 5.0) for s in range(3)]
    runs += [run_of("slow", s, [40.0, np.inf, 44.0][s]) for s in range(3)]
    by_solver = {one.solver: one for one in summarize(runs)}
    assert by_solver[AUTO].score == (11.0, 10.0, 12.0)
    assert by_solver["fast"].winner
    assert not by_solver[AUTO].winner
    assert by_solver["fast"].ratio == pytest.approx(11 / 5)
    assert by_solver["slow"].ratio == pytest.approx(11 / 44)
    assert (by_solver["slow"].solved, by_solver["slow"].seeds) == (2, 3)
    assert by_solver["slow"].seconds_ratio == 2.0


def test_networks_are_compared_by_their_loss():
    runs = [run_of(AUTO, 0, 8.0, value=0.5, group="networks", to_reference=0.1)]
    runs += [run_of("L-BFGS-B", 0, 8.0, value=0.25, group="networks")]
    by_solver = {one.solver: one for one in summarize(runs)}
    assert by_solver["L-BFGS-B"].winner
    assert by_solver["L-BFGS-B"].ratio == 2.0
    loss, time = check_claims(runs)
    assert "the loss of Auto" in loss
    assert "in 0 of 1 cases; goal: 1, NOT MET" in loss
    assert "0.2 of its time (ratios 0.1 to 0.1) in 1 of 1 cases; goal: 1, met" in time


@pytest.mark.parametrize(
    ("ours", "seconds", "words"),
    [
        (
            1.0,
            0.1,
            ("lowest loss in 1 of 1 cases; goal: 1, met", "0.1 s; goal: at most 0.2 s, met"),
        ),
        (
            3.0,
            np.nan,
            ("0 of 1 cases; goal: 1, NOT MET. Lower loss of another solver: h1", "inf s; goal: at"),
        ),
    ],
)
def test_claims_about_networks_at_equal_time(ours, seconds, words):
    common = {"problem": "h1, N", "group": "networks", "unit": "seconds"}
    runs = [run_of(AUTO, 0, 0.5, value=ours, to_reference=seconds, **common)]
    runs += [run_of("other", 0, 0.5, value=2.0, **common)]
    for sentence, wanted in zip(check_claims(runs), words, strict=True):
        assert wanted in sentence


def fit_runs(**by_solver):
    """Return runs of `fits` from (work, status) for Auto and works for the others."""
    runs = []
    for solver, ends in by_solver.items():
        for i, end in enumerate(ends):
            work, status = end if isinstance(end, tuple) else (end, "")
            more = {"problem": f"P{i}", "group": "fits", "status": status}
            runs.append(run_of(solver.replace("_", " "), 0, work, seconds=work / 10, **more))
    return runs


def test_claims_about_fits():
    auto = [(10.0, "converged"), (12.0, "stalled"), (np.inf, "converged"), (30.0, "converged")]
    runs = fit_runs(cfgd_Auto=auto, SciPy_lm=[10.0, 10.0, 10.0, np.inf], lmfit=[np.inf] * 4)
    ours, lm, other, most, work, time, statuses = check_claims(runs)
    assert "cfgd Auto reaches the best known sum of squares in 3 of 4 runs (75.0 %" in ours
    assert "SciPy lm reaches the best known sum of squares in 3 of 4" in lm
    assert "lmfit reaches the best known sum of squares in 0 of 4" in other
    assert most.endswith("1; goal: at most 1, met")
    # of the two that both solve
    assert "(ratio of the totals 1.1), median: 1.1; goal: at most 1.15, met" in work
    assert "median: 1.1; goal: at most 1, NOT MET" in time
    assert "converged 3 (2), stalled 1 (1)" in statuses
    assert statuses.endswith("false `converged`: 0; goal: 0, met")
    auto[0] = (10.0, "false converged")
    *_, statuses = check_claims(fit_runs(cfgd_Auto=auto, SciPy_lm=[10.0, 10.0, 10.0, 9.0]))
    assert statuses.endswith("false `converged`: 1; goal: 0, NOT MET")


def pinn_runs(problem, **errors):
    return [
        run_of(
            solver.replace("_", " "),
            seed,
            2.0,
            value=error**2,
            relative_error=error,
            problem=problem,
            group="pinn",
            unit="seconds",
        )
        for solver, some in errors.items()
        for seed, error in enumerate(some)
    ]


def test_claims_about_differential_equations_compare_median_errors():
    runs = pinn_runs("A", cfgd_Auto=[1e-3, 2e-3, 9.0], other=[4e-3, 4e-3, 1e-9])
    runs += pinn_runs("B", cfgd_Auto=[3e-3] * 3, other=[1e-3] * 3)
    first, second, won, factor = check_claims(runs)
    assert "A: lowest error 0.002 (cfgd Auto), lowest loss 4e-06 (cfgd Auto)" in first
    assert "B: lowest error 0.001 (other)" in second
    assert "Auto: error 0.003, loss 9e-06" in second
    assert won.endswith("in 1 of 2 equations; goal: 2, NOT MET")
    assert factor.endswith("3; goal: at most 2, NOT MET")
    shown = Console(file=io.StringIO(), width=100)
    shown.print(error_table(summarize(runs), 100))
    (line,) = [text for text in shown.file.getvalue().splitlines() if "1.0e-03*" in text]
    assert line.split() == ["other", "1.0e-03*", "1.0e-03", "to", "1.0e-03", "3", "✗", "1.0e-06"]


@pytest.mark.parametrize(("products", "holds"), [(8000.0, ", met"), (8002.0, "NOT MET")])
def test_claim_about_the_gas_data_is_in_iterations(products, holds):
    runs = [run_of(AUTO, 0, products, problem="gas", group="least-squares")]
    (sentence,) = check_claims(runs)
    assert sentence.endswith(holds), sentence


def nist_runs(auto, others):
    runs = []
    for solver, works in ((AUTO, auto), ("SciPy lm", others), ("SciPy trf", others)):
        for i, work in enumerate(works):
            more = {"group": "nist", "problem": f"P{i // 2}", "digits": 7.0 if work < 99 else 2.0}
            runs.append(run_of(solver, i % 2, work, **more))
    return runs


def test_claims_about_nist_count_starts_and_median_ratio():
    found = check_claims(nist_runs([6.0, 12.0, 11.0, np.inf], [5.0, 10.0, 10.0, np.inf]))
    ours, lm, _, ratio, other = found
    assert "from 3 of 4 starts (median 7 digits; missed: P1 2); goal: 4, NOT MET" in ours
    assert "SciPy lm reaches six digits from 3 of 4 starts" in lm
    assert ratio.endswith("median: 1.2; goal: at most 1.2, met")
    assert other.endswith("SciPy trf, median: 1.2")
    # a start that only the other solver solves is lost
    found = check_claims(nist_runs([6.0, np.inf, np.inf], [5.0, 10.0, 10.0]))
    assert "median: inf; goal: at most 1.2, NOT MET" in found[3]


def test_line_table_marks_losses():
    shown = Console(file=io.StringIO(), width=100)
    shown.print(line_table(nist_runs([6.0, np.inf], [5.0, 10.0]), "nist"))
    lines = shown.file.getvalue().splitlines()
    (first,) = [line for line in lines if "P0, start 1" in line]
    assert "1.2 ✗" in first
    (second,) = [line for line in lines if "P0, start 2" in line]
    assert "lost ✗" in second
    assert "failed   2.0" in second


def test_claims_about_linear_models_use_the_fastest_solver():
    runs = []
    for i, ours in enumerate([1.0, 2.0, 1.0, 3.0, 1.5, 2.0]):
        common = {"problem": f"set {i}", "group": "glm", "unit": "seconds"}
        for solver, seconds in ((AUTO, ours), ("slow", 4.0), ("best", 2.0), ("lost", np.inf)):
            runs.append(run_of(solver, 0, seconds, seconds=seconds, **common))
    ratios, some, most = check_claims(runs)
    assert "set 3 1.5;" in ratios
    assert some.endswith("in 5 of 6 data sets; goal: 4, met")
    assert most.endswith("1.5; goal: at most 2, met")


def test_claims_about_estimators():
    runs = []
    for name, seconds in (("CaputoRidge", 1.15), ("CaputoRegressor", 1.3)):
        common = {"problem": name, "group": "estimators", "unit": "seconds"}
        runs.append(run_of(AUTO, 0, seconds, seconds=seconds, **common))
        runs.append(run_of("cfgd.minimize", 0, 1.0, seconds=1.0, **common))
    for name, ours in (("a", 1.0), ("b", 3.0)):
        common = {"problem": f"fit: {name}", "group": "estimators", "unit": "seconds"}
        for solver, seconds in ((AUTO, ours), ("slow", 4.0), ("best", 2.0), ("lost", np.inf)):
            runs.append(run_of(solver, 0, seconds, seconds=seconds, **common))
    overhead, against = check_claims(runs)
    assert "(CaputoRidge 1.15, CaputoRegressor 1.3), maximum: 1.3; goal: at most 1.2, " in overhead
    assert overhead.endswith("NOT MET")
    assert against.endswith("fastest solver: a 0.5; b 1.5. Slower than scikit-learn: b")


def test_claims_about_cutest_split_few_and_many_variables():
    runs = []
    for i, (ours, theirs, d) in enumerate(
        [(10, 10, 2), (30, 20, 3), (9, 10, 49), (11, 10, 50), (np.inf, 5, 60), (7, np.inf, 70)]
    ):
        common = {"problem": f"P{i}", "group": "cutest", "dimension": d}
        runs += [
            run_of(AUTO, 0, float(ours), **common),
            run_of("L-BFGS-B", 0, float(theirs), **common),
        ]
    few, many, lost = check_claims(runs)
    assert "fewer than 50 variables, median: 1; goal: at most 1.05, met" in few
    assert "50 or more variables, median: inf" in many
    assert "fails on 1 of the 5 problems that L-BFGS-B solves (P4) and solves 1 others" in lost
    assert lost.endswith("NOT MET")


@pytest.mark.parametrize(
    ("work", "value", "lost"), [(np.inf, 3.0, True), (np.inf, 1.0, False), (20.0, 3.0, False)]
)
def test_run_that_ends_unconverged_at_a_higher_value_is_lost(work, value, lost):
    common = {"problem": "P", "group": "cutest", "dimension": 2}
    runs = [
        run_of(AUTO, 0, 5.0, value=9.0, **common),
        run_of(AUTO_CONVERGED, 0, work, value=value, **common),
    ]
    runs.append(run_of("L-BFGS-B", 0, 6.0, value=2.0, **common))
    assert check_claims(runs)[-1].endswith("NOT MET" if lost else ", met")
    shown = Console(file=io.StringIO(), width=100)
    shown.print(line_table(runs, "cutest"))
    assert ("lost ✗" in shown.file.getvalue()) == lost


def test_profile_of_an_unsolved_instance_is_infinite():
    runs = [
        run_of(AUTO, 0, 10.0),
        run_of("other", 0, 20.0),
        run_of(AUTO, 1, np.inf),
        run_of("other", 1, 3.0),
    ]
    assert profile(runs, "smooth", "work") == {AUTO: [1.0, np.inf], "other": [2.0, 1.0]}
