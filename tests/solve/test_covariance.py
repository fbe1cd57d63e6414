"""The inverse behind a covariance."""

import numpy as np
import pytest

from cfgd.objectives.information import Information, inverse_where_definite

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]])


def inverse(matrix):
    found = inverse_where_definite(matrix)
    assert found.null.size == 0
    return found.matrix


def test_the_inverse_of_a_definite_matrix():
    np.testing.assert_allclose(inverse(A), np.linalg.inv(A), rtol=1e-13)


def test_units_have_no_influence():
    units = np.array([1e-9, 1.0, 1e12])
    found = inverse(A * units * units[:, None])
    np.testing.assert_allclose(found * units * units[:, None], np.linalg.inv(A), rtol=1e-12)


SINGULAR = {
    "rank one": np.ones((2, 2)),
    "rank two": np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]]),
    "negative": np.diag([1.0, -1.0]),
    "indefinite": np.array([[1.0, 2.0], [2.0, 1.0]]),
    "not a number": np.array([[1.0, np.nan], [np.nan, 1.0]]),
    "infinite": np.diag([1.0, np.inf]),
}


@pytest.mark.parametrize("matrix", SINGULAR.values(), ids=SINGULAR)
def test_other_matrices_have_no_inverse(matrix):
    with pytest.warns(UserWarning, match="do not determine the parameters"):
        covariance = Information(matrix, np.ones(len(matrix)), 1.0).covariance()
    assert np.all(covariance == np.inf)


def test_a_column_of_zeros_leaves_the_others_their_variance():
    with pytest.warns(UserWarning, match=r"do not determine the parameters in x\[1\]: "):
        covariance = Information(np.diag([4.0, 0.0]), np.ones(2), 1.0).covariance()
    assert covariance.tolist() == [[0.25, np.inf], [np.inf, np.inf]]


def test_rounding_of_the_own_precision_counts():
    nearly = np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]])
    assert inverse_where_definite(nearly).null.shape == (2, 0)
    assert inverse_where_definite(nearly.astype(np.float32)).null.shape == (2, 1)


def test_the_covariance_has_root_and_factor():
    root = np.array([2.0, 0.5, 10.0])
    H = A * root * root[:, None]
    np.testing.assert_allclose(
        Information(A, root, 0.25).covariance(), 0.25 * np.linalg.inv(H), rtol=1e-13
    )
