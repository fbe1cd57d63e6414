"""Gauss-Jacobi quadrature for the density of the Caputo memory, traceable in alpha."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.types import ArrayInput, Data, Numbers, Scalar


def gauss_jacobi(alpha: ArrayInput, nodes: int) -> tuple[Data, Data]:
    r"""Nodes in [0, 1] and weights that sum to one, for U ~ Beta(1, 1 - alpha).

    $$ E[p(U)] = (1-\alpha) \int_0^1 p(u) (1-u)^{-\alpha} du = \sum_l w_l\, p(u_l) $$

    is exact for every polynomial p of degree at most 2 nodes - 1. This is the rule of equation
    (2.6) of the paper, moved from [-1, 1] to [0, 1] and with its constant C_alpha inside the
    weights. `alpha` may be traced, so an order can be scheduled inside `jit`; an array of orders
    (one for each coordinate) gives arrays of shape (nodes, *alpha.shape).

    >>> u, w = gauss_jacobi(0.5, 2)
    >>> print(u.round(6), w.round(6))
    [0.258444 0.884413] [0.347855 0.652145]
    """
    checks.integer("gauss_jacobi", "nodes", nodes)
    alpha = checks.in_open_unit_interval("gauss_jacobi", "alpha", alpha)
    return numpy_in_numpy_out(nodes_and_weights)(alpha, nodes)


@functools.partial(jax.jit, static_argnames="nodes")
def nodes_and_weights(alpha: ArrayLike, nodes: int) -> tuple[Numbers, Numbers]:
    """`gauss_jacobi` without its checks; alpha = 0 is the Gauss-Legendre rule."""
    alpha = jnp.asarray(alpha)
    if not jnp.issubdtype(alpha.dtype, jnp.floating):
        alpha = alpha.astype(float)
    if nodes == 1:  # the mean of U: all that a quadratic needs
        return (1 / (2 - alpha))[None], jnp.ones_like(alpha)[None]
    one = functools.partial(_golub_welsch, nodes=nodes)
    # matrices of few nodes at once, of many one after the other
    every = jax.vmap(one) if nodes <= 128 else functools.partial(jax.lax.map, one)
    u, w = (part.T.reshape((nodes, *alpha.shape)) for part in every(alpha.reshape(-1)))
    return u, w


def _golub_welsch(alpha: Scalar, nodes: int) -> tuple[Float[Array, " s"], Float[Array, " s"]]:
    """Eigenvalues of the Jacobi matrix are the nodes; squared first components the weights.

    The polynomials are those of Jacobi with parameters (-alpha, 0), on [0, 1].
    """
    k = jnp.arange(1, nodes, dtype=alpha.dtype)
    diagonal = jnp.concatenate(
        [
            (1 / (2 - alpha))[None],
            (1 - alpha**2 / ((2 * k - alpha) * (2 * k + 2 - alpha))) / 2,
        ]
    )
    # at k = 1 a factor 1 - alpha cancels; written out it would be 0/0 for alpha = 1
    cancelled = jnp.where(k == 1, k - alpha, (k - alpha) ** 2 / jnp.maximum(2 * k - alpha - 1, 0.5))
    off = k / (2 * k - alpha) * jnp.sqrt(cancelled / (2 * k + 1 - alpha))
    jacobi = jnp.diag(diagonal) + jnp.diag(off, 1) + jnp.diag(off, -1)
    u, vectors = jnp.linalg.eigh(jacobi)
    w = vectors[0] ** 2
    return jnp.clip(u, 0, 1), w / jnp.sum(w)
