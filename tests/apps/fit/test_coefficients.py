"""Coefficients, standard errors and measures agree with NumPy, SciPy and scikit-learn."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
from fit_tables import design, skewed_columns, split_numbers, targets, write
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


def make_data(loss):
    random, columns, eta = skewed_columns()
    y = targets(loss, random, eta)
    return columns | {"y": y}, design(columns), y


def hessian(gradient, w, sizes):
    """Return a Hessian by differences of the gradient, with a step size for each coordinate."""
    columns = []
    for j, size in enumerate(sizes):
        step = np.zeros_like(w)
        step[j] = 1e-5 * size
        columns.append((gradient(w + step) - gradient(w - step)) / (2 * step[j]))
    H = np.array(columns)
    return (H + H.T) / 2


def test_squared_loss_solves_the_normal_equations(fitted):
    columns, X, y = make_data("squared")
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
def test_likelihoods_have_zero_gradient_and_errors_from_the_hessian(fitted, loss):
    columns, X, y = make_data(loss)
    model = fitted(columns, loss=loss).model

    def gradient(w):
        return X.T @ NEGATIVE_SCORES[loss](X @ w, y)

    w, sizes = model.coefficients, 1 / np.abs(X).max(0)
    assert np.all(np.abs(gradient(w)) <= 1e-6 * np.abs(X).sum(0))
    want = np.sqrt(np.diag(np.linalg.inv(hessian(gradient, w, sizes))))
    np.testing.assert_allclose(model.errors, want, rtol=1e-5)


def test_gamma_agrees_with_the_generalised_linear_model(fitted):
    columns, X, y = make_data("gamma")
    model = fitted(columns, loss="gamma").model
    scaled = X[:, :-1] / np.abs(X[:, :-1]).max(0)
    reference = GammaRegressor(alpha=0, solver="newton-cholesky", tol=1e-10).fit(scaled, y)
    np.testing.assert_allclose(
        model.coefficients,
        [*reference.coef_ / np.abs(X[:, :-1]).max(0), reference.intercept_],
        rtol=1e-5,
    )
    mean = np.exp(X @ model.coefficients)
    dispersion = np.sum((y / mean - 1) ** 2) / (len(y) - X.shape[1])
    want = np.sqrt(dispersion * np.diag(np.linalg.inv(X.T @ X)))
    np.testing.assert_allclose(model.errors, want, rtol=1e-7)


def test_huber_is_linear_beyond_the_scaled_median_absolute_deviation(fitted):
    columns, X, y = make_data("huber")
    result = fitted(columns, loss="huber")
    scale = 1.4826 * np.median(np.abs(y - np.median(y)))
    assert result.target.scale == pytest.approx(scale)
    Z = (X - np.append(X[:, :-1].mean(0), 0)) / np.append(X[:, :-1].std(0), 1)

    def value(w):
        residual = np.abs(y - Z @ w) / scale
        return np.sum(np.where(residual <= 1, residual**2 / 2, residual - 0.5))

    solution = scipy.optimize.minimize(value, np.append(np.zeros(4), np.median(y)), method="BFGS")
    back = np.append(solution.x[:-1] / X[:, :-1].std(0), 0)
    back[-1] = solution.x[-1] - X[:, :-1].mean(0) @ back[:-1]
    np.testing.assert_allclose(result.model.coefficients, back, rtol=1e-3)
    import statsmodels.api as sm  # it takes seconds to import

    norm = sm.robust.norms.HuberT(t=1.0)
    want = sm.RLM(y, X, M=norm).fit(scale_est=lambda *_: scale, cov="H1", tol=1e-12, maxiter=500)
    np.testing.assert_allclose(result.model.errors, want.bse, rtol=1e-6)


def test_multinomial_equals_the_fit_with_a_reference_class(fitted):
    """The reference has the coefficients of its last class at zero; ours sum to zero."""
    columns, X, y = make_data("multinomial")
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
    C = np.linalg.inv(hessian(gradient, free, np.ones(10)))
    P = np.kron(np.eye(5), (np.eye(3) - 1 / 3)[:, :2])  # to classes that sum to zero
    want = np.sqrt(np.diag(P @ C @ P.T)).reshape(5, 3) / size[:, None]
    np.testing.assert_allclose(model.errors, want, rtol=1e-5)
    np.testing.assert_allclose(model.coefficients.sum(1), 0, atol=1e-9)


def test_the_penalty_applies_to_standardised_columns(fitted):
    columns, X, y = make_data("squared")
    result = fitted(columns, l2=30.0)
    mean, size = X[:, :-1].mean(0), X[:, :-1].std(0)
    Z = (X[:, :-1] - mean) / size
    reference = Ridge(alpha=30.0).fit(Z, y)
    np.testing.assert_allclose(result.model.coefficients[:-1], reference.coef_ / size, rtol=1e-7)
    assert result.model.coefficients[-1] == pytest.approx(
        reference.intercept_ - reference.coef_ / size @ mean
    )
    # the columns are centred, so the intercept is the mean of y, and the others are linear in y
    M = np.linalg.inv(Z.T @ Z + 30 * np.eye(4))
    s2 = np.sum((y - reference.predict(Z)) ** 2) / (len(y) - 1 - np.trace(M @ Z.T @ Z))
    want = np.sqrt(s2 * np.diag(M @ Z.T @ Z @ M)) / size
    np.testing.assert_allclose(result.model.errors[:-1], want, rtol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "multinomial"])
def test_the_penalty_agrees_with_scikit_learn(fitted, loss):
    columns, X, y = make_data(loss)
    result = fitted(columns, loss=loss, l2=3.0)
    size = X[:, :-1].std(0)
    Z = (X[:, :-1] - X[:, :-1].mean(0)) / size
    if loss == "poisson":
        reference = PoissonRegressor(alpha=3 / len(y), solver="newton-cholesky", tol=1e-10)
    else:
        reference = LogisticRegression(C=1 / 3, tol=1e-10, max_iter=10_000)
    want = (reference.fit(Z, y).coef_ / size).T.reshape(result.model.coefficients[:-1].shape)
    np.testing.assert_allclose(result.model.coefficients[:-1], want, rtol=1e-4, atol=1e-8)


@pytest.mark.slow
def test_cross_validation_chooses_the_penalty_of_the_lowest_loss(fitted):
    """Most of the thirty columns are noise, to which a fit without penalty would overfit."""
    random = np.random.default_rng(4)
    X, n = random.normal(size=(60, 30)), 60
    y = X[:, 0] + 2 * random.normal(size=n)
    columns = {f"x{j}": X[:, j] for j in range(30)} | {"y": y}
    result = fitted(columns, cross_validate=True)
    fold = np.floor(split_numbers(0, n) * 5)
    mean, size = X.mean(0), X.std(0)
    Z, v = (X - mean) / size, (y - y.mean()) / y.std()
    losses = []
    for l2 in result.cross_validation.l2:
        total = 0.0
        for k in range(5):
            ours = fold != k
            predicted = Ridge(alpha=l2).fit(Z[ours], v[ours]).predict(Z[~ours])
            total += np.sum((predicted - v[~ours]) ** 2) / 2
        losses.append(total / n)
    np.testing.assert_allclose(result.cross_validation.losses, losses, rtol=1e-5)
    assert result.l2 == result.cross_validation.l2[np.argmin(losses)] > 1


def test_held_out_rows_do_not_influence_the_fit(fitted):
    """The quality is measured on them with the model of the training rows."""
    columns, X, y = make_data("squared")
    result = fitted(columns, test=0.3, seed=5)
    out = split_numbers(5, len(y)) < 0.3
    w = np.linalg.lstsq(X[~out], y[~out])[0]
    np.testing.assert_allclose(result.model.coefficients, w, rtol=1e-7)
    squares = np.mean((y[out] - X[out] @ w) ** 2)
    base = np.mean((y[out] - y[~out].mean()) ** 2)
    assert result.quality.model["mean squared error"] == pytest.approx(squares)
    assert result.quality.baseline["mean squared error"] == pytest.approx(base)
    assert result.quality.explained == pytest.approx(1 - squares / base)
    assert (result.quality.rows, result.statistics.training_count) == (out.sum(), (~out).sum())


def test_classification_measures_agree_with_scikit_learn(fitted):
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    columns, X, y = make_data("logistic")
    result = fitted(columns, test=0.4)
    out = split_numbers(0, len(y)) < 0.4
    probability = 1 / (1 + np.exp(-X[out] @ result.model.coefficients))
    found, yes = result.quality.model, y[out] == "yes"
    assert found["log loss"] == pytest.approx(log_loss(yes, probability))
    assert found["accuracy"] == pytest.approx(accuracy_score(yes, probability > 0.5))
    assert found["area under the ROC curve"] == pytest.approx(roc_auc_score(yes, probability))
    share = np.mean(y[~out] == "yes")
    assert result.quality.baseline["log loss"] == pytest.approx(
        log_loss(yes, np.full(out.sum(), share))
    )


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_deviances_agree_with_scikit_learn(fitted, loss):
    from sklearn import metrics

    columns, X, y = make_data(loss)
    result = fitted(columns, loss=loss)
    reference = getattr(metrics, f"mean_{loss}_deviance")
    mean = np.exp(X @ result.model.coefficients)
    assert result.quality.model["mean deviance"] == pytest.approx(reference(y, mean))
    assert result.quality.baseline["mean deviance"] == pytest.approx(
        reference(y, np.full_like(y, y.mean()))
    )


def test_conditioning_agrees_with_the_singular_values(fitted):
    columns, X, _ = make_data("squared")
    random = np.random.default_rng(1)
    collinear = columns["large"] + random.normal(0, 4, len(X))
    found = fitted(columns | {"collinear": collinear}).conditioning
    Z = np.column_stack([X[:, :-1], collinear])
    Z = (Z - Z.mean(0)) / Z.std(0)
    assert found.standardised == pytest.approx(np.linalg.cond(Z), rel=1e-6)
    rest = np.delete(Z, found.worst, 1)
    residual = Z[:, found.worst] - rest @ np.linalg.lstsq(rest, Z[:, found.worst])[0]
    assert found.inflation == pytest.approx(1 / np.mean(residual**2), rel=1e-6)
    assert found.grade == "high"
    raw = np.column_stack([X, collinear])
    assert found.raw == pytest.approx(np.linalg.cond(raw), rel=1e-4)


def test_linearly_dependent_columns_need_a_penalty(fitted):
    columns, _, _ = make_data("squared")
    columns["twice"] = 2 * columns["large"]
    with pytest.raises(
        ValueError, match=r"combination of others \(2 'large' - 'twice' is constant"
    ):
        fitted(columns)
    result = fitted(columns, l2=1.0)
    assert (result.conditioning.grade, result.success) == ("singular", True)
    np.testing.assert_allclose(result.standardised[3], result.standardised[4], rtol=1e-6)


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_missing_values_are_dropped_or_imputed(fitted, missing):
    columns, X, y = make_data("squared")
    is_missing = np.arange(len(y)) % 7 == 3
    columns["large"] = np.where(is_missing, np.nan, columns["large"])
    model = fitted(columns, missing=missing).model
    if missing == "drop":
        X, y = X[~is_missing], y[~is_missing]
    else:
        X[is_missing, 3] = X[~is_missing, 3].mean()
    np.testing.assert_allclose(model.coefficients, np.linalg.lstsq(X, y)[0], rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["adaptive_terminal", "gradient_descent"])
def test_other_methods_find_the_same_coefficients(fitted, method):
    columns, X, y = make_data("squared")
    result = fitted(columns, method=method)
    assert result.solution.success
    np.testing.assert_allclose(result.model.coefficients, np.linalg.lstsq(X, y)[0], rtol=1e-5)


def test_a_target_with_two_numbers_is_classified(fitted):
    columns, _, y = make_data("logistic")
    texts = fitted(columns).model
    result = fitted(columns | {"y": np.where(y == "yes", 2, 1)})
    assert (result.target.loss, result.model.labels) == ("logistic", (1.0, 2.0))
    np.testing.assert_array_equal(result.model.coefficients, texts.coefficients)


def test_separable_classes_are_reported(fitted):
    columns, _, _ = make_data("squared")
    result = fitted(columns | {"y": np.where(columns["large"] > 500, "up", "down")})
    assert result.solution.status.name == "separated"
    assert result.model.errors is None
    assert not result.success
    penalised = fitted(columns | {"y": np.where(columns["large"] > 500, "up", "down")}, l2=1.0)
    assert penalised.success


def test_columns_are_plain_dataclasses(fitted):
    columns, _, _ = make_data("squared")
    assert dataclasses.asdict(fitted(columns).model.columns[1]) == {
        "name": "kind",
        "base": "b",
        "levels": ("a", "c & d"),
        "rare": (),
        "kind": "text",
    }


def test_measures_of_two_classes_agree_with_scikit_learn_and_statsmodels(fitted):
    """With weights, and with ties of the probabilities."""
    import statsmodels.api as sm
    from sklearn import metrics

    random = np.random.default_rng(3)
    a, w = random.integers(0, 4, 300).astype(float), random.uniform(0.2, 2, 300)
    y = np.where(random.random(300) < 1 / (1 + np.exp(1 - a)), "yes", "no")
    columns = {"a": a, "b": random.integers(0, 2, 300).astype(float), "w": w, "y": y}
    result = fitted(columns, test=0.4, weights="w")
    out = split_numbers(0, 300) < 0.4
    X = np.column_stack([a, columns["b"], np.ones(300)])[out]
    eta, yes, weight = X @ result.model.coefficients, y[out] == "yes", w[out]
    found, score = result.quality.model, 1 / (1 + np.exp(-eta))
    weights = {"sample_weight": weight}
    assert len(np.unique(score)) < 10
    assert found["area under the ROC curve"] == pytest.approx(
        metrics.roc_auc_score(yes, score, **weights)
    )
    assert found["average precision"] == pytest.approx(
        metrics.average_precision_score(yes, score, **weights)
    )
    assert found["log loss"] == pytest.approx(metrics.log_loss(yes, score, **weights))
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(yes, eta > 0, **weights))
    matrix = metrics.confusion_matrix(yes, eta > 0, **weights)
    np.testing.assert_allclose(result.quality.confusion, matrix)
    assert found["true positive rate"] == pytest.approx(matrix[1, 1] / matrix[1].sum())
    assert found["false positive rate"] == pytest.approx(matrix[0, 1] / matrix[0].sum())
    again = sm.GLM(yes * 1.0, sm.add_constant(eta), sm.families.Binomial(), var_weights=weight).fit(
        tol=1e-13
    )
    assert found["calibration slope"] == pytest.approx(again.params[1], rel=1e-6)
    assert found["calibration intercept"] == pytest.approx(again.params[0], rel=1e-6)


def test_measures_of_one_class_alone_are_unknown():
    from cfgd.apps.fit.two_classes import average_precision, calibration, roc_auc

    score, none = np.array([0.2, 0.5, 0.5]), np.zeros(3)
    assert np.isnan([roc_auc(score, none), average_precision(score, none)]).all()
    assert np.isnan(calibration(score, none, np.ones(3))).all()
    assert np.isnan(calibration(score, np.array([0, 1, 1]), np.ones(3))).all()  # separated


def test_measures_of_several_classes_and_numbers_agree_with_scikit_learn(fitted):
    from sklearn import metrics

    columns, X, y = make_data("multinomial")
    result = fitted(columns)
    labels = np.unique(y)
    predicted = labels[np.argmax(X @ result.model.coefficients, 1)]
    np.testing.assert_allclose(result.quality.confusion, metrics.confusion_matrix(y, predicted))
    assert result.quality.model["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted))
    columns, X, y = make_data("squared")
    result = fitted(columns, test=0.3)
    out = split_numbers(0, len(y)) < 0.3
    assert result.quality.model["R squared"] == pytest.approx(
        metrics.r2_score(y[out], X[out] @ result.model.coefficients)
    )


@pytest.mark.slow
def test_cross_validation_has_the_standard_errors_of_the_folds(fitted):
    columns, _, _ = make_data("logistic")
    found = fitted(columns, cross_validate=True).cross_validation
    assert found.fold_losses.shape == (5, len(found.l2))
    want = found.fold_losses.std(0, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(found.standard_errors, want)
    low, high = found.fold_losses.min(0), found.fold_losses.max(0)
    assert np.all((low <= found.losses) & (found.losses <= high))
