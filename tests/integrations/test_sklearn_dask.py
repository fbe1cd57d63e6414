"""The estimators on Dask data: the coefficients, statistics and predictions of data in memory."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from distributed import Client, LocalCluster
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

from cfgd.integrations.sklearn import CaputoClassifier, CaputoRegressor

random = np.random.default_rng(9)
M = 700
X = random.normal(size=(M, 3)) * [1.0, 4.0, 0.3] + [0.5, 0, 0]
SCORE = X @ [0.8, -0.2, 1.5] - 0.3
TARGETS = {
    "squared": SCORE + random.normal(size=M),
    "poisson": random.poisson(np.exp(np.clip(SCORE, -3, 3))).astype(float),
    "gamma": random.gamma(2.0, np.exp(np.clip(SCORE, -3, 3))) + 1e-3,
}
NAMED = np.array(["no", "perhaps", "yes"])[
    np.digitize(SCORE + 2 * random.normal(size=M), [-1.0, 1.0])
]
TWO = np.where(SCORE + random.logistic(size=M) > 0, "yes", "no")
WEIGHT = random.integers(0, 4, size=M).astype(float)


def lazy(array, rows=90):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


@pytest.mark.every_case
@pytest.mark.parametrize("loss", TARGETS)
def test_regressors_are_those_of_data_in_memory(loss):
    y = TARGETS[loss]
    given = {"l2": 0.3 if loss == "poisson" else 0.0, "tol": 1e-11}
    theirs = CaputoRegressor(loss, **given).fit(X, y, WEIGHT)
    ours = CaputoRegressor(loss, **given).fit(lazy(X), lazy(y), lazy(WEIGHT, 200))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-8)
    np.testing.assert_allclose(ours.standard_errors_, theirs.standard_errors_, rtol=1e-6)
    assert abs(ours.intercept_standard_error_ / theirs.intercept_standard_error_ - 1) < 1e-6
    for mine, other in zip(ours.summary().facts, theirs.summary().facts, strict=True):
        assert mine == other
    found = ours.predict(lazy(X))
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), theirs.predict(X), rtol=1e-7)
    assert ours.n_features_in_ == 3


def test_least_squares_are_those_of_scikit_learn():
    y = TARGETS["squared"]
    ours = CaputoRegressor().fit(lazy(X), y, lazy(WEIGHT))
    theirs = LinearRegression().fit(X, y, WEIGHT)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    assert ours.score(lazy(X), y) == pytest.approx(theirs.score(X, y), rel=1e-8)
    counts = TARGETS["poisson"]
    model = CaputoRegressor("poisson", l2=0.5 * M, tol=1e-11).fit(lazy(X), lazy(counts))
    exact = PoissonRegressor(alpha=0.5, tol=1e-12, solver="newton-cholesky").fit(X, counts)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-8)


def test_coefficients_that_must_be_positive_are():
    y = TARGETS["squared"]
    ours = CaputoRegressor(positive=True).fit(lazy(X), lazy(y))
    theirs = LinearRegression(positive=True).fit(X, y)
    assert theirs.coef_.min() == 0
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-12)


@pytest.mark.every_case
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("y", [TWO, NAMED], ids=["two", "several"])
def test_classifiers_are_those_of_scikit_learn(y, weighted):
    weight = WEIGHT if weighted else None
    balanced = "balanced" if weighted else None
    ours = CaputoClassifier(l2=0.5, class_weight=balanced, tol=1e-11)
    ours.fit(lazy(X), lazy(y), None if weight is None else lazy(weight))
    theirs = LogisticRegression(C=2, tol=1e-11, solver="newton-cg", max_iter=1000)
    if weighted:
        shares = pd.Series(WEIGHT).groupby(y).sum() / WEIGHT.sum()
        weight = WEIGHT / (len(shares) * shares[y].to_numpy())
    theirs.fit(X, y, weight)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-8)
    in_memory = CaputoClassifier(l2=0.5, class_weight=balanced, tol=1e-11)
    in_memory.fit(X, y, WEIGHT if weighted else None)
    np.testing.assert_allclose(ours.standard_errors_, in_memory.standard_errors_, rtol=1e-6)
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        found, wanted = getattr(ours, method)(lazy(X)), getattr(theirs, method)(X)
        assert isinstance(found, da.Array)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.compute(), wanted, atol=1e-7)
    np.testing.assert_array_equal(ours.predict(lazy(X)).compute(), theirs.predict(X))


def test_data_frames_have_names(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=NAMED)
    lazy_frame = dd.from_pandas(frame, npartitions=6)
    rows, kind = lazy_frame[["a", "b", "c"]], lazy_frame["kind"]
    chosen = rows["a"] > 0
    ours = CaputoClassifier(tol=1e-11).fit(rows[chosen], kind[chosen])
    keep = X[:, 0] > 0
    theirs = CaputoClassifier(tol=1e-11).fit(frame[["a", "b", "c"]][keep], NAMED[keep])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    assert list(ours.feature_names_in_) == ["a", "b", "c"]
    found = ours.predict(rows)
    np.testing.assert_array_equal(found.compute(), theirs.predict(frame[["a", "b", "c"]]))
    with pytest.raises(ValueError, match="feature names"):
        ours.predict(rows[["b", "a", "c"]])


def test_sparse_rows_and_empty_chunks():
    y = TWO
    rows = da.concatenate([lazy(X)[:0], lazy(X)]).map_blocks(scipy.sparse.csr_array)
    labels = da.concatenate([lazy(y)[:0], lazy(y)])
    ours = CaputoClassifier(tol=1e-11).fit(rows, labels)
    theirs = CaputoClassifier(tol=1e-11).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    assert ours.predict_proba(rows).compute().shape == (M, 2)


def test_separated_classes_are_named():
    y = np.where(X[:, 1] > 0, "high", "low")
    with pytest.warns(UserWarning, match="separated"):
        model = CaputoClassifier(l2=0.0).fit(lazy(X), lazy(y))
    assert model.status_ == "separated"
    assert "x1" in model.solution_.message + str(model.solution_.details)


def test_a_fitted_estimator_can_be_pickled_and_starts_where_it_ended():
    model = CaputoRegressor("poisson", warm_start=True).fit(lazy(X), lazy(TARGETS["poisson"]))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(lazy(X)), model.predict(X))
    first = model.n_iter_
    assert again.fit(lazy(X), lazy(TARGETS["poisson"])).n_iter_ < first


@pytest.mark.slow
def test_on_a_cluster_the_coefficients_are_the_same():
    alone = CaputoClassifier(tol=1e-11).fit(X, NAMED)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        ours = CaputoClassifier(tol=1e-11).fit(lazy(X), lazy(NAMED))
        probabilities = ours.predict_proba(lazy(X)).compute()
    np.testing.assert_allclose(ours.coef_, alone.coef_, atol=1e-8)
    np.testing.assert_allclose(probabilities, alone.predict_proba(X), atol=1e-8)


BAD = {
    "columns": (
        lambda: CaputoRegressor().fit(lazy(X).rechunk((90, 2)), lazy(SCORE)),
        "`CaputoRegressor.fit(X=...)` must have all columns in one chunk: X.rechunk({1: -1})",
    ),
    "a column of targets": (
        lambda: CaputoRegressor().fit(lazy(X), None),
        "`CaputoRegressor.fit(y=...)` must have a value for each row, got None.",
    ),
    "a short y": (
        lambda: CaputoRegressor().fit(lazy(X), SCORE[:4]),
        "`CaputoRegressor.fit(y=...)` must have shape (700,), got (4,).",
    ),
    "a short weight": (
        lambda: CaputoRegressor().fit(lazy(X), lazy(SCORE), lazy(WEIGHT[:5])),
        "`CaputoRegressor.fit(sample_weight=...)` must have shape (700,), got (5,).",
    ),
    "a negative weight": (
        lambda: CaputoRegressor().fit(lazy(X), lazy(SCORE), lazy(WEIGHT - 1)),
        "`CaputoRegressor.fit(sample_weight=...)` must be a number of at least 0",
    ),
    "nan": (
        lambda: CaputoRegressor().fit(lazy(np.where(X > 2, np.nan, X)), lazy(SCORE)),
        "`CaputoRegressor.fit(X=...)` must give finite numbers",
    ),
    "a penalty": (
        lambda: CaputoRegressor(l2=-1.0).fit(lazy(X), lazy(SCORE)),
        "`CaputoRegressor(l2=...)` must be a number of at least 0",
    ),
    "huber": (
        lambda: CaputoRegressor("huber").fit(lazy(X), lazy(SCORE)),
        "`CaputoRegressor(loss=...)` must be squared, poisson or gamma for Dask data, got 'huber'.",
    ),
    "a method": (
        lambda: CaputoRegressor(method="gradient_descent").fit(lazy(X), lazy(SCORE)),
        "`CaputoRegressor(method=...)` must be 'auto' for Dask data, got 'gradient_descent'.",
    ),
    "one class": (
        lambda: CaputoClassifier().fit(lazy(X), lazy(np.full(M, "a"))),
        "`CaputoClassifier.fit(y=...)` must name at least two classes, got one class: a.",
    ),
    "numbers as labels": (
        lambda: CaputoClassifier().fit(lazy(X), lazy(SCORE)),
        "Unknown label type",
    ),
    "other columns": (
        lambda: CaputoRegressor().fit(lazy(X), lazy(SCORE)).predict(lazy(X[:, :2])),
        "X has 2 features, but CaputoRegressor is expecting 3 features as input.",
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    call, message = BAD[case]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call()
    assert message in str(error.value)
