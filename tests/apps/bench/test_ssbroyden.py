"""Dense quasi-Newton methods of the bench: formulas, termination on quadratics, a valley."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cfgd.apps.bench.field import ssbroyden
from cfgd.apps.bench.field.ssbroyden import (
    InverseHessian,
    Pair,
    Update,
    bfgs_update,
    ssbroyden_update,
)

UPDATES = [bfgs_update, ssbroyden_update]


def dense(H):
    """Return the symmetric matrix of which the upper triangle is stored."""
    upper = np.triu(H.matrix)
    return H.scale * (upper + np.triu(upper, 1).T)


def random_pair(seed, d=5):
    random = np.random.default_rng(seed)
    A = random.normal(size=(d, d))
    A = A @ A.T + 0.1 * np.eye(d)  # a Hessian, so that y's > 0
    s = random.normal(size=d)
    return s, A @ s


def started(seed, d=5):
    """Return an H that is not the identity, after two updates of BFGS."""
    H = InverseHessian(d)
    for k in range(2):
        s, y = random_pair(10 * seed + k, d)
        H.update(s, y, Update(1.0, 1.0), H.times(y))
    return H


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.every_case
def test_update_of_bfgs_is_the_textbook_formula(seed):
    H, (s, y) = started(seed), random_pair(seed + 100)
    before, rho = dense(H), 1 / (y @ s)
    H.update(s, y, bfgs_update(Pair(2.0, 3.0, 5, False)), H.times(y))
    left = np.eye(5) - rho * np.outer(s, y)
    wanted = left @ before @ left.T + rho * np.outer(s, s)
    np.testing.assert_allclose(dense(H), wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize(("tau", "phi"), [(0.3, 0.6), (1.0, 0.0), (2.0, 1.4)])
@pytest.mark.every_case
def test_update_is_the_member_of_the_family_that_is_asked_for(tau, phi):
    """phi = 0 is the formula of Davidon, Fletcher and Powell; every member has H y = s."""
    H, (s, y) = started(1), random_pair(50)
    before = dense(H)
    Hy = before @ y
    v = s / (y @ s) - Hy / (y @ Hy)
    wanted = (before - np.outer(Hy, Hy) / (y @ Hy) + phi * (y @ Hy) * np.outer(v, v)) / tau
    wanted += np.outer(s, s) / (y @ s)
    H.update(s, y, Update(tau, phi), H.times(y))
    np.testing.assert_allclose(dense(H), wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    np.testing.assert_allclose(dense(H) @ y, s, rtol=1e-8, atol=1e-9)


def test_parameters_of_the_family_by_hand():
    """b = 2, h = 1 gives a = 1 and c = sqrt(1/2); b = 1/2, h = 4 has the same a."""
    c = np.sqrt(0.5)
    # rho- = 1 - c, theta- = -c, theta+ = 1 / (1 - c), (1 - b) / b = -1/2; sigma = 1/2
    tau, phi = ssbroyden_update(Pair(2.0, 1.0, 5, False))
    assert phi == pytest.approx(3.0)
    assert tau == pytest.approx(min(0.5 * 0.5 ** (-1 / 4), 0.5))
    # (1 - b) / b = 1, below theta+ = 1 / min(1, 4 (1 - c)) = 1; sigma = 2, rho = 1
    tau, phi = ssbroyden_update(Pair(0.5, 4.0, 5, False))
    assert phi == pytest.approx(0.0)
    assert tau == pytest.approx(2 ** (-1 / 4))
    # the first update scales by h / sigma
    tau, phi = ssbroyden_update(Pair(2.0, 1.0, 5, True))
    assert tau == pytest.approx(2.0)
    assert c < 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.every_case
def test_matrix_stays_positive_definite(seed):
    H = started(seed)
    for k in range(5):
        s, y = random_pair(1000 * seed + k)
        Hy, B = H.times(y), np.linalg.inv(dense(H))
        pair = Pair(s @ B @ s / (y @ s), y @ Hy / (y @ s), 5, False)
        H.update(s, y, ssbroyden_update(pair), Hy)
        assert np.linalg.eigvalsh(dense(H)).min() > 0


@pytest.mark.parametrize("choose", UPDATES)
@pytest.mark.every_case
def test_a_quadratic_takes_as_many_exact_steps_as_variables(choose):
    random = np.random.default_rng(0)
    Q = np.linalg.qr(random.normal(size=(6, 6)))[0]
    A = Q @ np.diag([1.0, 2, 3, 5, 8, 20]) @ Q.T
    calls = []

    def value_and_gradient(x):
        return x @ A @ x / 2, A @ x

    def exact(function, x, direction, f, g, before):
        if len(calls) == 6:
            return None
        calls.append(f)
        return -(g @ direction) / (direction @ A @ direction)

    x = ssbroyden.minimize(value_and_gradient, random.normal(size=6), choose, exact)
    assert len(calls) == 6
    assert np.linalg.norm(x) <= 1e-8


@pytest.mark.parametrize("choose", UPDATES)
@pytest.mark.every_case
def test_the_valley_of_rosenbrock_is_followed_to_its_end(choose):
    evaluations = []

    def value_and_gradient(x):
        evaluations.append(x)
        a, b = 1 - x[0], x[1] - x[0] ** 2
        return a**2 + 100 * b**2, np.array([-2 * a - 400 * x[0] * b, 200 * b])

    x = ssbroyden.minimize(value_and_gradient, np.array([-1.2, 1.0]), choose)
    np.testing.assert_allclose(x, [1, 1], atol=1e-7)
    assert len(evaluations) < 150
    assert not any(np.array_equal(p, q) for p, q in itertools.pairwise(evaluations))


def test_scale_beyond_its_limit_moves_into_the_matrix(monkeypatch):
    monkeypatch.setattr(ssbroyden, "MOST_SCALE", 3.0)
    limited, free = InverseHessian(3), np.eye(3)
    for k in range(4):
        s, y = random_pair(k, 3)
        Hy = free @ y
        limited.update(s, y, Update(0.5, 0.0), limited.times(y))
        free = 2 * (free - np.outer(Hy, Hy) / (y @ Hy)) + np.outer(s, s) / (y @ s)
        np.testing.assert_allclose(dense(limited), free, rtol=1e-8, atol=1e-8)
        assert limited.scale < 3
