"""Standard errors: certified ones, at bounds, with ties, without enough data, with outliers."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import cfgd
from cfgd.apps.data.nist import regressions
from cfgd.fitting.uncertainty import Uncertainty

T = np.array([0.0, 0.3, 0.9, 1.4, 2.2, 3.1, 3.3, 4.6])
Y = np.array([2.94, 2.41, 1.62, 1.30, 0.97, 0.83, 0.71, 0.55])


def decay(t, size, rate, rest):
    return size * jnp.exp(-rate * t) + rest


def jacobian_of_decay(size, rate):
    return np.stack([np.exp(-rate * T), -size * T * np.exp(-rate * T), np.ones(8)], 1)


@pytest.mark.parametrize("name", regressions())
@pytest.mark.one_case
def test_standard_errors_are_those_certified_by_nist(name):
    """To six digits; Lanczos1 has a residual of rounding errors, from which nothing follows."""
    one = regressions()[name]

    def model(x, *b):
        return one.residuals(jnp.stack(b))

    zero = np.zeros(np.shape(one.residuals(one.certified)))
    fit = cfgd.curve_fit(model, np.zeros(1), zero, one.starts[1])
    if name == "Lanczos1":
        assert fit.chi_square < 1e-20
    else:
        np.testing.assert_allclose(fit.standard_errors, one.deviations, rtol=1e-6)
        assert fit.chi_square == pytest.approx(one.sum_of_squares, rel=1e-6)


def test_as_many_points_as_parameters():
    """With a known sigma there are standard errors, also of an exact fit; without it none."""
    t, y = np.array([0.0, 1.0, 2.0]), np.array([3.0, 2.0, 1.6])
    sigma = np.array([0.1, 0.2, 0.15])
    fit = cfgd.curve_fit(decay, t, y, [1.0, 1.0, 1.0], sigma, absolute_sigma=True)
    theirs = scipy.optimize.curve_fit(
        *(lambda t, a, b, c: a * np.exp(-b * t) + c, t, y, [1.0, 1.0, 1.0]),
        sigma=sigma,
        absolute_sigma=True,
    )[1]
    np.testing.assert_allclose(fit.covariance, theirs, rtol=1e-5)
    assert fit.warnings == []
    head = "Fit: converged, residual standard deviation not defined with 0 degrees of freedom"
    assert repr(fit).splitlines()[0] == head
    with pytest.warns(UserWarning, match="as many points as free parameters"):
        fit = cfgd.curve_fit(decay, t, y, [1.0, 1.0, 1.0])
    assert np.isinf(fit.standard_errors).all()
    assert fit.intervals()["rate"] == (-np.inf, np.inf)


def test_an_exact_fit_has_no_errors():
    fit = cfgd.curve_fit(lambda t, a, b: a + b * t, T, 2 + 3 * T, [0.0, 0.0])
    np.testing.assert_allclose(fit.standard_errors, 0, atol=1e-12)
    found = fit.intervals()
    np.testing.assert_allclose(found["b"], 3, atol=1e-12)
    assert found.notes[0] == (
        "a: is the normal interval, because the residuals are only rounding errors."
    )
    fit = cfgd.curve_fit(
        *(lambda t, a, b: a + b * t, T, 2 + 3 * T, [0.0, 0.0], np.full(8, 0.1)),
        absolute_sigma=True,
    )
    X = np.stack([np.ones(8), T], 1)
    np.testing.assert_allclose(fit.covariance, 0.01 * np.linalg.inv(X.T @ X), rtol=1e-8)


def test_a_parameter_at_its_bound_does_not_spoil_the_others():
    """The others' errors and the degrees of freedom are those of the fit with it fixed there."""
    bounds = ([-np.inf, -np.inf, 0.7], [np.inf] * 3)
    fit = cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 1.0], bounds=bounds)
    assert fit.at_bound == ["rest"]
    assert fit.dof == 6
    p = fit.parameters
    J = jacobian_of_decay(*p[:2])[:, :2]
    r = p[0] * np.exp(-p[1] * T) + p[2] - Y
    want = r @ r / 6 * np.linalg.inv(J.T @ J)
    np.testing.assert_allclose(fit.covariance[:2, :2], want, rtol=1e-6)
    assert np.isnan(fit.covariance[2]).all()
    assert np.isnan(fit.covariance[:, 2]).all()
    assert np.isnan(fit.errors["rest"])
    assert fit.errors["rate"] == fit.standard_errors[1]
    assert fit.warnings[0].startswith("rest is at its bound 0.7: it has no standard error")
    value, error = fit.derived(lambda p: p["size"] + p["rest"])
    assert value == pytest.approx(p[0] + 0.7)
    assert error == pytest.approx(np.sqrt(want[0, 0]), rel=1e-6)


def test_an_undetermined_combination_does_not_spoil_the_others():
    with pytest.warns(UserWarning, match="do not determine"):
        fit = cfgd.curve_fit(
            *(lambda t, a, b, c, d: (a + 2 * b) + c * t + 0 * d, T, Y, [1.0, 1.0, 0.0, 5.0]),
            sigma=np.full(8, 0.3),
            absolute_sigma=True,
        )
    X = np.stack([np.ones(8), T], 1)
    want = 0.09 * np.linalg.inv(X.T @ X)
    assert np.isinf(fit.standard_errors[[0, 1, 3]]).all()
    assert fit.standard_errors[2] == pytest.approx(np.sqrt(want[1, 1]), rel=1e-9)
    assert set(fit.warnings) == {
        "The data do not determine a and b separately: changing a by 1, b by -0.5 together leaves "
        "the fit as it is.",
        "The data do not determine d: changing it leaves the fit as it is.",
    }
    _, error = fit.derived(lambda p: p["a"] + 2 * p["b"])
    assert error == pytest.approx(np.sqrt(want[0, 0]), rel=1e-9)
    assert np.isinf(fit.derived(lambda p: p["a"]).error)


def test_a_nearly_singular_fit_is_reported():
    """Two rates that differ by little: only the sum of the sizes is known."""
    fit = cfgd.curve_fit(
        *(lambda t, a, b: a * jnp.exp(-t) + b * jnp.exp(-1.0005 * t), T, Y, [1.0, 1.0]),
        sigma=np.full(8, 0.1),
        absolute_sigma=True,
    )
    assert fit.warnings[0].startswith("The data hardly determine a and b separately: changing a by")
    assert fit.correlations[0, 1] == pytest.approx(-1, abs=1e-6)


def test_the_units_of_the_parameters_do_not_matter():
    rng = np.random.default_rng(3)
    J = rng.normal(size=(9, 4))
    units = np.array([1e-150, 1.0, 1e90, 1e6])
    none = np.zeros(4, bool)
    plain = Uncertainty.of(J, 2.0, none).covariance()
    np.testing.assert_allclose(plain, 2 * np.linalg.inv(J.T @ J), rtol=1e-10)
    scaled = Uncertainty.of(J / units, 2.0, none).standard_errors(np.eye(4))
    np.testing.assert_allclose(scaled / units, np.sqrt(np.diag(plain)), rtol=1e-10)


def test_more_parameters_than_points():
    J = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    found = Uncertainty.of(J, 1.0, np.zeros(3, bool))
    np.testing.assert_array_equal(np.isinf(np.diag(found.covariance())), [True, True, False])
    assert found.covariance()[2, 2] == pytest.approx(0.25)
    assert found.standard_errors(np.array([[1.0, 1.0, 0.0]]))[0] == pytest.approx(1.0)


def test_fixed_and_tied_parameters():
    fit = cfgd.curve_fit(
        *(decay, T, Y, {"size": 1.0, "rate": 1.0, "rest": 0.4}),
        fixed=["rate"],
        tied={"rest": lambda p: p["size"] ** 2 / 10},
    )
    assert fit.names == ["size"]
    assert fit.values["rate"] == 1.0
    assert fit.errors["rate"] == 0.0
    size = float(fit.values["size"])
    assert fit.values["rest"] == pytest.approx(size**2 / 10)
    slope = np.exp(-T) + size / 5
    r = size * np.exp(-T) + size**2 / 10 - Y
    error = np.sqrt(r @ r / 7 / (slope @ slope))
    assert fit.errors["size"] == pytest.approx(error, rel=1e-6)
    assert fit.errors["rest"] == pytest.approx(size / 5 * error, rel=1e-6)


def test_robust_errors_are_those_of_statsmodels():
    """RLM(Y, [1, T], HuberT(1.345)).fit(update_scale=False, cov="H1") of statsmodels 0.15."""
    t = np.array([0.0, 0.3, 0.9, 1.4, 2.2, 3.1, 3.3, 4.6, 5.0, 5.7])
    y = np.array([1.1, 1.0, 2.1, 2.2, 6.9, 4.3, 4.1, 5.4, 6.2, 4.0])
    fit = cfgd.curve_fit(
        *(lambda t, a, b: a + b * t, t, y, [1.0, 1.0]), loss="huber", scale=1.2699762634602307
    )
    np.testing.assert_allclose(fit.parameters, [1.340444599197248, 0.8428195272269907], rtol=1e-6)
    want = [[0.27068640453961806, -0.06713326832288141], [-0.06713326832288141, 0.02533330880108]]
    np.testing.assert_allclose(fit.covariance, want, rtol=1e-6)
    assert fit.covariance_kind == "sandwich"
    r = fit.parameters[0] + fit.parameters[1] * t - y
    assert fit.residual_std == pytest.approx(np.sqrt(r @ r / 8), rel=1e-9)
    assert np.isnan(fit.aic)


def test_criteria_and_chi_square():
    sigma = np.array([0.1, 0.2, 0.1, 0.05, 0.1, 0.3, 0.1, 0.2])
    fit = cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.0], sigma)
    known = cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.0], sigma, absolute_sigma=True)
    p = fit.parameters
    chi = np.sum(((p[0] * np.exp(-p[1] * T) + p[2] - Y) / sigma) ** 2)
    mean = np.average(Y, weights=sigma**-2.0)
    assert fit.chi_square == pytest.approx(chi)
    assert fit.reduced_chi_square == pytest.approx(chi / 5)
    assert fit.residual_std == pytest.approx(np.sqrt(chi / 5))
    assert fit.r_squared == pytest.approx(1 - chi / np.sum(((Y - mean) / sigma) ** 2))
    assert fit.aic == pytest.approx(8 * np.log(chi / 8) + 6)
    assert fit.bic == pytest.approx(8 * np.log(chi / 8) + 3 * np.log(8))
    assert known.aic == pytest.approx(chi + 6)
    assert known.bic == pytest.approx(chi + 3 * np.log(8))
    errors = fit.standard_errors
    np.testing.assert_allclose(fit.correlations, fit.covariance / np.outer(errors, errors))


@pytest.mark.slow
def test_r_squared_of_correlated_complex_and_missing_data():
    A = np.diag(np.linspace(0.1, 0.3, 8)) + 0.05 * np.tri(8)
    fit = cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.0], A @ A.T)
    constant = cfgd.curve_fit(lambda t, c: c + 0 * t, T, Y, [1.0], A @ A.T)
    assert fit.r_squared == pytest.approx(1 - fit.chi_square / constant.chi_square)
    y = Y * np.exp(0.3j * T)
    fit = cfgd.curve_fit(lambda t, a, b, w: a * jnp.exp((1j * w - b) * t), T, y, [3.0, 0.5, 0.3])
    r = np.concatenate([fit.problem.residuals(fit.solution.x)])
    assert fit.r_squared == pytest.approx(1 - r @ r / np.sum(np.abs(y - y.mean()) ** 2))
    assert fit.dof == 13
    gaps = np.where(np.arange(8) == 3, np.nan, Y)
    fit = cfgd.curve_fit(decay, T, gaps, [1.0, 1.0, 0.0], missing="drop")
    keep = np.arange(8) != 3
    want = cfgd.curve_fit(decay, T[keep], Y[keep], [1.0, 1.0, 0.0])
    assert fit.r_squared == pytest.approx(want.r_squared)
    np.testing.assert_allclose(fit.covariance, want.covariance, rtol=1e-6)


@pytest.mark.slow
def test_missing_values_do_not_count_in_robust_errors():
    gaps = np.where(np.arange(8) == 3, np.nan, Y)
    given = {"loss": "soft_l1", "scale": 0.05}
    fit = cfgd.curve_fit(decay, T, gaps, [1.0, 1.0, 0.0], missing="drop", **given)
    keep = np.arange(8) != 3
    want = cfgd.curve_fit(decay, T[keep], Y[keep], [1.0, 1.0, 0.0], **given)
    np.testing.assert_allclose(fit.covariance, want.covariance, rtol=1e-6)


@pytest.mark.slow
def test_float32_data():
    t, y = T.astype(np.float32), Y.astype(np.float32)
    fit = cfgd.curve_fit(decay, t, y, np.array([1.0, 1.0, 0.0], np.float32))
    want = cfgd.curve_fit(decay, T, Y, [1.0, 1.0, 0.0])
    np.testing.assert_allclose(fit.standard_errors, want.standard_errors, rtol=1e-2)
