"""How fractional: the rule for the order alpha_k and the smoothing beta_k."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd import _check
from cfgd.calculus.quadrature import nodes_and_weights
from cfgd.rule import Rule


def beta_of(alpha: Any, gamma: Any) -> Any:
    """gamma = beta - (1 - alpha)/(2 - alpha), solved for beta."""
    return gamma + (1 - alpha) / (2 - alpha)


def alpha_and_beta(owner: str, alpha: Any, beta: Any, gamma: Any) -> tuple[Any, Any, str]:
    """The order, the smoothing, and which of beta and gamma was given."""
    alpha = _check.order(owner, "alpha", alpha)
    _check.one_of(owner, beta, gamma)
    given = "gamma" if beta is None else "beta"
    value = _check.array(owner, given, gamma if beta is None else beta, "be a number")
    if value.size == 0:
        _check.fail(owner, given, "hold at least one number", "nothing")
    _check.fits(owner, given, value, "alpha", alpha)
    return alpha, (beta_of(alpha, value) if beta is None else value), given


class Constant(Rule):
    """alpha_k = alpha, beta_k = beta."""

    alpha: Any
    beta: Any
    given: str = eqx.field(static=True)
    ranks: ClassVar[dict[str, int]] = {"alpha": 0, "beta": 0}

    def prepare(self, nodes: int) -> Any:
        """The quadrature rule, computed once and not in every iteration."""
        return nodes_and_weights(self.alpha, nodes), self.beta

    def at(self, prepared: Any, k: Any) -> Any:
        return prepared


class Stages(Rule):
    """(alpha_s, beta_s) for the iterations of stage s, which end before ends[s] (section 3.3)."""

    ends: Any
    alpha: Any
    beta: Any
    given: str = eqx.field(static=True)
    ranks: ClassVar[dict[str, int]] = {"ends": 1, "alpha": 1, "beta": 1}
    batch_axis: ClassVar[int] = 1  # the first axis is that of the stages

    def prepare(self, nodes: int) -> Any:
        return jax.vmap(lambda a: nodes_and_weights(a, nodes))(self.alpha), self.beta

    def at(self, prepared: Any, k: Any) -> Any:
        stage = jnp.clip(jnp.searchsorted(self.ends, k, side="right"), 0, len(self.ends) - 1)
        return jax.tree.map(lambda table: table[stage], prepared)
