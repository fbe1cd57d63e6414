"""Quadratic models of a sum of squares at a point, and their steps of bounded length.

The Gauss-Newton model has the matrix J'J, the augmented one J'J + S with a secant approximation S
of the second-order part sum_i r_i Hess(r_i). Both are kept in coordinates in which the matrix is
diagonal, so that a step of any damping costs two products. The first comes from the singular values
of J, which keep the digits that J'J would lose. References: Moré (1978), "The Levenberg-Marquardt
algorithm"; Nocedal and Wright, section 4.3; for S Dennis, Gay and Welsch, "An adaptive nonlinear
least-squares algorithm", ACM Trans. Math. Softw. 7 (1981).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd._core.linalg import (
    eps_of,
    inner,
    singular_values,
    symmetric_eigen,
    triangular_factor,
)
from cfgd._core.types import Column, Matrix, Rows, Scalar, Vector

# Singular values below this many rounding units of the largest one count as zero.
SINGULAR_UNITS = 4
# J'J + S is used as a model if its least eigenvalue, in scaled coordinates, is above this share of
# the largest one: a smaller one may be positive only because S is an approximation.
LEAST_CURVATURE = 1e-8
# Relative accuracy of the length of a step on the boundary (Moré: 0.1), and the iterations for it:
# two or three are usual.
LENGTH_ACCURACY, MOST_ITERATIONS = 0.1, 50
# J'J + S becomes the next model if the error of its prediction is below this share of that of J'J:
# a half, so that rounding errors do not change the model.
BETTER = 0.5
# Curvature of f along a step, relative to the product of both lengths, below which S is not
# updated: its update divides by this curvature.
LEAST_CHANGE = 1e-10


class QuadraticModel(NamedTuple):
    """f(x - p) = f - slopes'z + z' diag(curvatures) z / 2 for p = basis z / root.

    |z| is the length of p in the norm of D = root^2.
    """

    root: Vector
    basis: Matrix
    curvatures: Vector
    slopes: Vector
    undamped: Vector  # z of the minimiser; zero where there is no curvature

    def step(self, z: Vector) -> Vector:
        return (self.basis @ z) / self.root

    def coordinates(self, p: Vector) -> Vector:
        """Return z of a step."""
        return (self.root * p) @ self.basis

    def damped(self, gamma: Scalar) -> Vector:
        """Return z of the minimiser of the model with gamma |z|^2 / 2 added to it."""
        return self.undamped if gamma == 0 else self.slopes / (self.curvatures + gamma)

    def solve(self, v: Vector, gamma: Scalar) -> Vector:
        """Return z with (diag(curvatures) + gamma) z = basis' (v / root)."""
        curvatures = self.curvatures + gamma
        is_zero = curvatures <= (SINGULAR_UNITS * eps_of(v)) ** 2 * curvatures.max()
        return np.where(is_zero, 0, (v / self.root) @ self.basis / np.where(is_zero, 1, curvatures))

    def decrease(self, z: Vector) -> Scalar:
        return inner(self.slopes, z) - inner(self.curvatures * z, z) / 2

    def damping_for(self, radius: Scalar) -> Scalar:
        """Return the damping with which the step is as long as `radius`; 0 if it is shorter.

        The length falls with the damping; Newton's method is for its inverse, which is nearly
        linear (Moré, section 5).
        """
        b, w = self.slopes, self.curvatures
        zero = b.dtype.type(0)
        if inner(self.undamped, self.undamped) <= radius * radius:
            return zero
        low, high = zero, np.sqrt(inner(b, b)) / radius
        gamma = 1e-3 * high  # the first guess of Moré
        for _ in range(MOST_ITERATIONS):
            z = b / (w + gamma)
            length = np.sqrt(inner(z, z))
            if abs(length - radius) <= LENGTH_ACCURACY * radius:
                break
            low, high = (max(low, gamma), high) if length > radius else (low, min(high, gamma))
            gamma = gamma + (length / radius - 1) * length**2 / inner(z, z / (w + gamma))
            if not low < gamma < high:
                gamma = max(1e-3 * high, np.sqrt(low * high))
        return gamma


def gauss_newton_model(J: Rows, r: Column, root: Vector) -> QuadraticModel:
    """Return the model with the matrix J'J and the gradient J'r.

    The triangular factor of [J r] has the singular values of J, and a row for each unknown.
    """
    d = root.size
    both = np.empty((r.size, d + 1), J.dtype, order="F")
    np.divide(J, root, out=both[:, :d])
    both[:, d] = r
    R = triangular_factor(both)
    U, s, Vt = singular_values(R[:d, :d])
    c = R[:d, d] @ U
    least = SINGULAR_UNITS * eps_of(s) * s[0]
    undamped = c / s if s[-1] > least else np.where(s > least, c / np.where(s > least, s, 1), 0)
    return QuadraticModel(root, Vt.T, s * s, s * c, undamped)


def augmented_model(model: QuadraticModel, S: Matrix, g: Vector) -> QuadraticModel | None:
    """Return the model with S added to its matrix, or None where that is not positive definite."""
    root = model.root
    matrix = (model.basis * model.curvatures) @ model.basis.T + S / root / root[:, None]
    w, Q = symmetric_eigen(matrix)
    if not w[0] > LEAST_CURVATURE * max(w[-1], 1):
        return None
    slopes = (g / root) @ Q
    return QuadraticModel(root, Q, w, slopes, slopes / w)


class Secant(NamedTuple):
    """An approximation of sum_i r_i Hess(r_i) by differences of Jacobians along steps."""

    matrix: Matrix
    is_used: bool  # with it the decrease of f is predicted better than without

    @classmethod
    def zero(cls, x: Vector) -> Secant:
        return cls(np.zeros((x.size, x.size), x.dtype), False)

    def updated(
        self, old: tuple[Rows, Column], new: tuple[Rows, Column], s: Vector, D: Vector
    ) -> Secant:
        """Return the approximation after a step s, from J and r before and after it.

        It is the smallest change of S, in a weighted norm, with which S s equals the change of the
        Jacobian times the residuals. S is first scaled to the curvature along s, so that it becomes
        smaller when the residuals do.
        """
        (J, r), (J_new, r_new) = old, new
        along, S = J @ s, self.matrix
        decrease, curvature = (inner(r, r) - inner(r_new, r_new)) / 2, inner(s, S @ s)
        predicted = -inner(r, along) - inner(along, along) / 2
        is_used = bool(
            abs(decrease - predicted + curvature / 2) < BETTER * abs(decrease - predicted)
        )
        y = r_new @ (J_new - J)
        size = abs(inner(s, y))
        S = S * (min(size / abs(curvature), 1) if curvature != 0 else 1)
        change = r_new @ J_new - r @ J
        scale = inner(change, s)
        if scale > LEAST_CHANGE * np.sqrt(inner(D * s, s) * inner(change, change / D)):
            rest = y - S @ s
            outer = rest[:, None] * change / scale
            S = S + outer + outer.T - inner(rest, s) / scale**2 * (change[:, None] * change)
        return Secant(S, is_used) if np.isfinite(S).all() else Secant.zero(s)
