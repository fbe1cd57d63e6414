"""Who is compared: optax's, a rival with second derivatives, and ours with some gamma and lag."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from cfgd.integrations.optax import Hutchinson, cfadam, cfadamw, cfgd
from cfgd.integrations.optax.diagonal import hessian, probed

# from 1e-3 to 10 by factors of the root of ten, the same for all
RATES = tuple(10 ** (k / 2) for k in range(-6, 3))
# -0.25 is the default of `cfgd.integrations.optax`
GAMMAS = (-4.0, -1.0, -0.25, 1.0)
LAGS = (1, 5)
PRODUCT = 2  # gradients that a product with the Hessian counts as: one forwards over one
CURVATURE = Hutchinson()
MOMENTUM = 0.9
DECAY = 1e-4  # optax's default for AdamW, and ours


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """`kind` is a key of `MAKERS`; gamma is 0 and lag 1 where there are none."""

    kind: str
    gamma: float = 0.0
    lag: int = 1

    @property
    def name(self) -> str:
        return f"{self.kind} ({self.gamma:g}, {self.lag})" if self.ours else self.kind

    @property
    def ours(self) -> bool:
        return self.kind in BASES

    @property
    def cost(self) -> float:
        """Gradient equivalents of a step, a gradient and the share of products with the Hessian."""
        if self.kind == ADAHESSIAN:
            return 1.0 + PRODUCT
        return 1.0 + PRODUCT / CURVATURE.every if self.ours else 1.0


class AdaHessianState(NamedTuple):
    count: Any
    m: Any
    v: Any


def adahessian(
    learning_rate: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> optax.GradientTransformationExtraArgs:
    """Adam with D^2 in its second moment, D = v * Hv by random signs v at every step.

    Like AdaHessian (Yao and others, 2021), whose mean of D over neighbouring weights is left out.
    """

    def init(params: Any) -> AdaHessianState:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return AdaHessianState(jnp.zeros([], jnp.int32), zeros, zeros)

    def update(
        updates: Any, state: AdaHessianState, params: Any = None, *, value_fn: Any, **extra: Any
    ) -> tuple[Any, AdaHessianState]:
        k = optax.safe_increment(state.count)
        key = jax.random.fold_in(jax.random.key(0), k)
        D = probed(hessian(value_fn, params), params, key, 1)
        m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.m, updates)
        v = jax.tree.map(lambda v, D: b2 * v + (1 - b2) * D**2, state.v, D)
        left_m, left_v = 1 - b1**k, 1 - b2**k

        def step(m: Any, v: Any) -> Any:
            return (-learning_rate * (m / left_m) / (jnp.sqrt(v / left_v) + eps)).astype(m.dtype)

        return jax.tree.map(step, m, v), AdaHessianState(k, m, v)

    return optax.GradientTransformationExtraArgs(init, update)


ADAHESSIAN = "AdaHessian-like"
# of the learning rate, gamma and lag; gamma and the rate may be traced
Maker = Callable[[Any, Any, int], optax.GradientTransformationExtraArgs]
MAKERS: dict[str, Maker] = {
    "SGD": lambda eta, gamma, lag: optax.sgd(eta),
    "heavy ball": lambda eta, gamma, lag: optax.sgd(eta, momentum=MOMENTUM),
    "Nesterov": lambda eta, gamma, lag: optax.sgd(eta, momentum=MOMENTUM, nesterov=True),
    "Adam": lambda eta, gamma, lag: optax.adam(eta),
    "AdamW": lambda eta, gamma, lag: optax.adamw(eta, weight_decay=DECAY),
    ADAHESSIAN: lambda eta, gamma, lag: adahessian(eta),
    "cfgd": lambda eta, gamma, lag: cfgd(eta, gamma, lag, curvature=CURVATURE),
    "cfadam": lambda eta, gamma, lag: cfadam(eta, gamma=gamma, lag=lag, curvature=CURVATURE),
    "cfadamw": lambda eta, gamma, lag: cfadamw(
        eta, gamma=gamma, lag=lag, curvature=CURVATURE, weight_decay=DECAY
    ),
}
# what each of ours is with gamma = 0
BASES = {"cfgd": "SGD", "cfadam": "Adam", "cfadamw": "AdamW"}


DEFAULT = (-0.25, 1)  # of gamma and lag


def optimizers(quick: bool) -> list[Optimizer]:
    """The rivals, then ours with every gamma and lag; decay has the lag 1 alone.

    Quick leaves out the longer lag and `cfadamw`.
    """
    rivals = [Optimizer(kind) for kind in MAKERS if kind not in BASES]
    lags = {"cfgd": LAGS, "cfadam": LAGS, "cfadamw": LAGS[:1]}
    if quick:
        lags = {"cfgd": LAGS[:1], "cfadam": LAGS[:1]}
    ours = [
        Optimizer(kind, gamma, lag)
        for kind, some in lags.items()
        for lag in some
        for gamma in GAMMAS
    ]
    return rivals + ours
