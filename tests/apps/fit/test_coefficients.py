"""Coefficients and standard errors against what NumPy, SciPy and scikit-learn make of the data."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
from fit_tables import design, lopsided, targets, write
from scipy.special import logsumexp
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge

from cfgd.apps.fit.run import FitOptions, ProgressReporter, fit

LOSSES = ("squared", "huber", "poisson", "gamma", "logistic", "multinomial")


@pytest.fixture
def fitted(tmp_path):
    def run(columns, target="y", name="data.parquet", **options):
        path = write(tmp_path / name, columns)
        return fit(FitOptions(path, target, **{"test": 0.0, **options}), ProgressReporter())

    return run


def made(loss):
    random, columns, eta = lopsided()
    y = targets(loss, random, eta)
    return columns | {"y": y}, design(columns), y


def hessian(gradient, w, sizes):
    """By differences of a gradient, each coordinate in steps of its own size."""
    columns = []
    for j, size in enumerate(sizes):
        step = np.zeros_like(w)
        step[j] = 1e-5 * size
        columns.append((gradient(w + step) - gradient(w - step)) / (2 * step[j]))
    H = np.array(columns)
    return (H + H.T) / 2


def test_squares_are_those_of_the_normal_equations(fitted):
    columns, X, y = made("squared")
    model = fitted(columns).model
    w = np.linalg.lstsq(X, y)[0]
    s2 = np.sum((y - X @ w) ** 2) / (len(y) - X.shape[1])
    np.testing.assert_allclose(model.coefficients, w, rtol=1e-7)
    np.testing.assert_allclose(
        model.errors, np.sqrt(s2 * np.diag(np.linalg.inv(X.T @ X))), rtol=1e-7
    )
    assert model.terms == ["small", "kind = a", "kind = c & d", "large", "intercept"]


NEGATIVE_SCORES = {
    "logistic": lambda p, y: 1 / (1 + np.exp(-p)) - (y == "yes"),
    "poisson": lambda p, y: np.exp(p) - y,
}


@pytest.mark.parametrize("loss", NEGATIVE_SCORES)
def test_likelihoods_have_no_slope_and_the_spread_of_their_curvature(fitted, loss):
    columns, X, y = made(loss)
    model = fitted(columns, loss=loss).model

    def gradient(w):
        return X.T @ NEGATIVE_SCORES[loss](X @ w, y)

    w, sizes = model.coefficients, 1 / np.abs(X).max(0)
    assert np.all(np.abs(gradient(w)) <= 1e-6 * np.abs(X).sum(0))
    want = np.sqrt(np.diag(np.linalg.inv(hessian(gradient, w, sizes))))
    np.testing.assert_allclose(model.errors, want, rtol=1e-5)


def test_gamma_is_that_of_generalised_linear_models(fitted):
    columns, X, y = made("gamma")
    model = fitted(columns, loss="gamma").model
    scaled = X[:, :-1] / np.abs(X[:, :-1]).max(0)
    theirs = GammaRegressor(alpha=0, solver="newton-cholesky", tol=1e-10).fit(scaled, y)
    np.testing.assert_allclose(
        model.coefficients, [*theirs.coef_ / np.abs(X[:, :-1]).max(0), theirs.intercept_], rtol=1e-5
    )
    mean = np.exp(X @ model.coefficients)
    spread = np.sum((y / mean - 1) ** 2) / (len(y) - X.shape[1])
    want = np.sqrt(spread * np.diag(np.linalg.inv(X.T @ X)))
    np.testing.assert_allclose(model.errors, want, rtol=1e-7)


def test_huber_counts_residuals_beyond_the_spread_of_the_target_by_their_size(fitted):
    columns, X, y = made("huber")
    done = fitted(columns, loss="huber")
    spread = 1.4826 * np.median(np.abs(y - np.median(y)))
    assert done.target.scale == pytest.approx(spread)
    Z = (X - np.append(X[:, :-1].mean(0), 0)) / np.append(X[:, :-1].std(0), 1)

    def value(w):
        far = np.abs(y - Z @ w) / spread
        return np.sum(np.where(far <= 1, far**2 / 2, far - 0.5))

    ends = scipy.optimize.minimize(value, np.append(np.zeros(4), np.median(y)), method="BFGS")
    back = np.append(ends.x[:-1] / X[:, :-1].std(0), 0)
    back[-1] = ends.x[-1] - X[:, :-1].mean(0) @ back[:-1]
    np.testing.assert_allclose(done.model.coefficients, back, rtol=1e-3)
    A, B = np.zeros((5, 5)), np.zeros((5, 5))
    for x, r in zip(X, (y - X @ done.model.coefficients) / spread, strict=True):
        A += (abs(r) <= 1) * np.outer(x, x)
        B += min(abs(r), 1) ** 2 * np.outer(x, x)
    C = spread**2 * np.linalg.inv(A) @ B @ np.linalg.inv(A) * len(y) / (len(y) - 5)
    np.testing.assert_allclose(done.model.errors, np.sqrt(np.diag(C)), rtol=1e-6)


def test_several_classes_are_those_of_one_class_as_the_reference(fitted):
    """Fitted with the last class at zero, and then moved so that classes sum to zero."""
    columns, X, y = made("multinomial")
    model = fitted(columns).model
    labels = np.unique(y)
    assert model.labels == tuple(labels)
    size = np.abs(X).max(0)
    Z, own = X / size, y[:, None] == labels

    def gradient(free):
        W = np.column_stack([free.reshape(5, 2), np.zeros(5)])
        p = Z @ W
        share = np.exp(p - logsumexp(p, axis=1, keepdims=True))
        return (Z.T @ (share - own))[:, :2].ravel()

    free = ((model.coefficients - model.coefficients[:, 2:]) * size[:, None])[:, :2].ravel()
    assert np.max(np.abs(gradient(free))) < 1e-6
    spread = np.linalg.inv(hessian(gradient, free, np.ones(10)))
    P = np.kron(np.eye(5), (np.eye(3) - 1 / 3)[:, :2])  # to classes that sum to zero
    want = np.sqrt(np.diag(P @ spread @ P.T)).reshape(5, 3) / size[:, None]
    np.testing.assert_allclose(model.errors, want, rtol=1e-5)
    np.testing.assert_allclose(model.coefficients.sum(1), 0, atol=1e-9)


def test_a_penalty_is_on_standardised_columns(fitted):
    columns, X, y = made("squared")
    done = fitted(columns, l2=30.0)
    mean, size = X[:, :-1].mean(0), X[:, :-1].std(0)
    Z = (X[:, :-1] - mean) / size
    theirs = Ridge(alpha=30.0).fit(Z, y)
    np.testing.assert_allclose(done.model.coefficients[:-1], theirs.coef_ / size, rtol=1e-7)
    assert done.model.coefficients[-1] == pytest.approx(
        theirs.intercept_ - theirs.coef_ / size @ mean
    )
    # the intercept is the mean of y, which stands on its own: the rest is a linear map of y
    M = np.linalg.inv(Z.T @ Z + 30 * np.eye(4))
    s2 = np.sum((y - theirs.predict(Z)) ** 2) / (len(y) - 1 - np.trace(M @ Z.T @ Z))
    want = np.sqrt(s2 * np.diag(M @ Z.T @ Z @ M)) / size
    np.testing.assert_allclose(done.model.errors[:-1], want, rtol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "multinomial"])
def test_a_penalty_as_scikit_learn_has_it(fitted, loss):
    columns, X, y = made(loss)
    done = fitted(columns, loss=loss, l2=3.0)
    size = X[:, :-1].std(0)
    Z = (X[:, :-1] - X[:, :-1].mean(0)) / size
    if loss == "poisson":
        rival = PoissonRegressor(alpha=3 / len(y), solver="newton-cholesky", tol=1e-10)
    else:
        rival = LogisticRegression(C=1 / 3, tol=1e-10, max_iter=10_000)
    want = (rival.fit(Z, y).coef_ / size).T.reshape(done.model.coefficients[:-1].shape)
    np.testing.assert_allclose(done.model.coefficients[:-1], want, rtol=1e-4, atol=1e-8)


def test_cross_validation_takes_the_penalty_that_predicts_left_out_rows_best(fitted):
    """Thirty columns of noise: without a penalty they are fitted to as well."""
    random = np.random.default_rng(4)
    X, n = random.normal(size=(60, 30)), 60
    y = X[:, 0] + 2 * random.normal(size=n)
    columns = {f"x{j}": X[:, j] for j in range(30)} | {"y": y}
    done = fitted(columns, cross_validate=True)
    fold = np.floor(np.random.default_rng(0).random(n) * 5)
    mean, size = X.mean(0), X.std(0)
    Z, v = (X - mean) / size, (y - y.mean()) / y.std()
    losses = []
    for l2 in done.cross_validation.l2:
        total = 0.0
        for k in range(5):
            ours = fold != k
            told = Ridge(alpha=l2).fit(Z[ours], v[ours]).predict(Z[~ours])
            total += np.sum((told - v[~ours]) ** 2) / 2
        losses.append(total / n)
    np.testing.assert_allclose(done.cross_validation.losses, losses, rtol=1e-5)
    assert done.l2 == done.cross_validation.l2[np.argmin(losses)] > 1


def test_rows_that_are_held_out_have_no_say(fitted):
    """What is measured on them is what the model of the others makes of them."""
    columns, X, y = made("squared")
    done = fitted(columns, test=0.3, seed=5)
    out = np.random.default_rng(5).random(len(y)) < 0.3
    w = np.linalg.lstsq(X[~out], y[~out])[0]
    np.testing.assert_allclose(done.model.coefficients, w, rtol=1e-7)
    squares = np.mean((y[out] - X[out] @ w) ** 2)
    base = np.mean((y[out] - y[~out].mean()) ** 2)
    assert done.quality.model["mean squared error"] == pytest.approx(squares)
    assert done.quality.baseline["mean squared error"] == pytest.approx(base)
    assert done.quality.explained == pytest.approx(1 - squares / base)
    assert (done.quality.rows, done.statistics.training_count) == (out.sum(), (~out).sum())


def test_the_measures_of_labels_are_scikit_learns(fitted):
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    columns, X, y = made("logistic")
    done = fitted(columns, test=0.4)
    out = np.random.default_rng(0).random(len(y)) < 0.4
    chance = 1 / (1 + np.exp(-X[out] @ done.model.coefficients))
    found, yes = done.quality.model, y[out] == "yes"
    assert found["log loss"] == pytest.approx(log_loss(yes, chance))
    assert found["share of right labels"] == pytest.approx(accuracy_score(yes, chance > 0.5))
    assert found["area under the ROC curve"] == pytest.approx(roc_auc_score(yes, chance))
    share = np.mean(y[~out] == "yes")
    assert done.quality.baseline["log loss"] == pytest.approx(
        log_loss(yes, np.full(out.sum(), share))
    )


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_deviances_are_scikit_learns(fitted, loss):
    from sklearn import metrics

    columns, X, y = made(loss)
    done = fitted(columns, loss=loss)
    theirs = getattr(metrics, f"mean_{loss}_deviance")
    mean = np.exp(X @ done.model.coefficients)
    assert done.quality.model["mean deviance"] == pytest.approx(theirs(y, mean))
    assert done.quality.baseline["mean deviance"] == pytest.approx(
        theirs(y, np.full_like(y, y.mean()))
    )


def test_the_conditioning_is_that_of_the_matrix(fitted):
    columns, X, _ = made("squared")
    random = np.random.default_rng(1)
    like = columns["large"] + random.normal(0, 4, len(X))  # nearly the same once more
    found = fitted(columns | {"like": like}).conditioning
    Z = np.column_stack([X[:, :-1], like])
    Z = (Z - Z.mean(0)) / Z.std(0)
    assert found.standardised == pytest.approx(np.linalg.cond(Z), rel=1e-6)
    rest = np.delete(Z, found.worst, 1)
    residual = Z[:, found.worst] - rest @ np.linalg.lstsq(rest, Z[:, found.worst])[0]
    assert found.inflation == pytest.approx(1 / np.mean(residual**2), rel=1e-6)
    assert found.grade == "poor"
    raw = np.column_stack([X, like])
    assert found.raw == pytest.approx(np.linalg.cond(raw), rel=1e-4)


def test_columns_that_follow_from_others_need_a_penalty(fitted):
    columns, _, _ = made("squared")
    columns["twice"] = 2 * columns["large"]
    with pytest.raises(
        ValueError, match=r"the column '(large|twice)' follows from others, so that"
    ):
        fitted(columns)
    done = fitted(columns, l2=1.0)
    assert (done.conditioning.grade, done.success) == ("singular", True)
    np.testing.assert_allclose(done.standardised[3], done.standardised[4], rtol=1e-6)


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_missing_values(fitted, missing):
    columns, X, y = made("squared")
    gone = np.arange(len(y)) % 7 == 3
    columns["large"] = np.where(gone, np.nan, columns["large"])
    model = fitted(columns, missing=missing).model
    if missing == "drop":
        X, y = X[~gone], y[~gone]
    else:
        X[gone, 3] = X[~gone, 3].mean()
    np.testing.assert_allclose(model.coefficients, np.linalg.lstsq(X, y)[0], rtol=1e-7)


@pytest.mark.parametrize("method", ["adaptive_terminal", "gradient_descent"])
def test_other_methods_lead_to_the_same(fitted, method):
    columns, X, y = made("squared")
    done = fitted(columns, method=method)
    assert done.solution.success
    np.testing.assert_allclose(done.model.coefficients, np.linalg.lstsq(X, y)[0], rtol=1e-5)


def test_a_target_of_two_numbers_is_a_label(fitted):
    columns, _, y = made("logistic")
    words = fitted(columns).model
    done = fitted(columns | {"y": np.where(y == "yes", 2, 1)})
    assert (done.target.loss, done.model.labels) == ("logistic", (1.0, 2.0))
    np.testing.assert_array_equal(done.model.coefficients, words.coefficients)


def test_labels_that_the_columns_tell_apart_are_said(fitted):
    columns, _, _ = made("squared")
    done = fitted(columns | {"y": np.where(columns["large"] > 500, "up", "down")})
    assert done.separable
    assert not done.success
    penalised = fitted(columns | {"y": np.where(columns["large"] > 500, "up", "down")}, l2=1.0)
    assert penalised.success


def test_a_fit_is_plain_data(fitted):
    columns, _, _ = made("squared")
    assert dataclasses.asdict(fitted(columns).model.columns[1]) == {
        "name": "kind",
        "base": "b",
        "levels": ("a", "c & d"),
        "kind": "text",
    }
