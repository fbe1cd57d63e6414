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

    H is the Hessian itself if `is_exact`, else a model of it such as the Gauss-Newton matrix. It is
    given by `rows`, a Jacobian whose Gram matrix it is, or by `matrix`; by neither if only products
    with H are available. All of them are functions that compute their result when they are called.

    Parameters
    ----------
    times
        v -> Hv.
    diagonal
        The diagonal of H.
    shape
        (m, d) of the Jacobian; None if only products with H are available.
    rows
        The Jacobian with its residuals.
    matrix
        A function that returns H.
    residuals_at
        x -> r(x) if f = |r|^2 / 2, else None.
    acceleration
        (p, t) -> J'k with k the second derivative of the residuals along p, see
        `second_difference`, where f = |r|^2 / 2 and the Jacobian is sharded; else None.
    is_exact
        Whether H is the Hessian and never indefinite, and values along a line cost less than H:
        Levenberg-Marquardt then searches along its steps and needs no check by products at the end.
    cost
        The cost of `rows` or `matrix`, in gradients.
    product_cost
        The cost of `times`, in gradients.
    rows_are_data
        Whether the Jacobian is a scaled data matrix, so that forming H costs a product of matrices.
    extra_damping
        A diagonal that is added to that of H for the damping of steps, or None.
    information
        (() -> H) -> the information of the fit, whose inverse is the covariance of x: that of H
        over the variance of the residuals for least squares, H itself for a negative
        log-likelihood. The result is None where there is no covariance.
    is_stationary
        tolerance -> whether the gradient is small relative to the terms that it is the sum of; for
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
    information: Callable[[Callable[[], Matrix]], Information | None] | None = None
    is_stationary: Callable[[Number], Flag] | None = None

    def scaled(self, factor: Number) -> Curvature:
        """Return the curvature of factor * f."""
        root = factor**0.5

        def maybe(fn: Callable[..., Any] | None, by: object) -> Callable[..., Any] | None:
            return None if fn is None else lambda *args: by * fn(*args)

        rows, information = self.rows, self.information

        def scaled_rows() -> JacobianRows:
            assert rows is not None
            jacobian, residuals = rows()
            return JacobianRows(root * jacobian, root * residuals)

        def same_information(H: Callable[[], Matrix]) -> Information | None:
            assert information is not None
            return information(lambda: H() / factor)

        return dataclasses.replace(
            self,
            times=lambda v: factor * self.times(v),
            diagonal=lambda: factor * self.diagonal(),
            rows=None if rows is None else scaled_rows,
            matrix=maybe(self.matrix, factor),
            residuals_at=maybe(self.residuals_at, root),
            acceleration=maybe(self.acceleration, factor),
            extra_damping=maybe(self.extra_damping, factor),
            information=None if information is None else same_information,
        )


def second_difference(ahead: Column, r: Column, along: Column, t: float) -> Column:
    """Return k of r(x - t p) = r - t Jp + t^2 k / 2, given r(x - t p), r and Jp."""
    return 2 / t * ((ahead - r) / t + along)


def residual_is_stationary(
    evaluation: Evaluation, diagonal: Vector, targets: Scalar, tolerance: Number
) -> Flag:
    """Test whether a least-squares residual is orthogonal to X, or tiny relative to y and Xw.

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
