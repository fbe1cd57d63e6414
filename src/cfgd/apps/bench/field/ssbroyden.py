"""Dense quasi-Newton methods: BFGS, and the self-scaled Broyden family (SSBroyden).

The family is Al-Baali's (1998); the choice of its parameters is that of Urbán, Stefanou and Pons,
Unveiling the optimization process of physics informed neural networks (2025), and of Kiyani et al.,
arXiv 2501.16371, where it is called SSBroyden2. SciPy's BFGS multiplies d x d matrices in each
iteration; here an update takes d^2 operations, for BFGS as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from scipy.linalg import blas

ValueAndGradient = Callable[[np.ndarray], tuple[float, np.ndarray]]

# The conditions of Wolfe, as in SciPy's BFGS.
ARMIJO, CURVATURE = 1e-4, 0.9
LINE_SEARCH_ITERATIONS = 30
MOST_SCALE = 1e100  # beyond it the factor is multiplied into the matrix, which prevents overflow


class Update(NamedTuple):
    """Scaling 1/tau and the member phi of Broyden's family; tau = phi = 1 is BFGS."""

    tau: float
    phi: float


class Pair(NamedTuple):
    """The numbers of a step s and its change y of the gradient on which the update depends.

    b = s'Bs / y's and h = y'Hy / y's, where B is the inverse of H; d is the number of variables,
    and `is_first` says that H is the identity.
    """

    b: float
    h: float
    d: int
    is_first: bool


def bfgs_update(pair: Pair) -> Update:
    """Return the update of BFGS; as in SciPy, the identity is not scaled."""
    return Update(1.0, 1.0)


def ssbroyden_update(pair: Pair) -> Update:
    """Return the update of Urbán, Stefanou and Pons; the identity is scaled as in their program.

    a = b h - 1 is not negative by Cauchy and Schwarz. If it is zero, s and Hy are parallel, and all
    members of the family are equal.
    """
    b, h, d, is_first = pair
    a = max(b * h - 1, np.finfo(float).tiny)
    c = np.sqrt(a / (1 + a))
    rho_minus = min(1.0, h * (1 - c))
    theta_minus, theta_plus = (rho_minus - 1) / a, 1 / rho_minus
    theta = max(theta_minus, min(theta_plus, (1 - b) / b))
    sigma = 1 + theta * a
    if is_first:
        return Update(h / sigma, (1 - theta) / sigma)
    rho = min(1.0, 1 / b)
    root = abs(sigma) ** (1 / (1 - d)) if d > 1 else 1.0
    tau = min(rho * root, sigma) if theta <= 0 else rho * min(root, 1 / theta)
    return Update(tau, (1 - theta) / sigma)


class InverseHessian:
    """H = scale * matrix; the upper triangle of the matrix is stored and updated in place."""

    def __init__(self, d: int, scale: float = 1.0) -> None:
        self.scale, self.matrix = scale, np.asfortranarray(np.eye(d))

    def times(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(blas.dsymv(self.scale, self.matrix, v))

    def update(self, s: np.ndarray, y: np.ndarray, update: Update, Hy: np.ndarray) -> None:
        """H <- (H - Hy y'H / y'Hy + phi y'Hy v v') / tau + s s' / y's, v = s / y's - Hy / y'Hy."""
        ys, yHy = float(y @ s), float(y @ Hy)
        # what is added to H / tau, as a symmetric matrix in the basis s, Hy
        phi, tau = update.phi, update.tau
        cross = -phi / (ys * tau)
        added = np.array(
            [[1 / ys + phi * yHy / (ys**2 * tau), cross], [cross, (phi - 1) / (yHy * tau)]]
        )
        self.scale /= tau
        if not 1 / MOST_SCALE < self.scale < MOST_SCALE:
            self.matrix *= self.scale
            self.scale = 1.0
        # of unit length, so that the small matrix is well scaled
        basis = np.stack([s, Hy])
        lengths = np.linalg.norm(basis, axis=1)
        values, vectors = np.linalg.eigh(added * np.outer(lengths, lengths))
        for value, vector in zip(values, vectors.T, strict=True):
            direction = (vector / lengths) @ basis
            blas.dsyr(value / self.scale, direction, a=self.matrix, overwrite_a=True)


def minimize(
    value_and_gradient: ValueAndGradient,
    x0: np.ndarray,
    choose: Callable[[Pair], Update],
    line_search: Callable[..., Any] | None = None,
) -> np.ndarray:
    """Minimise until the line search fails twice in a row.

    Rounding may make H indefinite: where the line search fails, H becomes a multiple of the
    identity, as in the program of Urbán, Stefanou and Pons.

    Parameters
    ----------
    value_and_gradient
        The function. It may raise an exception to end the run.
    x0
        The start.
    choose
        `bfgs_update` or `ssbroyden_update`.
    line_search
        Of (function, x, direction, value, gradient, value before): returns a step or None.
    """
    function = LastEvaluation(value_and_gradient)
    search = line_search or strong_wolfe
    x, d = np.array(x0, float), len(x0)
    f, g = function(x)
    H, is_first, identity = InverseHessian(d), True, 1.0
    before = f + float(np.linalg.norm(g)) / 2  # SciPy's guess, which tries a step of length one
    while np.any(g):
        direction = -H.times(g)
        step = search(function, x, direction, f, g, before)
        if step is None and is_first:
            break
        if step is None:
            H, is_first = InverseHessian(d, identity), True
            before = f + identity * float(g @ g)  # tries the step 1
            continue
        s = step * direction
        x, before, old_g = x + s, f, g
        f, g = function(x)
        y = g - old_g
        ys = float(y @ s)
        if ys <= 0:  # a step at the limit of rounding
            continue
        Hy, identity = H.times(y), ys / float(y @ y)
        pair = Pair(-step * float(s @ old_g) / ys, float(y @ Hy) / ys, d, is_first)
        H.update(s, y, choose(pair), Hy)
        is_first = False
    return x


def strong_wolfe(
    function: LastEvaluation,
    x: np.ndarray,
    direction: np.ndarray,
    f: float,
    g: np.ndarray,
    before: float,
) -> float | None:
    """Return a step that meets the strong conditions of Wolfe, by SciPy's line search."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = scipy.optimize.line_search(
            function.value,
            function.gradient,
            x,
            direction,
            g,
            f,
            before,
            c1=ARMIJO,
            c2=CURVATURE,
            maxiter=LINE_SEARCH_ITERATIONS,
        )[0]
    return None if step is None or not np.isfinite(function.value(x + step * direction)) else step


class LastEvaluation:
    """A function with its gradient that remembers its last two evaluations."""

    def __init__(self, fn: ValueAndGradient) -> None:
        self.fn = fn
        self.known: list[tuple[np.ndarray, tuple[float, np.ndarray]]] = []

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        for point, result in self.known:
            if np.array_equal(point, x):
                return result
        result = self.fn(x)
        self.known = [(np.array(x), result), *self.known[:1]]
        return result

    def value(self, x: np.ndarray) -> float:
        return self(x)[0]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self(x)[1]
