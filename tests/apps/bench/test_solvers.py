"""The solvers of `cfgd bench` solve their problems, and their work is counted."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest

from cfgd.apps.bench.field import cases
from cfgd.apps.bench.field.solvers import solvers_for
from cfgd.apps.bench.field.work import CountedMatrix
from cfgd.apps.data.network_functions import STARTS
from problems import quick

LINEAR = partial(cases.random_square, 12)
SPARSE = partial(cases.sparse, 300, 40)
MODEL = partial(cases.linear_model, "poisson", 80, 4)
NETWORK = partial(cases.network, "h2", STARTS["N(0, 1)"], 700)


def solver_names(make):
    return sorted(solvers_for(make(0)))


@pytest.mark.parametrize("solver", solver_names(LINEAR))
def test_solver_finds_the_least_squares_solution(solver):
    case = LINEAR(0)
    result = solvers_for(case)[solver](case, 1e-10)
    expected = np.linalg.solve(case.matrix, case.y)
    slow = solver in ("the paper", "gradient descent")  # 20,000 iterations need not be enough
    np.testing.assert_allclose(result.x, expected, atol=1.0 if slow else 1e-5)
    assert result.work >= 12


@pytest.mark.parametrize("solver", ["cfgd Auto", "LSQR", "CG, Jacobi", "Barzilai-Borwein"])
def test_solver_finds_the_sparse_least_squares_solution(solver):
    case = SPARSE(1)
    result = solvers_for(case)[solver](case, 1e-11)
    expected = np.linalg.lstsq(case.matrix.toarray(), case.y, rcond=None)[0]
    np.testing.assert_allclose(result.x, expected, atol=1e-5)


def test_direct_solver_does_not_run_on_sparse_matrices():
    assert "direct" not in solvers_for(SPARSE(0))
    assert "direct" in solvers_for(LINEAR(0))


@pytest.mark.slow
@pytest.mark.parametrize("solver", solver_names(MODEL))
def test_solver_reduces_the_gradient_of_a_linear_model(solver):
    case = MODEL(0)
    with jax.enable_x64(True):
        result = solvers_for(case)[solver](case, 1e-10)
        gradient = jax.grad(case.fn)
        start, end = (np.linalg.norm(gradient(x)) for x in (case.x0, result.x))
    assert end <= 1e-4 * start
    assert result.work > 0


# run without --slow; the other solvers are tested on linear models above
FAST = ["L-BFGS-B"]


@pytest.mark.slow
@pytest.mark.parametrize("solver", quick({name: name for name in solver_names(NETWORK)}, FAST))
def test_solver_stays_within_the_budget_of_a_network(solver):
    case = NETWORK(0)
    with jax.enable_x64(True):
        result = solvers_for(case)[solver](case, 1e-8)
    assert case.objective.value(result.x) < case.objective.value(case.x0)
    # the last evaluation may exceed the budget; a Jacobian counts as 100 gradients
    jacobian = solver in ("least_squares", "optimistix LM")
    assert result.work <= case.budget + (101 if jacobian else 25)


def test_matrix_products_are_counted():
    X = CountedMatrix(np.eye(3)[:2], np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(X.operator @ np.ones(3), [1.0, 2.0])
    np.testing.assert_array_equal(X.operator.T @ np.ones(2), [1.0, 2.0, 0.0])
    assert X.products == 2
