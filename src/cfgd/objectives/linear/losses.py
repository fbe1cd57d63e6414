"""Losses of a prediction and a target, with their first two derivatives in the prediction."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.modules import FastModule
from cfgd._core.sharding import any_entry, is_sharded
from cfgd._core.types import Data, DType, Samples, UserInput, Values
from cfgd.objectives.linear import formulas
from cfgd.objectives.linear.formulas import MULTINOMIAL
from cfgd.objectives.linear.samples import is_negative


class Loss(formulas.Formulas, FastModule):
    """Base class of losses: formulas, checked targets, and derivatives by JAX."""

    @abc.abstractmethod
    def value(self, p: Data, y: Data) -> Data:
        """Return the loss of predictions p and targets y."""

    def derivatives(self, p: Data, y: Data) -> tuple[Data, Data]:
        """Return the first and second derivative in the prediction."""

        def slope(p: Data) -> Data:
            return jax.jvp(lambda p: self.value(p, y), (p,), (jnp.ones_like(p),))[1]

        return jax.jvp(slope, (p,), (jnp.ones_like(p),))

    def targets(self, owner: str, y: Samples) -> Samples:
        """Return the targets, checked and in the coding of the loss."""
        return y

    def check(self, owner: str, dtype: DType) -> None:
        """Raise a `ValueError` for a custom function that does not return one number."""


class Squared(formulas.Squared, Loss):
    """(p - y)^2 / 2."""


class Logistic(formulas.Logistic, Loss):
    """log(1 + exp(-y p)) for labels y = -1 or 1; labels 0 and 1 are converted."""

    def targets(self, owner: str, y: Samples) -> Samples:
        if checks.is_traced(y):
            return jnp.where(y > 0, 1, -1).astype(y.dtype)
        wanted = "be 0/1 or -1/1 for the loss logistic"
        if any_entry(_is_not_0_1, y) and any_entry(_is_not_a_sign, y):
            checks.no_entry(owner, "y", wanted, _is_not_a_label, y)
            checks.fail(owner, "y", wanted, "labels -1, 0 and 1")
        xp, y = (jnp, y) if is_sharded(y) else (np, np.asarray(y))
        return xp.where(y > 0, 1, -1).astype(y.dtype)


class Poisson(formulas.Poisson, Loss):
    """exp(p) - y p, for counts y of mean exp(p)."""

    def targets(self, owner: str, y: Samples) -> Samples:
        if not checks.is_traced(y):
            checks.no_entry(owner, "y", "not be negative for the loss poisson", is_negative, y)
        return y


class Gamma(formulas.Gamma, Loss):
    """p + y exp(-p), for positive y of mean exp(p) and a standard deviation proportional to it."""

    def targets(self, owner: str, y: Samples) -> Samples:
        if not checks.is_traced(y):
            checks.no_entry(owner, "y", "be positive for the loss gamma", _is_not_positive, y)
        return y


class Huber(formulas.Huber, Loss):
    """(p - y)^2 / 2 for |p - y| <= 1, |p - y| - 1/2 beyond."""


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


def name_of_loss(loss: Any) -> Any:
    """Return the name or function that `loss_of` made a loss of."""
    if isinstance(loss, Custom):
        return loss.fn
    return next((name for name, each in LOSSES.items() if type(each) is type(loss)), MULTINOMIAL)


def loss_of(owner: str, loss: UserInput) -> Loss | None:
    """Return the loss for a name or function; None for "multinomial"."""
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    if isinstance(loss, str) and loss == MULTINOMIAL:
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
