"""The units of the data: the same walk for X, y and the coordinates in any unit."""

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd

T = np.linspace(0, 4, 30)
EXPONENTIAL = 3 * np.exp(-T) + np.random.default_rng(0).normal(0, 0.05, 30)
RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(60, 4)) * [1, 2, 0.5, 3]
LINEAR = X @ [1, -2, 0.5, 1] + 0.3 * RANDOM.normal(size=60)
TARGETS = {
    "squared": LINEAR,
    "logistic": (LINEAR + 2 * RANDOM.normal(size=60) > 0).astype(float),
    "huber": LINEAR,
    "poisson": RANDOM.poisson(np.exp(LINEAR / 4)).astype(float),
    "gamma": np.exp(LINEAR / 4) * RANDOM.gamma(3, size=60),
}
WIDE = {np.float32: (1e-15, 1e-10, 1e6, 1e15), np.float64: (1e-150, 1e-60, 1e60, 1e150)}


def same_walk(of_unit, units, rtol, share=0.0, **options):
    """Check that runs in other units take the same iterations to the same solution.

    `of_unit` returns, for a unit, the objective, the start and the unit of x. One iteration more or
    less is rounding, for slow methods a `share` of them.
    """
    f, x0, _ = of_unit(1.0)
    first = cfgd.minimize(f, x0, **options)
    assert first.status is cfgd.Status.converged
    for unit in units:
        f, x0, scale = of_unit(unit)
        other = cfgd.minimize(f, x0, **options)
        assert other.status is cfgd.Status.converged, unit
        allowed = max(1, share * first.iterations)
        assert abs(other.iterations - first.iterations) <= allowed, unit
        error = np.asarray(other.x, float) / scale - np.asarray(first.x, float)
        assert abs(error).max() <= rtol * abs(first.x).max(), unit


def model(loss, dtype, method=None, units=None):
    def of_unit(s):
        f = cfgd.LinearModel((X * s).astype(dtype), TARGETS[loss].astype(dtype), loss)
        return f, np.zeros(4, dtype), 1 / s

    rtol, share = (1e-5 if dtype is np.float32 else 1e-9), 0.0
    if method is not None:  # it stops where the gradient, not the error, meets the tolerance
        rtol, share = (1e-2 if dtype is np.float32 else 1e-6), 0.25
    same_walk(of_unit, units or WIDE[dtype], rtol, share, method=method)


@pytest.mark.every_case
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", list(TARGETS))
def test_the_unit_of_X_does_not_matter_to_auto(loss, dtype):
    model(loss, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", list(TARGETS))
def test_the_unit_of_X_does_not_matter_to_gradient_descent(loss, dtype):
    # a line takes the curvature in the user's units: at 1e-150 its squares underflow
    units = None if dtype is np.float32 else (1e-100, 1e-60, 1e60, 1e100)
    model(loss, dtype, cfgd.GradientDescent(), units)


@pytest.mark.every_case
@pytest.mark.parametrize("kind", ["LeastSquares", "Quadratic"])
def test_the_units_of_quadratics_do_not_matter(kind):
    def of_units(s, v):
        A, y = (X * s).astype(np.float32), (LINEAR * v).astype(np.float32)
        f = cfgd.LeastSquares(A, y) if kind == "LeastSquares" else cfgd.Quadratic(A.T @ A, -A.T @ y)
        return f, np.zeros(4, np.float32), v / s

    same_walk(lambda s: of_units(s, 1.0), (1e-10, 1e-5, 1e6, 1e10), 1e-5)
    same_walk(lambda v: of_units(1.0, v), (1e-12, 1e-6, 1e6, 1e12), 1e-5)


@pytest.mark.every_case
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_unit_of_y_does_not_matter_to_a_curve(dtype):
    def of_unit(s):
        t, y = T.astype(dtype), (EXPONENTIAL * s).astype(dtype)
        f = cfgd.Residuals(lambda p, t, y: p[0] * jnp.exp(-p[1] * t) - y, args=(t, y))
        return f, np.array([s, 1], dtype), np.array([s, 1.0])

    wide = (1e-12, 1e12) if dtype is np.float32 else (1e-100, 1e-12, 1e12, 1e100)
    same_walk(of_unit, wide, 1e-4 if dtype is np.float32 else 1e-7)


@pytest.mark.every_case
@pytest.mark.parametrize("width", [3, 20])
def test_a_network_is_rescaled_without_a_change_of_its_solver(width):
    z = np.linspace(-1, 1, 40, dtype=np.float32)

    def run(exponent):
        v = np.float32(2.0**exponent)
        f = cfgd.ShallowNetwork(z, np.sin(3 * z) * v, width)
        x = f.init(0).astype(np.float32)
        x[-width:] *= v
        end = cfgd.minimize(f, x)
        return end.status, end.how, end.value / float(v) ** 2

    status, how, value = run(0)
    other_status, other_how, other_value = run(40)  # beyond what squares in float32 hold
    assert other_status is status is cfgd.Status.converged
    assert other_how == how
    # 20 units fit the data to rounding, which depends on the unit: 40 squares of about 1e-7
    assert other_value == pytest.approx(value, rel=1e-2, abs=1e-11)


@pytest.mark.every_case
@pytest.mark.parametrize("exponent", [-40, 0, 2, 10, 30])
def test_a_network_that_fits_its_data_to_rounding_ends_at_no_saddle(exponent):
    z, v = np.linspace(-1, 1, 40, dtype=np.float32), np.float32(2.0**exponent)
    f = cfgd.ShallowNetwork(z, np.sin(3 * z) * v, 20)
    x = f.init(0).astype(np.float32)
    x[-20:] *= v
    end = cfgd.minimize(f, x)
    assert end.value / float(v) ** 2 < 1e-11
    assert end.status is cfgd.Status.converged, end.message


@pytest.mark.every_case
@pytest.mark.parametrize("s", [1e-15, 1e15])
def test_columns_may_have_another_unit_than_the_intercept(s):
    # 150 columns, so that L-BFGS goes first, whose diagonal must not be cut off at 1e-8
    random = np.random.default_rng(0)
    A = random.normal(size=(300, 150))
    y = (A @ random.normal(size=150) / 6 + random.normal(size=300) > 0).astype(np.float32)

    def solve(unit):
        X, l2 = (A * unit).astype(np.float32), np.float32(unit**2)
        return cfgd.minimize(cfgd.LinearModel(X, y, l2=l2, intercept=True), np.zeros(151, "f4"))

    one, other = solve(1.0), solve(s)
    assert one.status is other.status is cfgd.Status.converged
    np.testing.assert_allclose(other.x[:-1] * s, one.x[:-1], rtol=1e-2, atol=1e-3)
