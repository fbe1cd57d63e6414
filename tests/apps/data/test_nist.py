"""NIST's regressions: the certified parameters have the certified sum of squares."""

import jax
import numpy as np
import pytest

from cfgd.apps.data.nist import regressions


def test_there_are_all():
    assert len(regressions()) == 27


@pytest.mark.parametrize("name", regressions())
def test_the_certified_sum_of_squares(name):
    one = regressions()[name]
    with jax.enable_x64(True):
        r = np.asarray(one.residuals(one.certified))
    # that of Lanczos1 is rounding
    assert r @ r == pytest.approx(one.sum_of_squares, rel=1e-6, abs=1e-17)


def test_digits_are_those_of_the_worst_parameter():
    one = regressions()["Misra1a"]
    exact = one.certified
    assert one.digits(exact) == 11
    assert one.digits(exact * [1 + 1e-9, 1 - 1e-3]) == pytest.approx(3)
    assert one.digits(exact * [1 + 2e-7, 1]) == pytest.approx(6.69897)
    assert one.digits(-exact) == 0
    assert one.digits(exact * np.nan) == 0
