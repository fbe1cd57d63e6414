"""`fractional_gradient` against the paper's definitions, and the slopes that it is made of."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from directions import (
    CASES,
    NODES,
    POINT,
    QUADRATICS,
    SETTINGS,
    TERMINAL,
    A,
    B,
    X,
    Y,
    along,
    by_definition,
    cases,
    gamma,
    matrix_of,
    of_wavy,
    quadratics,
    settings,
    wavy,
)
from mpmath import mp
from scipy.special import roots_jacobi

import cfgd
from problems import quick


def test_the_point_is_on_both_sides_of_the_terminal():
    assert (POINT > TERMINAL).any()
    assert (POINT < TERMINAL).any()


# By definition.


DEFINED = {  # the first setting with every case, the second with one
    f"{name}-{alpha}": (case, alpha, beta)
    for name, case in CASES.items()
    for alpha, beta in SETTINGS
}
QUICK = [*(f"{name}-0.3" for name in CASES), "smooth-0.9"]


@pytest.mark.one_case
@pytest.mark.parametrize(("case", "alpha", "beta"), quick(DEFINED, QUICK))
def test_definition(case, alpha, beta):
    got = cfgd.fractional_gradient(case.objective, POINT, TERMINAL, alpha, beta, NODES)
    expected = by_definition(case.f, POINT, TERMINAL, alpha, beta)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.one_case
@pytest.mark.parametrize("name", ["quadratic", "smooth"])
def test_an_order_and_a_smoothing_for_each_coordinate(name):
    case = CASES[name]
    alpha, beta = np.array([0.2, 0.9, 0.5, 0.7]), np.array([0.0, 0.4, -1.0, 2.0])
    got = cfgd.fractional_gradient(case.objective, POINT, TERMINAL, alpha, beta, NODES)
    expected = by_definition(case.f, POINT, TERMINAL, alpha, beta)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


@cases
def test_terminal_at_x_gives_the_gradient(case):
    got = cfgd.fractional_gradient(case.objective, POINT, POINT, 0.3, 0.2, NODES)
    with mpmath.workdps(17):
        expected = [float(mp.diff(along(case.f, POINT, j), POINT[j])) for j in range(4)]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@quadratics
def test_terminal_at_x_gives_the_gradient_of_a_quadratic_to_the_last_bit(name):
    f = CASES[name].objective
    got = cfgd.fractional_gradient(f, POINT, POINT, 0.3, 0.2)
    np.testing.assert_array_equal(got, f.gradient(POINT))


def test_a_scalar_terminal():
    expected = by_definition(CASES["smooth"].f, POINT, 0.25, 0.3, 0.2)
    np.testing.assert_allclose(of_wavy(one_terminal=True), expected, rtol=1e-10)


# Quadratics.


@settings
@quadratics
def test_quadratic_closed_form(name, alpha, beta):
    """The corollary with a_jj; with its printed sqrt(a_jj) it is another vector (erratum 1)."""
    f = CASES[name].objective
    A, b = matrix_of(f)
    gradient, D = A @ POINT + b, np.diag(A)
    got = cfgd.fractional_gradient(f, POINT, TERMINAL, alpha, beta)
    shift = gamma(alpha, beta) * (POINT - TERMINAL)
    np.testing.assert_allclose(got, gradient + D * shift, rtol=1e-12)
    assert np.abs(got - (gradient + np.sqrt(D) * shift)).max() > 0.05


@pytest.mark.parametrize(
    ("name", "nodes"), [*((name, 1) for name in QUADRATICS), ("quadratic", NODES)]
)
def test_smooth_of_a_quadratic(name, nodes):
    """One node is exact, and no number of nodes changes anything."""
    f = CASES[name].objective
    expected = cfgd.fractional_gradient(f, POINT, TERMINAL, 0.3, 0.2)
    got = cfgd.fractional_gradient(cfgd.Smooth(f.value), POINT, TERMINAL, 0.3, 0.2, nodes)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("rows", [6, 3], ids=["tall", "wide"])
def test_least_squares_is_a_quadratic(rows):
    X_, y = X[:rows], Y[:rows]
    f, g = cfgd.LeastSquares(X_, y), cfgd.Quadratic(X_.T @ X_, -X_.T @ y, y @ y / 2)
    assert (f.gram is None) == (rows < 4)  # both ways of least squares are on trial
    np.testing.assert_allclose(f.value(POINT), g.value(POINT), rtol=1e-13)
    np.testing.assert_allclose(
        cfgd.fractional_gradient(f, POINT, TERMINAL, 0.3, 0.2),
        cfgd.fractional_gradient(g, POINT, TERMINAL, 0.3, 0.2),
        rtol=1e-12,
    )


@settings
def test_moving_all_coordinates_at_once_gives_another_direction(alpha, beta):
    """Relation 7: that gives gamma A (x - c), not gamma diag(A) (x - c)."""
    t, w = roots_jacobi(5, -alpha, 0)
    U, w = (1 + t) / 2, w / w.sum()
    h = POINT - TERMINAL
    along = TERMINAL + U[:, None] * h
    at_once = w @ (along @ A + B) + beta * (A @ h)
    np.testing.assert_allclose(at_once, A @ POINT + B + gamma(alpha, beta) * A @ h, rtol=1e-12)

    got = cfgd.fractional_gradient(cfgd.Quadratic(A, B), POINT, TERMINAL, alpha, beta)
    off_diagonal = A - np.diag(np.diag(A))
    np.testing.assert_allclose(at_once - got, gamma(alpha, beta) * off_diagonal @ h, rtol=1e-11)
    assert np.abs(at_once - got).min() > 0.05


# Nodes.


@pytest.mark.slow
def test_error_falls_as_nodes_grow():
    case = CASES["smooth"]
    expected = by_definition(case.f, POINT, TERMINAL, 0.3, 0.2)
    errors = [
        np.abs(
            cfgd.fractional_gradient(case.objective, POINT, TERMINAL, 0.3, 0.2, nodes) - expected
        ).max()
        for nodes in (1, 2, NODES)
    ]
    assert errors[0] > 0.01
    for worse, better in itertools.pairwise(errors):
        assert better < worse / 5
    assert errors[-1] < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2])
def test_degree_2s_is_exact_with_s_nodes(nodes):
    """f' then has degree 2s - 1; one degree more is beyond the rule."""

    def f(degree):
        return lambda x: sum(x[j] ** degree * (x[j - 1] + j + 2) for j in range(4)) + x[0] * x[3]

    def error(degree):
        got = cfgd.fractional_gradient(f(degree), POINT, TERMINAL, 0.3, 0.2, nodes)
        return np.abs(got / by_definition(f(degree), POINT, TERMINAL, 0.3, 0.2) - 1)

    assert error(2 * nodes).max() < 1e-11
    assert error(2 * nodes + 1).max() > 1e-6


# The slopes that it is made of: only coordinate j moves.


def explicit(name, t):
    """Return slopes and curvatures from gradients and Hessians at the d points x with x_j = t_j."""
    points = np.where(np.eye(4, dtype=bool), t, POINT)
    if name in QUADRATICS:
        A, b = matrix_of(CASES[name].objective)
        return np.diag(points @ A + b), np.diag(A)
    with jax.enable_x64(True):
        gradient, hessian = (
            jax.jit(jax.vmap(of(lambda x: wavy(jnp, x))))(points) for of in (jax.grad, jax.hessian)
        )
    return np.diag(gradient), [hessian[j, j, j] for j in range(4)]


@pytest.mark.parametrize("name", [*QUADRATICS, "smooth"])
def test_coordinate_slope_and_curvature(name):
    f = CASES[name].objective
    t = np.array([0.6, 2.0, -1.7, 0.3])
    slope, curvature = explicit(name, t)
    np.testing.assert_allclose(f.coordinate_slope(POINT, t), slope, rtol=1e-12)
    np.testing.assert_allclose(f.coordinate_curvature(POINT, t), curvature, rtol=1e-12)
    np.testing.assert_allclose(f.coordinate_slope(POINT, POINT), f.gradient(POINT), rtol=1e-12)
