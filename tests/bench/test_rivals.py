"""`cfgd bench`: rivals solve what they are given, work is counted right, every loss is shown."""

from __future__ import annotations

import json
from functools import partial

import jax
import numpy as np
import pytest
import scipy.optimize
from typer.testing import CliRunner

from cfgd.bench.field import cases, runner as field
from cfgd.bench.field.rivals_jax import rivals
from cfgd.bench.field.rivals_scipy import Counted
from cfgd.bench.field.standing import OURS, Run, profile, table, verdicts
from cfgd.cli import app
from cfgd.data.standard_problems import PROBLEMS

LINEAR = partial(cases.random_square, 12)
SPARSE = partial(cases.sparse, 300, 40)
MODEL = partial(cases.linear_model, "poisson", 80, 4)
NETWORK = partial(cases.network, "h2", "N(0,1)", 1500)


def solvers(make):
    return sorted(rivals(make(0)))


@pytest.mark.parametrize("solver", solvers(LINEAR))
def test_least_squares(solver):
    case = LINEAR(0)
    outcome = rivals(case)[solver](case, 1e-10)
    expected = np.linalg.solve(case.matrix, case.y)
    slow = solver in ("the paper", "gradient descent")  # 20,000 iterations need not be enough
    np.testing.assert_allclose(outcome.x, expected, atol=1.0 if slow else 1e-5)
    assert outcome.work >= 12


@pytest.mark.parametrize("solver", ["cfgd Auto", "LSQR", "CG, Jacobi", "Barzilai-Borwein"])
def test_sparse(solver):
    case = SPARSE(1)
    outcome = rivals(case)[solver](case, 1e-11)
    expected = np.linalg.lstsq(case.matrix.toarray(), case.y, rcond=None)[0]
    np.testing.assert_allclose(outcome.x, expected, atol=1e-5)


def test_a_direct_solver_does_not_see_sparse_matrices():
    assert "direct" not in rivals(SPARSE(0))
    assert "direct" in rivals(LINEAR(0))


@pytest.mark.parametrize("solver", solvers(MODEL))
def test_a_linear_model(solver):
    case = MODEL(0)
    with jax.enable_x64(True):
        outcome = rivals(case)[solver](case, 1e-10)
        gradient = jax.grad(case.fn)
        start, end = (np.linalg.norm(gradient(x)) for x in (case.x0, outcome.x))
    assert end <= 1e-4 * start
    assert outcome.work > 0


@pytest.mark.parametrize("solver", solvers(NETWORK))
def test_a_network_keeps_to_its_budget(solver):
    case = NETWORK(0)
    with jax.enable_x64(True):
        outcome = rivals(case)[solver](case, 1e-8)
    assert case.objective.value(outcome.x) < case.objective.value(case.x0)
    # one look more than the budget is the price of finding out; a Jacobian is a big one
    jacobian = solver in ("least_squares", "optimistix LM")
    assert outcome.work <= case.budget + (101 if jacobian else 25)


def test_products_are_counted():
    X = Counted(np.eye(3)[:2], np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(X.operator @ np.ones(3), [1.0, 2.0])
    np.testing.assert_array_equal(X.operator.T @ np.ones(2), [1.0, 2.0, 0.0])
    assert X.products == 2


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_has_its_published_minimum(name):
    """By a solver that is not ours, from the published start."""
    problem = PROBLEMS[name]
    with jax.enable_x64(True):
        residuals = jax.jit(problem.residuals)
        jacobian = jax.jit(jax.jacfwd(problem.residuals))
        ends = scipy.optimize.least_squares(
            lambda x: np.asarray(residuals(x)),
            problem.x0,
            lambda x: np.asarray(jacobian(x)),
            method="lm" if len(residuals(problem.x0)) >= problem.x0.size else "trf",
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
            max_nfev=5000,
        )
        assert float(problem(ends.x)) == pytest.approx(2 * ends.cost, rel=1e-9, abs=1e-25)
    gaps = [abs(2 * ends.cost - least) / max(1e-4, least) for least in problem.minima]
    assert min(gaps) <= 1e-4, (2 * ends.cost, problem.minima)


# The table.


def of(solver, seed, work, seconds=1.0, problem="p", value=0.0, group="smooth", **more):
    solved = np.isfinite(work)
    return Run(problem, group, "gradients", solver, seed, work, seconds, value, solved, **more)


def test_every_loss_is_in_the_table():
    runs = [of(OURS, s, 10.0 + s, seconds=2.0) for s in range(3)]
    runs += [of("fast", s, 5.0) for s in range(3)]
    runs += [of("slow", s, [40.0, np.inf, 44.0][s]) for s in range(3)]
    lines = {line.solver: line for line in table(runs)}
    assert lines[OURS].score == (11.0, 10.0, 12.0)
    assert lines["fast"].winner
    assert not lines[OURS].winner
    assert lines["fast"].ratio == pytest.approx(11 / 5)
    assert lines["slow"].ratio == pytest.approx(11 / 44)
    assert (lines["slow"].solved, lines["slow"].seeds) == (2, 3)
    assert lines["slow"].seconds_ratio == 2.0


def test_networks_are_judged_by_their_loss():
    runs = [of(OURS, 0, 8.0, value=0.5, group="network", to_reference=0.1)]
    runs += [of("L-BFGS-B", 0, 8.0, value=0.25, group="network")]
    lines = {line.solver: line for line in table(runs)}
    assert lines["L-BFGS-B"].winner
    assert lines["L-BFGS-B"].ratio == 2.0
    loss, time = verdicts([*lines.values()])
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


# The command.


@pytest.fixture
def small(monkeypatch):
    few = [("random d = 12", LINEAR), ("Beale", partial(cases.smooth, "Beale"))]
    monkeypatch.setattr(field, "makers", lambda quick, data: few)
    slow = ("optax Adam", "optimistix LM", "optimistix BFGS", "optax L-BFGS", "gradient descent")
    monkeypatch.setattr(
        field, "rivals", lambda case: {k: v for k, v in rivals(case).items() if k not in slow}
    )
    return few


def test_the_command(small, tmp_path):
    said = CliRunner().invoke(
        app, ["bench", "--seeds", "1", "--out", str(tmp_path)], env={"COLUMNS": "160"}
    )
    assert said.exit_code == 0, said.output
    for words in ("Where cfgd stands", "LSQR", "Beale", "gradients of Auto over L-BFGS-B"):
        assert words in said.output
    assert "bench.json" in said.output.replace("\n", "")
    found = json.loads((tmp_path / "bench.json").read_text())
    solved = {run["solver"] for run in found["runs"] if run["solved"]}
    assert {"cfgd Auto", "LSQR", "direct", "L-BFGS-B"} <= solved
    assert found["seeds"] == 1
    for ending in ("png", "svg"):
        assert (tmp_path / f"bench.{ending}").stat().st_size > 1000


def test_ctrl_c_keeps_what_is_finished(small, tmp_path, monkeypatch):
    def interrupted(seed):
        raise KeyboardInterrupt

    monkeypatch.setattr(field, "makers", lambda quick, data: [small[0], ("stopped", interrupted)])
    said = CliRunner().invoke(app, ["bench", "--seeds", "1", "--out", str(tmp_path)])
    assert said.exit_code == 130
    assert "Interrupted" in said.output
    found = json.loads((tmp_path / "bench.json").read_text())
    assert {run["problem"] for run in found["runs"]} == {"random d = 12"}


def test_a_folder_that_cannot_be_written_is_found_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    said = CliRunner().invoke(app, ["bench", "--out", str(tmp_path / "file" / "bench")])
    assert said.exit_code == 2
    assert "cannot be written to" in said.output


def test_a_missing_rival_is_named_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = CliRunner().invoke(app, ["bench", "--out", str(tmp_path / "bench")])
    assert said.exit_code == 2
    assert "The rivals need optax: pip install 'cfgd[bench]'." in said.output
    assert not (tmp_path / "bench").exists()
