"""Activation functions with their first two derivatives, which share the expensive part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.linalg import array_namespace, logistic
from cfgd._core.types import Data, DType, Numbers, Scalar, UserInput

# phi(u), phi'(u), phi''(u)
PhiDerivatives: TypeAlias = tuple[Any, Any, Any]
Activation: TypeAlias = Callable[[Data], PhiDerivatives]


def tanh(u: Data) -> PhiDerivatives:
    phi = array_namespace(u).tanh(u)
    slope = 1 - phi * phi
    return phi, slope, -2 * phi * slope


def sigmoid(u: Data) -> PhiDerivatives:
    phi = logistic(u)
    slope = phi * (1 - phi)
    return phi, slope, slope * (1 - 2 * phi)


def softplus(u: Data) -> PhiDerivatives:
    slope = logistic(u)
    return array_namespace(u).logaddexp(u, 0), slope, slope * (1 - slope)


def sin(u: Data) -> PhiDerivatives:
    phi = array_namespace(u).sin(u)
    return phi, array_namespace(u).cos(u), -phi


def series(activation: Activation, phi: Data, slope: Data) -> list[Any] | None:
    """Return the Taylor coefficients phi^(k)(u) / k!, k = 0 to 8, for tanh; None for others.

    For tanh they are polynomials in phi(u), by phi' = 1 - phi^2. They are written out, because a
    compiler would evaluate a recurrence again for each of its terms.
    """
    if activation is not tanh:
        return None
    p = phi * phi
    return [
        phi,
        slope,
        -phi * slope,
        (p - 1 / 3) * slope,
        -phi * (p - 2 / 3) * slope,
        ((p - 1) * p + 2 / 15) * slope,
        -phi * ((p - 4 / 3) * p + 17 / 45) * slope,
        (((p - 5 / 3) * p + 11 / 15) * p - 17 / 315) * slope,
        -phi * (((p - 2) * p + 6 / 5) * p - 62 / 315) * slope,
    ]


class Custom:
    """Any JAX function of one number; equal functions share one compiled program."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn

    def __call__(self, u: Data) -> PhiDerivatives:
        flat = jax.vmap(self._one)(u.reshape(-1))
        phi, slope, curvature = (part.reshape(u.shape) for part in flat)
        return phi, slope, curvature

    def _one(self, u: Data) -> PhiDerivatives:
        def value_and_slope(u: Scalar) -> tuple[Numbers, Numbers]:
            return jax.jvp(self.fn, (u,), (jnp.ones_like(u),))

        (phi, slope), (_, curvature) = jax.jvp(value_and_slope, (u,), (jnp.ones_like(u),))
        return phi, slope, curvature

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Custom) and self.fn == other.fn

    def __hash__(self) -> int:
        return hash(self.fn)


ACTIVATIONS: dict[str, Activation] = {
    "tanh": tanh,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "sin": sin,
}


def activation_of(owner: str, activation: UserInput, dtype: DType) -> Activation:
    """Return the activation for a name or a JAX function of one number."""
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return ACTIVATIONS[activation]
    if not callable(activation):
        wanted = f"be one of {', '.join(ACTIVATIONS)}, or a function of one number"
        checks.fail(owner, "activation", wanted, repr(activation))
    with in_precision(dtype):
        one = jax.ShapeDtypeStruct((), dtype)
        checks.scalar_function(owner, "activation", activation, one)
    return Custom(activation)
