"""NumPy functions with a Hessian: products, and Hessians that are not positive definite."""

import jax
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse

import cfgd
from cfgd._core.pytrees import Structure
from cfgd.objectives.base import hessian_diagonal
from cfgd.objectives.external import Remembered

A = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, -0.5], [0.0, -0.5, 1.0]])


def both(x):
    inside = np.exp(A @ x / 4)
    others = np.array([-1.0, x[2] ** 3, 3 * x[1] * x[2] ** 2])
    return inside.sum() - x[0] + x[1] * x[2] ** 3, A @ inside / 4 + others


def hessian(x):
    """Return the Hessian, symmetric up to rounding, as those of users are."""
    H = A @ np.diag(np.exp(A @ x / 4)) @ A / 16
    H[1, 2] += 3 * x[2] ** 2
    H[2, 1] += 3 * x[2] ** 2
    H[2, 2] += 6 * x[1] * x[2]
    return H + 1e-15 * np.triu(np.ones((3, 3)))


X = np.array([0.3, -0.7, 1.1])


def test_gradient_and_hessian_of_this_file_are_right():
    h = 1e-6
    columns = [(both(X + h * e)[1] - both(X - h * e)[1]) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(np.stack(columns), hessian(X), rtol=1e-7, atol=1e-8)
    ahead = [(both(X + h * e)[0] - both(X - h * e)[0]) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(ahead, both(X)[1], rtol=1e-8)


def external():
    return cfgd.External(both, hessian=hessian).raveled(Structure.of(X))


@pytest.mark.parametrize("traced", [False, True], ids=["host", "JAX"])
def test_curvature_is_the_hessian_and_its_matrix_is_made_positive(traced):
    """The matrix is |H|, with absolute eigenvalues in coordinates of a unit diagonal."""
    f, H, v = external(), hessian(X), np.array([1.0, -2.0, 0.5])

    def answers(x, v):
        at = f.evaluate(x)
        curvature = f.curvature(at)
        products = f.hessian_times(at, v), curvature.times(v)
        return hessian_diagonal(f, at), curvature.diagonal(), *products, curvature.matrix()

    with jax.enable_x64(True):
        found = jax.jit(answers)(X, v) if traced else answers(X, v)
    size = np.sqrt(abs(np.diag(H)))
    absolute = np.outer(size, size) * scipy.linalg.polar(H / np.outer(size, size))[1]
    assert np.linalg.eigvalsh(H)[0] < 0
    for got, exact in zip(found, (np.diag(H), np.diag(H), H @ v, H @ v, absolute), strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-10, atol=1e-12)


def test_a_local_model_takes_the_diagonal():
    local = cfgd.Local(cfgd.External(both, hessian=hessian), "exact")
    by_differences = cfgd.Local(cfgd.External(both), "exact")
    t = X + 0.1
    want = both(X)[1] + 0.1 * np.diag(hessian(X))
    np.testing.assert_allclose(local.coordinate_slope(X, t), want, rtol=1e-12)
    np.testing.assert_allclose(by_differences.coordinate_slope(X, t), want, rtol=1e-6)


def saddle(x):
    return (x[0] ** 2 - 1) ** 2 + x[1] ** 2, np.array([4 * x[0] * (x[0] ** 2 - 1), 2 * x[1]])


def saddle_hessian(x):
    return np.diag([12 * x[0] ** 2 - 4, 2.0])


@pytest.mark.parametrize("x0", [[0.1, 1.0], [0.0, 1.0], [0.0, 0.0]], ids=str)
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_a_minimum_is_found_from_an_indefinite_hessian(x0, kind):
    f = cfgd.External(saddle, hessian=lambda x: kind(saddle_hessian(x)))
    ends = cfgd.minimize(f, np.array(x0))
    assert ends.success
    np.testing.assert_allclose(abs(ends.x), [1, 0], atol=1e-7)
    assert "Levenberg-Marquardt (Hessian matrix" in ends.how


def test_values_whose_squares_overflow_are_rescaled():
    f = cfgd.External(lambda x: tuple(1e200 * np.asarray(part) for part in saddle(x)))
    g = cfgd.External(f.fn, hessian=lambda x: 1e200 * saddle_hessian(x))
    for each in (f, g):
        ends = cfgd.minimize(each, [0.3, 1.0])
        assert ends.success
        np.testing.assert_allclose(abs(ends.x), [1, 0], atol=1e-6)


def test_pytrees_and_float32():
    def of_tree(p):
        return saddle(np.array([p["a"], p["b"][0]]))[0]

    def slope(p):
        a, b = saddle(np.array([p["a"], p["b"][0]]))[1]
        return {"a": a, "b": np.array([b])}

    f = cfgd.External(of_tree, slope, lambda p: saddle_hessian([p["a"], p["b"][0]]))
    ends = cfgd.minimize(f, {"a": np.float64(0.3), "b": np.array([1.0])})
    assert ends.x["a"] == pytest.approx(1)
    single = cfgd.minimize(cfgd.External(saddle, hessian=saddle_hessian), np.float32([0.3, 1.0]))
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.x, [1, 0], atol=1e-3)


@pytest.mark.usefixtures("unchecked")
def test_bad_hessians_are_refused():
    with pytest.raises(ValueError, match=r"hessian=...\)` must return a matrix \(2, 2\), got \(2,"):
        cfgd.minimize(cfgd.External(saddle, hessian=lambda x: np.ones(2)), [0.3, 1.0])
    with pytest.raises(ValueError, match=r"External\(hessian=...\)` must be a function of x"):
        cfgd.External(saddle, hessian=A)


def test_remembered_calls_once_for_equal_arguments():
    calls = []

    def fn(x):
        calls.append(x)
        if len(calls) == 2:
            raise ZeroDivisionError
        return x.sum()

    remembered, x = Remembered(fn), np.ones(2)
    assert remembered(x) == remembered(np.ones(2)) == 2
    assert len(calls) == 1
    with pytest.raises(ZeroDivisionError):
        remembered(0 * x)
    assert remembered(0 * x) == 0
    x[0] = 5
    assert remembered(x) == 6
    assert len(calls) == 4


def test_one_function_without_the_gradient_is_refused():
    with pytest.raises(ValueError, match=r"External\(value=\.\.\.\)` must return f\(x\) and the"):
        cfgd.minimize(cfgd.External(lambda x: both(x)[0]), X)


def test_a_gradient_of_forward_differences_leads_to_the_minimum():
    f = cfgd.External(
        scipy.optimize.rosen, lambda x: scipy.optimize.approx_fprime(x, scipy.optimize.rosen)
    )
    # forward differences have an error of about sqrt(eps) times the curvature, 1e-8 * 1000, which
    # moves the minimum by 1e-5
    np.testing.assert_allclose(cfgd.minimize(f, np.zeros(4)).x, np.ones(4), atol=1e-4)
