"""A cube of noisy decays, some of them bad, and its fits: for the tests of `curve_fit_many`.

All use one model, one shape of data and so one compiled program.
"""

import numpy as np
from curves import decay, decay_in_numpy

import cfgd

SHAPE = (7, 11)
T = np.array([0.0, 0.2, 0.5, 0.6, 1.1, 1.5, 2.2, 2.9, 3.1, 4.3])
P0 = [1.0, 1.0, 0.0]
EMPTY, INFINITE, HOLEY, SHORT = (1, 2), (2, 2), (3, 4), (6, 10)


def cube():
    random = np.random.default_rng(3)
    parameters = [random.uniform(*ends, SHAPE) for ends in ((1, 5), (0.4, 2), (-0.5, 0.5))]
    curves = decay_in_numpy(T, *(each[..., None] for each in parameters))
    Y = curves + 0.02 * random.normal(size=curves.shape)
    Y[EMPTY], Y[INFINITE][3], Y[HOLEY][[0, 4]], Y[SHORT][2:] = np.nan, np.inf, np.nan, np.nan
    return Y, np.stack(parameters, -1)


Y, TRUTH = cube()


def fit(data=Y, p0=P0, **options):
    return cfgd.curve_fit_many(decay, T, data, p0, **options)


def same(one, other):
    np.testing.assert_array_equal(np.asarray(one.table), np.asarray(other.table))


class Stored:
    """An array on a disk: it has a shape and slices, and counts what was read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.read = array, array.shape, array.dtype, 0
        self.ndim = array.ndim

    def __getitem__(self, index):
        part = self.array[index]
        self.read += part.size
        return part
