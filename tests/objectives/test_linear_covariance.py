"""Covariances of linear models, and summaries of estimators, beside statsmodels."""

import numpy as np
import pytest

import cfgd
from cfgd.integrations.sklearn import CaputoClassifier, CaputoRegressor

RANDOM = np.random.default_rng(1)
N = 60
X = RANDOM.normal(size=(N, 3)) * [1, 10, 0.1] + [3, 50, 0]
WITH_ONES = np.column_stack([X, np.ones(N)])
ETA = X @ [0.3, 0.02, -2.0] - 1
WEIGHT = RANDOM.uniform(0.5, 2, N)
Y = {
    "squared": ETA + RANDOM.normal(size=N),
    "huber": ETA + RANDOM.standard_t(1.5, size=N),
    "logistic": (ETA + RANDOM.logistic(size=N) > 0) * 1,
    "poisson": RANDOM.poisson(np.exp(ETA / 2)),
    "gamma": np.exp(ETA / 2) * RANDOM.gamma(2, 0.5, N),
    "multinomial": (np.outer(ETA, [0.5, -0.5, 0]) + RANDOM.gumbel(size=(N, 3))).argmax(1),
}


def fitted(loss, data=X, **more):
    f = cfgd.LinearModel(data, Y[loss], loss, intercept=True, **more)
    return cfgd.minimize(f, np.zeros(f.shape), tolerance=1e-12)


def reference(loss, weight=None):
    import statsmodels.api as sm  # it takes seconds to import

    y, close = Y[loss], {"tol": 1e-13, "maxiter": 500}
    if loss == "squared":
        return (sm.OLS(y, WITH_ONES) if weight is None else sm.WLS(y, WITH_ONES, weight)).fit()
    if loss == "huber":
        norm = sm.robust.norms.HuberT(t=1.0)
        return sm.RLM(y, WITH_ONES, M=norm).fit(scale_est=lambda *_: 1.0, cov="H1", **close)
    family = {
        "logistic": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
    }[loss]
    # with an estimated dispersion, as R's summary of a glm has it
    return sm.GLM(y, WITH_ONES, family, var_weights=weight).fit(use_t=loss == "gamma", **close)


@pytest.mark.every_case
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "poisson", "gamma"])
def test_standard_errors_are_those_of_statsmodels(loss):
    errors = np.sqrt(np.diag(fitted(loss).covariance()))
    np.testing.assert_allclose(errors, reference(loss).bse, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "gamma"])
def test_weights(loss):
    errors = np.sqrt(np.diag(fitted(loss, sample_weight=WEIGHT).covariance()))
    np.testing.assert_allclose(errors, reference(loss, WEIGHT).bse, rtol=1e-6)


def test_differences_of_classes_have_the_errors_of_statsmodels():
    import statsmodels.api as sm

    C = fitted("multinomial").covariance().reshape(4, 3, 4, 3)
    want = np.asarray(sm.MNLogit(Y["multinomial"], WITH_ONES).fit(disp=0, tol=1e-12).bse)
    for k in (1, 2):
        found = [C[j, k, j, k] + C[j, 0, j, 0] - 2 * C[j, k, j, 0] for j in range(4)]
        np.testing.assert_allclose(np.sqrt(found), want[:, k - 1], rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "gamma", "multinomial"])
def test_collinear_columns_leave_the_others_their_errors(loss):
    with_sum = np.column_stack([X, X[:, 0] + 2 * X[:, 1]])
    with pytest.warns(UserWarning, match=r"x\[0\] \+ 2 x\[1\] - x\[3\]"):
        found = np.diag(fitted(loss, with_sum).covariance()).reshape(5, -1)
    want = np.diag(fitted(loss).covariance()).reshape(4, -1)
    assert np.isinf(found[[0, 1, 3]]).all()
    np.testing.assert_allclose(found[[2, 4]], want[[2, 3]], rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "poisson", "gamma"])
def test_the_summary_of_a_regressor(loss):
    model, want = CaputoRegressor(loss, tol=1e-12).fit(X, Y[loss]), reference(loss)
    table, facts = model.summary(), dict(model.summary().facts)
    np.testing.assert_allclose(model.standard_errors_, want.bse[:3], rtol=1e-6)
    assert model.intercept_standard_error_ == pytest.approx(want.bse[3], rel=1e-6)
    np.testing.assert_allclose(table.p_values, want.pvalues, rtol=1e-5)
    np.testing.assert_allclose(table.intervals(), want.conf_int(), rtol=1e-5)
    assert float(facts["log-likelihood"]) == pytest.approx(want.llf, rel=1e-6)
    assert float(facts["AIC"]) == pytest.approx(want.aic, rel=1e-6)


def test_the_summary_of_a_classifier():
    model, want = CaputoClassifier(l2=0, tol=1e-12).fit(X, Y["logistic"]), reference("logistic")
    np.testing.assert_allclose(model.summary().p_values, want.pvalues, rtol=1e-5)
    assert model.standard_errors_.shape == model.coef_.shape
    assert model.solution_.success
    penalised = CaputoClassifier(l2=1.0).fit(X, Y["logistic"]).summary()
    assert np.isnan(penalised.intervals()).all()
    assert np.isfinite(penalised.errors).all()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [10, 30, 100, 1000])
def test_95_percent_intervals_of_least_squares_cover_95_percent(rows):
    """4,000 data sets by seed `rows`: the standard error of the share is 0.34 %."""
    random = np.random.default_rng(rows)
    inside = 0
    for _ in range(4000):
        x = random.normal(size=(rows, 1))
        table = CaputoRegressor().fit(x, 2 * x[:, 0] + random.normal(size=rows)).summary()
        low, high = table.intervals()[0]
        inside += low <= 2 <= high
    assert 0.94 <= inside / 4000 <= 0.96
