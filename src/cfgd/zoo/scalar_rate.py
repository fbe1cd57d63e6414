"""A rule that scales the gradient by a power of the length of the last step: 11."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.linalg import inner
from cfgd._core.types import Count, Vector
from cfgd.objectives.evaluation import Evaluation
from cfgd.zoo.previous_point import DELTA
from cfgd.zoo.update_rule import DECAY, ORDER_BELOW_2, POSITIVE, UpdateRule, parameter


class Liu2023(UpdateRule):
    r"""Rule 11: gradient descent with a rate that depends on the length of the last step.

    $$ x_{k+1} = y_k - \eta\, r_k\, g(y_k), \quad
       r_k = (|y_k - y_{k-1}|_2 + \delta)^{1-\mu} \in [c_1, c_2], \quad
       y_k = x_k + m (x_k - x_{k-1}) $$

    The points of a run are y_k; with momentum = 0, the default, they are x_k.

    Published range: 0 < mu < 2, delta > 0, 0 < c1 <= c2.

    Unclear: a coefficient b_k keeps the product b_k (...)^(1-mu) in [c1, c2]; its formula was not
    available. Here the power itself is clipped, so that b_k = 1 inside. All coordinates have the
    same rate: the rule is gradient descent (Nesterov's method) with a rate in eta [c1, c2], and
    nothing in it is fractional along a coordinate. Once r_k is clipped, the rate is a constant.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    mu : number or array, default 0.9
        The order, in (0, 2).
    momentum : number or array, default 0.0
        m, in [0, 1).
    delta : number or array, default 1e-08
        What is added to the length of the last step; positive.
    lower, upper : number or array
        c_1 and c_2, between which r_k is kept; positive.

    References
    ----------
    Liu, Chen, Cai and Xu (arXiv 2303.04328), "AFOGD" and with momentum "AFOAGD".

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Liu2023(0.3)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 11
    eta: Any = parameter(POSITIVE)
    mu: Any = parameter(ORDER_BELOW_2, 0.9)
    momentum: Any = parameter(DECAY, 0.0)
    delta: Any = parameter(POSITIVE, DELTA)
    lower: Any = parameter(POSITIVE, 0.1)
    upper: Any = parameter(POSITIVE, 1.0)

    def __check_init__(self) -> None:
        known = not checks.is_traced(self.lower) and not checks.is_traced(self.upper)
        if known and not jnp.all(jnp.asarray(self.lower) <= jnp.asarray(self.upper)):
            checks.fail("Liu2023", "lower", f"be at most upper = {self.upper}", self.lower)

    def start(self, x: Vector) -> tuple[Vector, Vector]:
        return x, x

    def update(
        self, at: Evaluation, memory: tuple[Vector, Vector], k: Count, objective: Any
    ) -> tuple[Vector, tuple[Vector, Vector]]:
        y, (y_previous, x) = at.x, memory
        s = y - y_previous
        r = (jnp.sqrt(inner(s, s)) + self.delta) ** (1 - jnp.asarray(self.mu))
        new_x = y - self.eta * jnp.clip(r, self.lower, self.upper) * at.gradient
        new_y = new_x + self.momentum * (new_x - x)
        return y - new_y, (y, new_x)
