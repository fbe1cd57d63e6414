"""How often the 95 % intervals of `cfgd fit` hold the true coefficient, in simulations.

The seeds are fixed. Of linear models with normal errors the intervals are exact, whatever the
number of rows. Those of logistic and Poisson models are Wald's, which are right for many rows: with
few rows they hold the coefficient too often, and samples of separated classes have none. Those of
gamma models have Student's t, since the dispersion is estimated, and hold it a little too rarely.
"""

import numpy as np
import pytest
from fit_tables import write

from cfgd.apps.fit.newton import newton
from cfgd.apps.fit.options import FitOptions
from cfgd.apps.fit.progress import ProgressReporter
from cfgd.apps.fit.row_block import RowBlock
from cfgd.apps.fit.run import fit
from cfgd.apps.fit.summary_table import coefficient_table
from cfgd.objectives.linear.coefficient_table import CoefficientTable
from cfgd.objectives.linear.covariance import InformationSums
from cfgd.objectives.linear.formulas import FORMULAS

NAMES = ("a", "b", "c", "intercept")
W = {
    "squared": np.array([0.7, -1.3, 0.0, 2.0]),
    "logistic": np.array([0.7, -0.4, 0.0, 0.3]),
    "poisson": np.array([0.4, -0.3, 0.0, 0.5]),
    "gamma": np.array([0.4, -0.3, 0.0, 0.5]),
}


def sample(loss, rows, random):
    """Return columns of different laws, and targets."""
    X = np.column_stack(
        [random.normal(size=rows), random.exponential(size=rows), random.random(rows) < 0.4]
    )
    p = X @ W[loss][:-1] + W[loss][-1]
    draw = {
        "squared": lambda: p + 0.8 * random.normal(size=rows),
        "logistic": lambda: np.where(p > random.logistic(size=rows), 1.0, -1.0),
        "poisson": lambda: random.poisson(np.exp(p)).astype(float),
        "gamma": lambda: random.gamma(2.0, np.exp(p) / 2),
    }
    return X, draw[loss]()


def intervals(loss, X, y):
    """Return the intervals that `cfgd fit` prints, by its parts; None where there are none."""
    block, ones = RowBlock(X, y), np.ones(len(y))
    found = newton(FORMULAS[loss], block, y, ones, 0.0, np.zeros(4))
    if found is None:
        return None
    sums = InformationSums(FORMULAS[loss], 4)
    sums.add(block, y, block.predictors(found.w), ones)
    covariance = sums.covariance()
    distribution = "t" if FORMULAS[loss].has_dispersion else "z"
    table = CoefficientTable(NAMES, found.w, covariance.errors, distribution, covariance.dof)
    return table.intervals()


def coverage(loss, rows, runs):
    """Return how often each interval holds the true coefficient, and how many samples have some."""
    random, inside = np.random.default_rng([41, rows]), []
    for _ in range(runs):
        found = intervals(loss, *sample(loss, rows, random))
        if found is not None and np.all(np.isfinite(found)):
            inside.append((found[:, 0] <= W[loss]) & (W[loss] <= found[:, 1]))
    return np.mean(inside, 0), len(inside) / runs


@pytest.mark.parametrize("loss", W)
def test_the_intervals_are_those_of_the_command(tmp_path, loss):
    X, y = sample(loss, 60, np.random.default_rng(3))
    path = write(tmp_path / "t.parquet", {**dict(zip(NAMES, X.T, strict=False)), "y": y})
    result = fit(FitOptions(path, "y", loss=loss, test=0.0), ProgressReporter())
    want = coefficient_table(result).intervals()
    np.testing.assert_allclose(intervals(loss, X, y), want, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [10, 30, 100, 1000])
def test_intervals_of_linear_models_hold_95_percent(rows):
    """With 10,000 samples a share of 0.95 is known to 0.002."""
    found, share = coverage("squared", rows, 10_000)
    assert share > 0.99  # of ten rows the level may have none
    assert np.all((found > 0.94) & (found < 0.96)), found


# loss, rows, the least and the largest share of four coefficients, and the least share of samples
# that have intervals: what was measured, and a margin of about four standard errors
MEASURED = [
    (
        "logistic",
        10,
        0.98,
        1.0,
        0.5,
    ),  # the other samples are separated
    ("logistic", 30, 0.95, 0.98, 0.99),
    ("logistic", 100, 0.94, 0.965, 0.999),
    ("logistic", 1000, 0.94, 0.96, 1.0),
    ("gamma", 10, 0.92, 0.95, 0.98),
    ("gamma", 30, 0.925, 0.945, 0.999),
    ("gamma", 100, 0.935, 0.955, 1.0),
    ("gamma", 1000, 0.94, 0.96, 1.0),
    ("poisson", 10, 0.955, 0.98, 0.94),
    ("poisson", 30, 0.94, 0.965, 0.999),
    ("poisson", 100, 0.94, 0.96, 1.0),
    ("poisson", 1000, 0.94, 0.96, 1.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "rows", "low", "high", "least"), MEASURED)
def test_intervals_of_other_models_hold_what_is_said(loss, rows, low, high, least):
    found, share = coverage(loss, rows, 10_000)
    assert share >= least, share
    assert np.all((found >= low) & (found <= high)), found
