"""Least squares with lmfit's parameters, against lmfit itself."""

import copy
import re

import numpy as np
import pytest
import scipy.optimize

lmfit = pytest.importorskip("lmfit", reason="lmfit is not installed: pip install 'cfgd[lmfit]'")

from cfgd.integrations.lmfit import minimize  # noqa: E402

T = np.linspace(0, 4, 9)
Y = np.array([2.94, 2.12, 1.62, 1.19, 0.97, 0.83, 0.71, 0.62, 0.55])


def residual(p, t, y, sigma=1.0):
    v = p.valuesdict()
    return (v["size"] * np.exp(-v["rate"] * t) + v["rest"] - y) / sigma


def parameters(**changes):
    given = {"size": {"value": 1.0, "min": 0}, "rate": {"value": 1.0, "max": 5}, "rest": 0.0}
    params = lmfit.create_params(**{**given, **changes})
    params.add("half_life", expr="log(2) / rate")
    params.add("area", expr="size / rate + rest")
    return params


@pytest.mark.parametrize("scale_covar", [True, False])
def test_as_lmfit(scale_covar):
    params, kws = parameters(), {"sigma": 0.02}
    before = copy.deepcopy(params)
    ours = minimize(residual, params, args=(T, Y), kws=kws, scale_covar=scale_covar)
    assert params == before
    theirs = lmfit.minimize(
        residual, params, args=(T, Y), kws=kws, scale_covar=scale_covar, ftol=1e-14, xtol=1e-14
    )
    assert ours.success
    assert ours.errorbars
    assert ours.var_names == theirs.var_names
    assert ours.init_values == theirs.init_values
    for name in params:
        mine, other = ours.params[name], theirs.params[name]
        assert mine.value == pytest.approx(other.value, rel=1e-6)
        assert mine.stderr == pytest.approx(other.stderr, rel=1e-4), name
        assert mine.init_value == other.init_value
        if mine.vary:
            assert mine.correl == pytest.approx(other.correl, rel=5e-4)
    np.testing.assert_allclose(ours.covar, theirs.covar, rtol=5e-4)
    for name in ("chisqr", "redchi", "aic", "bic", "nfree", "ndata", "nvarys"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-6), name
    np.testing.assert_allclose(ours.residual, theirs.residual, atol=1e-4)


def test_the_report_of_lmfit():
    found, wanted = (
        lmfit.fit_report(fit(residual, parameters(), args=(T, Y)))
        for fit in (minimize, lmfit.minimize)
    )
    rows = [
        line for line in found.splitlines() if re.match(r" +(size|rate|rest|half_life|C\()", line)
    ]
    assert len(rows) == 7
    for line in rows:  # to the four digits of the correlations, and five of the rest
        short = re.sub(r"(\d\.\d{3})\d+", r"\1", line)
        assert short in re.sub(r"(\d\.\d{3})\d+", r"\1", wanted)


def test_fixed_parameters_stay():
    result = minimize(residual, parameters(rest={"value": 0.5, "vary": False}), args=(T, Y))
    assert result.var_names == ["size", "rate"]
    assert result.params["rest"].value == 0.5
    assert result.params["rest"].stderr in (None, 0)
    p, covariance = scipy.optimize.curve_fit(lambda t, a, b: a * np.exp(-b * t) + 0.5, T, Y, [1, 1])
    np.testing.assert_allclose([result.params[n].value for n in ("size", "rate")], p, rtol=1e-5)
    np.testing.assert_allclose(result.covar, covariance, rtol=1e-4)


def test_a_parameter_at_its_bound_does_not_spoil_the_others():
    result = minimize(residual, parameters(rest={"value": 0.7, "min": 0.5}), args=(T, Y))
    assert result.success
    assert result.params["rest"].value == 0.5
    assert result.params["rest"].stderr is None
    assert result.params["area"].stderr is None  # it depends on `rest`
    p, covariance = scipy.optimize.curve_fit(lambda t, a, b: a * np.exp(-b * t) + 0.5, T, Y, [1, 1])
    errors = np.sqrt(np.diag(covariance)) * np.sqrt(7 / 6)  # lmfit counts three parameters
    found = [result.params[name] for name in ("size", "rate")]
    np.testing.assert_allclose([each.value for each in found], p, rtol=1e-5)
    np.testing.assert_allclose([each.stderr for each in found], errors, rtol=1e-4)
    half = result.params["half_life"]
    assert half.stderr == pytest.approx(np.log(2) / p[1] ** 2 * errors[1], rel=1e-4)
    assert result.errorbars
    assert "rest" in lmfit.fit_report(result)


def test_a_model_of_lmfit():
    x = np.linspace(-3, 3, 40)
    y = 2.5 * np.exp(-((x - 0.3) ** 2) / 2 / 0.8**2) + 0.02 * np.cos(17 * x)
    model = lmfit.models.GaussianModel()
    params = model.guess(y, x=x)
    theirs = model.fit(y, params, x=x)
    ours = minimize(lambda p, x, y: model.eval(p, x=x) - y, params, args=(x, y))
    for name in ("amplitude", "center", "sigma", "fwhm", "height"):
        assert ours.params[name].value == pytest.approx(theirs.params[name].value, rel=1e-5)
        assert ours.params[name].stderr == pytest.approx(theirs.params[name].stderr, rel=1e-3)


def test_complex_residuals():
    w = np.linspace(0.1, 3, 20)
    y = 1 / (1.44 - w**2 + 0.3j * w)

    def complex_residual(p):
        return p["a"] / (p["w0"] ** 2 - w**2 + 1j * p["k"] * w) - y

    result = minimize(complex_residual, lmfit.create_params(a=0.8, w0=1.1, k=0.5))
    assert result.ndata == 40
    np.testing.assert_allclose([each.value for each in result.params.values()], [1, 1.2, 0.3])


def test_what_the_data_do_not_determine():
    params = lmfit.create_params(a=1.0, b=1.0, c=1.0)
    x = np.arange(6.0)
    y = 2 * x + np.array([0.1, -0.1, 0.0, 0.1, 0.0, -0.1])
    result = minimize(lambda p: p["a"] * x + p["b"] + p["c"] - y, params)
    assert result.params["a"].stderr > 0
    assert result.params["b"].stderr is None
    assert not result.errorbars
    assert lmfit.fit_report(result)


def test_refusals():
    with pytest.raises(ValueError, match=r"`minimize\(params=...\)` must be lmfit.Parameters"):
        minimize(residual, {"a": 1.0})
    with pytest.raises(ValueError, match="have a parameter that varies"):
        minimize(residual, lmfit.create_params(a={"value": 1.0, "vary": False}))
    with pytest.raises(ValueError, match=r"return an array of residuals"):
        minimize(lambda p: 1.0, lmfit.create_params(a=1.0))
    params = lmfit.Parameters()
    params.add("a")
    with pytest.raises(ValueError, match=r"params\['a'\].* must have a finite value, got -inf"):
        minimize(residual, params)


def test_a_run_that_is_stopped_early():
    result = minimize(residual, parameters(), args=(T, Y), max_nfev=1)
    assert not result.success
    assert "max_iterations" in result.message
