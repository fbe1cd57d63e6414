"""Rules that scale the gradient by a power of |x|, with the terminal 0: 7 to 9.

They depend on the origin: the iterates for f(x) and for f(x - shift) are different.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp

from cfgd._core.types import Count, Vector
from cfgd.objectives.evaluation import Evaluation
from cfgd.zoo.formulas import adam, first_term, order_towards_one
from cfgd.zoo.previous_point import DELTA
from cfgd.zoo.update_rule import (
    DECAY,
    NOT_NEGATIVE,
    ORDER,
    ORDER_BELOW_2,
    POSITIVE,
    UpdateRule,
    parameter,
)


class Herrera2022(UpdateRule):
    r"""Rule 7: the gradient times the fractional derivative of x itself.

    $$ x_{k+1} = x_k - \eta\, g_k (|x_k| + \epsilon)^{1-\nu} / \Gamma(2 - \nu) $$

    Published range: nu > 0, used up to 2; here 0 < nu < 2, where Gamma(2 - nu) is finite and
    positive. nu = 1 is gradient descent.

    A coordinate that is 0 has the factor epsilon^(1-nu). For nu < 1 the first steps are small, and
    the coordinate leaves 0 within some iterations; without epsilon it would remain 0, as in
    `Thabet2026`. For nu > 1 the factor is large there, and a minimiser at 0 is not reached.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    nu : number or array, default 0.9
        The order, in (0, 2): one number, or one for each coordinate.
    eps : number or array, default 1e-08
        What is added to |x|; positive.

    References
    ----------
    Herrera-Alcantara (Applied Sciences 12, 2022, 9264; Fractal and Fractional 7, 2023, 500,
    "FSGD").

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [1.0, 1.0], cfgd.zoo.Herrera2022(0.3)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 7
    eta: Any = parameter(POSITIVE)
    nu: Any = parameter(ORDER_BELOW_2, 0.9)
    eps: Any = parameter(POSITIVE, DELTA)

    def update(self, at: Evaluation, memory: None, k: Count, objective: Any) -> tuple[Vector, None]:
        return self.eta * at.gradient * first_term(jnp.abs(at.x) + self.eps, self.nu), None


class HerreraAdam2022(UpdateRule):
    r"""Rule 7 in Adam: the direction of `Herrera2022` is the gradient that Adam gets.

    nu = 1 is Adam. Adam divides by the size of its gradient, so that a factor that changes slowly
    cancels: the rule differs from Adam only where |x_j| changes by much within 1/(1 - b2)
    iterations.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    nu : number or array, default 0.9
        The order, in (0, 2): one number, or one for each coordinate.
    eps : number or array, default 1e-08
        What is added to |x|, and to the root of the mean of the squares; positive.
    b1, b2 : number or array
        The decay rates of the means of the direction and of its square, in [0, 1).

    References
    ----------
    As `Herrera2022`, "FAdam".

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> rule = cfgd.zoo.HerreraAdam2022(0.1)
    >>> print(cfgd.minimize(f, [1.0, 1.0], rule, max_iterations=1000).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 7
    eta: Any = parameter(POSITIVE)
    nu: Any = parameter(ORDER_BELOW_2, 0.9)
    eps: Any = parameter(POSITIVE, DELTA)
    b1: Any = parameter(DECAY, 0.9)
    b2: Any = parameter(DECAY, 0.999)

    def start(self, x: Vector) -> tuple[Vector, Vector]:
        return jnp.zeros_like(x), jnp.zeros_like(x)

    def update(
        self, at: Evaluation, memory: tuple[Vector, Vector], k: Count, objective: Any
    ) -> tuple[Vector, tuple[Vector, Vector]]:
        g = at.gradient * first_term(jnp.abs(at.x) + self.eps, self.nu)
        d, memory = adam(g, memory, k, self.b1, self.b2, self.eps)
        return self.eta * d, memory


class Thabet2026(UpdateRule):
    r"""Rule 8: the conformable derivative.

    $$ x_{k+1} = x_k - \eta |x_k|^{1-\alpha_k} g_k, \quad \alpha_k = 1 - (1 - \alpha) / (1 + r k) $$

    Published range: 0 < alpha <= 1, alpha_k growing to 1 in a variant. How it grows could not be
    read; the formula above is ours, and rate = 0, the default, is a constant order.

    The rule stops where a coordinate is 0, whatever its gradient: it never leaves x_0 = 0.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.9
        The order of the first iteration, in (0, 1]: one number, or one for each coordinate.
    rate : number or array, default 0.0
        r, how fast the order grows to 1; at least 0.

    References
    ----------
    Thabet (Journal of Computational and Applied Mathematics 488, 2026), and without the absolute
    value, which is complex for x < 0, Saleh and Ajarmah 2022.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [1.0, 1.0], cfgd.zoo.Thabet2026(0.3)).x.round(3))
    [-1.2  2.6]
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Thabet2026(0.3)).x)
    [0. 0.]
    """

    number: ClassVar[int] = 8
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER, 0.9)
    rate: Any = parameter(NOT_NEGATIVE, 0.0)

    def update(self, at: Evaluation, memory: None, k: Count, objective: Any) -> tuple[Vector, None]:
        alpha = order_towards_one(self.alpha, self.rate, k)
        return self.eta * jnp.abs(at.x) ** (1 - alpha) * at.gradient, None


class Khan2019(UpdateRule):
    r"""Rule 9: a gradient step and a fractional one (fractional LMS).

    $$ x_{k+1} = x_k - \eta\, g_k - \eta_f\, g_k |x_k|^{1-\alpha} / \Gamma(2 - \alpha) $$

    Published range: 0 < alpha < 1; alpha = 1 is gradient descent with the rate eta + eta_f.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    eta_f : number or array
        The step size of the fractional part; at least 0.
    alpha : number or array, default 0.5
        The order, in (0, 1]: one number, or one for each coordinate.

    References
    ----------
    Khan et al. (Electronic Markets 29, 2019); Wahab, Khan, Naseem and Ye, "Performance analysis of
    fractional learning algorithms" (IEEE TSP 2022; arXiv 2110.05201), which takes |x| for x because
    powers of negative numbers are complex.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Khan2019(0.2, 0.1)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 9
    eta: Any = parameter(POSITIVE)
    eta_f: Any = parameter(NOT_NEGATIVE)
    alpha: Any = parameter(ORDER, 0.5)

    def update(self, at: Evaluation, memory: None, k: Count, objective: Any) -> tuple[Vector, None]:
        fractional = self.eta_f * first_term(jnp.abs(at.x), self.alpha)
        return at.gradient * (self.eta + fractional), None
