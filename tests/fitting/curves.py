"""Data and models of the tests of fits, in JAX and in NumPy."""

import jax.numpy as jnp
import numpy as np
import scipy.optimize

T = np.array([0.0, 0.3, 0.9, 1.4, 2.2, 3.1, 3.3, 4.6])
Y = np.array([2.94, 2.41, 1.62, 1.30, 0.97, 0.83, 0.71, 0.55])
SIGMA = np.array([0.1, 0.2, 0.1, 0.05, 0.1, 0.3, 0.1, 0.2])
P0 = [1.0, 1.0, 0.0]


def decay(t, size, rate, rest):
    return size * jnp.exp(-rate * t) + rest


def decay_in_numpy(t, size, rate, rest):
    return size * np.exp(-rate * t) + rest


def least_squares(residuals, start):
    """SciPy's parameters and s^2 (J'J)^-1, with a Jacobian by complex steps."""
    start = np.asarray(start, float)

    def jacobian(p):
        steps = 1e-30j * np.eye(len(p))
        return np.stack([np.imag(residuals(p + step)) / 1e-30 for step in steps], 1)

    found = scipy.optimize.least_squares(
        residuals, start, jac=jacobian, xtol=1e-15, ftol=1e-15, gtol=1e-15, x_scale="jac"
    )
    J = jacobian(found.x)
    variance = 2 * found.cost / (len(found.fun) - len(start))
    return found.x, variance * np.linalg.inv(J.T @ J)
