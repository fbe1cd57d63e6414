"""Each method on quadratics, iterate by iterate, against a plain loop in NumPy."""

import numpy as np
import pytest
from iterates import ITERATIONS, points_of

import cfgd
from problems import (
    BOWL,
    METHODS,
    PROBLEMS,
    STEPS,
    C,
    Row,
    constant,
    do_nothing,
    lagged,
    quick,
    reference_iterates,
)

CORE = ("gradient descent", "non-adaptive", "lag 2", "adaptive order")
# every row on the quadratic with the exact step; the four versions with all the rest
CASES = {
    f"{problem}-{method}-{step}": (PROBLEMS[problem], METHODS[method], *STEPS[step])
    for problem in PROBLEMS
    for method in METHODS
    for step in STEPS
    if method in CORE or (problem, step) == ("quadratic", "exact")
}
# without `make slow`: each problem and each version with each step, each version on two problems
REST = ("lag 3", "lag 4", "lag 3, x0 before x0")
QUICK = {
    "quadratic-non-adaptive-fixed",
    "tall-gradient descent-fixed",
    "tall-non-adaptive-exact",
    "wide-adaptive order-fixed",
    "wide-lag 2-fixed",
} | {f"quadratic-{row}-exact" for row in METHODS if row not in REST}


@pytest.mark.one_case
@pytest.mark.parametrize(("problem", "row", "step", "eta"), quick(CASES, QUICK))
def test_iterates_are_those_of_a_plain_loop(problem, row, step, eta):
    got = points_of(problem, row.make(step), callback=do_nothing)
    np.testing.assert_allclose(
        got, reference_iterates(problem, row, eta, ITERATIONS), rtol=1e-10, atol=1e-11
    )


BLOCKS = {"wide-lag 2": (PROBLEMS["wide"], METHODS["lag 2"])} | {
    f"quadratic-{name}": (BOWL, METHODS[name]) for name in ("lag 1", *CORE)
}


IN_BLOCKS = ["wide-lag 2", "quadratic-adaptive order"]


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "row"), quick(BLOCKS, IN_BLOCKS))
def test_iterates_are_those_of_a_plain_loop_in_blocks_too(problem, row):
    got = points_of(problem, row.make(cfgd.ExactStep()))
    np.testing.assert_allclose(
        got, reference_iterates(problem, row, None, ITERATIONS), rtol=1e-10, atol=1e-11
    )


def test_rows_of_the_table_differ():
    """No two methods make the same iterates, so that none can pass for another."""
    ends = {name: reference_iterates(BOWL, row, None, 8)[-1] for name, row in METHODS.items()}
    for name, end in ends.items():
        gaps = [np.linalg.norm(end - other) for key, other in ends.items() if key != name]
        assert min(gaps) > 1e-3, name


ONE_AS_ANOTHER = {
    "gamma 0 makes the adaptive terminal gradient descent": lagged(2, 0.0, METHODS["lag 2"].past),
    "gamma 0 makes the non-adaptive version gradient descent": Row(
        lambda step: cfgd.NonAdaptive(C, gamma=0.0, step=step)
    ),
    "beta that cancels alpha does so too": Row(
        lambda step: cfgd.NonAdaptive(C, 0.5, beta=1 / 3, step=step)
    ),
}


@pytest.mark.one_case
@pytest.mark.parametrize("row", ONE_AS_ANOTHER.values(), ids=ONE_AS_ANOTHER)
@pytest.mark.parametrize(("step", "eta"), quick(STEPS, ["exact"]))
def test_gradient_descent_as_a_special_case(row, step, eta):
    want = reference_iterates(BOWL, METHODS["gradient descent"], eta, ITERATIONS)
    got = points_of(BOWL, row.make(step), callback=do_nothing)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11)


@pytest.mark.slow
def test_a_point_is_past_enough_for_lag_1():
    row = METHODS["lag 1"]
    got = points_of(BOWL, cfgd.AdaptiveTerminal(gamma=-0.25, past=row.past[0]))
    np.testing.assert_allclose(got, reference_iterates(BOWL, row, None, ITERATIONS), rtol=1e-10)


def test_a_number_is_a_terminal():
    row = Row(None, constant(0.4), terminal=np.full(3, 0.7))
    got = points_of(BOWL, cfgd.NonAdaptive(0.7, 0.3, gamma=0.4))
    np.testing.assert_allclose(got, reference_iterates(BOWL, row, None, ITERATIONS), rtol=1e-10)


def test_a_step_for_each_coordinate():
    eta = np.array([0.1, 0.2, 0.4])
    for problem in (BOWL, PROBLEMS["wide"]):
        got = points_of(problem, cfgd.GradientDescent(cfgd.FixedStep(eta)), callback=do_nothing)
        want = reference_iterates(problem, METHODS["gradient descent"], eta, ITERATIONS)
        np.testing.assert_allclose(got, want, rtol=1e-10)
