"""Data that every dtype represents exactly, and a deferred call of `minimize`."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np

import cfgd
from cfgd import GradientDescent

X = np.array([[2.0, 0.5, 0.0], [0.0, 1.0, 0.25], [1.0, 0.0, -1.0], [0.5, 0.5, 0.5]])
Y = np.array([1.0, 0.0, 1.0, 1.0])
X0 = np.array([1.0, -2.0, 0.5])
A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]])
B = np.array([1.0, -2.0, 0.5])
END = -np.linalg.solve(A, B)
GD = GradientDescent()
F32, F64, BF16 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(ml_dtypes.bfloat16)


def bowl(x):
    return x @ A @ x / 2 + B @ x


def no_answer(solution):
    """Do nothing: with a callback all chunks have one length, and so share one program."""


def run(f=bowl, x0=X0, method=GD, **options):
    """Return a function that calls `minimize`."""
    return lambda: cfgd.minimize(f, x0, method, **options)


J0 = jnp.asarray(X0, F32)
