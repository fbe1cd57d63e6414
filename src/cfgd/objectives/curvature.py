"""Second-order information of an objective at a point, as one value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import array_namespace, clip_positive, weighted_norm
from cfgd._core.types import Column, Flag, Matrix, Number, Rows, Scalar, Vector
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.information import Information


class JacobianRows(NamedTuple):
    """A Jacobian J and residuals r with H = J'J and the gradient J'r."""

    jacobian: Rows
    residuals: Column


@dataclasses.dataclass(frozen=True, eq=False)
class Curvature:
    """A positive semi-definite matrix H that models the Hessian at a point.

    H is the Hessian itself where `is_exact`, else a model of it such as the Gauss-Newton matrix. It
    is given by one of `rows`, a Jacobian whose Gram matrix it is, or `matrix`, or neither, where
    only products with H can be had. Whatever is given is computed when it is called.

    Parameters
    ----------
    times
        v -> Hv.
    diagonal
        The diagonal of H.
    shape
        (m, d) of the Jacobian; None where H is available through products alone.
    rows
        The Jacobian with its residuals.
    matrix
        H.
    residuals_at
        x -> r(x) where f = |r|^2 / 2, else None.
    acceleration
        (p, t) -> J'k with k the second derivative of the residuals along p, see
        `second_difference`, where f = |r|^2 / 2 and the Jacobian is sharded; else None.
    is_exact
        Whether H is the Hessian and never indefinite, and values along a line cost less than H:
        Levenberg-Marquardt then searches along its steps and needs no check by products at the end.
    cost
        Of `rows` or `matrix`, in gradients.
    product_cost
        Of `times`, in gradients.
    rows_are_data
        Whether the Jacobian is a scaled data matrix, so that forming H costs a product of matrices.
    extra_damping
        What is added to the diagonal of H where steps are damped, or None.
    dispersion
        The factor before H^-1 in the covariance of a fitted x: 1 where f is a negative
        log-likelihood, for least squares the variance of the residuals. None where the inverse of
        H is no covariance.
    dof
        The degrees of freedom by which `dispersion` was estimated; None where it is known.
    information
        The information matrix of the fit, in place of H and `dispersion`, where its inverse and not
        that of H is the covariance; it is that of f for every multiple of f.
    is_stationary
        tolerance -> whether the gradient is that small beside the terms it is the sum of; for
        quadratics.
    """

    times: Callable[[Vector], Vector]
    diagonal: Callable[[], Vector]
    shape: tuple[int, ...] | None = None
    rows: Callable[[], JacobianRows] | None = None
    matrix: Callable[[], Matrix] | None = None
    residuals_at: Callable[[Vector], Column] | None = None
    acceleration: Callable[[Vector, float], Vector] | None = None
    is_exact: bool = False
    cost: float = 0.0
    product_cost: float = 2.0
    rows_are_data: bool = False
    extra_damping: Callable[[], Vector] | None = None
    dispersion: Callable[[], float | None] | None = None
    dof: Callable[[], float] | None = None
    information: Callable[[], Information | None] | None = None
    is_stationary: Callable[[Number], Flag] | None = None

    def scaled(self, factor: Number) -> Curvature:
        """Return the curvature of factor * f."""
        root = factor**0.5

        def maybe(fn: Callable[..., Any] | None, by: object) -> Callable[..., Any] | None:
            return None if fn is None else lambda *args: by * fn(*args)

        rows, dispersion = self.rows, self.dispersion

        def scaled_rows() -> JacobianRows:
            assert rows is not None
            jacobian, residuals = rows()
            return JacobianRows(root * jacobian, root * residuals)

        def scaled_dispersion() -> float | None:
            assert dispersion is not None
            found = dispersion()
            return None if found is None else float(factor) * found

        return dataclasses.replace(
            self,
            times=lambda v: factor * self.times(v),
            diagonal=lambda: factor * self.diagonal(),
            rows=None if rows is None else scaled_rows,
            matrix=maybe(self.matrix, factor),
            residuals_at=maybe(self.residuals_at, root),
            acceleration=maybe(self.acceleration, factor),
            extra_damping=maybe(self.extra_damping, factor),
            dispersion=None if dispersion is None else scaled_dispersion,
        )


def second_difference(ahead: Column, r: Column, along: Column, t: float) -> Column:
    """Return k of r(x - t p) = r - t Jp + t^2 k / 2, given r(x - t p), r and Jp."""
    return 2 / t * ((ahead - r) / t + along)


def residual_is_stationary(
    evaluation: Evaluation, diagonal: Vector, targets: Scalar, tolerance: Number
) -> Flag:
    """Test whether a least-squares residual is orthogonal to X, or nothing beside y and Xw.

    `diagonal` is that of the Hessian, `targets` the weighted norm of y.
    """
    D = clip_positive(diagonal)
    xp = array_namespace(D)
    residual = xp.sqrt(2 * xp.maximum(evaluation.value, 0))
    orthogonal = weighted_norm(evaluation.gradient, 1 / D) <= tolerance * residual
    return orthogonal | (residual <= tolerance * (targets + weighted_norm(evaluation.x, D)))


def residual_variance(value: float, degrees_of_freedom: int) -> float:
    """Return the variance of residuals where f is half the sum of their squares."""
    return 2 * value / degrees_of_freedom if degrees_of_freedom > 0 else np.inf
