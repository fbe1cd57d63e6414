"""The check of the curvature before a run counts as converged."""

import numpy as np
import pytest
from oracles import evaluation_of, oracle_for, quadratic_oracle, random_spd

import cfgd
from cfgd.methods.auto.curvature_check import (
    MOST_DIRECTIONS,
    Probes,
    assess,
    difference_noise,
    one_sided_noise,
    probe_along_coordinates,
    probe_hessian,
    probe_krylov,
    spectrum,
)
from cfgd.methods.auto.longest_step import longest_fraction
from cfgd.methods.auto.state import Start

# ---------------------------------------------------------------- measuring


@pytest.fixture
def random():
    return np.random.default_rng(6)


def empty_probes(d):
    return Probes(np.zeros((MOST_DIRECTIONS, d)), np.zeros((MOST_DIRECTIONS, d)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_probes_along_coordinates_measure_the_hessian(random, sign):
    A, b, x = random_spd(random, 5), random.normal(size=5), random.normal(size=5)
    at, start = evaluation_of(A, b, x)
    probes = probe_along_coordinates(quadratic_oracle(A, b, x), at, start, np.ones(5), sign)
    steps = np.diag(probes.steps)
    assert np.all(np.sign(steps) == sign)
    np.testing.assert_array_equal(probes.steps, np.diag(steps))
    np.testing.assert_allclose(probes.changes / steps[:, None], A, rtol=1e-4, atol=1e-6 * A.max())


@pytest.mark.parametrize("d", [20, 40])
def test_krylov_probes_are_orthonormal_and_measure_the_hessian(random, d):
    A, b, x = random_spd(random, d), random.normal(size=d), random.normal(size=d)
    at, start = evaluation_of(A, b, x)
    scaling = random.uniform(0.5, 2, d)
    probes = probe_krylov(quadratic_oracle(A, b, x), at, start, scaling, empty_probes(d))
    scaled = probes.inverse_lengths(scaling)[:, None] * probes.steps
    np.testing.assert_allclose(scaled @ (scaling * scaled).T, np.eye(MOST_DIRECTIONS), atol=1e-6)
    np.testing.assert_allclose(
        probes.changes, probes.steps @ A, atol=1e-6 * abs(probes.changes).max()
    )
    # the first one is the gradient, the second its product with the Hessian without the first
    u, v = at.gradient / scaling, A @ (at.gradient / scaling) / scaling
    v = v - (v @ (scaling * u)) / (u @ (scaling * u)) * u
    for direction, row in zip((u, v), scaled, strict=False):
        length = np.sqrt(direction @ (scaling * direction))
        np.testing.assert_allclose(row, direction / length, atol=1e-5)


@pytest.mark.parametrize("d", [6, 30])
def test_products_with_the_hessian_are_probes(random, d):
    X, x = random.normal(size=(d + 5, d)), random.normal(size=d)
    oracle = oracle_for(cfgd.LinearModel(X, (X[:, 0] > 0) * 1.0), x)
    at = oracle.evaluate(x)
    probes = probe_hessian(oracle, at, Start.of(at), np.ones(d))
    assert len(probes.steps) == min(d, MOST_DIRECTIONS)
    p = 1 / (1 + np.exp(-X @ x))
    hessian = (X.T * (p * (1 - p))) @ X
    np.testing.assert_allclose(probes.changes, probes.steps @ hessian, rtol=1e-9, atol=1e-10)


def test_krylov_probes_leave_the_gradients_invariant_subspace(random):
    """At a saddle of a diagonal matrix the gradient is an eigenvector: others must be found."""
    d = 30
    A = np.diag(np.r_[np.linspace(1, 2, d - 1), -1.0])
    x = np.zeros(d)
    x[0] = 1.0
    at, start = evaluation_of(A, np.zeros(d), x)
    oracle = quadratic_oracle(A, np.zeros(d), x)
    probes = probe_krylov(oracle, at, start, np.ones(d), empty_probes(d))
    found = spectrum(probes, at.gradient, np.ones(d), np.float64(1), difference_noise(x), x > 5)
    assert found.least < 0


# ---------------------------------------------------------------- spectrum and assessment


def exact_probes(A, scaling=None):
    """Return products with A along the scaled coordinates."""
    steps = np.diag(1 / np.sqrt(np.ones(len(A)) if scaling is None else scaling))
    return Probes(steps, steps @ A)


def spectrum_of(A, g, scaling=None, far=None):
    d = len(A)
    scaling = np.ones(d) if scaling is None else scaling
    far = np.zeros(d, bool) if far is None else far
    return spectrum(exact_probes(A, scaling), g, scaling, np.float64(1), difference_noise(g), far)


@pytest.mark.parametrize("scaled", [False, True])
def test_on_a_convex_quadratic_the_newton_step_is_exact(random, scaled):
    A, g = random_spd(random, 7), random.normal(size=7)
    scaling = np.diag(A).copy() if scaled else None
    found = spectrum_of(A, g, scaling)
    newton = np.linalg.solve(A, g)
    np.testing.assert_allclose(found.newton, newton, rtol=1e-9)
    assert found.decrease == pytest.approx(g @ newton / 2)
    weights = np.ones(7) if scaling is None else scaling
    assert found.length == pytest.approx(np.sqrt(newton @ (weights * newton)))
    curvatures = np.linalg.eigvalsh(A / np.sqrt(np.outer(weights, weights)))
    assert found.least == pytest.approx(curvatures[0] / curvatures[-1])
    assert found.is_convex
    assert not found.flat.any()


def test_at_a_saddle_the_absolute_value_of_the_hessian_counts(random):
    axes, _ = np.linalg.qr(random.normal(size=(5, 5)))
    curvatures = np.array([-0.5, 1.0, 2.0, 3.0, 4.0])
    A, g = (axes * curvatures) @ axes.T, random.normal(size=5)
    found = spectrum_of(A, g)
    newton = (axes / abs(curvatures)) @ (axes.T @ g)
    np.testing.assert_allclose(found.newton, newton, rtol=1e-9)
    assert found.decrease == pytest.approx(g @ newton / 2)
    assert found.least == pytest.approx(-0.5 / 4)
    # the direction is that of the negative curvature, and x - downwards does not rise
    np.testing.assert_allclose(abs(found.downwards), abs(axes[:, 0]), rtol=1e-9)
    assert g @ found.downwards >= 0
    assert -g @ spectrum_of(A, -g).downwards >= 0
    assert not found.is_convex


def test_a_direction_without_measurable_curvature_is_flat(random):
    axes, _ = np.linalg.qr(random.normal(size=(4, 4)))
    A = (axes * [0.0, 1.0, 2.0, 3.0]) @ axes.T
    along, across = axes[:, 0], axes[:, 1:] @ np.array([1.0, -1.0, 0.5])
    found = spectrum_of(A, across)
    np.testing.assert_allclose(abs(found.flat), abs(along), atol=1e-9)
    assert not found.is_convex
    assert found.least == 0
    # a slope of rounding along the flat direction is divided by the noise of curvatures
    np.testing.assert_allclose(found.newton, np.linalg.pinv(A) @ across, atol=1e-5)
    assert found.length == pytest.approx(np.linalg.norm(found.newton), rel=1e-4)
    # with a slope along it, nothing bounds the step but rounding
    assert spectrum_of(A, across + 0.1 * along).length > 1e14
    # where the flat direction moves coordinates that have grown, the minimum is at infinity
    assert spectrum_of(A, across, far=np.ones(4, bool)).length == np.inf


def assess_quadratic(A, g, x=None, **options):
    """Assess the point x of the quadratic with Hessian A whose gradient at x is g."""
    x = np.full(len(A), 2.0) if x is None else x
    at, start = evaluation_of(A, g - A @ x, x)
    options = {"is_stationary": True} | options
    return assess(exact_probes(A), at, start, np.ones(len(A)), 1e-8, **options)


def test_a_minimum_is_one(random):
    A = random_spd(random, 4, 50.0)
    found = assess_quadratic(A, 1e-12 * np.ones(4))
    assert found.is_negligible
    assert not found.leaves_saddle
    assert not found.is_unbounded
    assert not found.valley.any()


def test_a_point_with_a_large_newton_step_is_no_minimum(random):
    A, g = random_spd(random, 4, 50.0), 1e-3 * np.ones(4)
    found = assess_quadratic(A, g)
    assert not found.is_negligible
    np.testing.assert_allclose(found.step, np.linalg.solve(A, g), rtol=1e-9)
    assert found.slope == pytest.approx(g @ found.step)
    assert found.t == 1


def test_a_saddle_is_left_where_the_gradient_is_small_or_no_step_helps():
    A, g = np.diag([2.0, 1.0, -0.1]), np.zeros(3)
    found = assess_quadratic(A, g)
    assert found.leaves_saddle
    np.testing.assert_allclose(abs(found.step / np.linalg.norm(found.step)), [0, 0, 1], atol=1e-12)
    assert not assess_quadratic(A, g, is_stationary=False).leaves_saddle
    assert assess_quadratic(A, g, is_stationary=False, is_stuck=True).leaves_saddle


def test_a_negative_curvature_within_the_noise_is_no_saddle():
    A = np.diag([2.0, 1.0, -1e-6])
    assert assess_quadratic(A, np.zeros(3)).leaves_saddle
    noisy = assess_quadratic(A, np.zeros(3), noise=one_sided_noise(np.zeros(3)))
    assert not noisy.leaves_saddle


def test_the_offset_along_a_flat_valley_is_about_twice_the_size_of_x():
    A, x = np.diag([1.0, 0.0]), np.array([3.0, 1.0])
    valley = assess_quadratic(A, np.zeros(2), x).valley
    size = 1 + np.sqrt(5)  # of the second coordinate, with the root mean square of x
    np.testing.assert_allclose(abs(valley), [0, 2 * min(np.sqrt(10), size)], rtol=1e-6)


def test_steps_move_coordinates_by_ten_times_their_size_at_most():
    x = np.array([1.0, -2.0])
    assert longest_fraction(x, x, np.array([1.0, 1.0])) == 1
    typical = np.sqrt(2.5)
    step = np.array([0.0, 500.0])
    assert longest_fraction(x, x, step) == pytest.approx(10 * (2 + typical) / 500)
    assert longest_fraction(0 * x, 0 * x, step) == 1


# ---------------------------------------------------------------- runs in few dimensions

MIDDLE = np.array([0.7, -1.3, 2.0, 0.4])
D = MIDDLE.size


def probed_sides(value, gradient, x0):
    """Return the end, and how often each coordinate was probed above and below it."""
    seen = []

    def recorded(x):
        seen.append(np.array(x))
        return gradient(x)

    end = cfgd.minimize(cfgd.External(value, recorded), x0)
    moved = np.array([x - end.x for x in seen])
    alone = [row for row in moved if np.count_nonzero(row) == 1 and np.abs(row).max() < 1e-3]
    above, below = (np.count_nonzero(sign * np.array(alone) > 0, axis=0) for sign in (1, -1))
    return end, above, below


def quartic(A):
    """Return a quadratic with a small fourth power, so that curvatures change along a probe."""

    def value(x):
        r = x - MIDDLE
        return r @ A @ r / 2 + 0.1 * np.sum(r**4)

    return value, lambda x: A @ (x - MIDDLE) + 0.4 * (x - MIDDLE) ** 3


def near_singular(least):
    """Return a nearly singular matrix with a diagonal of ones: scaling does not help."""
    A = np.ones((D, D)) + least * np.diag([1.0, 2.0, 3.0, 4.0])
    return A / np.sqrt(np.outer(np.diag(A), np.diag(A)))


def test_one_sided_probes_are_enough_where_all_curvatures_are_clear():
    A = np.array([[4.0, 1, 0, 0], [1, 3, 1, 0], [0, 1, 2, 0.5], [0, 0, 0.5, 5]])
    end, above, below = probed_sides(*quartic(A), np.zeros(D))
    assert end.success
    np.testing.assert_allclose(end.x, MIDDLE, atol=1e-6)
    np.testing.assert_array_equal(above, 1)
    np.testing.assert_array_equal(below, 0)


def test_both_sides_are_probed_where_one_curvature_is_small():
    x0 = MIDDLE + 0.01 * np.arange(1, D + 1)
    end, above, below = probed_sides(*quartic(near_singular(1e-6)), x0)
    assert end.success
    np.testing.assert_array_equal(above, below)
    assert above.min() >= 1


def test_a_saddle_off_the_axes_is_left():
    turn, _ = np.linalg.qr(np.arange(16.0).reshape(D, D) ** 1.5 + np.eye(D))
    A = turn @ np.diag([1.0, 2.0, 3.0, -0.1]) @ turn.T
    value, gradient = quartic(A)
    offset = turn[:, :3] @ np.array([1.0, -2.0, 0.5])  # nothing along the negative curvature
    end = cfgd.minimize(cfgd.External(value, gradient), MIDDLE + offset)
    assert end.success
    assert end.value < -1e-3


@pytest.mark.parametrize("third", [-30.0, 30.0])
def test_a_curvature_that_changes_along_the_probe_does_not_make_a_saddle_a_minimum(third):
    """f = u^2 - v^2/2 + third v^3/6 + 40 v^4: at v = 0 negative, and soon positive on one side."""

    def value(x):
        u, v = x - [2.0, 1.0]
        return u**2 - v**2 / 2 + third * v**3 / 6 + 40 * v**4

    def gradient(x):
        u, v = x - [2.0, 1.0]
        return np.array([2 * u, -v + third * v**2 / 2 + 160 * v**3])

    end = cfgd.minimize(cfgd.External(value, gradient), [3.0, 1.0])
    assert end.success
    assert end.value < -1e-4
