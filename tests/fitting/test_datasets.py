"""Data of every form: weights, missing and complex y, several data sets, errors of x."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from curves import P0, SIGMA, T, Y, decay, decay_in_numpy, least_squares

import cfgd

HOLE = np.arange(8) == 3
KEPT = ~HOLE


def correlated():
    A = np.diag(SIGMA) + 0.02 * np.tri(8)
    return A @ A.T


def same(fit, wanted):
    """Compare a fit with parameters and covariance of SciPy."""
    parameters, covariance = wanted
    np.testing.assert_allclose(fit.parameters, parameters, rtol=1e-6)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-5)


# ------------------------------------------------------------------ missing points, weights

MISSING = {
    "NaN in y": (T, np.where(HOLE, np.nan, Y)),
    "masked y": (T, np.ma.masked_array(Y, HOLE)),
    "NaN in x": (np.where(HOLE, np.nan, T), Y),
}


@pytest.mark.parametrize(("x", "y"), MISSING.values(), ids=MISSING)
def test_missing_points_are_dropped(x, y):
    wanted = least_squares(lambda p: (decay_in_numpy(T, *p) - Y)[KEPT] / SIGMA[KEPT], P0)
    sigma = np.where(HOLE, np.nan, SIGMA)  # does not count either
    fit = cfgd.curve_fit(decay, x, y, P0, sigma, missing="drop")
    same(fit, wanted)
    assert fit.dof == 4
    np.testing.assert_allclose(fit.solution.covariance(), wanted[1], rtol=1e-5)


def test_a_missing_point_of_correlated_data():
    """The covariance of the rest is the block of its rows and columns."""
    block = correlated()[np.ix_(KEPT, KEPT)]
    W = np.linalg.inv(np.linalg.cholesky(block))
    wanted = least_squares(lambda p: W @ (decay_in_numpy(T, *p) - Y)[KEPT], P0)
    y = np.where(HOLE, np.nan, Y)
    same(cfgd.curve_fit(decay, T, y, P0, correlated(), missing="drop"), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
def test_missing_points_of_several_variables(axis):
    x = np.stack([np.where(HOLE, np.nan, T), T**2], axis)

    def plane(x, a, b):
        first, second = jnp.moveaxis(x, axis, 0)
        return a * first + b * second

    A = np.stack([T, T**2], 1)[KEPT]
    fit = cfgd.curve_fit(plane, x, Y, missing="drop")
    np.testing.assert_allclose(fit.parameters, np.linalg.lstsq(A, Y[KEPT])[0], rtol=1e-7)


def test_weights_are_those_of_squares_and_zero_leaves_out():
    wanted = least_squares(lambda p: (decay_in_numpy(T, *p) - Y)[KEPT] / SIGMA[KEPT], P0)
    fit = cfgd.curve_fit(decay, T, Y, P0, weights=KEPT / SIGMA**2)
    same(fit, wanted)
    assert fit.dof == 4


REFUSED = {
    "NaN": ({"y": np.where(HOLE, np.nan, Y)}, "missing='drop' leaves points out.* nan at index 3"),
    "infinity": ({"y": np.where(HOLE, np.inf, Y), "missing": "drop"}, "finite, got inf at index 3"),
    "nothing": (
        {"y": np.full(8, np.nan), "missing": "drop"},
        "have at least one point that is not missing",
    ),
    "word": ({"missing": "omit"}, "be one of raise, drop, got 'omit'"),
    "negative": ({"weights": -np.ones(8)}, "weights=.* must not be negative"),
    "weights": ({"weights": np.ones(3)}, r"weights=.* must have shape \(8,\)"),
    "both": ({"weights": np.ones(8), "sigma": np.eye(8)}, "standard deviations where y is complex"),
    "not symmetric": ({"sigma": np.eye(8) + np.tri(8)}, "sigma=.* must be symmetric"),
    "complex sigma": ({"sigma": 1j}, "sigma=.* must be real"),
    "sigma_x": ({"sigma_x": np.ones(3)}, r"sigma_x=.* must fit x of shape \(8,\)"),
    "no error": ({"sigma_x": 0.0}, "sigma_x=.* must be positive"),
    "unknown points": (
        {"x": np.array([np.nan, 1.0]), "missing": "drop"},
        r"x=.* must be finite, or have the shape \(8,\) of y",
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("keywords", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        cfgd.curve_fit(decay, **{"x": T, "y": Y, "p0": P0, **keywords})


# ------------------------------------------------------------------ forms of y


def test_complex_data():
    w = np.linspace(0.1, 5, 12)
    y = 2 / (1 + 0.7j * w) + 0.01 * np.sin(17 * w) + 0.02j * np.cos(5 * w)
    sigma = 0.1 + 0.05 * w

    def parts(p):
        # R/(1 + i w tau) by its real and imaginary parts, which complex steps may differentiate
        R, tau = p
        below = 1 + (w * tau) ** 2
        return np.concatenate(
            [(R / below - y.real) / sigma, (-R * w * tau / below - y.imag) / sigma]
        )

    fit = cfgd.curve_fit(lambda w, R, tau: R / (1 + 1j * w * tau), w, y, [1.0, 1.0], sigma)
    same(fit, least_squares(parts, [1.0, 1.0]))
    assert fit.dof == 22


@pytest.mark.slow
def test_a_missing_complex_point():
    w = np.linspace(0.1, 5, 12)
    y = 2 / (1 + 0.7j * w) + 0.01 * np.sin(17 * w) + 0.02j * np.cos(5 * w)
    hole = np.arange(12) == 4

    def model(w, R, tau):
        return R / (1 + 1j * w * tau)

    less = cfgd.curve_fit(model, w[~hole], y[~hole], [1.0, 1.0])
    y = np.where(hole, complex(1.0, np.nan), y)
    fit = cfgd.curve_fit(model, w, y, [1.0, 1.0], missing="drop")
    assert fit.dof == 20
    same(fit, less)


def test_a_complex_model_of_real_data_is_refused():
    with pytest.raises(ValueError, match=r"y=.* must be complex where the model is"):
        cfgd.curve_fit(lambda t, a: a * jnp.exp(1j * t), T, Y)


SIGMAS = {
    "each component": ([0.1, 0.2], np.tile([0.1, 0.2], (8, 1))),
    "each number": (np.outer(SIGMA, [1, 3]), np.outer(SIGMA, [1, 3])),
    "matrix": (np.diag(np.outer(SIGMA**2, [1, 9]).ravel()), np.outer(SIGMA, [1, 3])),
}


@pytest.mark.parametrize(("sigma", "each"), SIGMAS.values(), ids=SIGMAS)
def test_a_model_with_several_results(sigma, each):
    both = np.stack([Y, 2 * Y + 0.1 * np.sin(9 * T)], 1)

    def model(t, size, rate, rest):
        return jnp.stack([decay(t, size, rate, rest), decay(t, 2 * size, rate, rest)], 1)

    def residuals(p):
        size, rate, rest = p
        found = [decay_in_numpy(T, k * size, rate, rest) for k in (1, 2)]
        return ((np.stack(found, 1) - both) / each).ravel()

    fit = cfgd.curve_fit(model, T, both, P0, sigma)
    same(fit, least_squares(residuals, P0))
    assert fit.dof == 13


# ------------------------------------------------------------------ several data sets


def shared(p):
    """Residuals of two data sets with one rate and rest, and a size for each."""
    rate, rest, first, second = p
    one = (decay_in_numpy(T, first, rate, rest) - Y) / SIGMA
    two = (decay_in_numpy(T[:5], second, rate, rest) - 2 * Y[:5]) / 0.3
    return np.concatenate([one, two])


GLOBAL = {
    "dicts": (
        {"a": T, "b": T[:5]},
        {"a": Y, "b": 2 * Y[:5]},
        {"rate": 1.0, "rest": 0.0, "size": {"a": 1.0, "b": 2.0}},
        {"a": SIGMA, "b": 0.3},
        ["rate", "rest", "size[a]", "size[b]"],
    ),
    "lists": (
        [T, T[:5]],
        [Y, 2 * Y[:5]],
        cfgd.Parameters(rate=1.0, rest=0.0, size={0: 1.0, 1: 2.0}),
        [SIGMA, 0.3],
        ["rate", "rest", "size[0]", "size[1]"],
    ),
}


@pytest.mark.parametrize(("x", "y", "p0", "sigma", "names"), GLOBAL.values(), ids=GLOBAL)
def test_a_global_fit(x, y, p0, sigma, names):
    fit = cfgd.curve_fit(decay, x, y, p0, sigma)
    assert fit.names == names
    assert fit.dof == 9
    parameters, covariance = least_squares(shared, [1.0, 0.0, 1.0, 2.0])
    np.testing.assert_allclose([fit.parameters[name] for name in names], parameters, rtol=1e-6)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-5)


def test_a_model_for_each_data_set():
    models = {"a": decay, "b": lambda t, rate, shift: jnp.exp(-rate * t) + shift}
    fit = cfgd.curve_fit(models, {"a": T, "b": T[:5]}, {"a": Y, "b": 2 * Y[:5]})

    def residuals(p):
        size, rate, rest, shift = p
        two = np.exp(-rate * T[:5]) + shift - 2 * Y[:5]
        return np.concatenate([decay_in_numpy(T, size, rate, rest) - Y, two])

    parameters, covariance = least_squares(residuals, np.ones(4))
    assert fit.names == ["size", "rate", "rest", "shift"]
    np.testing.assert_allclose(list(fit.parameters.values()), parameters, rtol=1e-5)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-4)


@pytest.mark.slow
def test_own_parameters_are_tied_bounded_and_fixed_by_name():
    x, y, p0, sigma, _ = GLOBAL["dicts"]
    tied = cfgd.curve_fit(decay, x, y, p0, sigma, tied={"size[b]": lambda p: 2 * p["size[a]"]})
    wanted, _ = least_squares(lambda p: shared([*p, 2 * p[2]]), [1.0, 0.0, 1.0])
    found = [tied.parameters[name] for name in ("rate", "rest", "size[a]")]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    fixed = cfgd.curve_fit(decay, x, y, p0, sigma, fixed={"size": 2.5})
    assert fixed.names == ["rate", "rest"]
    assert fixed.parameters["size[b]"] == 2.5
    bounded = cfgd.curve_fit(decay, x, y, p0, sigma, bounds={"size": (0, 2.2)})
    limits = ([-np.inf, -np.inf, 0, 0], [np.inf, np.inf, 2.2, 2.2])
    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    wanted = scipy.optimize.least_squares(shared, [1.0, 0.0, 1.0, 2.0], bounds=limits, **tight).x
    np.testing.assert_allclose(list(bounded.parameters.values()), wanted, rtol=1e-5)
    assert bounded.parameters["size[b]"] == 2.2


def test_one_x_for_all_data_sets():
    fit = cfgd.curve_fit(lambda t, a: a * t, T, {"a": Y, "b": 2 * Y}, [1.0])
    np.testing.assert_allclose(fit.parameters, [T @ (3 * Y) / (2 * T @ T)], rtol=1e-9)


SETS_REFUSED = {
    "names of x": ({"x": {"a": T, "c": T}}, "x=.* must have the names a, b of the data sets in y"),
    "shape": ({"y": {"a": Y, "b": Y[:3]}}, r"y\[b\]=.* must have the shape \(8,\)"),
    "models": ({"model": {"a": decay}}, "model=.* must have the names a, b"),
    "a list": ({"model": [decay]}, "have one for each of 2 data sets, got 1 functions"),
    "none": ({"y": {}}, "hold at least one data set"),
    "sigma": ({"sigma": {"a": 1.0}}, "sigma=.* must have the names a, b"),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("keywords", "message"), SETS_REFUSED.values(), ids=SETS_REFUSED)
def test_data_sets_that_are_refused(keywords, message):
    given = {"model": decay, "x": {"a": T, "b": T}, "y": {"a": Y, "b": Y}, "p0": P0, **keywords}
    with pytest.raises(ValueError, match=message):
        cfgd.curve_fit(**given)


# ------------------------------------------------------------------ errors of x


# Parameters and standard errors of scipy.odr 1.17.1 (deprecated since), with sy = 0.05, from P0 and
# with sstol = partol = 1e-15: of `decay` with sx = 0.1 + SIGMA and of the plane below
CURVE = ([2.32770128, 0.713220542, 0.481356179], [0.136098006, 0.068358612, 0.047037032])
PLANE = ([-0.513697034, 0.112473853, 2.429963078], [0.186066468, 0.345271913, 0.397383479])


def test_errors_of_x():
    fit = cfgd.curve_fit(decay, T, Y, P0, sigma=0.05, sigma_x=0.1 + SIGMA)
    np.testing.assert_allclose(fit.parameters, CURVE[0], rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors, CURVE[1], rtol=1e-4)
    assert fit.dof == 5

    def residuals(q):
        p, errors = q[:3], q[3:]
        r = (decay_in_numpy(T + (0.1 + SIGMA) * errors, *p) - Y) / 0.05
        return np.concatenate([r, errors])

    parameters, covariance = least_squares(residuals, [*P0, *np.zeros(8)])
    np.testing.assert_allclose(fit.parameters, parameters[:3], rtol=1e-6)
    np.testing.assert_allclose(fit.covariance, covariance[:3, :3], rtol=1e-5)


@pytest.mark.slow
def test_errors_of_one_of_two_variables():
    def plane(x, a, b, c):
        return a * x["u"] + b * x["v"] + c

    x = {"u": T, "v": np.cos(T)}
    fit = cfgd.curve_fit(plane, x, Y, P0, 0.05, sigma_x={"u": 0.2})
    np.testing.assert_allclose(fit.parameters, PLANE[0], rtol=1e-5)
    np.testing.assert_allclose(fit.standard_errors, PLANE[1], rtol=1e-4)
