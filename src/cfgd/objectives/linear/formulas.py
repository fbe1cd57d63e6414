"""The formulas of the losses of linear models, for NumPy and JAX arrays.

`losses` makes of them what objectives hold. `cfgd fit` takes them as they are, without JAX.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from cfgd._core.namespace import array_namespace, logistic


class Formulas:
    """What every loss has; predictions p and targets y are arrays, treated entry by entry."""

    is_quadratic: ClassVar[bool] = False
    is_convex: ClassVar[bool] = True
    is_robust: ClassVar[bool] = False  # whether the covariance is that of robust regression
    needs_jax: ClassVar[bool] = False
    has_own_information: ClassVar[bool] = False  # the covariance is not that of the Hessian
    has_classes: ClassVar[bool] = False  # whether a sample has `classes` predictions instead of one

    def value(self, p: Any, y: Any) -> Any:
        """Return the loss of predictions p and targets y."""
        raise NotImplementedError

    def derivatives(self, p: Any, y: Any) -> tuple[Any, Any]:
        """Return the first and second derivative in the prediction."""
        raise NotImplementedError

    def along(self, p: Any, y: Any, v: Any) -> Any:
        """Return the directional derivative of the slope, for predictions that change by v."""
        return self.derivatives(p, y)[1] * v

    def dispersion(self, value: float, freedom: int) -> float | None:
        """Return the estimated dispersion, 1 for a negative log-likelihood; None if there is none.

        `freedom` are the degrees of freedom of the residuals at a fit of the given value.
        """
        return 1.0

    def residuals(self, p: Any, y: Any) -> Any:
        """Return the residuals whose mean square estimates the dispersion; None if it is 1."""
        return None

    @property
    def has_dispersion(self) -> bool:
        """Whether the dispersion is estimated, so that estimate / error has Student's t."""
        return self.residuals(np.zeros(1), np.ones(1)) is not None

    def information_weight(self, p: Any, y: Any) -> Any:
        """Return the weights of the rows in the information matrix: the Hessian's by default."""
        return array_namespace(p).maximum(self.derivatives(p, y)[1], 0)

    def predicted(self, p: Any, labels: tuple[float, ...]) -> Any:
        """Return the predicted target: a mean, or one of the labels."""
        return p

    def probabilities(self, p: Any) -> Any:
        """Return the probability of each label; None if targets are not labels."""
        return None


class Squared(Formulas):
    """(p - y)^2 / 2."""

    is_quadratic: ClassVar[bool] = True

    def value(self, p: Any, y: Any) -> Any:
        return (p - y) ** 2 / 2

    def dispersion(self, value: float, freedom: int) -> float | None:
        return 2 * value / freedom if freedom > 0 else math.inf

    def residuals(self, p: Any, y: Any) -> Any:
        return p - y

    def derivatives(self, p: Any, y: Any) -> tuple[Any, Any]:
        return p - y, array_namespace(p).ones_like(p)


class Logistic(Formulas):
    """log(1 + exp(-y p)) for labels y = -1 or 1."""

    def value(self, p: Any, y: Any) -> Any:
        return array_namespace(p).logaddexp(-y * p, 0)

    def derivatives(self, p: Any, y: Any) -> tuple[Any, Any]:
        wrong = logistic(-y * p)
        return -y * wrong, wrong * (1 - wrong)

    def predicted(self, p: Any, labels: tuple[float, ...]) -> Any:
        return array_namespace(p).where(p > 0, labels[1], labels[0])

    def probabilities(self, p: Any) -> Any:
        return array_namespace(p).stack([logistic(-p), logistic(p)], -1)


class Poisson(Formulas):
    """exp(p) - y p, for counts y of mean exp(p)."""

    def value(self, p: Any, y: Any) -> Any:
        return array_namespace(p).exp(p) - y * p

    def derivatives(self, p: Any, y: Any) -> tuple[Any, Any]:
        rate = array_namespace(p).exp(p)
        return rate - y, rate

    def predicted(self, p: Any, labels: tuple[float, ...]) -> Any:
        return array_namespace(p).exp(p)


class Gamma(Formulas):
    """p + y exp(-p), for positive y of mean exp(p) and a standard deviation proportional to it."""

    has_own_information: ClassVar[bool] = True

    def value(self, p: Any, y: Any) -> Any:
        return p + y * array_namespace(p).exp(-p)

    def derivatives(self, p: Any, y: Any) -> tuple[Any, Any]:
        part = y * array_namespace(p).exp(-p)
        return 1 - part, part

    def dispersion(self, value: float, freedom: int) -> float | None:
        return None  # it is not a function of the value: see `residuals`

    def residuals(self, p: Any, y: Any) -> Any:
        """Return Pearson's residuals (y - mean) / mean."""
        return y * array_namespace(p).exp(-p) - 1

    def information_weight(self, p: Any, y: Any) -> Any:
        return array_namespace(p).ones_like(p)  # the expected Hessian, as for all linear models

    def predicted(self, p: Any, labels: tuple[float, ...]) -> Any:
        return array_namespace(p).exp(p)


class Huber(Formulas):
    """(p - y)^2 / 2 for |p - y| <= 1, |p - y| - 1/2 beyond."""

    is_robust: ClassVar[bool] = True
    has_own_information: ClassVar[bool] = True

    def value(self, p: Any, y: Any) -> Any:
        far: Any = abs(p - y)
        return array_namespace(p).where(far <= 1, far**2 / 2, far - 0.5)

    def dispersion(self, value: float, freedom: int) -> float | None:
        return None  # it is not a function of the value: see `residuals`

    def residuals(self, p: Any, y: Any) -> Any:
        """Return psi, the residuals clipped to -1 and 1."""
        return self.derivatives(p, y)[0]

    def information_weight(self, p: Any, y: Any) -> Any:
        return array_namespace(p).ones_like(p)

    def derivatives(self, p: Any, y: Any) -> tuple[Any, Any]:
        far: Any = p - y
        return array_namespace(p).clip(far, -1, 1), (abs(far) <= 1).astype(p.dtype)


FORMULAS: dict[str, Formulas] = {
    "squared": Squared(),
    "logistic": Logistic(),
    "poisson": Poisson(),
    "gamma": Gamma(),
    "huber": Huber(),
}
MULTINOMIAL = "multinomial"  # its formulas depend on the labels
