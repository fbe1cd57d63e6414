"""LAPACK's factorisations without NumPy's wrappers, compared with NumPy's."""

import numpy as np
import pytest

from cfgd._core.linalg import singular_values, triangular_factor


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(30, 4), (5, 5), (3, 5)])
def test_triangular_factor(shape, dtype):
    A = np.random.default_rng(0).normal(size=shape).astype(dtype)
    R = triangular_factor(np.asfortranarray(A))
    assert R.dtype == dtype
    assert np.array_equal(R, np.triu(R))
    np.testing.assert_allclose(R, np.linalg.qr(A, mode="r"), rtol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_singular_values(dtype):
    A = np.random.default_rng(1).normal(size=(6, 6)).astype(dtype)
    U, s, Vt = singular_values(A)
    assert {part.dtype for part in (U, s, Vt)} == {np.dtype(dtype)}
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose((U * s) @ Vt, A, atol=50 * eps)
    np.testing.assert_allclose(s, np.linalg.svd(A, compute_uv=False), rtol=100 * eps)
    np.testing.assert_allclose(U.T @ U, np.eye(6), atol=50 * eps)


def test_no_singular_values_of_what_is_not_finite():
    with pytest.raises(np.linalg.LinAlgError):
        singular_values(np.full((3, 3), np.nan))
