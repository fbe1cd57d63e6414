"""Auto as a method: its default, its argument, and what it tells its user."""

import numpy as np
import pytest
from oracles import oracle_for

import cfgd
from cfgd import Status
from cfgd.methods.auto.auto import SOLVERS
from cfgd.methods.auto.lbfgs import LBFGS
from problems import BOWL, few, identity

NETWORK = cfgd.ShallowNetwork(np.linspace(-1, 1, 20), np.sin(4 * np.linspace(-1, 1, 20)), 9)
LOGISTIC = cfgd.LinearModel(np.array([[1.0, 2], [3, -1], [0, 1], [1, 1]]), [0, 1, 1, 0], l2=0.1)
SMOOTH = cfgd.External(lambda x: x @ x + np.sum(x**4), lambda x: 2 * x + 4 * x**3)


def test_auto_is_the_default_method():
    ends, again = (cfgd.minimize(BOWL.objective, BOWL.x0, m) for m in (None, cfgd.Auto()))
    np.testing.assert_array_equal(ends.x, again.x)
    assert ends.how == again.how
    assert ends.how.startswith("Auto")


@pytest.mark.parametrize(
    "method",
    few(
        [
            cfgd.Auto(),
            cfgd.AdaptiveOrder([cfgd.Stage(20, gamma=0.3), cfgd.Stage(40, gamma=0.0)], BOWL.x0),
            cfgd.GradientDescent(),
            cfgd.AdaptiveTerminal(gamma=-0.25),
            cfgd.NonAdaptive(BOWL.x0, gamma=0.4),
        ],
        3,
    ),
    ids=lambda method: type(method).__name__,
)
def test_the_summary_of_a_solution_is_one_line(method):
    ends = cfgd.minimize(BOWL.objective, BOWL.x0, method, max_iterations=30)
    assert "\n" not in ends.summary
    assert type(method).__name__ in ends.summary or "radient descent" in ends.summary
    assert f"{ends.iterations} iterations" in ends.summary
    assert f"{ends.evaluations:g} gradients" in ends.summary
    assert ends.summary.endswith(ends.status.name)


EXPLAINED = {
    "quadratic": (
        BOWL.objective,
        "conjugate gradients (scaled by diag(A)), because the objective is quadratic.\n",
    ),
    "network": (
        NETWORK,
        "Levenberg-Marquardt (Gauss-Newton matrix, diagonal scaling) with variable projection of "
        "the output weights, because the network is linear in its output weights.\n",
    ),
    "linear model": (
        LOGISTIC,
        "Levenberg-Marquardt (Hessian matrix, diagonal scaling), because X has 2 columns, and the "
        "Hessian costs few gradients.\n",
    ),
    "function": (
        lambda x: x @ x,
        "L-BFGS (16 pairs, adaptive diagonal scaling), on long runs with a dense quasi-Newton "
        "matrix, because only its value and gradient are known.\n",
    ),
}


@pytest.mark.parametrize(("objective", "text"), EXPLAINED.values(), ids=EXPLAINED)
def test_explain_prints_the_solver_and_the_reason(objective, text, capsys):
    cfgd.Auto().explain(objective)
    assert capsys.readouterr().out == text


def test_explain_a_solver_that_the_user_chose(capsys):
    cfgd.Auto("lbfgs").explain(LOGISTIC)
    printed = capsys.readouterr().out
    assert printed.startswith("L-BFGS (16 pairs, Gauss-Newton diagonal scaling)")
    assert printed.endswith("because the user chose it.\n")


def test_solutions_name_the_solver_that_explain_prints(capsys):
    for objective, x0 in (
        (NETWORK, NETWORK.init(0)),
        (LOGISTIC, np.zeros(2)),
        (SMOOTH, np.ones(2)),
    ):
        cfgd.Auto().explain(objective)
        how = cfgd.minimize(objective, x0, max_iterations=1).how
        printed = capsys.readouterr().out
        assert how == "Auto: " + printed.partition(", because")[0]


def test_a_solver_by_name():
    lbfgs = cfgd.minimize(NETWORK, NETWORK.init(0), cfgd.Auto(solver="lbfgs"), max_iterations=1)
    assert "L-BFGS" in lbfgs.how
    cg = cfgd.minimize(BOWL.objective, BOWL.x0, cfgd.Auto("conjugate_gradients"))
    assert "conjugate gradients" in cg.how
    lm = cfgd.minimize(LOGISTIC, np.zeros(2), cfgd.Auto("levenberg_marquardt"))
    assert "Levenberg-Marquardt" in lm.how


@pytest.mark.parametrize("solver", ["conjugate_gradients", "levenberg_marquardt"])
def test_a_solver_that_does_not_apply_is_refused(solver):
    with pytest.raises(
        ValueError, match=rf"`Auto\(solver=...\)` must be used with .*'{solver}' for"
    ):
        cfgd.minimize(SMOOTH, [1.0, 2.0], cfgd.Auto(solver))


def test_an_unknown_solver_is_refused():
    wanted = "levenberg_marquardt, lbfgs, quasi_newton, got 'newton'"
    with pytest.raises(ValueError, match=wanted):
        cfgd.Auto("newton")


@pytest.mark.parametrize(
    ("objective", "starts"),
    [
        (BOWL.objective, np.stack([BOWL.x0, 2 * BOWL.x0])),
        (LOGISTIC, np.array([[0.0, 0.0], [1.0, -1.0]])),
    ],
    ids=["conjugate gradients", "Levenberg-Marquardt"],
)
def test_a_sweep_is_its_runs(objective, starts):
    many = cfgd.sweep(objective, starts, cfgd.Auto(), record={"x": identity})
    for i, x0 in enumerate(starts):
        one = cfgd.minimize(objective, x0, record={"x": identity})
        np.testing.assert_array_equal(many.x[i], one.x)
        assert many.iterations[i] == one.iterations
        assert many.status[i] is one.status
        assert many.evaluations[i] == one.evaluations


def test_equal_runs_of_a_sweep_are_equal():
    """Each has a memory of its own, although L-BFGS overwrites it in place."""
    one = cfgd.minimize(SMOOTH, [1.0, 2.0])
    many = cfgd.sweep(SMOOTH, [1.0, 2.0], [cfgd.Auto(), cfgd.Auto()])
    np.testing.assert_array_equal(many.x, [one.x, one.x])
    np.testing.assert_array_equal(many.iterations, one.iterations)


def test_init_and_step_are_those_of_the_solver():
    """The contract of a method, with an oracle for an objective."""
    method, oracle = cfgd.Auto(), oracle_for(SMOOTH, [1.0, 2.0])
    assert method.solver_for(oracle.objective) is SOLVERS["quasi_newton"]
    assert isinstance(SOLVERS["lbfgs"], LBFGS)
    state = method.init(oracle, oracle.x0)
    values = [state.evaluation.value]
    while state.status is Status.running:
        state = method.step(oracle, state, floor=1e-16 * state.start.norm**2, tolerance=1e-8)
        values.append(state.evaluation.value)
        assert method.measure(oracle, state) == state.norm2
    assert state.status is Status.converged
    assert np.all(np.diff(values) <= 0)
    ends = cfgd.minimize(SMOOTH, [1.0, 2.0])
    np.testing.assert_array_equal(state.evaluation.x, ends.x)
    assert state.iteration == ends.iterations
