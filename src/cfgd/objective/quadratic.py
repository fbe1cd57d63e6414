"""x'Ax/2 + b'x + constant."""

from __future__ import annotations

import abc
from typing import Any

import jax.numpy as jnp
import numpy as np

from cfgd import _check
from cfgd.objective.base import Objective, Point, inner
from cfgd.precision import numpy_in_numpy_out


class QuadraticWalk(Objective):
    """Walking on any quadratic: one product with A a step, everything else by recurrence.

    Along x - eta d the gradient is g - eta A d and the value f - eta g'd + eta^2/2 d'Ad. Rounding
    makes them drift from the truth, so the solver looks anew (`at`) every REFRESH iterations.
    """

    @property
    def is_quadratic(self) -> bool:
        return True

    @property
    def drifts(self) -> bool:
        return True

    @property
    def curvature_cost(self) -> float:
        return 0.0

    @property
    def value_cost(self) -> float:
        return 0.0

    @abc.abstractmethod
    def diagonal(self) -> Any:
        """D = diag(A)."""

    def diagonal_at(self, point: Point) -> Any:
        return self.diagonal()

    def slopes(self, point: Point, t: Any) -> tuple[Any, Any]:
        D = self.diagonal()
        return point.gradient + D * (t - point.x), jnp.broadcast_to(D, t.shape)

    def curvature_along(self, point: Point, d: Any, image: Any) -> Any:
        return inner(d, image)

    def values_along(self, point: Point, d: Any, image: Any, etas: Any) -> Any:
        if etas.ndim == 1:
            slope, curvature = inner(point.gradient, d), inner(d, image)
            return point.value - etas * slope + etas**2 / 2 * curvature
        return super().values_along(point, d, image, etas)

    def move(self, point: Point, d: Any, image: Any, eta: Any, slope: Any) -> Point:
        if jnp.ndim(eta) != 0:  # a step for each coordinate: A (eta d) is not eta A d
            return self.at(point.x - eta * d)
        curvature = inner(d, image)
        return Point(
            x=point.x - eta * d,
            value=point.value - eta * (slope - eta / 2 * curvature),
            gradient=point.gradient - eta * image,
            carried=point.carried,
        )

    def slopes_cost(self, s: int, d: int) -> float:
        return 0.0


class Quadratic(QuadraticWalk):
    r"""f(x) = x'Ax/2 + b'x + constant, A symmetric positive semi-definite.

    Its coordinate slopes are linear, so one node is exact (Corollary 3.1, with the a_jj of
    erratum 1): d = g + gamma diag(A) (x - c).

    >>> import cfgd
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> print(f.value([1.0, -10.0]), f.gradient([1.0, -10.0]))
    110.0 [ 20. -20.]
    """

    A: Any
    b: Any
    constant: Any

    def __init__(self, A: Any, b: Any, constant: Any = 0.0) -> None:
        A = _check.matrix("Quadratic", "A", A)
        b = _check.array("Quadratic", "b", b, "be a vector of numbers")
        if b.ndim != 1:
            _check.fail("Quadratic", "b", "be a vector", f"shape {tuple(b.shape)}")
        _check.shape("Quadratic", "A", A, (b.size, b.size))
        _check.symmetric_psd("Quadratic", "A", A)
        self.A, self.b = A, b
        constant = _check.array("Quadratic", "constant", constant, "be one number")
        if constant.ndim != 0:
            _check.fail("Quadratic", "constant", "be one number", f"shape {constant.shape}")
        # in the precision of A, so that a default of 0.0 does not widen float32 data
        self.constant = constant if _check.traced(constant) else np.asarray(constant, A.dtype)

    @property
    def dimension(self) -> int:
        return int(self.b.size)

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        return self.at(jnp.asarray(x)).value

    def at(self, x: Any) -> Point:
        Ax = x @ self.A  # A is symmetric, and vectors on the left batch into one matrix product
        return Point(x, x @ (Ax / 2 + self.b) + self.constant, Ax + self.b)

    def diagonal(self) -> Any:
        return jnp.diagonal(self.A)

    def image(self, point: Point, d: Any) -> Any:
        return d @ self.A
