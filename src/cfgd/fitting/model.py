"""The weighted residuals of a model, as a function of the free numbers of a fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from cfgd.fitting.layout import Layout
from cfgd.fitting.parameters import Expression


class Measured(NamedTuple):
    """The numbers of one data set, as arguments of a compiled function.

    `y` has a last axis of length two more than the model's result where that is complex. `sigma`
    are standard deviations, `whitening` is a matrix that makes the residuals uncorrelated,
    `present` is False where y is missing.
    """

    x: Any
    y: Any
    sigma: Any = None
    whitening: Any = None
    present: Any = None


@dataclasses.dataclass(frozen=True)
class Call:
    """How a model takes its parameters: pairs of an argument and the name of its parameter.

    An argument of None is positional.
    """

    pairs: tuple[tuple[str | None, str], ...]

    def __call__(self, model: Callable[..., Any], x: Any, p: Mapping[str, Any]) -> Any:
        positional = [p[name] for argument, name in self.pairs if argument is None]
        named = {argument: p[name] for argument, name in self.pairs if argument is not None}
        return jnp.asarray(model(x, *positional, **named))


class WeightedResiduals(eqx.Module):
    """The residuals (model(x, parameters) - y) / sigma of all data sets.

    Functions are leaves and all numbers are arguments: new numbers compile nothing.
    """

    models: tuple[Callable[..., Any], ...]
    expressions: dict[str, Expression]
    calls: tuple[Call, ...] = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)

    def complete(self, z: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters by name."""
        return self.layout.complete(z, fixed, self.expressions)

    def predict(self, p: Mapping[str, Any], x: Any, index: int = 0) -> Any:
        """Return what the model of a data set is at x."""
        return self.calls[index](self.models[index], x, p)

    def __call__(self, z: Any, fixed: Mapping[str, Any], data: list[Measured]) -> list[Any]:
        p = self.complete(z, fixed)
        return [residuals(self.predict(p, each.x, i), each) for i, each in enumerate(data)]


def residuals(prediction: Any, data: Measured) -> Any:
    """Return weighted residuals: zeros where y is missing, two numbers for a complex one."""
    if data.y.shape == (*prediction.shape, 2):
        prediction = jnp.stack([prediction.real, prediction.imag], -1)
    r = prediction - data.y
    if data.present is not None:
        r = jnp.where(data.present, r, 0)
    if data.whitening is not None:
        return data.whitening @ r.reshape(-1)
    return r if data.sigma is None else r / data.sigma
