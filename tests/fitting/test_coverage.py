"""How often intervals contain the true values, in 2,000 simulated fits for each case."""

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd

pytestmark = pytest.mark.slow

FITS = 2000
T = np.linspace(0.0, 5.0, 12)
# the standard deviation of the coverage of 2,000 fits is 0.5 %
LEAST, MOST = 0.94, 0.96


def decay(t, size, rate, rest):
    return size * jnp.exp(-rate * t) + rest


def covers(ends, true):
    return ends[0] <= true <= ends[1]


@pytest.mark.parametrize("rest", [0.5, 0.0], ids=["inside", "at its bound"])
def test_intervals_cover_the_true_values(rest):
    """With `rest` at its bound of 0 about half of the estimates are at the bound.

    The intervals of the other parameters have their nominal coverage in both cases. That of a
    parameter whose true value is its bound contains it more often: always if the estimate is there.
    """
    random = np.random.default_rng(29)
    true = {"size": 3.0, "rate": 0.8, "rest": rest}
    exact = 3.0 * np.exp(-0.8 * T) + rest
    hits = {"rate": [], "normal size": [], "normal rate": [], "band": []}
    at_bound, own = [], []
    for _ in range(FITS):
        y = exact + random.normal(0, 0.1, T.size)
        fit = cfgd.curve_fit(decay, T, y, true, bounds={"rest": (0.0, None)})
        normal, profile = fit.intervals(method="normal"), fit.intervals(names=["rate"])
        hits["rate"].append(covers(profile["rate"], 0.8))
        hits["normal size"].append(covers(normal["size"], 3.0))
        hits["normal rate"].append(covers(normal["rate"], 0.8))
        lower, upper = fit.band(np.array([1.5]))
        hits["band"].append(covers((lower[0], upper[0]), 3.0 * np.exp(-1.2) + rest))
        at_bound.append(fit.at_bound == ["rest"])
        own.append(fit.at_bound == ["rest"] or covers(normal["rest"], rest))
    shares = {name: float(np.mean(each)) for name, each in hits.items()}
    assert all(LEAST <= share <= MOST for share in shares.values()), shares
    assert np.mean(own) >= LEAST
    if rest == 0:
        assert 0.45 < np.mean(at_bound) < 0.55
