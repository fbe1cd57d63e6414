"""`check_gradient` against gradients that are right, and against those that are wrong by design."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import check_grad, rosen, rosen_der

import cfgd
from cfgd.objectives import gradient_check

X = np.array([-1.2, 1.0, 0.3])


def test_a_right_gradient_and_the_accuracy_of_the_differences():
    check = cfgd.check_gradient(rosen, X, rosen_der)
    assert check
    assert check.relative_error == 0
    assert check.ratio is None
    np.testing.assert_allclose(check.differences, rosen_der(X), rtol=1e-10)
    # SciPy's forward differences leave an error that is a thousand times as large
    assert check_grad(rosen, rosen_der, X) > 1e3 * abs(check.differences - check.gradient).max()
    assert repr(check).startswith("GradientCheck: right in 3 of 3 coordinates")


@pytest.mark.every_case
@pytest.mark.parametrize("factor", [-1.0, 2.0, 0.5])
def test_a_factor_is_named(factor):
    check = cfgd.check_gradient(rosen, X, lambda x: factor * rosen_der(x))
    assert not check
    assert check.ratio == pytest.approx(factor, rel=1e-8)
    assert check.has_wrong_sign == (factor == -1)
    assert ("The sign is wrong" in repr(check)) == (factor == -1)
    assert f"{factor:g} times the derivative" in repr(check)


def test_one_wrong_coordinate_is_the_worst():
    def wrong(x):
        g = rosen_der(x)
        g[1] *= 1 + 1e-4
        return g

    check = cfgd.check_gradient(cfgd.External(rosen, wrong), X)
    assert not check
    assert check.worst == "x[1]"
    assert check.relative_error == pytest.approx(1e-4, rel=1e-2)
    assert check.ratio is None
    assert repr(check).splitlines()[0].startswith("GradientCheck: wrong in 1 of 3")
    assert repr(check).splitlines()[2].split()[0] == "x[1]"
    assert cfgd.check_gradient(cfgd.External(rosen, wrong), X, tolerance=1e-3)


def test_a_pytree_and_a_gradient_of_jax_that_is_wrong():
    def f(p, scale):
        return jnp.sum(scale * jnp.sin(p["a"])) + jax.lax.stop_gradient(p["b"]) * p["b"]

    x = {"a": np.array([[0.3, 1.0]]), "b": np.float64(2.0)}
    check = cfgd.check_gradient(f, x, args=(3.0,))
    assert not check
    assert check.worst == "x['b']"
    np.testing.assert_allclose(check.differences["a"], 3 * np.cos(x["a"]), rtol=1e-9)
    np.testing.assert_allclose(check.differences["b"], 4.0, rtol=1e-9)
    assert cfgd.check_gradient(lambda p: jnp.sum(p["a"] ** 2) * p["b"], x)


def test_float32_input_is_checked_in_float64():
    check = cfgd.check_gradient(lambda x: jnp.sum(jnp.exp(x)), np.float32([0.5, -1.0]))
    assert check
    np.testing.assert_allclose(check.differences, np.exp([0.5, -1.0]), rtol=1e-9)


def test_kinks_and_noise_are_not_judged():
    """At a kink a derivative to either side is as good; a noisy value proves nothing."""
    kink = cfgd.check_gradient(lambda x: abs(x).sum(), [0.0, 2.0], lambda x: np.array([1.0, 1.0]))
    assert kink
    assert "1 could not be compared (noise, or a kink), the first is x[0]" in repr(kink)
    assert not cfgd.check_gradient(lambda x: abs(x[0]), [0.0], lambda x: np.array([1.0]))
    rounded = cfgd.check_gradient(lambda x: np.float32(np.sum(x**2)), [1.0, 2.0], lambda x: 2 * x)
    assert rounded.relative_error == 0


def test_coordinates_of_other_sizes_and_values_that_are_not_finite():
    x = np.array([1e-8, 1e8, 0.5])
    assert cfgd.check_gradient(
        lambda x: np.log(x[0]) + x[1] ** 2 * 1e-16 + 1 / x[2],
        x,
        lambda x: np.array([1 / x[0], 2e-16 * x[1], -1 / x[2] ** 2]),
    )
    with pytest.raises(ValueError, match=r"check_gradient\(x=...\)` must give a finite value"):
        cfgd.check_gradient(lambda x: np.inf, [0.0], lambda x: x)


def test_of_many_coordinates_a_part_is_compared(monkeypatch):
    monkeypatch.setattr(gradient_check, "MOST_COORDINATES", 4)
    check = cfgd.check_gradient(lambda x: x @ x, np.arange(1.0, 8.0), lambda x: 2 * x)
    assert check
    assert np.isnan(check.differences).sum() == 3
    assert "right in 4 of 7" in repr(check)
    assert "left out" in repr(check)


@pytest.mark.usefixtures("unchecked")
def test_bad_calls_are_refused():
    with pytest.raises(ValueError, match=r"`check_gradient\(objective=...\)` must be a function"):
        cfgd.check_gradient(cfgd.Quadratic(np.eye(2), [1.0, 2.0]), [1.0, 2.0], lambda x: x)
    with pytest.raises(ValueError, match=r"`check_gradient\(gradient=...\)` must be a function"):
        cfgd.check_gradient(rosen, X, rosen_der(X))
    with pytest.raises(ValueError, match=r"`check_gradient\(x=...\)` must have shape \(2,\)"):
        cfgd.check_gradient(cfgd.Quadratic(np.eye(2), [1.0, 2.0]), X)
