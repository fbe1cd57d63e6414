"""Which library, NumPy or jax.numpy, computes with an array.

Formulas run on NumPy arrays in Auto's solvers and in `cfgd fit`, and on JAX arrays in the paper's
methods. JAX is imported with the first array that is not NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

NUMPY = (np.ndarray, np.generic)


def is_numpy(x: object) -> bool:
    """Return whether `x` is an array or a scalar of NumPy."""
    return isinstance(x, NUMPY)


def array_namespace(x: object) -> Any:
    """Return the module, NumPy or jax.numpy, whose functions take `x`."""
    if isinstance(x, NUMPY):
        return np
    import jax.numpy as jnp

    return jnp


def logistic(u: Any) -> Any:
    """Return 1 / (1 + exp(-u))."""
    if isinstance(u, NUMPY):
        return expit(u)
    import jax

    return jax.nn.sigmoid(u)
