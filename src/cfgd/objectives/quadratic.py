"""Quadratics: x'Ax/2 + b'x + constant, and the base class of all quadratics."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out, own, to_numpy
from cfgd._core.linalg import clip_positive, inner, weighted_norm
from cfgd._core.types import (
    Data,
    Etas,
    Flag,
    LineValues,
    Number,
    Numbers,
    Scalar,
    UserInput,
    Values,
    Vector,
    Vectors,
)
from cfgd.objectives.base import DerivativeCost, Objective, Traits, label_of
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation, Line, LineCosts, linear_derivatives, slope_along

# Operations for a test whether a system is singular: some milliseconds.
AFFORDABLE = 10**8
# Columns up to which XLA's product with the vector on the left is as fast as on the right; with
# 2000 columns it takes twice as long.
SHORT = 1000


@dataclasses.dataclass(frozen=True, eq=False)
class QuadraticLine(Line):
    """A line along which value and gradient are updated by recurrence, from one product with A.

    At x - eta d the gradient is g - eta A d and the value f - eta g'd + eta^2/2 d'Ad.
    """

    product: Vector  # A d

    @property
    def costs(self) -> LineCosts:
        return LineCosts(0.0, 0.0)

    def curvature(self) -> Scalar:
        return inner(self.d, self.product)

    def values(self, etas: Etas) -> LineValues:
        if etas.ndim != 1:  # a step for each coordinate: A (eta d) is not eta A d
            return super().values(etas)
        return self.evaluation.value - etas * self.slope + etas**2 / 2 * self.curvature()

    def to(self, eta: Numbers) -> Evaluation:
        if np.ndim(eta) != 0:
            return super().to(eta)
        at = self.evaluation
        x, gradient = at.x - eta * self.d, at.gradient - eta * self.product
        return Evaluation(x, self.value_at(eta, x, gradient), gradient, at.aux)

    def value_at(self, eta: Number, x: Vector, gradient: Vector) -> Scalar:
        """Return the value at x = x_0 - eta d, whose gradient is known."""
        return self.evaluation.value - eta * (self.slope - eta / 2 * self.curvature())


@dataclasses.dataclass(frozen=True, eq=False)
class MatrixLine(QuadraticLine):
    """A line of a `Quadratic`, whose value follows from the gradient: x'(g + b)/2 + constant.

    A recurrence of values would keep the rounding errors of the first value, which may be far
    larger than the last value.
    """

    def value_at(self, eta: Number, x: Vector, gradient: Vector) -> Scalar:
        return self.objective.value_from(x, gradient)


class AnyQuadratic(Objective):
    """f with a constant Hessian A: coordinate slopes are linear and a step costs one product.

    The recurrences of its line accumulate rounding errors, as its traits say.
    """

    _internal: ClassVar[tuple[str, ...]] = ("diagonal",)

    @property
    def traits(self) -> Traits:
        return Traits(
            label_of(self),
            structure="quadratic",
            linear_slopes=True,
            accumulates_rounding=True,
            curvature="Hessian",
            is_singular=self._is_singular,
            derivative_cost=DerivativeCost(),
            diagonal_cost=DerivativeCost(),
        )

    def check(self, owner: str, x: Vector) -> None:
        """Accept every x: the value is a number by construction."""

    @abc.abstractmethod
    def diagonal(self) -> Vector:
        """Return diag(A)."""

    @abc.abstractmethod
    def _is_singular(self) -> bool: ...

    def coordinate_derivatives(self, evaluation: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        return linear_derivatives(evaluation, self.diagonal(), t)


class Quadratic(AnyQuadratic):
    r"""f(x) = x'Ax/2 + b'x + constant, A symmetric positive semi-definite.

    Its coordinate slopes are linear, so one node is exact (Corollary 3.1, with the a_jj of
    erratum 1): d = g + gamma diag(A) (x - c). A and b are copied.

    Parameters
    ----------
    A : matrix
        The symmetric matrix, of shape (d, d).
    b : array
        The linear part, of shape (d,).
    constant : float, default 0.0
        The value at 0.

    Raises
    ------
    ValueError
        If `A` is no square matrix, not symmetric, or certainly not positive semi-definite (a
        negative diagonal entry or 2 x 2 minor); `b` is no vector of its size; `constant` is not one
        number; or an entry is not finite.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> print(f.value([1.0, -10.0]), f.gradient([1.0, -10.0]))
    110.0 [ 20. -20.]
    """

    A: Data
    b: Data
    constant: Data

    _internal: ClassVar[tuple[str, ...]] = ("value_from",)

    def __init__(self, A: UserInput, b: UserInput, constant: UserInput = 0.0) -> None:
        rounding = checks.input_eps(A)
        A = checks.matrix("Quadratic", "A", A)
        b = checks.array("Quadratic", "b", b, "be a vector of numbers")
        if b.ndim != 1:
            checks.fail("Quadratic", "b", "be a vector", f"shape {tuple(b.shape)}")
        checks.shape("Quadratic", "A", A, (b.size, b.size))
        check_symmetric_psd("Quadratic", "A", A, rounding)
        self.A, self.b = own(A), own(b)
        constant = checks.array("Quadratic", "constant", constant, "be one number")
        if constant.ndim != 0:
            checks.fail("Quadratic", "constant", "be one number", f"shape {constant.shape}")
        # in the precision of A, so that a default of 0.0 does not widen float32 data
        self.constant = (
            constant if checks.is_traced(constant) else own(np.asarray(constant, A.dtype))
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.b.shape

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        return self.evaluate(jnp.asarray(checks.floating("Quadratic", "x", x))).value

    def evaluate(self, x: Vector) -> Evaluation:
        gradient = self._times(x) + self.b
        return Evaluation(x, self.value_from(x, gradient), gradient)

    def value_from(self, x: Vector, gradient: Vector) -> Scalar:
        """Return f at x, whose gradient Ax + b is known."""
        return inner(x, gradient + self.b) / 2 + self.constant

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        return MatrixLine(self, evaluation, d, slope_along(evaluation, d, slope), self._times(d))

    def diagonal(self) -> Vector:
        return self.A.diagonal()

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        return self._times(v)

    def _times(self, v: Vector) -> Vector:
        """Return A v; A is symmetric, and XLA takes short vectors faster from the left."""
        return v @ self.A if self.b.size <= SHORT else self.A @ v

    def curvature(self, evaluation: Evaluation) -> Curvature:
        def is_stationary(tolerance: Number) -> Flag:
            """Compare the gradient with the terms that it is the sum of, A x and b."""
            D = clip_positive(self.diagonal())
            terms = weighted_norm(self.b, 1 / D) + weighted_norm(evaluation.x, D)
            return weighted_norm(evaluation.gradient, 1 / D) <= tolerance * terms

        return Curvature(
            times=self._times,
            diagonal=self.diagonal,
            shape=self.A.shape,
            matrix=lambda: self.A,
            is_exact=True,
            cost=1.0,
            product_cost=1.0,
            is_stationary=is_stationary,
        )

    def on_host(self) -> Quadratic:
        return to_numpy(self)

    def _is_singular(self) -> bool:
        return self.b.size**3 <= AFFORDABLE and has_null_space(np.asarray(self.A))


def has_null_space(A: np.ndarray) -> bool:
    """Return whether A, scaled to a unit diagonal, has an eigenvalue that is zero to rounding."""
    root = np.sqrt(np.diag(A))
    if not root.all():
        return True
    eigenvalues = np.linalg.eigvalsh(A / np.outer(root, root))
    return bool(eigenvalues[0] <= len(A) * np.finfo(A.dtype).eps * eigenvalues[-1])


def check_symmetric_psd(owner: str, field: str, A: Values, rounding: float = 0.0) -> None:
    """Raise unless A is symmetric with non-negative 2 x 2 minors.

    This takes O(d^2) operations and is necessary for positive semi-definiteness, not sufficient.
    `rounding` is the rounding unit of the entries that the user gave, if they have fewer digits
    than A.
    """
    if checks.is_traced(A):
        return
    A = np.asarray(A)
    tiny = max(1e3 * float(jnp.finfo(A.dtype).eps), 4 * rounding)
    scale = float(np.abs(A).max(initial=0.0))
    gap = float(np.abs(A - A.T).max(initial=0.0))
    if gap > tiny * scale:
        checks.fail(owner, field, "be symmetric", f"a difference of {gap:.3g} between A and A'")
    diagonal = np.diag(A)
    wanted = "be positive semi-definite"
    if (diagonal < -tiny * scale).any():
        i = int(np.argmin(diagonal))
        checks.fail(owner, field, wanted, f"the diagonal entry {diagonal[i]:.6g} at index {i}")
    root = np.sqrt(np.maximum(diagonal, 0.0))
    excess = np.abs(A) - np.outer(root, root)
    if excess.max(initial=0.0) > tiny * scale:
        row, column = divmod(int(np.argmax(excess)), len(A))
        checks.fail(
            owner, field, wanted, f"a negative minor of rows and columns {row} and {column}"
        )
