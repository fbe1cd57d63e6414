"""The weighted residuals of a model, as a function of the free numbers of a fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core.linalg import array_namespace
from cfgd.objectives.parameter_layout import Layout
from cfgd.objectives.parameters import Expression


class Measured(NamedTuple):
    """The numbers of one data set, as arguments of a compiled function.

    `y` has a last axis of length two more than the model's result where that is complex. `sigma`
    are standard deviations, `whitening` is a matrix that makes the residuals uncorrelated,
    `present` is False where y is missing. `sigma_x` has the standard deviations of each leaf of x
    whose true values are unknown too, None for a leaf that is exact.
    """

    x: Any
    y: Any
    sigma: Any = None
    whitening: Any = None
    present: Any = None
    sigma_x: list[Any] | None = None

    @property
    def n_unknown_x(self) -> int:
        """How many numbers of x are unknown."""
        return sum(int(np.size(each)) for each in self.sigma_x or [] if each is not None)

    def true_x(self, errors: Any) -> Any:
        """Return x plus its errors, which are in units of sigma_x."""
        if self.sigma_x is None:
            return self.x
        leaves, treedef = jax.tree.flatten(self.x)
        start = 0
        for i, sigma in enumerate(self.sigma_x):
            if sigma is not None:
                end = start + sigma.size
                leaves[i] = leaves[i] + sigma * errors[start:end].reshape(sigma.shape)
                start = end
        return jax.tree.unflatten(treedef, leaves)


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

    Where x has errors, too (`sigma_x`), its true values are further unknowns: z ends with the
    errors in units of sigma_x, which are residuals as well (orthogonal distance regression).
    Functions are leaves and all numbers are arguments: new numbers compile nothing.
    """

    models: tuple[Callable[..., Any], ...]
    expressions: dict[str, Expression]
    calls: tuple[Call, ...] = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)

    def __hash__(self) -> int:  # a dict has none; without one every `minimize` traces the model
        return hash((self.models, self.calls, self.layout))

    def complete(self, z: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters by name."""
        return self.layout.complete(z, fixed, self.expressions)

    def predict(self, p: Mapping[str, Any], x: Any, index: int = 0) -> Any:
        """Return what the model of a data set is at x."""
        return self.calls[index](self.models[index], x, p)

    def __call__(self, z: Any, fixed: Mapping[str, Any], data: list[Measured]) -> list[Any]:
        p, found, start = self.complete(z, fixed), [], self.layout.size
        for i, each in enumerate(data):
            errors = z[start : start + each.n_unknown_x]
            found.append(residuals(self.predict(p, each.true_x(errors), i), each))
            if each.sigma_x is not None:
                found.append(errors)
                start += errors.size
        return found


def residuals(prediction: Any, data: Measured) -> Any:
    """Return weighted residuals: zeros where y is missing, two numbers for a complex one."""
    xp = array_namespace(prediction)
    if data.y.shape == (*prediction.shape, 2):
        prediction = xp.stack([prediction.real, prediction.imag], -1)
    r = prediction - data.y
    if data.present is not None:
        r = xp.where(data.present, r, 0)
    if data.whitening is not None:
        return data.whitening @ r.reshape(-1)
    return r if data.sigma is None else r / data.sigma
