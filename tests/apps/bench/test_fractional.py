"""The parts of `cfgd bench --fractional`: problems, runs, scores and sentences."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
import scipy.optimize

from cfgd.apps.bench.fractional import competitors, conclusions, engine, problems, scores
from cfgd.apps.bench.fractional.competitors import BASELINES, OTHERS, RATES, RULES, Scale
from cfgd.apps.bench.fractional.engine import Runs
from cfgd.apps.bench.fractional.problems import FractionalProblem, quadratic
from cfgd.apps.bench.fractional.quasi_newton import run_lbfgs
from cfgd.apps.bench.fractional.scores import Judged

pytestmark = pytest.mark.every_case

BOWL = FractionalProblem(
    "bowl", "quadratics", "tiny", lambda seed: quadratic(10.0, True, seed, 4), gradients=40
)


def test_every_rule_has_the_same_budget_of_tuning():
    for one in (*RULES, *BASELINES):
        assert len(one.settings) == len(set(one.settings)) == RATES * OTHERS
        assert len(one.settings[0]) == len(one.names)
        assert len(competitors.thinned(one).settings) == RATES * OTHERS / 3
        with jax.enable_x64(True):
            for setting in one.settings:
                one.make(Scale(7.0, 2.0), *setting)  # every setting lies in the published range
    assert {one.number for one in RULES} == set(range(1, 17))


@pytest.mark.parametrize("rotated", [False, True])
def test_a_quadratic_has_its_condition_and_least_value(rotated):
    f, x0, minimum = quadratic(1e4, rotated, 3)
    eigenvalues = np.linalg.eigvalsh(np.asarray(f.A))
    assert eigenvalues[-1] / eigenvalues[0] == pytest.approx(1e4, rel=1e-6)
    assert float(f.value(np.linalg.solve(f.A, -np.asarray(f.b)))) == pytest.approx(minimum)
    assert (np.count_nonzero(np.asarray(f.A)) == 20) is not rotated
    scale = engine.scale_of(BOWL, problems.Instance(f, x0, minimum))
    assert scale.largest == pytest.approx(1.0, abs=0.02)
    assert scale.mean == pytest.approx(np.trace(np.asarray(f.A)) / 20, rel=0.1)


@pytest.mark.parametrize("name", ["Rosenbrock 2", "Wood"])
def test_a_test_function_has_its_published_minimum(name):
    f, x0, minimum = problems.test_function(name, 5)
    end = scipy.optimize.minimize(
        lambda x: float(f.value(x)), x0, jac=lambda x: np.asarray(f.gradient(x)), tol=1e-10
    )
    assert end.fun == pytest.approx(minimum, abs=1e-8)


def run_of(one, instances, setting):
    scales = [engine.scale_of(BOWL, instance) for instance in instances]
    with jax.enable_x64(True):
        rules = [one.make(scale, *setting) for scale in scales]
    return [scale.largest for scale in scales], engine.run(
        BOWL, instances, rules, range(len(instances))
    )


def test_a_batch_of_runs_is_gradient_descent_one_by_one():
    instances = [BOWL.make(seed) for seed in (0, 1, 2)]
    curvatures, runs = run_of(BASELINES[0], instances, (0.7,))
    for i, (f, x0, _) in enumerate(instances):
        x, A, b = np.array(x0), np.asarray(f.A), np.asarray(f.b)
        values = [x @ A @ x / 2 + b @ x]
        for _ in range(40):
            x = x - 0.7 / curvatures[i] * (A @ x + b)
            values.append(x @ A @ x / 2 + b @ x)
        np.testing.assert_allclose(runs.values[i], values, rtol=1e-10)
        first, last = (np.linalg.norm(A @ v + b) for v in (x0, x))
        assert runs.norms[i] == pytest.approx(last / first)
    np.testing.assert_array_equal(runs.gradients, np.arange(41))


def test_a_run_by_minibatches_is_stochastic_gradient_descent():
    """On a linear regression, with the rows of each seed drawn as permutations."""
    random = np.random.default_rng(4)
    X, y, x0 = random.normal(size=(12, 3)), random.normal(size=12), random.normal(size=3)

    def loss(x, X, y):
        return ((X @ x - y) ** 2).mean()

    f = problems.BatchLoss(np.float32(X), np.float32(y), loss, lambda x: x)
    instance = problems.Instance(f, np.float32(x0), 0.0)
    regression = FractionalProblem(
        "r", "minibatches", "", lambda seed: instance, gradients=60, batch=5
    )
    with engine.precision(regression):
        rule = BASELINES[0].make(Scale(20.0, 1.0), 1.0)
    runs = engine.run(regression, [instance] * 2, [rule] * 2, [7, 8])
    for i, seed in enumerate((7, 8)):
        draws, x, values = np.random.default_rng(seed), x0, [loss(x0, X, y)]
        for _ in range(30):  # epochs of two minibatches; two rows are left out of each
            order = draws.permutation(12)
            for rows in (order[:5], order[5:10]):
                x = x - 1 / 20.0 * 2 * X[rows].T @ (X[rows] @ x - y[rows]) / 5
            values.append(loss(x, X, y))
        np.testing.assert_allclose(runs.values[i], values, rtol=1e-4)
    np.testing.assert_array_equal(runs.gradients, 2 * np.arange(31))


def test_an_iteration_with_second_derivatives_costs_more():
    rosenbrock = FractionalProblem(
        "r", "test functions", "", lambda s: problems.test_function("Rosenbrock 2", s), 30
    )
    instance = rosenbrock.make(0)
    with jax.enable_x64(True):
        shin = RULES[-3].make(Scale(1000.0, 400.0), 0.1, -0.25)
    runs = engine.run(rosenbrock, [instance], [shin], [0])
    # the diagonal of two coordinates by moving one at a time: 2 gradients beside the first
    np.testing.assert_array_equal(runs.gradients, 3 * np.arange(11))


def test_the_momentum_of_rule_16_is_the_one_of_its_setting():
    (one,) = [one for one in RULES if one.name == "16 Shin by momentum"]
    rule = one.make(Scale(8.0, 2.0), 0.5, 0.9)
    gamma = rule.beta - 1 / 3  # of order 1/2
    assert -rule.eta * gamma * 2.0 == pytest.approx(0.9)


def test_lbfgs_has_the_same_budget():
    instance = BOWL.make(0)
    runs = run_lbfgs(BOWL, instance)
    assert runs.gradients[-1] <= 40
    assert runs.values.min() == pytest.approx(instance.minimum, rel=1e-8)


VALUES = np.array([[10.0, 4.0, 2.1, 2.0001], [10.0, 5.0, 6.0, 4.0], [10.0, 3.0, np.nan, np.nan]])
RUNS = Runs(VALUES, 2.0 * np.arange(4), np.array([1e-3, 0.5, np.nan]))


def test_scores_are_shares_of_the_budget_then_missing_decades():
    # least 2: the gaps are (8, 2, 0.1, 0.0001) / 8 and (8, 3, 3, 2) / 8; the third ends at nan
    found = scores.score(RUNS, [2.0, 2.0, 2.0], 0.02)
    np.testing.assert_allclose(
        found, [4 / 6, 1 + np.log10(0.25 / 0.02), scores.DIVERGED], rtol=1e-12
    )


def judged(solved, gaps):
    return Judged({}, 0.0, solved, gaps, gaps, gaps, 1.0, ((0.0,), (1.0,)))


def test_a_rule_is_judged_by_the_median_of_its_seeds():
    parts = [Runs(VALUES[i : i + 1], RUNS.gradients, RUNS.norms[i : i + 1]) for i in range(3)]
    one = scores.judged({"eta": 0.1}, 0.5, parts, [2.0] * 3, 0.3)
    assert one.solved == (2.0, 6.0, 2.0)
    assert scores.median_solved(one) == 2.0
    np.testing.assert_allclose(one.gaps, [0.0001 / 8, 0.25, 0.125])
    assert one.ends[2] == 1e300


def test_better_is_by_more_than_a_factor_of_two():
    fast, slow = judged((10.0,), (1e-7,)), judged((19.0,), (1e-7,))
    slower, never = judged((21.0,), (1e-7,)), judged((None,), (1e-2,))
    assert scores.versus(fast, slow) == 0
    assert (scores.versus(fast, slower), scores.versus(slower, fast)) == (1, -1)
    assert (scores.versus(fast, never), scores.versus(never, fast)) == (1, -1)
    assert scores.versus(never, judged((None,), (0.2,))) == 1
    assert scores.versus(never, judged((None,), (0.05,))) == 0


def test_a_profile_leaves_out_what_nobody_solved():
    results = {
        "a": {"x": judged((10.0, None), (1.0,)), "y": judged((30.0, None), (1.0,))},
        "b": {"x": judged((None,), (1.0,)), "y": judged((5.0,), (1.0,))},
    }
    assert scores.profile(results) == {"x": [1.0, np.inf], "y": [3.0, 1.0]}


def test_the_nearest_baseline_is_the_one_that_is_equal_most_often():
    fast, slow = judged((10.0,), (1e-7,)), judged((50.0,), (1e-7,))
    names = ["gradient descent", "heavy ball", "Adam", "L-BFGS"]
    found = {"p": dict(zip(["1 Wang", *names], [fast, slow, fast, slow, slow], strict=True))}
    found["q"] = dict(zip(["1 Wang", *names], [fast, slow, slow, fast, slow], strict=True))
    found["r"] = dict(zip(["1 Wang", *names], [slow, fast, slow, fast, fast], strict=True))
    comparison = conclusions.Comparison([BOWL], ["1 Wang"], names, found)
    assert comparison.nearest("1 Wang") == ("heavy ball", 2)


@pytest.fixture
def one_rule():
    """A comparison of one rule, better than all baselines, on two problems."""
    good, bad = judged((10.0,) * 3, (1e-7,) * 3), judged((50.0,) * 3, (1e-7,) * 3)
    names = ["gradient descent", "heavy ball", "Adam", "L-BFGS"]
    both = [BOWL, dataclasses.replace(BOWL, name="quadratic 1e1 x")]
    found = {p.name: {"1 Wang": good, **dict.fromkeys(names, bad)} for p in both}
    return conclusions.Comparison(both, ["1 Wang"], names, found)


def test_the_sentences_count_what_the_table_says(one_rule):
    summary, winners, differ, same, stationary = conclusions.sentences(one_rule)
    assert differ == (
        "Compared with gradient descent: of one rule, none is equal to gradient descent (within a "
        "factor of 2) on at least 80% of the problems; of the others, one (1 Wang) is better on "
        "more problems than worse, and none is worse on more problems than better."
    )
    assert same.endswith(
        "on at least 60% of the problems the results are equal to those of a baseline for none."
    )
    assert (
        "1 of 1 rules and 4 of 4 baselines reduce the gradient norm to 1e-6 of its initial value; "
        in stationary
    )
    assert winners == (
        "Fewest gradients (median over the seeds), by group: quadratics: 1 Wang on 2 of 2."
    )
    assert summary == (
        "Best fractional rule: selected for each problem after the runs, it is better "
        "than the best of gradient descent, heavy ball and Adam by more than a factor of 2 on two "
        "of 2 problems (bowl, quadratic 1e1 x) and worse by more than this factor on none; it is "
        "better than L-BFGS, which has no hyperparameters to tune, on two."
    )


def test_the_sentences_are_of_the_problems_that_were_run(one_rule):
    some = dataclasses.replace(
        one_rule, problems=[BOWL], results={"bowl": one_rule.results["bowl"]}
    )
    assert conclusions.sentences(some)[4].endswith("with condition number 10 were not run.")
    none = dataclasses.replace(one_rule, problems=[], results={})
    assert conclusions.sentences(none) == ["No problem was finished."]


def test_the_sentences_agree_in_number(one_rule):
    """Several rules that are equal to the baselines, one that ends far from the minimiser."""
    far = judged((None,) * 3, (0.5,) * 3)
    found = {
        name: {**by, "1 Wang": by["Adam"], "2 Sheng": by["Adam"], "16 Shin": far}
        for name, by in one_rule.results.items()
    }
    rules = ["1 Wang", "2 Sheng", "16 Shin"]
    summary, _, differ, same, stationary = conclusions.sentences(
        dataclasses.replace(one_rule, rules=rules, results=found)
    )
    assert "of three rules, two (1 Wang and 2 Sheng) are equal to gradient descent" in differ
    assert "none is better on more" in differ
    assert "one (16 Shin) is worse on more" in differ
    assert "equal to those of gradient descent for two rules (1 Wang and 2 Sheng)." in same
    assert "2 of 3 rules and 4 of 4 baselines reduce" in stationary
    assert "of its initial value, except 16 Shin (5e-01); by their formulas" in stationary
    assert summary.endswith("better than the best of these baselines on none and worse on two.")
    assert conclusions.number(13) == "13"
