"""A run that starts at the minimum of a box: the gradient vanishes in no coordinate."""

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd


@pytest.mark.every_case
@pytest.mark.parametrize(
    "objective", [lambda x: jnp.sum((x + 3) ** 2), cfgd.Residuals(lambda x: x + 3)]
)
def test_a_corner_that_is_the_minimum(objective):
    solution = cfgd.minimize(objective, np.zeros(2), bounds=([0, 0], [1, 1]))
    assert solution.success
    np.testing.assert_array_equal(solution.x, 0)


def test_all_coordinates_are_fixed_or_at_their_bound():
    f = cfgd.Residuals(lambda x: x + jnp.array([3.0, -1.0]))
    solution = cfgd.minimize(f, np.array([0.5, 0.0]), bounds=([0.5, -1.0], [0.5, 0.0]))
    assert solution.success
    np.testing.assert_array_equal(solution.x, [0.5, 0.0])
