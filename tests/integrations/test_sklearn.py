"""The scikit-learn estimators: `check_estimator`, the same coefficients, pipelines and files."""

import io
import warnings

import jax
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import cfgd
from cfgd.integrations.sklearn import (
    CaputoClassifier,
    CaputoNetwork,
    CaputoRegressor,
    CaputoRidge,
)
from problems import few

# scikit-learn's checks pass arguments of wrong types on purpose
pytestmark = [
    pytest.mark.usefixtures("unchecked"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@parametrize_with_checks(
    [CaputoRegressor(), CaputoClassifier(), CaputoNetwork(width=5, max_iter=20)]
)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([CaputoRidge(gamma=0.1)])
def test_check_estimator_of_ridge(estimator, check):
    check(estimator)


X, Y = load_diabetes(return_X_y=True)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2, len(Y))
COUNTS = np.round(Y / 20)
SAME_MODELS = {
    "LinearRegression": (CaputoRegressor(), LinearRegression(), Y),
    "Ridge": (CaputoRegressor(l2=0.7), Ridge(alpha=0.7), Y),
    "no intercept": (
        CaputoRegressor(l2=0.7, fit_intercept=False),
        Ridge(alpha=0.7, fit_intercept=False),
        Y,
    ),
    "PoissonRegressor": (
        CaputoRegressor("poisson", l2=1e-3 * WEIGHT.sum()),
        PoissonRegressor(alpha=1e-3, tol=1e-10, max_iter=10_000),
        COUNTS,
    ),
    "GammaRegressor": (
        CaputoRegressor("gamma", l2=1e-3 * WEIGHT.sum()),
        GammaRegressor(alpha=1e-3, tol=1e-10, max_iter=10_000),
        Y,
    ),
}


@pytest.mark.parametrize(("ours", "theirs", "y"), SAME_MODELS.values(), ids=SAME_MODELS)
def test_regressors_equal_scikit_learns(ours, theirs, y):
    """Coefficients agree to 1e-4 of the largest one."""
    ours, theirs = clone(ours).fit(X, y, WEIGHT), theirs.fit(X, y, WEIGHT)
    atol = 1e-4 * np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-3)
    assert len(ours.loss_curve_) == ours.n_iter_ + 1


def test_huber_regressor_reaches_a_lower_value_than_scikit_learn():
    """scikit-learn's coefficients are accurate to 1e-2 of the largest one."""
    ours = CaputoRegressor("huber", l2=2e-3).fit(X, Y, WEIGHT)
    theirs = HuberRegressor(alpha=1e-3, tol=1e-9, max_iter=100_000).fit(X, Y, WEIGHT)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2 * np.abs(theirs.coef_).max())
    assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-3)

    def value(model):
        z = np.abs(Y - model.predict(X)) / model.scale_
        clipped = np.minimum(z, 1.35)
        losses = model.scale_ * (1 + 2 * clipped * z - clipped**2)
        return WEIGHT @ losses + 1e-3 * np.sum(model.coef_**2)

    assert value(ours) <= value(theirs) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("sparse", "weight"),
    few([(False, "balanced"), (True, None), (False, None), (True, "balanced")], 2),
)
def test_classifier_equals_logistic_regression(sparse, weight):
    for X, y in (load_breast_cancer(return_X_y=True), load_iris(return_X_y=True)):
        Z = StandardScaler().fit_transform(X)
        Z = scipy.sparse.csr_array(Z) if sparse else Z
        ours = CaputoClassifier(l2=0.5, class_weight=weight).fit(Z, y)
        theirs = LogisticRegression(C=2.0, class_weight=weight, tol=1e-10, max_iter=10_000)
        theirs.fit(Z, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        centred = theirs.intercept_ - (len(theirs.intercept_) > 1) * theirs.intercept_.mean()
        np.testing.assert_allclose(ours.intercept_, centred, atol=1e-4)
        np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-5)
        assert np.array_equal(ours.predict(Z), theirs.predict(Z))


@pytest.mark.slow
@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_positive_coefficients_are_scikit_learns(l2):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 6))
    y = X @ [1.0, -1.0, 0.5, 0.0, -2.0, 0.1] + random.normal(size=60)
    ours = CaputoRegressor(l2=l2, positive=True).fit(X, y)
    theirs = Ridge(alpha=l2, positive=True, tol=1e-12) if l2 else LinearRegression(positive=True)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)
    assert (ours.coef_ == 0).any()
    labels = CaputoClassifier(positive=True).fit(X, y > 0)
    assert labels.status_ == "converged"
    assert (labels.coef_ >= 0).all()
    assert (labels.coef_ > 0).any()


def test_iterates_equal_those_of_cfgd_minimize():
    method = cfgd.AdaptiveTerminal(0.5, gamma=-0.1, lag=2)
    ours = CaputoRegressor(
        "poisson", method="adaptive_terminal", gamma=-0.1, lag=2, max_iter=20
    ).fit(X, COUNTS)
    f = cfgd.LinearModel(X, COUNTS, "poisson", intercept=True)
    core = cfgd.minimize(f, np.zeros(11), method, max_iterations=20)
    np.testing.assert_allclose(ours.loss_curve_, core.history["value"], rtol=1e-10)
    np.testing.assert_allclose(ours.coef_, core.x[:10], rtol=1e-6)
    again = CaputoRegressor("poisson", method=method, max_iter=20).fit(X, COUNTS)
    assert np.array_equal(again.coef_, ours.coef_)


@pytest.mark.slow
def test_ridge_and_its_path_equal_the_closed_form():
    gammas = np.array([0.01, 0.1, 1.0])
    Z = X - WEIGHT @ X / WEIGHT.sum()
    A = (Z.T * WEIGHT) @ Z
    b = (Z.T * WEIGHT) @ (Y - WEIGHT @ Y / WEIGHT.sum())
    exact = np.stack([np.linalg.solve(A + g * np.diag(np.diag(A)), b) for g in gammas])
    path = CaputoRidge().path(X, Y, gammas, WEIGHT)
    np.testing.assert_allclose(path, exact, rtol=1e-5)
    one = CaputoRidge(gamma=0.1).fit(X, Y, WEIGHT)
    np.testing.assert_allclose(one.coef_, exact[1], rtol=1e-5)
    assert one.intercept_ == pytest.approx(
        (WEIGHT @ Y - WEIGHT @ X @ exact[1]) / WEIGHT.sum(), rel=1e-6
    )
    scaled = make_pipeline(StandardScaler(), Ridge(alpha=0.1 * len(Y)))
    plain = CaputoRidge(gamma=0.1).fit(X, Y)
    np.testing.assert_allclose(plain.predict(X), scaled.fit(X, Y).predict(X), rtol=1e-5)


def test_network_fits_and_returns_the_best_restart():
    z = np.linspace(-1, 1, 60)
    Z = np.column_stack([z, z**2 - 0.3])
    y = 50 + 10 * np.sin(4 * z)
    models = [
        CaputoNetwork(width=8, max_iter=60, restarts=n, random_state=1).fit(Z, y) for n in (1, 3)
    ]
    assert models[0].score(Z, y) > 0.99
    assert models[1].loss_curve_[-1] <= models[0].loss_curve_[-1] * (1 + 1e-6)
    again = CaputoNetwork(width=8, max_iter=60, random_state=1).fit(Z, y)
    assert np.array_equal(again.predict(Z), models[0].predict(Z))


@pytest.mark.slow
@pytest.mark.parametrize("activation", few(["sigmoid", "tanh"]))
def test_padding_does_not_change_the_fit_of_a_network(activation):
    z = np.linspace(-1, 1, 61)[:, None]
    y = np.sin(3 * z[:, 0])
    options = {"width": 4, "max_iter": 30, "random_state": 1, "method": "adaptive_terminal"}
    ours = CaputoNetwork(activation=activation, gamma=1.0, alpha=0.7, **options).fit(z, y)
    core = cfgd.minimize(
        ours.network_,
        ours._initial_points(ours.network_, 1)[0],
        cfgd.AdaptiveTerminal(0.7, gamma=1.0),
        max_iterations=30,
        tolerance=1e-4,
    )
    assert len(ours.network_.y) == 61
    np.testing.assert_allclose(ours.loss_curve_, core.history["value"], rtol=1e-8)


@pytest.mark.parametrize("processes", few([1, 2]))
def test_pipeline_grid_search_and_joblib(processes):
    pipe = make_pipeline(StandardScaler(), CaputoClassifier())
    data, target = load_breast_cancer(return_X_y=True, as_frame=True)
    search = GridSearchCV(pipe, {"caputoclassifier__l2": [0.1, 10.0]}, n_jobs=processes, cv=3)
    search.fit(data, target)
    assert search.best_score_ > 0.95
    assert list(search.best_estimator_[0].feature_names_in_) == list(data.columns)
    assert np.all(cross_val_score(pipe, data, target, cv=3) > 0.9)
    file = io.BytesIO()
    joblib.dump(search.best_estimator_, file)
    file.seek(0)
    assert np.array_equal(joblib.load(file).predict(data), search.predict(data))
    model = CaputoRegressor().fit(data, target)
    assert model.n_features_in_ == 30
    with pytest.raises(ValueError, match="feature names"):
        model.predict(data.rename(columns={"mean radius": "radius"}))
    assert isinstance(data, pd.DataFrame)


@pytest.mark.slow
def test_warm_start_continues_from_the_last_fit():
    model = CaputoClassifier(warm_start=True, method="gradient_descent", max_iter=5)
    data, target = load_iris(return_X_y=True)
    first = model.fit(data, target).loss_curve_
    second = model.fit(data, target).loss_curve_
    assert second[0] == pytest.approx(first[-1], rel=1e-6)
    assert second[-1] < first[-1]
    regressor = CaputoRegressor("huber", warm_start=True).fit(X, Y)
    last = regressor.loss_curve_[-1]
    assert regressor.fit(X, Y).loss_curve_[0] == pytest.approx(last, rel=1e-12)


def test_convergence_warning_names_the_estimators_parameters():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CaputoClassifier(max_iter=1).fit(*load_iris(return_X_y=True))
    [warning] = [w for w in caught if w.category is ConvergenceWarning]
    text = str(warning.message)
    assert "CaputoClassifier: Stopped at `max_iter` before `tol` was met: raise `max_iter`" in text
    assert warning.filename == __file__


WITHOUT_COMPILING = {
    "squared": CaputoRegressor(),
    "logistic": CaputoClassifier(),
    "poisson, adaptive terminal": CaputoRegressor(
        "poisson", method="adaptive_terminal", max_iter=50
    ),
    "ridge": CaputoRidge(),
    "network": CaputoNetwork(width=4, max_iter=5, restarts=2),
    "network, adaptive terminal": CaputoNetwork(width=4, max_iter=5, method="adaptive_terminal"),
}


@pytest.mark.parametrize("model", WITHOUT_COMPILING.values(), ids=WITHOUT_COMPILING)
def test_folds_of_similar_sizes_do_not_compile_again(model):
    rng = np.random.default_rng(1)
    data = rng.normal(size=(400, 4))
    y = data @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=400)
    target = np.digitize(y, [0]) if isinstance(model, CaputoClassifier) else np.abs(y)
    model.fit(data[:320], target[:320])
    compiled = []

    is_listening = True

    def record(event, duration, **about):
        if is_listening and event.endswith("backend_compile_duration"):
            compiled.append(about.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(record)
    try:
        jax.jit(lambda x: 3 * x + 1)(np.ones(7))  # the listener works
        assert compiled
        compiled.clear()
        for m in (313, 317, 319):
            clone(model).fit(data[:m], target[:m])
    finally:
        is_listening = False  # jax 0.8.0 has no function that unregisters a listener
    assert compiled == []


INVALID = {
    "method": (
        CaputoRegressor(method="newton"),
        r"CaputoRegressor\(method=...\)` must be one of auto",
    ),
    "loss": (
        CaputoRegressor("hinge"),
        r"CaputoRegressor\(loss=...\)` must be one of squared, huber",
    ),
    "l2": (
        CaputoRegressor(l2=-1.0),
        r"^`CaputoRegressor\(l2=...\)` must be a number of at least 0, got -1.0",
    ),
    "epsilon": (
        CaputoRegressor("huber", epsilon=0.5),
        r"^`CaputoRegressor\(epsilon=...\)` must be a number of at least 1, got 0.5",
    ),
    "tol": (
        CaputoRegressor(tol=-1.0),
        r"^`CaputoRegressor\(tol=...\)` must be a number of at least 0, got -1.0",
    ),
    "max_iter": (
        CaputoRegressor(max_iter=0),
        r"^`CaputoRegressor\(max_iter=...\)` must be an integer of at least 1, got 0",
    ),
    "fit_intercept": (
        CaputoClassifier(fit_intercept="no"),
        r"^`CaputoClassifier\(fit_intercept=...\)` must be True or False, got 'no'",
    ),
    "gamma": (CaputoRidge(gamma=-1.0), r"CaputoRidge\(gamma=...\)` must be a number of at least 0"),
    "restarts": (CaputoNetwork(restarts=0), r"CaputoNetwork\(restarts=...\)` must"),
}


@pytest.mark.parametrize(("model", "message"), INVALID.values(), ids=INVALID)
def test_invalid_parameters_raise(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


def test_one_class_raises():
    with pytest.raises(ValueError, match="at least two classes, got one class: 3"):
        CaputoClassifier().fit(X, np.full(len(Y), 3))
