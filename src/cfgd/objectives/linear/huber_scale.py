"""Huber's regression whose scale is estimated together with the coefficients."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.sharding import keep_float64
from cfgd._core.types import Data, UserInput
from cfgd.objectives.base import Objective
from cfgd.objectives.linear.design import design
from cfgd.objectives.linear.intercept import WithIntercept
from cfgd.objectives.linear.samples import penalties, targets, weights


class HuberScale(Objective):
    r"""f(w, t) = sum_i s_i (sigma + sigma H((Xw - y)_i / sigma)) + l2 |w|^2 / 2, sigma = exp(t).

    H(z) = z^2 for |z| <= epsilon, else 2 epsilon |z| - epsilon^2: Huber's proposal 2, of which
    sigma is the scale of the residuals. x holds w (its intercept last) and then t.
    """

    X: Any
    y: Data
    epsilon: Data
    l2: Data
    sample_weight: Data

    @keep_float64
    def __init__(
        self,
        X: UserInput,
        y: UserInput,
        epsilon: UserInput = 1.35,
        l2: UserInput = 0.0,
        sample_weight: UserInput = None,
        *,
        intercept: bool = False,
    ) -> None:
        owner = "HuberScale"
        self.X = design(owner, X)
        m, d = self.X.shape
        if checks.flag(owner, "intercept", intercept):
            self.X = WithIntercept(self.X)
        self.y = targets(owner, y, m, self.X.dtype, X)
        wanted = "be a number of at least 1"
        self.epsilon = checks.number(owner, "epsilon", epsilon, wanted, lambda v: v >= 1)
        self.l2 = penalties(owner, l2, self.y.dtype, (d,), intercept)
        self.sample_weight = weights(owner, sample_weight, m, self.y.dtype, X)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.X.shape[1] + 1,)

    @numpy_in_numpy_out
    def value(self, x: PyTree) -> Any:
        x = jnp.asarray(x)
        w, sigma = x[:-1], jnp.exp(x[-1])
        z = jnp.abs(self.X.times(w) - self.y) / sigma
        near = jnp.minimum(z, self.epsilon)
        losses = sigma + sigma * (2 * near * z - near * near)
        return jnp.sum(self.sample_weight * losses) + jnp.sum(self.l2 * w * w) / 2
