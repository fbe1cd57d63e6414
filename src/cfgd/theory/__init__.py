"""The paper's theorems on quadratics, as pure functions of the problem.

The objective is f(x) = x'Ax/2 + b'x with a symmetric matrix A, and D = diag(A). For least squares
A = X'X and b = -X'y. Theorems have their numbers in the paper and, in parentheses, its labels:
Theorem 3 (thm:fLSQ) is about the non-adaptive method, Theorem 4 (thm:adapt-terminal) about the
adaptive terminal, Theorem 5 (thm:adapt-order) about the adaptive order.

The package imports nothing else of cfgd: a bound must not depend on the code that is tested against
it.

>>> from cfgd import theory
>>> print(theory.tikhonov_solution([[2.0, 0.0], [0.0, 4.0]], [-2.0, -8.0], [0.0, 0.0], 1.0))
[0.5 1. ]
"""

from cfgd.theory.adaptive_order import (
    adaptive_order_bound as adaptive_order_bound,
    adaptive_order_constant as adaptive_order_constant,
)
from cfgd.theory.adaptive_terminal import (
    adaptive_terminal_bound as adaptive_terminal_bound,
    adaptive_terminal_matrices as adaptive_terminal_matrices,
    spectral_radius as spectral_radius,
)
from cfgd.theory.heavy_ball import (
    BestConstants as BestConstants,
    best_constants as best_constants,
)
from cfgd.theory.non_adaptive import (
    non_adaptive_rate as non_adaptive_rate,
    tikhonov_solution as tikhonov_solution,
    tilde_A as tilde_A,
)

__all__ = [
    "BestConstants",
    "adaptive_order_bound",
    "adaptive_order_constant",
    "adaptive_terminal_bound",
    "adaptive_terminal_matrices",
    "best_constants",
    "non_adaptive_rate",
    "spectral_radius",
    "tikhonov_solution",
    "tilde_A",
]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__
