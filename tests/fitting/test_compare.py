"""The comparison of two fits against the textbook formulas and SciPy's distributions."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import cfgd

T = np.array([0.0, 0.3, 0.9, 1.4, 2.2, 3.1, 3.3, 4.6])
Y = np.array([2.94, 2.41, 1.62, 1.30, 0.97, 0.83, 0.71, 0.55])


def model(t, *p):
    return sum(coefficient * t**k for k, coefficient in enumerate(p)) + 0 * t


def polynomial(degree, **more):
    return cfgd.curve_fit(model, T, Y, np.zeros(degree + 1), **more)


def squares(degree):
    return np.sum((np.polyval(np.polyfit(T, Y, degree), T) - Y) ** 2)


@pytest.mark.parametrize("swapped", [False, True])
def test_the_f_test(swapped):
    small, large = polynomial(1), polynomial(3)
    found = large.compare(small) if swapped else small.compare(large)
    F = (squares(1) - squares(3)) / 2 / (squares(3) / 4)
    assert found.statistic == pytest.approx(F, rel=1e-6)
    assert found.p_value == pytest.approx(scipy.stats.f.sf(F, 2, 4), rel=1e-6)
    assert found.dof == (2, 4)
    assert found.swapped is swapped
    assert found.aic == pytest.approx(8 * np.log(squares(3) / squares(1)) + 4)
    assert found.bic == pytest.approx(8 * np.log(squares(3) / squares(1)) + 2 * np.log(8))
    larger = "first" if swapped else "second"
    assert repr(found).startswith("F(2, 4) = ")
    assert f"the {larger} is decisively better" in repr(found)


def test_known_sigma_gives_a_chi_square_test():
    given = {"sigma": np.full(8, 0.2), "absolute_sigma": True}
    found = polynomial(1, **given).compare(polynomial(2, **given))
    fall = (squares(1) - squares(2)) / 0.04
    assert found.test == "chi-square"
    assert found.statistic == pytest.approx(fall, rel=1e-6)
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(fall, 1), rel=1e-6)


def test_equally_many_parameters_have_no_test():
    other = cfgd.curve_fit(lambda t, a, b: a * jnp.exp(-b * t), T, Y, [3.0, 0.5])
    found = polynomial(1).compare(other)
    assert np.isnan(found.p_value)
    assert found.aic == pytest.approx(8 * np.log(other.chi_square / squares(1)))
    assert repr(found).startswith("AIC of the second minus AIC of the first")


BAD = {
    "points": (lambda: cfgd.curve_fit(model, T[1:], Y[1:], [1.0]), "same 8 points"),
    "data": (lambda: cfgd.curve_fit(model, T, 2 * Y, [1.0]), "same y and sigma"),
    "sigma": (
        lambda: polynomial(0, sigma=np.ones(8), absolute_sigma=True),
        "have absolute_sigma=False",
    ),
    "robust": (lambda: polynomial(0, loss="huber"), "be a fit by least squares"),
}


@pytest.mark.parametrize(("other", "message"), BAD.values(), ids=BAD)
@pytest.mark.every_case
def test_fits_that_cannot_be_compared(other, message):
    with pytest.raises(ValueError, match=message):
        polynomial(1).compare(other())
