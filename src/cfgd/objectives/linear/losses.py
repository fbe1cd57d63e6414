"""Losses of a prediction and a target, with their first two derivatives in the prediction."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.linalg import array_namespace, logistic
from cfgd._core.modules import FastModule
from cfgd._core.sharding import any_entry, is_sharded
from cfgd._core.types import Data, DType, Samples, UserInput, Values
from cfgd.objectives.linear.samples import is_negative


class Loss(FastModule):
    """Base class of losses: `value` and `derivatives` work entry by entry on arrays."""

    is_quadratic: ClassVar[bool] = False
    is_convex: ClassVar[bool] = True
    is_robust: ClassVar[bool] = False  # whether the covariance is that of robust regression
    needs_jax: ClassVar[bool] = False
    has_own_information: ClassVar[bool] = False  # the covariance is not that of the Hessian
    has_classes: ClassVar[bool] = False  # whether a sample has `classes` predictions instead of one

    @abc.abstractmethod
    def value(self, p: Data, y: Data) -> Data:
        """Return the loss of predictions p and targets y."""

    def derivatives(self, p: Data, y: Data) -> tuple[Data, Data]:
        """Return the first and second derivative in the prediction."""

        def slope(p: Data) -> Data:
            return jax.jvp(lambda p: self.value(p, y), (p,), (jnp.ones_like(p),))[1]

        return jax.jvp(slope, (p,), (jnp.ones_like(p),))

    def along(self, p: Data, y: Data, v: Data) -> Data:
        """Return the directional derivative of the slope, for predictions that change by v."""
        return self.derivatives(p, y)[1] * v

    def dispersion(self, value: float, freedom: int) -> float | None:
        """Return the estimated dispersion, 1 for a negative log-likelihood; None if there is none.

        `freedom` are the degrees of freedom of the residuals at a fit of the given value.
        """
        return 1.0

    def residuals(self, p: Data, y: Data) -> Data | None:
        """Return the residuals whose mean square estimates the dispersion; None if it is 1."""
        return None

    def information_weight(self, p: Data, y: Data) -> Data:
        """Return the weights of the rows in the information matrix: the Hessian's by default."""
        return array_namespace(p).maximum(self.derivatives(p, y)[1], 0)

    def predicted(self, p: Data, labels: tuple[float, ...]) -> Data:
        """Return the predicted target: a mean, or one of the labels."""
        return p

    def probabilities(self, p: Data) -> Any:
        """Return the probability of each label; None if targets are not labels."""
        return None

    def targets(self, owner: str, y: Samples) -> Samples:
        """Return the targets, checked and in the coding of the loss."""
        return y

    def check(self, owner: str, dtype: DType) -> None:
        """Raise a `ValueError` for a custom function that does not return one number."""


class Squared(Loss):
    """(p - y)^2 / 2."""

    is_quadratic: ClassVar[bool] = True

    def value(self, p: Data, y: Data) -> Data:
        return (p - y) ** 2 / 2

    def dispersion(self, value: float, freedom: int) -> float | None:
        return 2 * value / freedom if freedom > 0 else math.inf

    def residuals(self, p: Data, y: Data) -> Data | None:
        return p - y

    def derivatives(self, p: Data, y: Data) -> tuple[Data, Data]:
        return p - y, array_namespace(p).ones_like(p)


class Logistic(Loss):
    """log(1 + exp(-y p)) for labels y = -1 or 1; labels 0 and 1 are converted."""

    def value(self, p: Data, y: Data) -> Data:
        return array_namespace(p).logaddexp(-y * p, 0)

    def derivatives(self, p: Data, y: Data) -> tuple[Data, Data]:
        wrong = logistic(-y * p)
        return -y * wrong, wrong * (1 - wrong)

    def predicted(self, p: Data, labels: tuple[float, ...]) -> Data:
        return array_namespace(p).where(p > 0, labels[1], labels[0])

    def probabilities(self, p: Data) -> Any:
        return array_namespace(p).stack([logistic(-p), logistic(p)], -1)

    def targets(self, owner: str, y: Samples) -> Samples:
        if checks.is_traced(y):
            return jnp.where(y > 0, 1, -1).astype(y.dtype)
        wanted = "be 0/1 or -1/1 for the loss logistic"
        if any_entry(_is_not_0_1, y) and any_entry(_is_not_a_sign, y):
            checks.no_entry(owner, "y", wanted, _is_not_a_label, y)
            checks.fail(owner, "y", wanted, "labels -1, 0 and 1")
        xp, y = (jnp, y) if is_sharded(y) else (np, np.asarray(y))
        return xp.where(y > 0, 1, -1).astype(y.dtype)


class Poisson(Loss):
    """exp(p) - y p, for counts y of mean exp(p)."""

    def value(self, p: Data, y: Data) -> Data:
        return array_namespace(p).exp(p) - y * p

    def derivatives(self, p: Data, y: Data) -> tuple[Data, Data]:
        rate = array_namespace(p).exp(p)
        return rate - y, rate

    def predicted(self, p: Data, labels: tuple[float, ...]) -> Data:
        return array_namespace(p).exp(p)

    def targets(self, owner: str, y: Samples) -> Samples:
        if not checks.is_traced(y):
            checks.no_entry(owner, "y", "not be negative for the loss poisson", is_negative, y)
        return y


class Gamma(Loss):
    """p + y exp(-p), for positive y of mean exp(p) and a standard deviation proportional to it."""

    has_own_information: ClassVar[bool] = True

    def value(self, p: Data, y: Data) -> Data:
        return p + y * array_namespace(p).exp(-p)

    def derivatives(self, p: Data, y: Data) -> tuple[Data, Data]:
        part = y * array_namespace(p).exp(-p)
        return 1 - part, part

    def dispersion(self, value: float, freedom: int) -> float | None:
        return None  # it is not a function of the value: see `residuals`

    def residuals(self, p: Data, y: Data) -> Data | None:
        """Return Pearson's residuals (y - mean) / mean."""
        return y * array_namespace(p).exp(-p) - 1

    def information_weight(self, p: Data, y: Data) -> Data:
        return array_namespace(p).ones_like(p)  # the expected Hessian, as for all linear models

    def predicted(self, p: Data, labels: tuple[float, ...]) -> Data:
        return array_namespace(p).exp(p)

    def targets(self, owner: str, y: Samples) -> Samples:
        if not checks.is_traced(y):
            checks.no_entry(owner, "y", "be positive for the loss gamma", _is_not_positive, y)
        return y


class Huber(Loss):
    """(p - y)^2 / 2 for |p - y| <= 1, |p - y| - 1/2 beyond."""

    is_robust: ClassVar[bool] = True
    has_own_information: ClassVar[bool] = True

    def value(self, p: Data, y: Data) -> Data:
        far: Any = abs(p - y)
        return array_namespace(p).where(far <= 1, far**2 / 2, far - 0.5)

    def dispersion(self, value: float, freedom: int) -> float | None:
        return None  # it is not a function of the value: see `residuals`

    def residuals(self, p: Data, y: Data) -> Data | None:
        """Return psi, the residuals clipped to -1 and 1."""
        return self.derivatives(p, y)[0]

    def information_weight(self, p: Data, y: Data) -> Data:
        return array_namespace(p).ones_like(p)

    def derivatives(self, p: Data, y: Data) -> tuple[Data, Data]:
        far: Any = p - y
        return array_namespace(p).clip(far, -1, 1), (abs(far) <= 1).astype(p.dtype)


class Custom(Loss):
    """Any JAX function of one prediction and one target."""

    is_convex: ClassVar[bool] = False  # unknown, so not assumed
    needs_jax: ClassVar[bool] = True

    fn: Callable[[Any, Any], Any]

    def check(self, owner: str, dtype: DType) -> None:
        one = jax.ShapeDtypeStruct((), dtype)
        with in_precision(dtype):
            checks.scalar_function(owner, "loss", self.fn, one, one)

    def value(self, p: Data, y: Data) -> Any:
        p, y = jnp.broadcast_arrays(p, y)
        return jax.vmap(self.fn)(p.reshape(-1), y.reshape(-1)).reshape(p.shape)


LOSSES = {
    "squared": Squared(),
    "logistic": Logistic(),
    "poisson": Poisson(),
    "gamma": Gamma(),
    "huber": Huber(),
}
MULTINOMIAL = "multinomial"  # made by `Multinomial.of`, since it depends on the labels


def loss_of(owner: str, loss: UserInput) -> Loss | None:
    """Return the loss for a name or function; None for "multinomial"."""
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    if loss == MULTINOMIAL:
        return None
    if not callable(loss):
        known = ", ".join((*LOSSES, MULTINOMIAL))
        wanted = f"be one of {known}, or a function of (prediction, target)"
        checks.fail(owner, "loss", wanted, repr(loss))
    return Custom(loss)


def _is_not_0_1(y: Values) -> Any:
    return (y != 0) & (y != 1)


def _is_not_a_sign(y: Any) -> Any:
    return abs(y) != 1


def _is_not_a_label(y: Any) -> Any:
    return (y != 0) & (abs(y) != 1)


def _is_not_positive(y: Any) -> Any:
    return y <= 0
