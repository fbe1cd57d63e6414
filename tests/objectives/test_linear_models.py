"""Intercepts, several classes, offsets and predictions, each against a second derivation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.special import logsumexp
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor

import cfgd
from cfgd.objectives.linear import one_pass
from problems import few, quick

RNG = np.random.default_rng(11)
X = RNG.normal(size=(40, 3)) * [1.0, 3.0, 0.4] + [0.2, -0.5, 0.0]
X[RNG.random(X.shape) < 0.3] = 0
LABELS = RNG.integers(0, 3, 40)
WEIGHT = RNG.uniform(0.3, 2, 40)
ONES = np.column_stack([X, np.ones(40)])
FORMATS = {"dense": np.asarray, "sparse": scipy.sparse.csr_array}
W = RNG.normal(size=(4, 3))


def of_classes(W, X=ONES, l2=0.0):
    p = X @ W
    losses = logsumexp(p, 1) - p[np.arange(len(X)), LABELS]
    return WEIGHT @ losses + np.sum(l2 * W**2) / 2


def numerically(fn, W, h=1e-6):
    slope, curvature = np.zeros_like(W), np.zeros_like(W)
    for i in np.ndindex(*W.shape):
        step = np.zeros_like(W)
        step[i] = h
        slope[i] = (fn(W + step) - fn(W - step)) / (2 * h)
        step[i] = 1e-4
        curvature[i] = (fn(W + step) - 2 * fn(W) + fn(W - step)) / 1e-8
    return slope, curvature


def multinomial(kind, l2=0.0):
    return cfgd.LinearModel(FORMATS[kind](X), LABELS, "multinomial", l2, WEIGHT, intercept=True)


@pytest.mark.parametrize("kind", FORMATS)
def test_several_classes_by_hand(kind):
    f, l2 = multinomial(kind, [0.1, 0.2, 0.3]), np.array([[0.1], [0.2], [0.3], [0.0]])
    assert f.shape == (4, 3)
    assert f.dimension == 12
    assert f.value(W) == pytest.approx(of_classes(W, l2=l2), rel=1e-12)
    slope, curvature = numerically(lambda V: of_classes(V, l2=l2), W)
    np.testing.assert_allclose(f.gradient(W), slope, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(f.coordinate_curvature(W, W), curvature, rtol=1e-4, atol=1e-4)


MODELS = {
    "classes, intercept": lambda X: cfgd.LinearModel(
        X, LABELS, "multinomial", 0.3, WEIGHT, intercept=True
    ),
    "classes": lambda X: cfgd.LinearModel(X, LABELS, "multinomial", 0.3, WEIGHT),
    "logistic": lambda X: cfgd.LinearModel(X, LABELS > 1, l2=0.3, intercept=True),
    "offset": lambda X: cfgd.LinearModel(X, LABELS, "poisson", [1.0, 0, 2], offset=0.1 * WEIGHT),
    "gamma": lambda X: cfgd.LinearModel(X, LABELS + 0.5, "gamma", 0.1, intercept=True),
    "squared": lambda X: cfgd.LinearModel(X, LABELS, "squared", 0.1, WEIGHT, intercept=True),
}
QUICK = [("classes, intercept", "dense"), ("offset", "sparse")]
CASES = [
    pytest.param(name, kind, marks=[] if (name, kind) in QUICK else [pytest.mark.slow])
    for name in MODELS
    for kind in FORMATS
]


@pytest.mark.parametrize("name", MODELS)
def test_a_long_matrix_is_read_once_for_what_two_products_give(name, monkeypatch):
    """Seven rows in a block, and a last one with fewer."""
    f = MODELS[name](X).in_numpy()
    x = np.random.default_rng(3).normal(size=f.dimension) * 0.4
    monkeypatch.setattr(one_pass, "BLOCK_NUMBERS", 7 * f.X.shape[1])
    want = f.evaluate(x)
    monkeypatch.setattr(one_pass, "LONG", 10)
    got = f.evaluate(x)
    assert got.aux is not want.aux
    for field in ("value", "gradient", "aux"):
        np.testing.assert_allclose(getattr(got, field), getattr(want, field), rtol=1e-13)
    assert not one_pass.is_long(f, f.X, jnp.asarray(x))
    sparse = MODELS[name](FORMATS["sparse"](X)).in_numpy()
    np.testing.assert_allclose(sparse.evaluate(x).gradient, got.gradient, rtol=1e-12)


@eqx.filter_jit
def seen(f, x, d, t, own):
    """What a method sees of f: its own formulas, or the general ones, which know `value` alone."""
    of = f if own else cfgd.Smooth(f.value)
    point = of.evaluate(x)
    line = of.line(point, d)
    return [
        point.gradient,
        *of.coordinate_derivatives(point, t),
        of.hessian_times(point, d),
        of.diagonal_at(point),
        line.curvature(),
        line.values(jnp.array([0.1, 0.7])),
        line.to(jnp.asarray(0.3)).gradient,
    ]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_structure_agrees_with_the_general_formulas(name, kind):
    def close(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)

    with jax.enable_x64(True):
        f = cfgd._core.arrays.cast(MODELS[name](FORMATS[kind](X)), np.dtype(float))
        x, d = (jnp.asarray(RNG.normal(size=f.dimension) * 0.4) for _ in range(2))
        t = x + RNG.normal(size=(2, f.dimension)) * 0.5
        for a, b in zip(seen(f, x, d, t, True), seen(f, x, d, t, False), strict=True):
            close(a, b)
        if kind == "sparse" or f.is_quadratic:
            return
        D, matrix, _, _ = eqx.filter_jit(lambda f, x: f.normal(f.evaluate(x), 0 * x))(f, x)
        host, here = f.in_numpy(), np.asarray(x)
        close(host.normal(host.evaluate(here), 0 * here).matrix, matrix)
        root = np.sqrt(D)
        if f.loss.has_classes and not np.all(f.l2):
            v = np.asarray(d).reshape(f.shape)
            d = (v - v.mean(1, keepdims=True)).reshape(-1)  # what is common changes nothing
        close(
            (matrix * root * root[:, None]) @ d,
            host.hessian_times(host.evaluate(here), np.array(d)),
        )


ONE_MORE = [
    ("dense", "logistic"),
    ("sparse", "poisson"),
    ("dense", "gamma"),
    *(("sparse", "logistic"), ("dense", "poisson"), ("sparse", "gamma")),
    *(("dense", "huber"), ("sparse", "huber"), ("dense", "squared"), ("sparse", "squared")),
]


@pytest.mark.parametrize(("kind", "loss"), few(ONE_MORE, 3))
def test_an_intercept_is_a_column_of_ones_without_a_penalty(kind, loss):
    y = {"logistic": LABELS > 1, "gamma": LABELS + 1}.get(loss, LABELS)
    with_one = cfgd.LinearModel(FORMATS[kind](X), y, loss, 0.7, WEIGHT, intercept=True)
    column = cfgd.LinearModel(FORMATS[kind](ONES), y, loss, [0.7, 0.7, 0.7, 0.0], WEIGHT)
    ends = [cfgd.minimize(f, np.zeros(4), tolerance=1e-10) for f in (with_one, column)]
    np.testing.assert_allclose(ends[0].x, ends[1].x, rtol=1e-6, atol=1e-8)
    assert ends[0].value == pytest.approx(ends[1].value, rel=1e-10)


def test_the_design_is_not_copied():
    f = cfgd.LinearModel(X, LABELS > 1, intercept=True)
    assert f.X.inner.X is X


METHODS = {
    "auto": cfgd.Auto(),
    "tikhonov": cfgd.Auto("tikhonov"),
    "span": cfgd.Auto("span"),
    "paper": cfgd.AdaptiveTerminal(gamma=-0.1),
}


@pytest.mark.parametrize("method", quick(METHODS, ["auto", "paper"]))
def test_several_classes_reach_scikit_learns_coefficients(method):
    theirs = LogisticRegression(C=1 / 0.5, tol=1e-10, max_iter=10_000).fit(X, LABELS, WEIGHT)
    f = multinomial("dense", 0.5)
    ends = cfgd.minimize(f, np.zeros((4, 3)), method, max_iterations=4000, tolerance=1e-9)
    np.testing.assert_allclose(ends.x[:3].T, theirs.coef_, rtol=1e-4, atol=1e-5)
    centred = ends.x[3] - ends.x[3].mean()
    np.testing.assert_allclose(centred, theirs.intercept_ - theirs.intercept_.mean(), atol=1e-5)
    np.testing.assert_allclose(f.probabilities(ends.x, X), theirs.predict_proba(X), atol=1e-5)
    assert np.array_equal(f.predict(ends.x), theirs.predict(X))


def test_without_a_penalty_several_classes_converge():
    ends = cfgd.minimize(multinomial("dense"), np.zeros((4, 3)))
    assert ends.success
    best = scipy.optimize.minimize(lambda v: of_classes(v.reshape(4, 3)), np.zeros(12))
    assert ends.value == pytest.approx(best.fun, rel=1e-8)


def test_positive_targets_and_counts_reach_scikit_learns_coefficients():
    for loss, theirs in (("gamma", GammaRegressor), ("poisson", PoissonRegressor)):
        y = LABELS + 0.5
        model = theirs(alpha=0.01, tol=1e-10, max_iter=1000).fit(X, y, WEIGHT)
        f = cfgd.LinearModel(X, y, loss, 0.01 * WEIGHT.sum(), WEIGHT, intercept=True)
        ends = cfgd.minimize(f, np.zeros(4))
        np.testing.assert_allclose(ends.x, [*model.coef_, model.intercept_], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(f.predict(ends.x), model.predict(X), rtol=1e-4)


def test_an_offset_is_the_logarithm_of_the_exposure():
    """Rates a time: counts over twice the time with twice the mean."""
    time = WEIGHT
    f = cfgd.LinearModel(X, LABELS, "poisson", offset=np.log(time), intercept=True)
    ends = cfgd.minimize(f, np.zeros(4))
    rates = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(X, LABELS / time, time)
    np.testing.assert_allclose(ends.x, [*rates.coef_, rates.intercept_], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(f.predict(ends.x), time * rates.predict(X), rtol=1e-4)
    np.testing.assert_allclose(f.predict(ends.x, X), rates.predict(X), rtol=1e-4)
    np.testing.assert_allclose(
        f.predict(ends.x, X[:2], offset=np.log([2.0, 3.0])), [2, 3] * rates.predict(X[:2]), 1e-4
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_predictions_speak_as_the_labels_do(kind):
    w = np.array([1.0, -0.5, 0.3])
    rows = FORMATS[kind](X)
    score = X @ w
    for labels in ([0.0, 1.0], [-1.0, 1.0]):
        f = cfgd.LinearModel(rows, np.where(LABELS > 1, labels[1], labels[0]))
        assert np.array_equal(f.predict(w), np.where(score > 0, labels[1], labels[0]))
        share = 1 / (1 + np.exp(-score))
        np.testing.assert_allclose(f.probabilities(w), np.column_stack([1 - share, share]))
    f = cfgd.LinearModel(rows, LABELS, "squared")
    np.testing.assert_allclose(f.predict(w, rows), score)
    assert isinstance(f.predict(w), np.ndarray)


def test_starts_of_a_sweep_are_matrices():
    f = multinomial("dense", 0.5)
    ends = cfgd.sweep(f, np.stack([np.zeros((4, 3)), W]), cfgd.Auto())
    assert ends.x.shape == (2, 4, 3)
    np.testing.assert_allclose(ends.x[0, :3], ends.x[1, :3], atol=1e-5)
