"""The look at the curvature before a verdict, in few dimensions."""

import numpy as np
import pytest

import cfgd

MIDDLE = np.array([0.7, -1.3, 2.0, 0.4])
D = MIDDLE.size


def sides(value, gradient, x0):
    """The end, and on how many sides of it each coordinate was looked along."""
    seen = []

    def told(x):
        seen.append(np.array(x))
        return gradient(x)

    ends = cfgd.minimize(cfgd.External(value, told), x0)
    moved = np.array([x - ends.x for x in seen])
    alone = [row for row in moved if np.count_nonzero(row) == 1 and np.abs(row).max() < 1e-3]
    up, down = (np.count_nonzero(sign * np.array(alone) > 0, axis=0) for sign in (1, -1))
    return ends, up, down


def bent(A):
    """A quadratic with a little of a fourth power: curvatures change along a probe."""

    def value(x):
        r = x - MIDDLE
        return r @ A @ r / 2 + 0.1 * np.sum(r**4)

    return value, lambda x: A @ (x - MIDDLE) + 0.4 * (x - MIDDLE) ** 3


def near_singular(least):
    """Scaling does not cure it: all of its diagonal is one."""
    A = np.ones((D, D)) + least * np.diag([1.0, 2.0, 3.0, 4.0])
    return A / np.sqrt(np.outer(np.diag(A), np.diag(A)))


def test_where_all_curvatures_are_clear_one_side_is_enough():
    A = np.array([[4.0, 1, 0, 0], [1, 3, 1, 0], [0, 1, 2, 0.5], [0, 0, 0.5, 5]])
    ends, up, down = sides(*bent(A), np.zeros(D))
    assert ends.success
    np.testing.assert_allclose(ends.x, MIDDLE, atol=1e-6)
    np.testing.assert_array_equal(up, 1)
    np.testing.assert_array_equal(down, 0)


def test_where_one_is_small_both_sides_are_looked_at():
    ends, up, down = sides(*bent(near_singular(1e-6)), MIDDLE + 0.01 * np.arange(1, D + 1))
    assert ends.success
    np.testing.assert_array_equal(up, down)
    assert up.min() >= 1


def test_a_saddle_is_seen_from_both_sides_and_left():
    """Where curvatures are 1 and -0.1 but along another axis."""
    turn, _ = np.linalg.qr(np.arange(16.0).reshape(D, D) ** 1.5 + np.eye(D))
    A = turn @ np.diag([1.0, 2.0, 3.0, -0.1]) @ turn.T
    value, gradient = bent(A)
    off = turn[:, :3] @ np.array([1.0, -2.0, 0.5])  # nothing along the negative one
    ends = cfgd.minimize(cfgd.External(value, gradient), MIDDLE + off)
    assert ends.success
    assert ends.value < -1e-3


@pytest.mark.parametrize("third", [-30.0, 30.0])
def test_a_curvature_that_changes_along_the_probe_does_not_make_a_saddle_a_minimum(third):
    """f = u^2 - v^2/2 + third v^3/6 + v^4, at v = 0: negative, and soon positive on one side."""

    def value(x):
        u, v = x - [2.0, 1.0]
        return u**2 - v**2 / 2 + third * v**3 / 6 + 40 * v**4

    def gradient(x):
        u, v = x - [2.0, 1.0]
        return np.array([2 * u, -v + third * v**2 / 2 + 160 * v**3])

    ends = cfgd.minimize(cfgd.External(value, gradient), [3.0, 1.0])
    assert ends.success
    assert ends.value < -1e-4
