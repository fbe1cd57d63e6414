"""Rules with a Caputo derivative along each coordinate: 5, 6 and 16.

They use cfgd's direction d, the Caputo derivative of f divided by that of x, and its terminals.
Each needs second derivatives along the coordinates, or f at the nodes of a quadrature.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.types import Count, Vector
from cfgd.methods.paper.direction import direction, memory_of
from cfgd.methods.paper.terminal import Lagged
from cfgd.objectives.base import Objective, hessian_diagonal
from cfgd.objectives.evaluation import Evaluation
from cfgd.zoo.formulas import Parameter, first_term
from cfgd.zoo.previous_point import DELTA, last_step
from cfgd.zoo.update_rule import (
    NOT_NEGATIVE,
    ORDER,
    POSITIVE,
    Range,
    UpdateRule,
    count,
    parameter,
)

ORDER_BELOW_1 = Range("lie in (0, 1)", lambda v: (v > 0) & (v < 1))


def caputo_direction(
    objective: Objective, at: Evaluation, c: Vector, alpha: Parameter, beta: Parameter, nodes: int
) -> Vector:
    """Return d of the paper with terminal c; one node where it is exact."""
    nodes = 1 if objective.traits.linear_slopes else nodes
    dtype = at.x.dtype
    memory = memory_of(jnp.asarray(alpha, dtype), jnp.asarray(beta, dtype), nodes)
    return direction(objective, at, c, memory)


def cost_of_direction(objective: Objective, d: int, nodes: int) -> float:
    """Return what d costs beyond the gradient, in gradients."""
    return objective.traits.derivative_cost.of(1 if objective.traits.linear_slopes else nodes, d)


class Wei2020(UpdateRule):
    r"""Rule 5: the Caputo derivative with the terminal K iterations back, not normalised.

    $$ x_{k+1} = x_k - \eta \sum_{i \ge 1} \binom{\alpha-1}{i-1} f^{(i)}(x_k)
       \frac{(x_k - x_{k-K})^{i-\alpha}}{\Gamma(i+1-\alpha)}
       = x_k - \eta \frac{|x_k - x_{k-K}|^{1-\alpha}}{\Gamma(2-\alpha)} d_k $$

    where d is the direction of the paper with beta = 0, so that the series needs no truncation.
    With `terms="first"` only its first term is taken, with g in place of d; for K = 1 this is
    `Wang2017` with delta = epsilon, which is added to the distance.

    Published range: 0 < alpha < 1.

    Unclear: (x - c)^(i - alpha) is complex for x < c. Here it is |x - c|^(1-alpha) (x - c)^(i-1),
    with which alpha -> 1 is gradient descent on both sides of c. With x_{-K} = x_0 the rule makes
    no steps; here the first step is a gradient step. Coordinates whose last step was 0 do not move
    again, as in `Wang2017`.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.9
        The order, in (0, 1): one number, or one for each coordinate.
    eps : number or array, default 0.0
        What is added to the distance from the terminal; at least 0.
    lag : int, default 1
        How many iterations the terminal lies back, at least 1.
    nodes : int, default 10
        The number of quadrature nodes, at least 1.
    terms : {"all", "first"}, default "all"
        Whether the whole series is taken, or its first term.

    References
    ----------
    Wei, Kang, Yin and Wang (Journal of the Franklin Institute 357, 2020; arXiv 1901.05294).

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Wei2020(0.3, alpha=0.95)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 5
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER_BELOW_1, 0.9)
    eps: Any = parameter(NOT_NEGATIVE, 0.0)
    lag: int = count(1)
    nodes: int = count(10)
    terms: str = eqx.field(static=True, default="all")

    def __check_init__(self) -> None:
        if self.terms not in ("all", "first"):
            checks.fail("Wei2020", "terms", "be one of all, first", repr(self.terms))

    def start(self, x: Vector) -> Any:
        return Lagged(self.lag).init(x)

    def update(self, at: Evaluation, memory: Any, k: Count, objective: Any) -> tuple[Vector, Any]:
        c, memory = Lagged(self.lag).next(memory, at.x, k)
        if self.terms == "first":
            d = at.gradient
        else:
            d = caputo_direction(objective, at, c, self.alpha, 0.0, self.nodes)
        return self.eta * d * first_term(last_step(at.x, c, self.eps, k), self.alpha), memory

    def extra_cost(self, objective: Objective, d: int) -> float:
        return 0.0 if self.terms == "first" else cost_of_direction(objective, d, self.nodes)


class Taresh2022(UpdateRule):
    r"""Rule 6: the first terms of the Caputo derivative's series at the previous point.

    $$ x_{k+1} = x_k - \mu \sum_{v=1}^{M} f^{(v)}(x_{k-1})
       \frac{(x_k - x_{k-1})^{v-1} D_k^{1-\alpha}}{\Gamma(v+1-\alpha)}, \quad
       D_k = |x_k - x_{k-1}| + \delta $$

    along each coordinate, with M = 1 or 2; M = 1 is `Sheng2020` with the order in (0, 1].

    Published range: 0 < alpha < 1.

    Contradictory: the source has D_k^(v-alpha) for the whole power. Its second term then has the
    same sign on both sides of x_{k-1}, and for alpha = 1 the sum is the series of f' at
    x_{k-1} + D, not at x_k. Here the sign of x_k - x_{k-1} is kept, so that on separable quadratics
    alpha = 1, M = 2 is gradient descent. More terms need third derivatives, which are left out.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.9
        The order, in (0, 1]: one number, or one for each coordinate.
    delta : number or array, default 1e-08
        What is added to the length of the last step; positive.
    terms : {1, 2}, default 2
        M, the number of terms.

    References
    ----------
    Taresh, Zhu, Ali, Alghaili and Guo (arXiv 2205.00581).

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Taresh2022(0.2, alpha=1.0)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 6
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER, 0.9)
    delta: Any = parameter(POSITIVE, DELTA)
    terms: int = count(2)

    def __check_init__(self) -> None:
        if self.terms not in (1, 2):
            checks.fail("Taresh2022", "terms", "be 1 or 2", repr(self.terms))

    def start(self, x: Vector) -> tuple[Vector, Vector, Vector]:
        return x, jnp.zeros_like(x), jnp.zeros_like(x)

    def update(
        self, at: Evaluation, memory: tuple[Vector, Vector, Vector], k: Count, objective: Any
    ) -> tuple[Vector, tuple[Vector, Vector, Vector]]:
        previous, g, h = memory
        g = jnp.where(k == 0, at.gradient, g)
        s = at.x - previous
        d, now = g, jnp.zeros_like(h)
        if self.terms == 2:  # Gamma(3 - alpha) = (2 - alpha) Gamma(2 - alpha)
            d, now = g + h * s / (2 - self.alpha), hessian_diagonal(objective, at)
        D = last_step(at.x, previous, self.delta, k)
        return self.eta * d * first_term(D, self.alpha), (at.x, at.gradient, now)

    def extra_cost(self, objective: Objective, d: int) -> float:
        return 0.0 if self.terms == 1 else objective.traits.diagonal_cost.of(1, d)


class Shin2021(UpdateRule):
    r"""Rule 16: the direction of the paper that cfgd implements, terminal `lag` iterations back.

    $$ x_{k+1} = x_k - \eta\, d_k, \quad d = E[f_j'(T_j)] + \beta (x_j - c_j) E[f_j''(T_j)], \quad
       c = x_{k-L} $$

    It is `cfgd.AdaptiveTerminal(alpha, beta=beta, lag=lag, step=cfgd.FixedStep(eta))`.

    Published range: 0 < alpha < 1; alpha = 1 and beta = 0, the limit, is gradient descent.
    docs/errata.md says where the printed formula is not followed. On quadratics with a constant
    diagonal it is Polyak's heavy ball with the momentum -eta gamma D.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.5
        The order, in (0, 1): one number, or one for each coordinate.
    beta : number or array, default 0.0
        The smoothing: one number, or one for each coordinate.
    lag : int, default 1
        How many iterations the terminal lies back, at least 1.
    nodes : int, default 10
        The number of quadrature nodes, at least 1.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023).

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Shin2021(0.3)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 16
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER_BELOW_1, 0.5)
    beta: Any = parameter(default=0.0)
    lag: int = count(1)
    nodes: int = count(10)

    def start(self, x: Vector) -> Any:
        return Lagged(self.lag).init(x)

    def update(self, at: Evaluation, memory: Any, k: Count, objective: Any) -> tuple[Vector, Any]:
        c, memory = Lagged(self.lag).next(memory, at.x, k)
        d = caputo_direction(objective, at, c, self.alpha, self.beta, self.nodes)
        return self.eta * d, memory

    def extra_cost(self, objective: Objective, d: int) -> float:
        return cost_of_direction(objective, d, self.nodes)


class Aggarwal2024(UpdateRule):
    r"""Rule 16 with the terminal on the line of the gradient: x - c = -lambda g.

    Published range: 0 < alpha < 1, lambda > 0. On quadratics the step is eta (I - gamma lambda D)
    g, gamma = beta - (1-alpha)/(2-alpha): gradient descent with a diagonal matrix of rates, and
    where D is a multiple of the identity gradient descent itself.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    lam : number or array
        lambda, the distance of the terminal in gradients; positive.
    alpha : number or array, default 0.5
        The order, in (0, 1): one number, or one for each coordinate.
    beta : number or array, default 0.0
        The smoothing: one number, or one for each coordinate.
    nodes : int, default 10
        The number of quadrature nodes, at least 1.

    References
    ----------
    Aggarwal (TMLR 2024; arXiv 2311.18426).

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Aggarwal2024(0.2, 0.1)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 16
    eta: Any = parameter(POSITIVE)
    lam: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER_BELOW_1, 0.5)
    beta: Any = parameter(default=0.0)
    nodes: int = count(10)

    def update(self, at: Evaluation, memory: None, k: Count, objective: Any) -> tuple[Vector, None]:
        c = at.x + self.lam * at.gradient
        return self.eta * caputo_direction(
            objective, at, c, self.alpha, self.beta, self.nodes
        ), None

    def extra_cost(self, objective: Objective, d: int) -> float:
        return cost_of_direction(objective, d, self.nodes)
