"""A minimiser as a differentiable function of everything that the objective uses.

At a solution x(a) the gradient g(x, a) vanishes in the free coordinates, so that x'(a) solves
H x'(a) = -dg/da with the Hessian H (the implicit function theorem). `jax.lax.custom_root` has that
rule. It also differentiates in what the objective captures, and is linear in the tangents, which
gives reverse mode and derivatives of any order. The solvers on the host are not used: a callback
that calls JAX again from inside a compiled program can deadlock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from cfgd._core.box import Box
from cfgd._core.types import Column, Count, Flag, Number, Scalar, Vector
from cfgd.methods.compiled import levenberg_marquardt as lm
from cfgd.methods.compiled.conjugate_gradients import solve_by_products
from cfgd.methods.compiled.face import face_gradient, solve_scaled
from cfgd.methods.compiled.minimise import MOST_DENSE, Found, minimise


def differentiable_minimum(
    fn: Callable[[Vector], Scalar],
    residuals: Callable[[Vector], Column] | None,
    bounds: Box | None,
    z: Vector,
    tolerance: Number,
    max_iterations: Count | int,
) -> Found:
    """Return the result of `minimise`, differentiable in what `fn` captures.

    They are NaN where the run did not converge and where the Hessian is not positive definite.
    """

    def solve(_: Callable[[Vector], Vector], z: Vector) -> tuple[Vector, Found]:
        found = minimise(fn, residuals, bounds, z, tolerance, max_iterations)
        # `custom_root` gives whatever is returned beside the root a floating tangent
        return found.z, jax.tree.map(lambda leaf: leaf.astype(z.dtype), found)

    root, floats = lax.custom_root(face_gradient(fn, bounds), z, solve, _solve_linear, has_aux=True)
    found = Found(
        z=root,
        gradient_norm=floats.gradient_norm,
        status=floats.status.astype(jnp.int32),
        iterations=floats.iterations.astype(jnp.int32),
        is_regular=floats.is_regular > 0,
    )
    has_derivatives = found.is_regular & (found.status == lm.CONVERGED)
    return found._replace(z=_with_derivatives_if(has_derivatives, root))


def _solve_linear(times: Callable[[Vector], Vector], b: Vector) -> Vector:
    """Solve a system with the Hessian on a face, of which `times` is the product."""

    def solve(times: Callable[[Vector], Vector], b: Vector) -> Vector:
        if b.size > MOST_DENSE:
            found = solve_by_products(times, b)
            return jnp.where(found.is_definite, found.solution, jnp.nan)
        return solve_scaled(jax.vmap(times)(jnp.eye(b.size, dtype=b.dtype)), b)

    return lax.custom_linear_solve(times, b, solve, symmetric=True)


@jax.custom_jvp
def _with_derivatives_if(is_true: Flag, z: Vector) -> Vector:
    """Return z, whose derivatives are NaN unless the condition is true."""
    return z


@_with_derivatives_if.defjvp
def _(primals: tuple[Flag, Vector], tangents: tuple[Any, Vector]) -> tuple[Vector, Vector]:
    (is_true, z), (_, along) = primals, tangents
    return _with_derivatives_if(is_true, z), along * jnp.where(is_true, 1, jnp.nan).astype(z.dtype)
