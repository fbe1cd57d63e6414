"""What the tests of checkpoints share: a few runs, and when two of them are the same."""

import numpy as np
from solver_cases import CASES

import cfgd

MEMORY = cfgd.AdaptiveTerminal(gamma=-0.2, lag=3)
QUADRATIC = CASES["conjugate gradients"][0]
LOGISTIC = CASES["Levenberg-Marquardt on a linear model"][0]


def same(a, b):
    np.testing.assert_array_equal(a.x, b.x)
    assert (a.value, a.iterations, a.evaluations, a.status) == (
        b.value, b.iterations, b.evaluations, b.status,
    )  # fmt: skip
    assert a.message == b.message
    assert sorted(a.history) == sorted(b.history)
    for name in a.history:
        np.testing.assert_array_equal(a.history[name], b.history[name], err_msg=name)
