"""When the line search of L-BFGS takes a step: by values, and by slopes where they are rounded."""

import numpy as np

import cfgd
from cfgd.methods.auto import line_search
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Start
from cfgd.objectives.evaluation import Evaluation


def search_from(f, x, p, **options):
    """Return what `decreases` says of the trial x - p, for value and gradient f."""
    ends = [Evaluation(at, *map(np.asarray, f(at))) for at in (x, x - p)]
    ends = [at._replace(value=at.value[()]) for at in ends]
    slope = ends[0].gradient @ p
    return line_search.decreases(
        line_search.Search(p, slope, 1.0, **options), 1.0, *ends, resolution=1.0
    )


def test_a_step_must_achieve_a_share_of_the_predicted_decrease():
    def bowl(x):
        return x @ x, 2 * x

    x = np.array([1.0, 2.0])
    assert search_from(bowl, x, x) == (True, 0)
    assert not search_from(bowl, x, 2 * x)[0]  # as high as before
    assert not search_from(bowl, x, (2 - 1e-5) * x)[0]  # a decrease below the share
    assert search_from(bowl, x, (2 - 1e-3) * x)[0]


def test_where_rounding_hides_the_decrease_slopes_decide():
    """1 + x^2 near 0: the value is one for all x below 1e-8, the gradient is not."""

    def valley(x):
        return 1 + x @ x + 2 * np.finfo(float).eps * (abs(x[0]) < 4e-9), 2 * x

    x = np.array([8e-9])
    accepted, value = search_from(valley, x, x)
    assert accepted
    assert value == 1  # and not 1 + 2 eps
    assert not search_from(valley, x, 4 * x)[0]  # the slope at the end is steeper
    assert not search_from(valley, x, x, leaves_saddle=True)[0]


def trials_of(f):
    """Return the points that a search from 0 to 1 tries, for value and slope f."""
    points = []

    def value(x):
        points.append(float(x[0]))
        return np.array(f(x[0])[0])

    oracle = Oracle(cfgd.External(value, lambda x: np.array([f(x[0])[1]])), np.zeros(1))
    at = oracle.evaluate(np.zeros(1))
    search = line_search.Search(np.array([-1.0]), -at.gradient[0], 1.0)
    found = line_search.line_search(oracle, at, search, Start.of(at))
    assert isinstance(found, line_search.Accepted)
    return points[1:]


def test_a_rejected_trial_is_followed_by_the_minimum_of_its_cubic():
    """The parabola through both values and the first slope has its minimum at 0.1."""
    f = np.polynomial.Polynomial([2.0, -1.0, 0.0, 5.0])
    minimum = 15**-0.5
    np.testing.assert_allclose(trials_of(lambda t: (f(t), f.deriv()(t))), [1.0, minimum])


def test_trials_are_at_least_halved():
    """The minimum of the first cubic is at 0.63, but f is no cubic there."""

    def wall(t):
        return (0.0, 5.0) if t > 0.45 else (-t, -1.0)

    assert trials_of(wall)[:2] == [1.0, 0.5]


def test_where_f_is_not_finite_a_tenth_is_next():
    points = trials_of(lambda t: (np.nan, np.nan) if t > 0.2 else (-t, -1.0))
    np.testing.assert_allclose(points, [1.0, 0.1])
