"""The problems of the compiled solvers: a quadratic model at each point, a Hessian and bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from cfgd._core.box import Box
from cfgd._core.types import Column, Matrix, Scalar, Vector

# Unknowns up to which the products of all pairs of columns are formed one by one: the code grows
# with their number, and with 20 unknowns it compiles for twice as long as a product of matrices.
MOST_PAIRED = 12


class Model(NamedTuple):
    """The quadratic model f - g'p + p'Hp / 2 of the values at z - p."""

    value: Scalar
    gradient: Vector
    matrix: Matrix


class Problem(NamedTuple):
    """The function that is minimised.

    Attributes
    ----------
    model
        z -> the model at z.
    hessian
        z -> the Hessian at z; None where it is the matrix of the model.
    bounds
        The bounds of z, or None.
    """

    model: Callable[[Vector], Model]
    hessian: Callable[[Vector], Matrix] | None
    bounds: Box | None


def least_squares(residuals: Callable[[Vector], Column], bounds: Box | None = None) -> Problem:
    """Return the problem of minimising |r|^2 / 2, with the Gauss-Newton matrix as a model."""

    def model(z: Vector) -> Model:
        r, along = jax.linearize(residuals, z)
        basis = jnp.eye(z.size, dtype=z.dtype)
        if z.size > MOST_PAIRED:
            J = jax.vmap(along)(basis)  # one row for each unknown
            return Model(r @ r / 2, J @ r, J @ J.T)
        columns = [*(along(e) for e in basis), r]
        H = _symmetric(z.size + 1, lambda i, j: columns[i] * columns[j])
        return Model(H[-1, -1] / 2, H[-1, :-1], H[:-1, :-1])

    def hessian(z: Vector) -> Matrix:
        """Return J'J plus the residuals times their second derivatives."""
        if z.size > MOST_PAIRED:
            return jax.hessian(lambda z: (residuals(z) ** 2).sum() / 2)(z)
        basis = jnp.eye(z.size, dtype=z.dtype)

        def columns(z: Vector) -> list[Column]:
            _, along = jax.linearize(residuals, z)
            return [along(e) for e in basis]

        J, along = jax.linearize(columns, z)
        r, second = residuals(z), [along(e) for e in basis]
        return _symmetric(z.size, lambda i, j: J[i] * J[j] + r * second[i][j])

    return Problem(model, hessian, bounds)


def _symmetric(size: int, terms: Callable[[int, int], Column]) -> Matrix:
    """Return the symmetric matrix whose entries are the sums of these terms.

    They are one reduction, which reads every array once: in a batch it takes a third of the time of
    separate sums, and a fifth of that of a product of matrices.
    """
    pairs = [(i, j) for i in range(size) for j in range(i + 1)]
    all_terms = tuple(terms(i, j) for i, j in pairs)
    zeros = tuple(jnp.zeros((), each.dtype) for each in all_terms)
    sums = lax.reduce(all_terms, zeros, lambda a, b: tuple(map(jnp.add, a, b)), (0,))
    known = dict(zip(pairs, sums, strict=True))
    entries = [known[max(i, j), min(i, j)] for i in range(size) for j in range(size)]
    return jnp.stack(entries).reshape(size, size)


def smooth(fn: Callable[[Vector], Scalar], bounds: Box | None = None) -> Problem:
    """Return the problem of minimising a function, with its Hessian as a model."""

    def model(z: Vector) -> Model:
        value, g = jax.value_and_grad(fn)(z)
        return Model(value, g, jax.jacfwd(jax.grad(fn))(z))

    return Problem(model, None, bounds)
