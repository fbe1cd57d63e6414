"""The benchmark of many fits: its cases, its batch in NumPy, its rivals and its rows."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import scipy.optimize

import cfgd
from cfgd.apps.bench.__main__ import SUITES
from cfgd.apps.bench.speed import many_fits, many_fits_rivals
from cfgd.apps.bench.speed.many_fits_cases import CASES
from cfgd.apps.bench.speed.many_fits_numpy import (
    accurate_fit,
    batch_levenberg_marquardt,
    relative_differences,
)
from cfgd.apps.bench.speed.many_fits_rivals import Rival

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def fit_by_scipy(case, y):
    tight = {"ftol": 1e-14, "xtol": 1e-14, "gtol": 1e-14}
    return scipy.optimize.curve_fit(case.numpy_model, case.t, y, case.start, **tight)


@pytest.mark.every_case
@every_case
def test_models_and_jacobians_agree(case):
    z, h = np.mean(case.ranges, 1), 1e-5
    with jax.enable_x64(True):
        np.testing.assert_allclose(case.model(case.t, *z), case.numpy_model(case.t, *z), rtol=1e-13)
    ends = [[case.numpy_model(case.t, *(z + s)) for s in sign * h * np.eye(len(z))]
            for sign in (1, -1)]  # fmt: skip
    differences = (np.array(ends[0]) - np.array(ends[1])).T / (2 * h)
    np.testing.assert_allclose(case.jacobian(case.t, *z), differences, atol=1e-8)


@pytest.mark.every_case
@every_case
def test_the_batch_in_numpy_finds_what_scipy_finds(case):
    Y = case.data(6)
    found, errors = batch_levenberg_marquardt(case, Y)
    for i, y in enumerate(Y):
        z, covariance = fit_by_scipy(case, y)
        if case.name == "Gaussian":  # the curve does not depend on the sign of its width
            z[2], found[i, 2] = abs(z[2]), abs(found[i, 2])
        np.testing.assert_allclose(found[i], z, rtol=1e-6)
        np.testing.assert_allclose(errors[i], np.sqrt(np.diag(covariance)), rtol=1e-5)


def test_blocks_of_the_batch_are_put_together(monkeypatch):
    case, Y = CASES[0], CASES[0].data(5)
    whole, _ = batch_levenberg_marquardt(case, Y)
    monkeypatch.setattr("cfgd.apps.bench.speed.many_fits_numpy.BLOCK", 2)
    np.testing.assert_allclose(batch_levenberg_marquardt(case, Y)[0], whole, rtol=1e-12)


def test_a_fit_that_is_not_determined_does_not_stop_the_batch():
    case, Y = CASES[1], CASES[1].data(3)
    alone, _ = batch_levenberg_marquardt(case, Y)
    Y = np.concatenate([Y, np.full((1, case.n_points), 0.5)])  # a peak of height 0 lies anywhere
    found, _ = batch_levenberg_marquardt(case, Y)
    np.testing.assert_allclose(found[:3], alone, rtol=1e-12)
    assert np.abs(found[3, [0, 3]] - [0, 0.5]).max() < 1e-6


@pytest.mark.every_case
@every_case
def test_eight_digits_are_told_from_seven(case):
    Y = case.data(4)
    starts, _ = batch_levenberg_marquardt(case, Y)
    found = np.array([accurate_fit(case, y, z) for y, z in zip(Y, starts, strict=True)])
    # the same digits from other starts
    assert relative_differences(case, Y, found).max() < 1e-12
    others = np.array([accurate_fit(case, y, 1.05 * z) for y, z in zip(Y, starts, strict=True)])
    np.testing.assert_allclose(others, found, rtol=1e-12)
    spoiled = found.copy()
    spoiled[2, 1] *= 1 + 1e-7
    differences = relative_differences(case, Y, spoiled)
    assert differences[2] == pytest.approx(1e-7, rel=1e-3)
    assert np.delete(differences, 2).max() < 1e-12


# rivals that are no dependencies of the tests, by a word in their names
PACKAGES = {"jaxfit": "jaxfit", "NLSQ": "nlsq", "lmfit": "lmfit"}
INSTALLED = [
    name
    for name in many_fits_rivals.RIVALS
    if all(word not in name or find_spec(package) for word, package in PACKAGES.items())
]


@pytest.mark.slow
@every_case
@pytest.mark.parametrize("name", INSTALLED)
def test_a_rival_makes_the_fits(case, name):
    Y = case.data(3)
    found = many_fits_rivals.RIVALS[name].fit(case, Y)
    assert relative_differences(case, Y, found).max() < 1e-4


def test_a_package_with_a_fitter_is_made_once_and_called_for_each_row(monkeypatch):
    """jaxfit and NLSQ have a class `CurveFit`, which compiles for its first fit."""
    made = []

    class CurveFit:
        def __init__(self):
            made.append(self)

        def curve_fit(self, model, t, y, p0):
            return scipy.optimize.curve_fit(CASES[0].numpy_model, t, y, p0)

    monkeypatch.setitem(sys.modules, "stand_in", SimpleNamespace(CurveFit=CurveFit))
    Y = CASES[0].data(3)
    found = [many_fits_rivals.compiled_loop("stand_in", CASES[0], Y) for _ in range(2)]
    np.testing.assert_array_equal(found, [many_fits_rivals.scipy_loop(False, CASES[0], Y)] * 2)
    assert len(made) == 1


def test_rows_of_given_fits(monkeypatch):
    """All but one fit are right to eight digits, and one has not converged."""

    def fit_many(model, t, Y, start):
        found = np.array([accurate_fit(CASES[0], y, np.array(start)) for y in Y])
        found[3] *= 1 + 1e-7
        found[5] *= 2
        errors = {"a": np.ones(len(Y))}
        return SimpleNamespace(
            parameters=found, converged=np.arange(len(Y)) != 5, names=["a"], errors=errors
        )

    def fails(case, Y):
        raise ValueError("no such fit\nand more")

    def missing(case, Y):
        raise ImportError("no module")

    kept = {name: many_fits_rivals.RIVALS[name] for name in many_fits_rivals.SCIPY}
    others = {"broken": Rival(fails, 2), "absent": Rival(missing, 2)}
    monkeypatch.setattr(cfgd, "curve_fit_many", fit_many)
    monkeypatch.setattr(many_fits, "RIVALS", kept | others)
    monkeypatch.setattr(many_fits, "CASES", CASES[:1])
    monkeypatch.setattr(many_fits, "_memory", lambda case, n: many_fits.ReportRow("memory", str(n)))
    rows = {row.what: row for row in many_fits.rows(seconds=10 / CASES[0].goal, n_on_disk=7)}
    assert rows["exponential decay, 3 parameters, 50 points: curve_fit_many"].holds is not None
    assert rows["... broken"].measured == "fails: no such fit"
    assert rows["... absent"].measured == "not installed"
    assert rows["... fraction of 10 fits that converged"].measured == "90.000%"
    worst = rows["... largest relative error of 9 fits"]
    assert (worst.measured, worst.holds) == ("1.0e-07", False)
    assert rows["memory"].measured == "7"
    assert SUITES["many_fits"] is many_fits.rows


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_rows_of_real_fits(monkeypatch):
    monkeypatch.setattr(many_fits, "_memory", lambda case, n: many_fits.ReportRow("memory", str(n)))
    rows = list(many_fits.rows(seconds=0.01))
    assert [row.what for row in rows].count("... a batch in NumPy, on one core") == len(CASES)
    assert not [row.line() for row in rows if row.measured.startswith("fails")]
    worst = [row.holds for row in rows if row.what.startswith("... largest relative error")]
    assert worst == [True] * len(CASES)


@pytest.mark.slow
def test_memory_is_that_of_a_fresh_process():
    row = many_fits._memory(CASES[0], 3000)
    assert row.what.startswith("3,000 fits")
    assert row.holds in (True, None)  # None where there is no /proc
