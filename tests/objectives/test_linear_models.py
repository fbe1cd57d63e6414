"""Intercepts, several classes, offsets and predictions against independent implementations."""

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
from cfgd.objectives.base import hessian_diagonal
from cfgd.objectives.linear import multinomial as several_classes, one_pass
from problems import few, quick

RNG = np.random.default_rng(11)
X = RNG.normal(size=(40, 3)) * [1.0, 3.0, 0.4] + [0.2, -0.5, 0.0]
X[RNG.random(X.shape) < 0.3] = 0
LABELS = RNG.integers(0, 3, 40)
WEIGHT = RNG.uniform(0.3, 2, 40)
ONES = np.column_stack([X, np.ones(40)])
FORMATS = {"dense": np.asarray, "sparse": scipy.sparse.csr_array}
W = RNG.normal(size=(4, 3))


def multinomial_value(W, X=ONES, l2=0.0):
    p = X @ W
    losses = logsumexp(p, 1) - p[np.arange(len(X)), LABELS]
    return WEIGHT @ losses + np.sum(l2 * W**2) / 2


def differences(fn, W, h=1e-6):
    """Return slopes and curvatures of each coordinate by central differences."""
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_several_classes_against_differences(kind):
    f, l2 = multinomial(kind, [0.1, 0.2, 0.3]), np.array([[0.1], [0.2], [0.3], [0.0]])
    assert f.shape == (4, 3)
    assert f.dimension == 12
    assert f.value(W) == pytest.approx(multinomial_value(W, l2=l2), rel=1e-12)
    slope, curvature = differences(lambda V: multinomial_value(V, l2=l2), W)
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
def test_one_pass_over_a_long_matrix_equals_two_products(name, monkeypatch):
    """With seven rows in a block and fewer in the last one."""
    f = MODELS[name](X).on_host()
    x = np.random.default_rng(3).normal(size=f.dimension) * 0.4
    monkeypatch.setattr(one_pass, "BLOCK_NUMBERS", 7 * f.X.shape[1])
    want = f.evaluate(x)
    monkeypatch.setattr(one_pass, "LONG", 10)
    got = f.evaluate(x)
    assert got.aux is not want.aux
    for field in ("value", "gradient", "aux"):
        np.testing.assert_allclose(getattr(got, field), getattr(want, field), rtol=1e-13)
    assert not one_pass.is_long(f, f.X, jnp.asarray(x))
    sparse = MODELS[name](FORMATS["sparse"](X)).on_host()
    np.testing.assert_allclose(sparse.evaluate(x).gradient, got.gradient, rtol=1e-12)


@eqx.filter_jit
def answers(f, x, d, t):
    """Return what methods ask of an objective."""
    at = f.evaluate(x)
    line = f.line(at, d)
    return [
        at.gradient,
        *f.coordinate_derivatives(at, t),
        f.hessian_times(at, d),
        hessian_diagonal(f, at),
        line.curvature(),
        line.values(jnp.array([0.1, 0.7])),
        line.to(jnp.asarray(0.3)).gradient,
    ]


@pytest.mark.one_case
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_structure_agrees_with_the_general_formulas(name, kind):
    def close(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)

    with jax.enable_x64(True):
        f = cfgd._core.arrays.cast(MODELS[name](FORMATS[kind](X)), np.dtype(float))
        x, d = (jnp.asarray(RNG.normal(size=f.dimension) * 0.4) for _ in range(2))
        t = x + RNG.normal(size=(2, f.dimension)) * 0.5
        general = cfgd.Smooth(f.value)
        for a, b in zip(answers(f, x, d, t), answers(general, x, d, t), strict=True):
            close(a, b)
        if kind == "sparse":
            return
        matrix = eqx.filter_jit(lambda f, x: f.curvature(f.evaluate(x)).matrix())(f, x)
        host = f.on_host()
        at = host.evaluate(np.asarray(x))
        close(host.curvature(at).matrix(), matrix)
        v = np.asarray(d)
        if f.loss.has_classes and not np.all(f.l2):
            # adding a vector to all classes changes nothing: `matrix` is made regular for it
            v = (v.reshape(f.shape) - v.reshape(f.shape).mean(1, keepdims=True)).reshape(-1)
        close(matrix @ v, host.hessian_times(at, v))
        close(host.curvature(at).times(v), host.hessian_times(at, v))


INTERCEPTS = [
    ("dense", "logistic"),
    ("sparse", "poisson"),
    ("dense", "gamma"),
    *(("sparse", "logistic"), ("dense", "poisson"), ("sparse", "gamma")),
    *(("dense", "huber"), ("sparse", "huber"), ("dense", "squared"), ("sparse", "squared")),
]


@pytest.mark.parametrize(("kind", "loss"), few(INTERCEPTS, 3))
def test_an_intercept_is_a_column_of_ones_without_a_penalty(kind, loss):
    y = {"logistic": LABELS > 1, "gamma": LABELS + 1}.get(loss, LABELS)
    with_one = cfgd.LinearModel(FORMATS[kind](X), y, loss, 0.7, WEIGHT, intercept=True)
    column = cfgd.LinearModel(FORMATS[kind](ONES), y, loss, [0.7, 0.7, 0.7, 0.0], WEIGHT)
    ends = [cfgd.minimize(f, np.zeros(4), tolerance=1e-10) for f in (with_one, column)]
    np.testing.assert_allclose(ends[0].x, ends[1].x, rtol=1e-6, atol=1e-8)
    assert ends[0].value == pytest.approx(ends[1].value, rel=1e-10)


def test_the_design_matrix_is_not_copied_for_an_intercept():
    """A read-only X is not copied at all."""
    given = X.copy()
    given.flags.writeable = False
    assert cfgd.LinearModel(given, LABELS > 1, intercept=True).X.inner.X is given


METHODS = {
    "auto": cfgd.Auto(),
    "Levenberg-Marquardt": cfgd.Auto("levenberg_marquardt"),
    "L-BFGS": cfgd.Auto("lbfgs"),
    "paper": cfgd.AdaptiveTerminal(gamma=-0.1),
}


@pytest.mark.slow
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
    best = scipy.optimize.minimize(lambda v: multinomial_value(v.reshape(4, 3)), np.zeros(12))
    assert ends.value == pytest.approx(best.fun, rel=1e-8)


def test_positive_targets_and_counts_reach_scikit_learns_coefficients():
    for loss, theirs in (("gamma", GammaRegressor), ("poisson", PoissonRegressor)):
        y = LABELS + 0.5
        model = theirs(alpha=0.01, tol=1e-10, max_iter=1000).fit(X, y, WEIGHT)
        f = cfgd.LinearModel(X, y, loss, 0.01 * WEIGHT.sum(), WEIGHT, intercept=True)
        ends = cfgd.minimize(f, np.zeros(4))
        np.testing.assert_allclose(ends.x, [*model.coef_, model.intercept_], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(f.predict(ends.x), model.predict(X), rtol=1e-4)


@pytest.mark.slow
def test_an_offset_is_the_logarithm_of_the_exposure():
    """The same coefficients as of rates, counts per exposure, with the exposure as weight."""
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
def test_predicted_labels_are_those_of_the_data(kind):
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


@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_matrix_of_several_classes_is_the_hessian(intercept, is_small, monkeypatch):
    if not is_small:
        monkeypatch.setattr(several_classes, "BLOCK_NUMBERS", 0)
    rows = ONES if intercept else X
    f = cfgd.LinearModel(X, LABELS, "multinomial", 0.3, WEIGHT, intercept=intercept).on_host()
    w = W[: rows.shape[1]].reshape(-1)
    shares = np.exp(rows @ w.reshape(-1, 3))
    shares /= shares.sum(1, keepdims=True)
    wanted = np.zeros((len(w), len(w)))
    for x, share, weight in zip(rows, shares, WEIGHT, strict=True):
        wanted += weight * np.kron(np.outer(x, x), np.diag(share) - np.outer(share, share))
    penalty = np.full((rows.shape[1], 3), 0.3)
    if intercept:
        penalty[-1] = 0
        # constants of all classes, without a penalty, have the curvature of the mean diagonal
        wanted[-3:, -3:] += np.diag(wanted)[-3:].mean() / 3
    wanted += np.diag(penalty.reshape(-1))
    found = f.curvature(f.evaluate(w)).matrix()
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
