"""The rivals of `cfgd bench` solve what they are given, and their work is counted right."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest

from cfgd.apps.bench.field import cases
from cfgd.apps.bench.field.rivals import rivals
from cfgd.apps.bench.field.work import Counted
from cfgd.apps.data.network_functions import STARTS
from problems import quick

LINEAR = partial(cases.random_square, 12)
SPARSE = partial(cases.sparse, 300, 40)
MODEL = partial(cases.linear_model, "poisson", 80, 4)
NETWORK = partial(cases.network, "h2", STARTS["N(0, 1)"], 700)


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


# the others solve linear models above
KEEPING = ["L-BFGS-B"]


@pytest.mark.parametrize("solver", quick({name: name for name in solvers(NETWORK)}, KEEPING))
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
