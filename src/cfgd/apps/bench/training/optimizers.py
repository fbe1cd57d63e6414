"""The optimizers of optax, AdaHessian, and those of cfgd with several gammas and lags."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from cfgd.integrations.optax import Hutchinson, cfadam, cfadamw, cfgd
from cfgd.integrations.optax.diagonal import hessian, probed

# learning rates from 1e-3 to 10 by factors of the root of ten, the same for all
RATES = tuple(10 ** (k / 2) for k in range(-6, 3))
# -0.25 is the default of `cfgd.integrations.optax`
GAMMAS = (-4.0, -1.0, -0.25, 1.0)
LAGS = (1, 5)
# cost of a Hessian-vector product in gradients: forward mode doubles the cost of a gradient
HESSIAN_PRODUCT_COST = 2
CURVATURE = Hutchinson()
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-4  # the default of optax.adamw and of cfadamw


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """An optimizer. `kind` is a key of `MAKERS`; gamma and lag are 0 and 1 for those of optax."""

    kind: str
    gamma: float = 0.0
    lag: int = 1

    @property
    def name(self) -> str:
        return f"{self.kind} ({self.gamma:g}, {self.lag})" if self.ours else self.kind

    @property
    def ours(self) -> bool:
        """Return whether the optimizer is one of cfgd."""
        return self.kind in BASES

    @property
    def cost(self) -> float:
        """Return the mean cost of a step in gradients, Hessian-vector products included."""
        if self.kind == ADAHESSIAN:
            return 1.0 + HESSIAN_PRODUCT_COST
        return 1.0 + HESSIAN_PRODUCT_COST / CURVATURE.every if self.ours else 1.0


class AdaHessianState(NamedTuple):
    count: Any
    m: Any
    v: Any


def adahessian(
    learning_rate: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> optax.GradientTransformationExtraArgs:
    """Return Adam with D^2 in its second moment, D = v * Hv with random signs v at every step.

    This is AdaHessian (Yao et al., 2021) without its mean of D over neighbouring weights.
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
        bias_m, bias_v = 1 - b1**k, 1 - b2**k

        def step(m: Any, v: Any) -> Any:
            return (-learning_rate * (m / bias_m) / (jnp.sqrt(v / bias_v) + eps)).astype(m.dtype)

        return jax.tree.map(step, m, v), AdaHessianState(k, m, v)

    return optax.GradientTransformationExtraArgs(init, update)


ADAHESSIAN = "AdaHessian-like"
# from the learning rate, gamma and lag; gamma and the rate may be traced
OptimizerMaker = Callable[[Any, Any, int], optax.GradientTransformationExtraArgs]
MAKERS: dict[str, OptimizerMaker] = {
    "SGD": lambda eta, gamma, lag: optax.sgd(eta),
    "heavy ball": lambda eta, gamma, lag: optax.sgd(eta, momentum=MOMENTUM),
    "Nesterov": lambda eta, gamma, lag: optax.sgd(eta, momentum=MOMENTUM, nesterov=True),
    "Adam": lambda eta, gamma, lag: optax.adam(eta),
    "AdamW": lambda eta, gamma, lag: optax.adamw(eta, weight_decay=WEIGHT_DECAY),
    ADAHESSIAN: lambda eta, gamma, lag: adahessian(eta),
    "cfgd": lambda eta, gamma, lag: cfgd(eta, gamma, lag, curvature=CURVATURE),
    "cfadam": lambda eta, gamma, lag: cfadam(eta, gamma=gamma, lag=lag, curvature=CURVATURE),
    "cfadamw": lambda eta, gamma, lag: cfadamw(
        eta, gamma=gamma, lag=lag, curvature=CURVATURE, weight_decay=WEIGHT_DECAY
    ),
}
# the optimizer that each optimizer of cfgd equals with gamma = 0
BASES = {"cfgd": "SGD", "cfadam": "Adam", "cfadamw": "AdamW"}
DEFAULT = (-0.25, 1)  # gamma and lag of `cfgd.integrations.optax`


def optimizers(quick: bool) -> list[Optimizer]:
    """Return the optimizers of optax, then those of cfgd with every gamma and lag.

    `cfadamw` has lag 1 only. `quick` skips lag 5 and `cfadamw`.
    """
    others = [Optimizer(kind) for kind in MAKERS if kind not in BASES]
    lags = {"cfgd": LAGS, "cfadam": LAGS, "cfadamw": LAGS[:1]}
    if quick:
        lags = {"cfgd": LAGS[:1], "cfadam": LAGS[:1]}
    ours = [
        Optimizer(kind, gamma, lag)
        for kind, some in lags.items()
        for lag in some
        for gamma in GAMMAS
    ]
    return others + ours
