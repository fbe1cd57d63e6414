"""The face of a box on which a solution lies: its gradient, and its Hessian.

Coordinates at active bounds do not move while data change a little, so that the derivatives of a
solution are those of the problem in the free coordinates.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from cfgd._core.box import Box
from cfgd._core.types import Flag, Matrix, Scalar, Vector
from cfgd.methods.compiled.linear_systems import solve_definite

# Least eigenvalue of a Hessian with ones on its diagonal, in rounding units for each unknown: below
# that it is the error of the entries, and the Hessian is taken for singular.
SINGULAR_UNITS = 16.0


def face_gradient(fn: Callable[[Vector], Scalar], bounds: Box | None) -> Callable[[Vector], Vector]:
    """Return the gradient in the free coordinates; it is zero in those at active bounds.

    Its derivative has the Hessian of the free coordinates in their rows and columns, and those of
    the identity in the others, so that active coordinates are not changed by systems with it.
    """
    gradient = jax.grad(fn)
    if bounds is None:
        return gradient

    def on_face(z: Vector) -> Vector:
        held = lax.stop_gradient(z)
        is_active = bounds.is_active(held, gradient(held))
        return jnp.where(is_active, z - held, gradient(jnp.where(is_active, held, z)))

    return on_face


def solve_scaled(A: Matrix, b: Vector) -> Vector:
    """Solve a positive definite system after a scaling to ones on the diagonal."""
    unit = _unit(A)
    return unit * solve_definite(A * unit * unit[:, None], (unit * b)[:, None]).solution[:, 0]


def is_regular(A: Matrix) -> Flag:
    """Return whether a symmetric matrix is positive definite beyond rounding errors."""
    unit, n = _unit(A), len(A)
    shift = SINGULAR_UNITS * n * jnp.finfo(A.dtype).eps
    shifted = A * unit * unit[:, None] - shift * jnp.eye(n, dtype=A.dtype)
    return solve_definite(shifted, jnp.zeros((n, 1), A.dtype)).is_definite & jnp.isfinite(A).all()


def _unit(A: Matrix) -> Vector:
    diagonal = jnp.diagonal(A)
    return 1 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1))
