"""A dense matrix of the self-scaled Broyden family, which models the inverse of the Hessian.

In long runs a matrix that is updated with every pair takes far fewer gradients than limited memory.
It has d^2 numbers and costs about 2 d^2 multiplications in each iteration. The parameters of the
family are those of Al-Baali, Computational Optimization and Applications 9 (1998), as Urban,
Stefanou and Pons (J. Comput. Phys. 523, 2025) use them for physics-informed networks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from cfgd._core.linalg import inner, routine
from cfgd._core.types import Matrix, Number, Vector
from cfgd.methods.auto.lbfgs_memory import Memory, Pair, inverse_matrix

# The common factor of the matrix is multiplied into it where it leaves this range, so that neither
# overflows; the range is the root of that of float32, and of no consequence otherwise.
LEAST_FACTOR, LARGEST_FACTOR = 1e-15, 1e15


@dataclasses.dataclass
class BroydenMatrix:
    """The matrix H = factor * K, of which one triangle of K is updated in place."""

    triangle: Matrix  # K on and below the diagonal; entries above it are not used
    factor: Number

    @classmethod
    def of_memory(cls, memory: Memory, P: Vector) -> BroydenMatrix:
        """Return the inverse matrix of L-BFGS."""
        return cls(inverse_matrix(memory, P), 1.0)

    def times(self, v: Vector) -> Vector:
        """Return Hv."""
        # BLAS counts by columns: its upper triangle is the lower one by rows
        return routine(v, "symv")(self.factor, self.triangle.T, v)

    def diagonal(self) -> Vector:
        return self.factor * self.triangle.diagonal()

    def update(self, pair: Pair, model_curvature: Number, parameters: Parameters) -> None:
        """Update H so that it maps the change of the gradient to the step.

        Parameters
        ----------
        pair
            A step s and the change y of the gradient along it, with s'y > 0.
        model_curvature
            s'H^-1 s, which is known where s is a multiple of the step that H proposed.
        parameters
            `al_baali` or `self_scaled_bfgs`.
        """
        s, y, sy = pair.step, pair.change, pair.product
        w = self.times(y)
        yHy = inner(y, w)
        if not yHy > 0:  # it underflows, or the matrix is indefinite by rounding
            return
        tau, phi = parameters(model_curvature / sy, yHy / sy, s.size)
        # (H - ww'/yHy + phi yHy vv') / tau + ss'/s'y with v = s/s'y - w/yHy, sorted by s and w
        ss = phi * yHy / (tau * sy**2) + 1 / sy
        sw = -phi / (tau * sy)
        ww = (phi - 1) / (tau * yHy)
        self.factor = self.factor / tau
        self._add(s, w, ss / self.factor, sw / self.factor, ww / self.factor)
        if not LEAST_FACTOR <= self.factor <= LARGEST_FACTOR:
            self.triangle *= self.factor
            self.factor = 1.0

    def _add(self, s: Vector, w: Vector, ss: Number, sw: Number, ww: Number) -> None:
        """Add ss s s' + sw (s w' + w s') + ww w w', in one pass where it is a difference."""
        K = self.triangle.T
        discriminant = sw**2 - ss * ww
        if discriminant >= 0:  # ss (s + a w)(s + b w)
            root = np.sqrt(discriminant)
            a, b = (sw + root) / ss, (sw - root) / ss
            K = routine(s, "syr2")(ss / 2, s + a * w, s + b * w, a=K, overwrite_a=True)
        else:
            syr = routine(s, "syr")
            K = syr(ss, s + sw / ss * w, a=K, overwrite_a=True)
            K = syr(ww - sw**2 / ss, w, a=K, overwrite_a=True)
        self.triangle = K.T


# The parameters of an update: tau, by which the matrix is divided, and phi, which is 1 for BFGS and
# 0 for DFP. They depend on b = s'H^-1 s / s'y and h = y'Hy / s'y, whose product is at least one,
# and on the dimension.
Parameters: TypeAlias = Callable[[Number, Number, int], tuple[Number, Number]]


def self_scaled_bfgs(b: Number, h: Number, n: int) -> tuple[Number, Number]:
    """Return the update of BFGS, with H enlarged where it was too small along the step.

    It is as good as BFGS on polynomials in many variables, where more scaling takes up to twice the
    gradients (chained Rosenbrock, 60 and 200 variables), and far better than BFGS on networks.
    """
    return min(1.0, 1 / b), 1.0


def al_baali(b: Number, h: Number, n: int) -> tuple[Number, Number]:
    """Return the parameters of Al-Baali: the choice for residuals of networks.

    On equations of Burgers, Allen and Cahn, and Helmholtz the loss after 800 gradients is 0.1 to
    0.5 of that with `self_scaled_bfgs`.
    """
    a = b * h - 1
    if not 0 < a < np.inf:
        return 1.0, 1.0  # s and Hy are parallel: the family has one member
    c = np.sqrt(a / (1 + a))
    least = min(1.0, h * (1 - c))
    theta = max((least - 1) / a, min(1 / least, (1 - b) / b))
    sigma = 1 + a * theta
    spread = abs(sigma) ** (1 / (1 - n)) if n > 1 else 1.0
    scale = min(1.0, 1 / b)
    tau = scale * min(spread, 1 / theta) if theta > 0 else min(scale * spread, sigma)
    return tau, (1 - theta) / sigma
