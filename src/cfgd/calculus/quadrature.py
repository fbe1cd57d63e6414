"""Gauss-Jacobi quadrature for the density of Beta(1, 1 - alpha), traceable in alpha."""

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
    r"""Return the Gauss-Jacobi rule for expectations over U ~ Beta(1, 1 - alpha).

    $$ E[p(U)] = (1-\alpha) \int_0^1 p(u) (1-u)^{-\alpha} du = \sum_l w_l\, p(u_l) $$

    is exact for every polynomial p of degree at most 2 nodes - 1. This is the rule of equation
    (2.6) of the paper, moved from [-1, 1] to [0, 1] and with its constant C_alpha included in the
    weights.

    Parameters
    ----------
    alpha : float or array
        Order in (0, 1), or an array of orders, for example one for each coordinate. It may be
        traced, so that an order can be scheduled inside `jit`.
    nodes : int
        Number of nodes.

    Returns
    -------
    u, w : array
        Nodes in [0, 1], and weights that sum to one, each of shape (nodes, *alpha.shape).

    Raises
    ------
    ValueError
        If a number in `alpha` is not in (0, 1), or `nodes` is not an integer of at least 1.

    References
    ----------
    Golub and Welsch, Calculation of Gauss quadrature rules, Mathematics of Computation 23 (1969).
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), equation (2.6).

    Examples
    --------
    >>> u, w = gauss_jacobi(0.5, 2)
    >>> print(u.round(6), w.round(6))
    [0.258444 0.884413] [0.347855 0.652145]
    """
    checks.integer("gauss_jacobi", "nodes", nodes)
    alpha = checks.in_open_unit_interval("gauss_jacobi", "alpha", alpha)
    return numpy_in_numpy_out(nodes_and_weights)(alpha, nodes)


@functools.partial(jax.jit, static_argnames="nodes")
def nodes_and_weights(alpha: ArrayLike, nodes: int) -> tuple[Numbers, Numbers]:
    """Compute the rule of `gauss_jacobi` without checks; alpha = 0 is the Gauss-Legendre rule."""
    alpha = jnp.asarray(alpha)
    if not jnp.issubdtype(alpha.dtype, jnp.floating):
        alpha = alpha.astype(float)
    if nodes == 1:  # the node is the mean of U: exact for a quadratic
        return (1 / (2 - alpha))[None], jnp.ones_like(alpha)[None]
    one = functools.partial(_golub_welsch, nodes=nodes)
    # orders are batched if the matrices are small, and processed one by one to bound the memory
    for_each_order = jax.vmap(one) if nodes <= 128 else functools.partial(jax.lax.map, one)
    u, w = (part.T.reshape((nodes, *alpha.shape)) for part in for_each_order(alpha.reshape(-1)))
    return u, w


def _golub_welsch(alpha: Scalar, nodes: int) -> tuple[Float[Array, " s"], Float[Array, " s"]]:
    """Compute the rule by the algorithm of Golub and Welsch (1969).

    Nodes are the eigenvalues of the Jacobi matrix, weights the squared first components of its
    eigenvectors. The matrix holds the recurrence coefficients of the Jacobi polynomials with
    parameters (-alpha, 0), moved to [0, 1].
    """
    k = jnp.arange(1, nodes, dtype=alpha.dtype)
    diagonal = jnp.concatenate(
        [
            (1 / (2 - alpha))[None],
            (1 - alpha**2 / ((2 * k - alpha) * (2 * k + 2 - alpha))) / 2,
        ]
    )
    # at k = 1 a factor 1 - alpha cancels, which would otherwise be 0/0 for alpha = 1
    cancelled = jnp.where(k == 1, k - alpha, (k - alpha) ** 2 / jnp.maximum(2 * k - alpha - 1, 0.5))
    off = k / (2 * k - alpha) * jnp.sqrt(cancelled / (2 * k + 1 - alpha))
    jacobi = jnp.diag(diagonal) + jnp.diag(off, 1) + jnp.diag(off, -1)
    u, vectors = jnp.linalg.eigh(jacobi)
    w = vectors[0] ** 2
    return jnp.clip(u, 0, 1), w / jnp.sum(w)
