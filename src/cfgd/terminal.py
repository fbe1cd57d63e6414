"""Where the memory starts: the rule for the terminal c_k. Only this rule remembers points."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from cfgd.rule import Rule


class Here(Rule):
    """c_k = x_k: no memory, the direction is the gradient."""

    adaptive: ClassVar[bool] = False

    def init(self, x0: Any) -> Any:
        return None

    def next(self, memory: Any, x: Any, k: Any) -> tuple[Any, Any]:
        return x, memory


class Fixed(Rule):
    """c_k = c (sections 3.1 and 3.3)."""

    point: Any
    ranks: ClassVar[dict[str, int]] = {"point": 1}
    adaptive: ClassVar[bool] = False

    def init(self, x0: Any) -> Any:
        return None

    def next(self, memory: Any, x: Any, k: Any) -> tuple[Any, Any]:
        return jnp.broadcast_to(self.point, x.shape), memory


class Lagged(Rule):
    """c_k = x_{k - lag} (section 3.2), with `past` = (x_{-1}, ..., x_{-lag}).

    Without `past` the earlier points are x_0 itself, and the first step is a gradient step. The
    memory is a ring: the place k mod lag holds x_{k - lag} until x_k takes it over.
    """

    past: Any
    lag: int = eqx.field(static=True)
    ranks: ClassVar[dict[str, int]] = {"past": 2}
    adaptive: ClassVar[bool] = True

    def init(self, x0: Any) -> Any:
        if self.past is None:
            return jnp.broadcast_to(x0, (self.lag, *x0.shape))
        return jnp.broadcast_to(self.past, (self.lag, *x0.shape))[::-1]

    def next(self, memory: Any, x: Any, k: Any) -> tuple[Any, Any]:
        if self.lag == 1:
            return memory[0], x[None]
        place = k % self.lag
        return memory[place], memory.at[place].set(x)
