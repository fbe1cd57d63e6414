"""When the line search of L-BFGS takes a step: by values, and by slopes where they are rounded."""

import numpy as np

from cfgd.methods.auto import line_search
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
