"""Small systems inside compiled batches, against NumPy's linear algebra."""

import jax
import numpy as np
import pytest

from cfgd._core.arrays import in_precision
from cfgd.methods.compiled.linear_systems import (
    MOST_ELIMINATED,
    determined_inverse,
    solve_definite,
)

RNG = np.random.default_rng(30)
ROUNDING = 40 * np.finfo(float).eps


def definite(n):
    J = RNG.normal(size=(n + 3, n)) * np.geomspace(1, 100, n)
    return J.T @ J


@pytest.mark.parametrize("n", [1, 3, MOST_ELIMINATED, MOST_ELIMINATED + 1])
def test_solution(n):
    matrices = np.stack([definite(n) for _ in range(4)])
    right = RNG.normal(size=(4, n, 2))
    with in_precision(np.dtype(float)):
        found = jax.jit(jax.vmap(solve_definite))(matrices, right)
    np.testing.assert_allclose(found.solution, np.linalg.solve(matrices, right), rtol=1e-9)
    assert found.is_definite.all()


@pytest.mark.parametrize("n", [2, MOST_ELIMINATED + 1])
def test_a_matrix_that_is_not_definite_touches_no_other(n):
    matrices = np.stack([definite(n), definite(n) - 1e9 * np.eye(n), np.full((n, n), np.nan)])
    right = RNG.normal(size=(3, n, 1))
    with in_precision(np.dtype(float)):
        found = jax.jit(jax.vmap(solve_definite))(matrices, right)
    np.testing.assert_array_equal(found.is_definite, [True, False, False])
    np.testing.assert_allclose(found.solution[0], np.linalg.solve(matrices[0], right[0]), rtol=1e-9)


def unit_gram(J):
    J = J / np.linalg.norm(J, axis=0)
    return J.T @ J


def test_inverse_of_a_regular_matrix():
    A = unit_gram(RNG.normal(size=(9, 4)))
    with in_precision(np.dtype(float)):
        inverse, unknown = determined_inverse(A, ROUNDING)
    np.testing.assert_allclose(inverse, np.linalg.inv(A), rtol=1e-10)
    assert not np.any(unknown)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]])
def test_what_is_not_determined(order):
    """Columns 0 and 2 are parallel; 1 and 3 are determined, with the covariance without 2."""
    J = RNG.normal(size=(9, 4))
    J[:, 2] = -2 * J[:, 0]
    A = unit_gram(J[:, order])
    with in_precision(np.dtype(float)):
        inverse, unknown = determined_inverse(A, ROUNDING)
    np.testing.assert_array_equal(unknown, np.isin(order, [0, 2]))
    kept = [0, 1, 3]
    expected = np.linalg.inv(unit_gram(J[:, kept]))
    for i, column in enumerate(order):
        for j, other in enumerate(order):
            if {column, other} <= {1, 3}:
                wanted = expected[kept.index(column), kept.index(other)]
                np.testing.assert_allclose(inverse[i, j], wanted, rtol=1e-8)


def test_a_column_of_zeros_is_not_determined():
    A = unit_gram(RNG.normal(size=(9, 3)))
    A[1], A[:, 1] = 0, 0
    with in_precision(np.dtype(float)):
        _, unknown = determined_inverse(A, ROUNDING)
    np.testing.assert_array_equal(unknown, [False, True, False])
