"""The copy of NIST's regressions agrees with the certified values."""

import jax
import numpy as np
import pytest

from cfgd.apps.data.nist import regressions


def test_there_are_27_regressions():
    assert len(regressions()) == 27


@pytest.mark.parametrize("name", regressions())
def test_certified_parameters_have_the_certified_sum_of_squares(name):
    regression = regressions()[name]
    with jax.enable_x64(True):
        r = np.asarray(regression.residuals(regression.certified))
    # that of Lanczos1 is at the level of rounding errors
    assert r @ r == pytest.approx(regression.sum_of_squares, rel=1e-6, abs=1e-17)


def test_digits_are_those_of_the_worst_parameter():
    regression = regressions()["Misra1a"]
    exact = regression.certified
    assert regression.digits(exact) == 11
    assert regression.digits(exact * [1 + 1e-9, 1 - 1e-3]) == pytest.approx(3)
    assert regression.digits(exact * [1 + 2e-7, 1]) == pytest.approx(6.69897)
    assert regression.digits(-exact) == 0
    assert regression.digits(exact * np.nan) == 0
