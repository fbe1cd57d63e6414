"""Rules that scale the gradient by a power of the last step: 1 to 4, 10 and 12.

They take the first term of the Caputo derivative with the previous point as its terminal. Where
D_j = |x_j - x_j of the previous iteration| is constant along a run, each is gradient descent with
another rate for each coordinate; in steady state D = (eta |g| / Gamma(2 - alpha))^(1/alpha).
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp

from cfgd._core.types import Count, Vector
from cfgd.objectives.evaluation import Evaluation
from cfgd.zoo.formulas import Parameter, first_term, order_towards_one
from cfgd.zoo.update_rule import (
    DECAY,
    NOT_NEGATIVE,
    ORDER,
    ORDER_BELOW_2,
    POSITIVE,
    SHARE,
    Range,
    UpdateRule,
    parameter,
)

# The sources say "a small constant"; this is the epsilon of Adam. The first step of a rule is then
# 1e-4 of a gradient step for alpha = 1/2, and steps grow from there.
DELTA = 1e-8


def last_step(x: Vector, previous: Vector, delta: Parameter, k: Count) -> Vector:
    """Return |x_k - x_{k-1}| + delta; 1 in the first iteration where delta is 0."""
    distance = jnp.abs(x - previous) + delta
    return jnp.where((k == 0) & (jnp.asarray(delta) == 0), jnp.ones_like(x), distance)


class Wang2017(UpdateRule):
    r"""Rule 1: the gradient times a power of the last step.

    $$ x_{k+1} = x_k - \eta\, g_k D_k^{1-\alpha} / \Gamma(2 - \alpha), \quad
       D_k = |x_k - x_{k-1}| + \delta $$

    Published range: 0 < alpha <= 1.

    Unclear: with delta = 0 and x_{-1} = x_0 the rule makes no steps. Here the first step is
    therefore a gradient step. A coordinate whose gradient is zero in that step keeps D_j = 0 and
    does not move again, whatever its gradient becomes: with delta = 0 the rule stops at points that
    are not stationary. The derivation takes one term of the Caputo series of f at x_{k-1}, but with
    the gradient at x_k. In steady state this is gradient descent on |g|^(1/alpha), whose steps near
    a minimiser are shorter than those of gradient descent at any rate.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.9
        The order, in (0, 1]: one number, or one for each coordinate.
    delta : number or array, default 0.0
        What is added to the length of the last step; at least 0.

    References
    ----------
    Wang, Wen, Gou, Ye and Chen (Neural Networks 89, 2017, delta = 0); Xie 2023 and Zhou 2025 with
    delta > 0.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Wang2017(0.3, alpha=0.95)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 1
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER, 0.9)
    delta: Any = parameter(NOT_NEGATIVE, 0.0)

    def start(self, x: Vector) -> Vector:
        return x

    def update(
        self, at: Evaluation, memory: Vector, k: Count, objective: Any
    ) -> tuple[Vector, Vector]:
        D = last_step(at.x, memory, self.delta, k)
        return self.eta * at.gradient * first_term(D, self.alpha), at.x


class Sheng2020(UpdateRule):
    r"""Rule 2: as rule 1, with the gradient of the previous point.

    $$ x_{k+1} = x_k - \eta\, g_{k-1} D_k^{1-\alpha} / \Gamma(2 - \alpha) $$

    Published range: 0 < alpha < 2, delta > 0.

    Unclear: the limit alpha = 1 is called gradient descent, but it is gradient descent with the
    gradient of one iteration ago, which diverges from eta L = 1 on, not 2. It is what is
    implemented: the term belongs to the series at the terminal x_{k-1}. g_{-1} is g_0.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.9
        The order, in (0, 2): one number, or one for each coordinate.
    delta : number or array, default 1e-08
        What is added to the length of the last step; positive.

    References
    ----------
    Sheng, Wei, Chen and Wang (Neurocomputing 408, 2020; arXiv 1905.05336).

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Sheng2020(0.2, alpha=1.0)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 2
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER_BELOW_2, 0.9)
    delta: Any = parameter(POSITIVE, DELTA)

    def start(self, x: Vector) -> tuple[Vector, Vector]:
        return x, jnp.zeros_like(x)

    def update(
        self, at: Evaluation, memory: tuple[Vector, Vector], k: Count, objective: Any
    ) -> tuple[Vector, tuple[Vector, Vector]]:
        previous, g = memory
        g = jnp.where(k == 0, at.gradient, g)
        D = last_step(at.x, previous, self.delta, k)
        return self.eta * g * first_term(D, self.alpha), (at.x, at.gradient)


class Lou2022(UpdateRule):
    r"""Rule 3: as rule 1, with an order that grows to 1.

    $$ x_{k+1} = x_k - \eta\, g_k D_k^{1-\alpha_k} / \Gamma(2 - \alpha_k), \quad
       \alpha_k = 1 - (1 - \alpha) / (1 + r k) $$

    Published range: 0 < alpha_k <= 1.

    Unclear: how alpha_k tends to 1 could not be read; the formula above is ours. The rule ends as
    gradient descent: D^(1-alpha_k) tends to 1 if the steps fall slower than exponentially in k, and
    for steps that fall as q^k to the constant q^((1 - alpha)/r).

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.7
        The order of the first iteration, in (0, 1]: one number, or one for each coordinate.
    rate : number or array, default 0.1
        r, how fast the order grows to 1; at least 0.
    delta : number or array, default 1e-08
        What is added to the length of the last step; positive.

    References
    ----------
    Lou, Gao, Han and Zhang (CCDC 2022).

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Lou2022(0.4, alpha=0.7)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 3
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER, 0.7)
    rate: Any = parameter(NOT_NEGATIVE, 0.1)
    delta: Any = parameter(POSITIVE, DELTA)

    def start(self, x: Vector) -> Vector:
        return x

    def update(
        self, at: Evaluation, memory: Vector, k: Count, objective: Any
    ) -> tuple[Vector, Vector]:
        D = last_step(at.x, memory, self.delta, k)
        alpha = order_towards_one(self.alpha, self.rate, k)
        return self.eta * at.gradient * first_term(D, alpha), at.x


class Xue2020(UpdateRule):
    r"""Rule 4: heavy ball with the direction of rule 1.

    $$ v_k = \mu v_{k-1} - \eta\, g_k D_k^{1-\alpha} / \Gamma(2 - \alpha), \quad
       x_{k+1} = x_k + v_k $$

    Published range: 0 < alpha <= 1, 0 <= mu < 1. With alpha = 1 it is Polyak's heavy ball.

    Unclear: the paper also adapts eta; that part could not be read, and eta is a constant here.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.9
        The order, in (0, 1]: one number, or one for each coordinate.
    mu : number or array, default 0.5
        The momentum, in [0, 1).
    delta : number or array, default 1e-08
        What is added to the length of the last step; positive.

    References
    ----------
    Xue, Shao and Sun (Network: Computation in Neural Systems 31, 2020; Soft Computing 2021).

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Xue2020(0.3, alpha=0.95)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 4
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER, 0.9)
    mu: Any = parameter(DECAY, 0.5)
    delta: Any = parameter(POSITIVE, DELTA)

    def start(self, x: Vector) -> tuple[Vector, Vector]:
        return x, jnp.zeros_like(x)

    def update(
        self, at: Evaluation, memory: tuple[Vector, Vector], k: Count, objective: Any
    ) -> tuple[Vector, tuple[Vector, Vector]]:
        previous, v = memory
        D = last_step(at.x, previous, self.delta, k)
        v = self.mu * v - self.eta * at.gradient * first_term(D, self.alpha)
        return -v, (at.x, v)


class Khan2018(UpdateRule):
    r"""Rule 10: the mean of the gradient and of the direction of rule 1.

    $$ x_{k+1} = x_k - \eta\, g_k \left[(1 - \lambda)
       + \lambda |x_k - x_{k-1}|^{1-\alpha} / \Gamma(2 - \alpha)\right] $$

    Published range: 0 < alpha < 1, 0 <= lambda <= 1. alpha = 1 and lambda = 0 are gradient descent.

    Near a minimiser the last step is short and the second term vanishes: the rule is gradient
    descent with the rate (1 - lambda) eta. In the first iteration it is 0, too (x_{-1} = x_0).

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.9
        The order, in (0, 1]: one number, or one for each coordinate.
    mix : number or array, default 0.5
        lambda, the share of the fractional direction, in [0, 1].

    References
    ----------
    Khan, Naseem, Malik, Togneri and Bennamoun (Circuits, Systems, and Signal Processing 37, 2018).

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Khan2018(0.4)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 10
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER, 0.9)
    mix: Any = parameter(SHARE, 0.5)

    def start(self, x: Vector) -> Vector:
        return x

    def update(
        self, at: Evaluation, memory: Vector, k: Count, objective: Any
    ) -> tuple[Vector, Vector]:
        factor = first_term(jnp.abs(at.x - memory), self.alpha)
        return self.eta * at.gradient * ((1 - self.mix) + self.mix * factor), at.x


class Tan2024(UpdateRule):
    r"""Rule 12: as rule 1 without Gamma, for orders above 1.

    $$ x_{k+1} = x_k - \eta\, g_k |x_k - x_{k-1}|^{1-\alpha} $$

    Published range: 1 < alpha <= 2; the limit alpha = 1 is gradient descent.

    Unclear: the formula divides by zero where a coordinate has not moved, as in the first
    iteration. Here delta is added to the last step, and D is 1 in the first iteration. In steady
    state the steps are (eta |g|)^(1/alpha), longer than any multiple of |g| near a
    minimiser: the rule does not converge to it but oscillates around it.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 1.1
        The order, in (1, 2]: one number, or one for each coordinate.
    delta : number or array, default 1e-08
        What is added to the length of the last step; positive.

    References
    ----------
    Tan 2024, as a catalogue gives it.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> end = cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Tan2024(0.01, alpha=1.5), max_iterations=2000)
    >>> print(end.success)
    False
    """

    number: ClassVar[int] = 12
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(Range("lie in (1, 2]", lambda v: (v > 1) & (v <= 2)), 1.1)
    delta: Any = parameter(POSITIVE, DELTA)

    def start(self, x: Vector) -> Vector:
        return x

    def update(
        self, at: Evaluation, memory: Vector, k: Count, objective: Any
    ) -> tuple[Vector, Vector]:
        D = jnp.where(k == 0, jnp.ones_like(at.x), jnp.abs(at.x - memory) + self.delta)
        return self.eta * at.gradient * D ** (1 - jnp.asarray(self.alpha)), at.x
