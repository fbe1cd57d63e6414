"""Linear models whose matrix costs many gradients: the span first, then Tikhonov steps."""

import numpy as np
import pytest
import scipy.sparse
from cfgd.methods.auto.relay import STEPS

import cfgd
from cfgd.methods.auto.auto import RELAY
from cfgd.objectives.linear.model import COLUMNS, MANY

M, D = 400, MANY + 30
RNG = np.random.default_rng(3)
GOOD = RNG.normal(size=(M, D))
BAD = GOOD * np.logspace(-3, 3, D) + 0.9 * GOOD[:, :1]
LABELS = (RNG.random(M) < 0.4).astype(float)
BUDGET = STEPS * (2 + D / COLUMNS)


def model(X, l2=1.0):
    return cfgd.LinearModel(X, LABELS, l2=l2)


def newton(X, l2):
    """By hand."""
    w = np.zeros(X.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-X @ w))
        H = (X.T * (p * (1 - p))) @ X + l2 * np.eye(len(w))
        w = w - np.linalg.solve(H, X.T @ (p - LABELS) + l2 * w)
    return w


def test_where_data_are_well_scaled_the_span_is_done_before_a_matrix_is_needed(monkeypatch):
    f = model(GOOD, 30.0)

    def refuse(*args):
        pytest.fail("a matrix was asked for")

    monkeypatch.setattr(cfgd.LinearModel, "normal", refuse)
    ends = cfgd.minimize(f, np.zeros(D))
    assert ends.success
    assert ends.iterations <= BUDGET
    np.testing.assert_allclose(ends.x, newton(GOOD, 30.0), rtol=1e-5, atol=1e-7)


# of a sparse matrix a few columns are enough
SCALED = {"dense": (BAD, np.asarray), "sparse": (BAD[:, ::5], scipy.sparse.csr_array)}


@pytest.mark.parametrize(("X", "form"), SCALED.values(), ids=SCALED)
def test_where_they_are_not_tikhonov_steps_follow(X, form):
    d = X.shape[1]
    ends = cfgd.minimize(model(form(X)), np.zeros(d), record={"gamma": "gamma"})
    assert ends.success
    assert ends.iterations > STEPS * (2 + d / COLUMNS)
    np.testing.assert_allclose(X @ ends.x, X @ newton(X, 1.0), rtol=1e-4, atol=1e-6)
    assert np.all(np.diff(ends.history["value"]) <= 0)
    assert np.all(np.diff(ends.history["iteration"]) == 1)


def test_the_choice():
    def of(f):
        return cfgd.Auto().on(f)

    assert of(model(GOOD)) is RELAY
    assert of(model(scipy.sparse.csr_array(GOOD[:, :5]))) is RELAY
    assert of(model(GOOD[:, :MANY])) is not RELAY
    assert of(cfgd.LinearModel(GOOD, LABELS, loss="squared")) is not RELAY
    assert cfgd.Auto("tikhonov").on(model(GOOD)) is not RELAY
    how = cfgd.minimize(model(GOOD), np.zeros(D)).how
    assert "span of up to 16 terminals, then Tikhonov" in how


def test_a_sweep_takes_tikhonov_steps_at_once():
    f, starts = model(BAD), np.stack([np.zeros(D), np.ones(D) / 100])
    ends = cfgd.sweep(f, starts, cfgd.Auto(), max_iterations=40)
    assert np.all(ends.iterations < 40)
    for x in ends.x:
        np.testing.assert_allclose(BAD @ x, BAD @ newton(BAD, 1.0), rtol=1e-4, atol=1e-6)


def test_blocks_of_rows_sum_up_to_the_matrix(monkeypatch):
    import cfgd.objectives.linear.design as design

    X, weight = RNG.normal(size=(50, 3)), RNG.random(50)
    monkeypatch.setattr(design, "BLOCK_NUMBERS", 21)
    got = design.Dense(X).gram(weight, np.asarray(0.5))
    want = sum(w * np.outer(row, row) for w, row in zip(weight, X, strict=True)) + 0.5 * np.eye(3)
    np.testing.assert_allclose(got, want, rtol=1e-13)
