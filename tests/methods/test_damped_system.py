"""The damped systems of Levenberg-Marquardt, from rows, matrices and products, against NumPy."""

import dataclasses

import numpy as np
import pytest
from oracles import oracle_for, random_spd

import cfgd
from cfgd.methods.auto.damped_system import damped_system, keep_from_shrinking, solve_by_products
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import Evaluation

RNG = np.random.default_rng(7)


def curvature_of(J, form):
    """Return the curvature J'J by its rows, its matrix or products alone."""
    H = J.T @ J
    r = np.cos(np.arange(len(J)))
    at = Evaluation(np.ones(J.shape[1]), np.float64(r @ r / 2), J.T @ r)
    curvature = Curvature(times=lambda v: H @ v, diagonal=lambda: np.diag(H).copy(), shape=J.shape)
    if form == "rows":
        changes = {"rows": lambda: JacobianRows(J, r), "residuals_at": lambda x: r}
    elif form == "matrix":
        changes = {"matrix": lambda: H}
    else:
        changes = {"shape": None}
    return dataclasses.replace(curvature, **changes), at, r


def oracle():
    return oracle_for(cfgd.Quadratic(np.eye(2), np.ones(2)), np.zeros(2))


FORMS = {
    "tall": ((12, 5), "rows"),
    "wide": ((4, 9), "rows"),
    "matrix": ((12, 5), "matrix"),
    "products": ((12, 5), "products"),
}


@pytest.mark.parametrize(("shape", "form"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("damping", [1e-6, 0.03, 50.0])
@pytest.mark.parametrize("extra", [None, 0.7])
def test_the_damped_system_is_solved(shape, form, damping, extra):
    J = np.random.default_rng(1).normal(size=shape) * np.geomspace(0.1, 10, shape[1])
    curvature, at, _ = curvature_of(J, form)
    if extra is not None:
        added = extra * np.arange(1, shape[1] + 1)
        curvature = dataclasses.replace(curvature, extra_damping=lambda: added)
    H = J.T @ J
    old = 1.5 * np.diag(H) * (np.arange(shape[1]) == 2)
    system = damped_system(oracle(), curvature, at, old, np.float64(1e-30))
    D = np.maximum(np.diag(H) + (0 if extra is None else added), old)
    np.testing.assert_allclose(system.scaling, D, rtol=1e-12)
    np.testing.assert_allclose(system.diagonal(), np.diag(H), rtol=1e-12)
    matrix = H + damping * np.diag(D)
    p = system.solve(damping).p
    np.testing.assert_allclose(matrix @ p, at.gradient, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(p, np.linalg.solve(matrix, at.gradient), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("shape", [(12, 5), (4, 9)], ids=["tall", "wide"])
def test_a_system_with_rows_is_solved_for_other_residuals(shape):
    J = RNG.normal(size=shape)
    curvature, at, _ = curvature_of(J, "rows")
    system = damped_system(oracle(), curvature, at, 0 * at.x, np.float64(1))
    k, v = RNG.normal(size=shape[0]), RNG.normal(size=shape[1])
    found = system.solve(0.3).for_residuals(k)
    matrix = J.T @ J + 0.3 * np.diag(np.diag(J.T @ J))
    np.testing.assert_allclose(found, np.linalg.solve(matrix, J.T @ k), rtol=1e-10)
    np.testing.assert_allclose(system.jacobian_times(v), J @ v, rtol=1e-12)


@pytest.mark.parametrize("form", ["rows", "matrix", "products"])
def test_the_undamped_step_is_that_of_gauss_and_newton(form):
    J = RNG.normal(size=(12, 5)) * np.geomspace(0.1, 10, 5)
    curvature, at, r = curvature_of(J, form)
    system = damped_system(oracle(), curvature, at, 1e5 * np.ones(5), np.float64(1e-30))
    expected = np.linalg.lstsq(J, r, rcond=None)[0]
    np.testing.assert_allclose(system.newton(), expected, rtol=1e-8)


def test_the_undamped_step_of_a_wide_jacobian_is_the_least_in_the_norm_of_d():
    J = RNG.normal(size=(4, 9))
    curvature, at, r = curvature_of(J, "rows")
    root = np.sqrt(np.diag(J.T @ J))
    system = damped_system(oracle(), curvature, at, 0 * at.x, np.float64(1))
    np.testing.assert_allclose(system.newton(), np.linalg.pinv(J / root) @ r / root, rtol=1e-8)


def test_conjugate_gradients_stop_at_the_forcing_term():
    A, g = random_spd(np.random.default_rng(2), 40, 1e4), RNG.normal(size=40)
    D = np.diag(A).copy()
    curvature = Curvature(times=lambda v: A @ v, diagonal=lambda: D)
    counted = oracle()
    matrix = A + 0.01 * np.diag(D)
    norms, costs = [], []
    for forcing in (0.1, 1e-6):
        p = solve_by_products(counted, curvature, g, D, 0.01, forcing)
        residual = g - matrix @ p
        norms.append(np.sqrt(residual @ (residual / D)) / np.sqrt(g @ (g / D)))
        costs.append(counted.cost)
    assert norms[0] <= 0.1
    assert norms[0] > 1e-3  # it stops as soon as that is reached
    assert norms[1] <= 1e-6
    assert costs[1] > 2 * costs[0] > 0


def test_the_scaling_is_kept_from_shrinking():
    old, new = np.array([4.0, 1e9, 3.0, 0.0]), np.array([5.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(keep_from_shrinking(old, new), [5, 1e6, 3, 1])
