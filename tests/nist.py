"""NIST's regressions as the tests of methods and solving take them."""

import jax.numpy as jnp

from cfgd.apps.data.nist import regressions

NIST = {
    name: {
        "start1": one.starts[0],
        "start2": one.starts[1],
        "certified": one.certified,
        "standard_deviation": one.deviations,
        "residual_sum_of_squares": one.sum_of_squares,
    }
    for name, one in regressions().items()
}


def residuals(name):
    return regressions()[name].residuals


def sum_of_squares(name):
    r = residuals(name)
    return lambda b: jnp.sum(r(b) ** 2) / 2


def correct_digits(name, b):
    return regressions()[name].digits(b)
