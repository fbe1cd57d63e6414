"""`ResidualTerms`: a weighted sum of residual terms, and what a run tells of each of them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

import cfgd

T = np.linspace(0, 2, 9)
P0 = np.array([0.5, -0.2, 0.1])
WEIGHTS = {"start": 100.0}
EXACT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}


def u(p, t):
    return p[0] * jnp.exp(p[1] * t) + p[2] * t


def equation(p, t, rate):
    """Return two residuals of a sample: u' + rate u, and a wish for small u."""
    return jax.grad(u, 1)(p, t) + rate * u(p, t), 0.1 * u(p, t)


def start(p, value):
    return u(p, 0.0) - value


def decay(weights=WEIGHTS, samples=T, loss="squared"):
    return cfgd.ResidualTerms(
        equation=cfgd.Residuals(equation, samples=(samples,), args=(1.5,)),
        start=cfgd.Residuals(start, loss, args=(2.0,)),
        weights=weights,
    )


def in_numpy(p, t=T):
    """Return the residuals of both terms."""
    a, b, c = p
    value = a * np.exp(b * t) + c * t
    slope = a * b * np.exp(b * t) + c
    return np.concatenate([slope + 1.5 * value, 0.1 * value]), np.array([a - 2])


def by_scipy(weight=100.0, t=T):
    def residuals(p):
        first, second = in_numpy(p, t)
        return np.concatenate([first, np.sqrt(weight) * second])

    return least_squares(residuals, P0, **EXACT)


def halves(p):
    return [np.sum(r**2) / 2 for r in in_numpy(p)]


def test_a_run_minimises_the_weighted_sum_and_tells_the_terms():
    f, want = decay(), by_scipy()
    found = cfgd.minimize(f, P0, record={"first": lambda p: p[0]})
    assert found.success
    assert "Levenberg-Marquardt" in found.how
    np.testing.assert_allclose(found.x, want.x, rtol=1e-6)
    assert found.value == pytest.approx(want.cost)
    assert list(found.terms) == ["equation", "start"]
    assert list(found.terms.values()) == pytest.approx(halves(found.x))
    rows = found.history
    assert [rows["equation"][0], rows["start"][0]] == pytest.approx(halves(P0))
    np.testing.assert_allclose(rows["equation"] + 100 * rows["start"], rows["value"])
    assert f.term_values(P0) == {name: pytest.approx(rows[name][0]) for name in found.terms}
    assert rows["first"][-1] == found.x[0]


def test_new_weights_and_samples_compile_nothing():
    cfgd.minimize(decay(), P0)
    found = cfgd.minimize(decay({"start": 3.0, "equation": 2.0}, T + 0.1), P0)
    assert found.compile_seconds == 0
    # atol: one of the three is zero but for the residuals
    np.testing.assert_allclose(found.x, by_scipy(1.5, T + 0.1).x, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_curvature_is_the_weighted_sum():
    f = decay().raveled(cfgd._core.pytrees.Structure.of(P0))
    with jax.enable_x64(True):
        at = f.evaluate(jnp.asarray(P0))
        curvature = f.curvature(at)
        J, r = map(np.asarray, curvature.rows())
        v = np.array([0.3, -1.0, 2.0])
        np.testing.assert_allclose(curvature.times(v), J.T @ (J @ v), rtol=1e-10)
        np.testing.assert_allclose(curvature.diagonal(), np.sum(J**2, 0), rtol=1e-10)
        np.testing.assert_allclose(J.T @ r, at.gradient, rtol=1e-10)
        np.testing.assert_allclose(curvature.residuals_at(jnp.asarray(P0)), r, rtol=1e-12)
    assert curvature.shape == J.shape == (19, 3)
    step = 1e-6 * np.eye(3)
    numbers = [
        (by_weights(P0 + e) - by_weights(P0 - e)) / 2e-6 for e in step
    ]  # the order of residuals within a term is free
    np.testing.assert_allclose(J.T @ J, np.array(numbers) @ np.transpose(numbers), rtol=1e-6)


def by_weights(p):
    first, second = in_numpy(p)
    return np.concatenate([first, 10 * second])


def test_a_term_of_weight_zero_is_watched_only():
    found = cfgd.minimize(decay({"start": 0.0}), [1.0, -0.2, 0.1], max_iterations=5)
    assert found.terms["start"] == pytest.approx((found.x[0] - 2) ** 2 / 2)
    assert found.value == pytest.approx(found.terms["equation"])


def test_the_progress_line_has_the_terms(capsys):
    cfgd.minimize(decay(), P0, progress=True, max_iterations=3)
    line = capsys.readouterr().err.split("\x1b[K")[-2]
    assert re.search(r"3/3  value \S+  norm \S+  equation \S+  start \S+  \S+ it/s", line)


@pytest.mark.slow
def test_a_method_of_the_paper_a_sweep_and_a_robust_term(tmp_path):
    found = cfgd.minimize(decay(), P0, cfgd.GradientDescent(), max_iterations=30)
    assert list(found.terms.values()) == pytest.approx(halves(found.x))
    ends = cfgd.sweep(
        decay(), P0, cfgd.GradientDescent(cfgd.FixedStep([1e-3, 2e-3])), max_iterations=9
    )
    assert ends.history["start"].shape == (2, 10)
    assert ends[1].terms["start"] == pytest.approx(halves(ends[1].x)[1])
    ends.to_json(tmp_path / "ends.json")
    assert cfgd.Solution.from_json(tmp_path / "ends.json") == ends
    np.testing.assert_allclose(cfgd.argmin(decay(), P0), by_scipy().x, rtol=1e-6)
    robust = cfgd.minimize(decay(loss="huber"), P0)
    assert robust.success
    assert robust.value == pytest.approx(robust.terms["equation"] + 100 * robust.terms["start"])


@pytest.mark.slow
def test_named_parameters_bounds_checkpoints_and_json(tmp_path):
    def model(p, t):
        return p["a"] * jnp.exp(p["b"] * t)

    f = cfgd.ResidualTerms(
        data=cfgd.Residuals(lambda p, t, y: model(p, t) - y, samples=(T, 3 * np.exp(-T))),
        prior=cfgd.Residuals(lambda p: p["b"] + 2),
        weights={"prior": 0.5},
    )
    p0 = cfgd.Parameters(a=cfgd.Parameter(3.0, fixed=True), b=cfgd.Parameter(0.0, bounds=(-1.1, 0)))
    found = cfgd.minimize(f, p0, tolerance=1e-10)

    def residuals(b):
        return np.append(3 * np.exp(b[0] * T) - 3 * np.exp(-T), np.sqrt(0.5) * (b[0] + 2))

    want = least_squares(residuals, [-0.5], bounds=(-1.1, 0), **EXACT)
    assert found.x["b"] == pytest.approx(want.x[0], rel=1e-6)
    file = tmp_path / "run"
    cfgd.minimize(decay(), P0, max_iterations=2, checkpoint=file)
    resumed, never = cfgd.minimize(decay(), P0, checkpoint=file), cfgd.minimize(decay(), P0)
    for name in never.history:
        np.testing.assert_array_equal(resumed.history[name], never.history[name])
    assert resumed.terms == never.terms
    never.to_json(tmp_path / "solution.json")
    assert cfgd.Solution.from_json(tmp_path / "solution.json") == never


def test_a_term_that_fails_is_named():
    f = cfgd.ResidualTerms(good=cfgd.Residuals(lambda p: p), bad=cfgd.Residuals(lambda p: p > 0))
    with pytest.raises(ValueError, match="must return real numbers, got dtype bool") as caught:
        cfgd.minimize(f, P0)
    assert caught.value.__notes__ == ["This is about the term 'bad' of ResidualTerms."]


TERM = cfgd.Residuals(lambda p: p)
REFUSED = {
    "no term": (lambda: cfgd.ResidualTerms(), "must hold at least one term, got none."),
    "a function": (
        lambda: cfgd.ResidualTerms(pde=np.sin),
        "`ResidualTerms(pde=...)` must be a cfgd.Residuals, got a ufunc.",
    ),
    "a name of the history": (
        lambda: cfgd.ResidualTerms(value=TERM),
        "must use other names than 'iteration', 'value', 'gradient_norm', 'drawn', got 'value'.",
    ),
    "weights of others": (
        lambda: cfgd.ResidualTerms(pde=TERM, weights={"data": 1.0}),
        "`ResidualTerms(weights=...)` must have names among 'pde', got 'data'.",
    ),
    "a list of weights": (
        lambda: cfgd.ResidualTerms(pde=TERM, weights=[1.0]),
        "must be a mapping of names to numbers, got a list.",
    ),
    "a negative weight": (
        lambda: cfgd.ResidualTerms(pde=TERM, weights={"pde": -1.0}),
        "`ResidualTerms(weights['pde']=...)` must be a number of at least 0, got -1.0.",
    ),
    "a weight for each residual": (
        lambda: cfgd.ResidualTerms(pde=TERM, weights={"pde": [1.0, 2.0]}),
        "must be one number, got shape (2,).",
    ),
    "a record of a term": (
        lambda: cfgd.minimize(decay(), P0, record={"start": lambda p: p[0]}),
        "`minimize(record=...)` must use other names than those of the terms of the objective, "
        "got 'start'.",
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
