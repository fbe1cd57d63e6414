"""Rules with a fractional difference of a sequence, of gradients, steps or points: 13 to 15."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp

from cfgd._core.types import Count, Vector, Vectors
from cfgd.objectives.evaluation import Evaluation
from cfgd.zoo.formulas import adam, binomial_weights, pushed
from cfgd.zoo.previous_point import DELTA
from cfgd.zoo.update_rule import DECAY, ORDER, POSITIVE, SHARE, UpdateRule, count, parameter

AdamMemory = tuple[Vectors, tuple[Vector, Vector]]


class FracAdam2025(UpdateRule):
    r"""Rule 13: Adam on the fractional difference of the gradients.

    $$ G_k = \sum_{j=0}^{M} w_j g_{k-j}, \quad w_0 = 1, \quad
       w_j = \left(1 - \frac{\alpha+1}{j}\right) w_{j-1} $$

    Published range: 0 < alpha <= 1; here also alpha = 0, which is Adam.

    Contradictory: the weights are a difference and not a mean. They sum to Gamma(M+1-alpha) /
    (Gamma(1-alpha) M!), which is 0.013 for alpha = 0.9 and M = 10, and at alpha = 1 G_k is
    g_k - g_{k-1}: past gradients are subtracted, and the integer order is not Adam. There the rule
    follows the changes of the gradient alone and has no reason to stop where the gradient vanishes.
    The factor 1/h^alpha of the source cancels in Adam.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.5
        The order, in [0, 1]: one number, or one for each coordinate.
    b1, b2 : number or array
        The decay rates of the means of the direction and of its square, in [0, 1).
    eps : number or array, default 1e-08
        What is added to the root of the mean of the squares; positive.
    terms : int, default 10
        M, how many past gradients are taken.

    References
    ----------
    Ez-zaiym, Senhaji, Rachid, El Moutaouakil and Palade (Mathematics 13, 2025, 2068), where M is a
    memory window.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> rule = cfgd.zoo.FracAdam2025(0.03, alpha=0.3)
    >>> print(cfgd.minimize(f, [0.0, 0.0], rule, max_iterations=2000).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 13
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(SHARE, 0.5)
    b1: Any = parameter(DECAY, 0.9)
    b2: Any = parameter(DECAY, 0.999)
    eps: Any = parameter(POSITIVE, DELTA)
    terms: int = count(10)

    def start(self, x: Vector) -> AdamMemory:
        gradients = jnp.zeros((self.terms + 1, *x.shape), x.dtype)
        return gradients, (jnp.zeros_like(x), jnp.zeros_like(x))

    def update(
        self, at: Evaluation, memory: AdamMemory, k: Count, objective: Any
    ) -> tuple[Vector, AdamMemory]:
        gradients = pushed(memory[0], at.gradient)
        weights = binomial_weights(self.alpha, self.terms + 1).astype(at.x.dtype)
        d, moments = adam(weights @ gradients, memory[1], k, self.b1, self.b2, self.eps)
        return self.eta * d, (gradients, moments)


class AdaGL2024(FracAdam2025):
    r"""Rule 13 with a rate that depends on the last change of the gradient.

    As `FracAdam2025`, with eta C_k in place of eta, C_k = 1.1 - 1 / (2 (1 + |g_{k-1} - g_k|)).

    The public package of this name never stores its gradients and is Adam with the rate 0.6 eta to
    1.1 eta.

    C_k is 0.6 where the gradient does not change and at most 1.1. In the first iteration g_{-1} is
    taken as 0.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.5
        The order, in [0, 1]: one number, or one for each coordinate.
    b1, b2 : number or array
        The decay rates of the means of the direction and of its square, in [0, 1).
    eps : number or array, default 1e-08
        What is added to the root of the mean of the squares; positive.
    terms : int, default 10
        M, how many past gradients are taken.

    References
    ----------
    Chen, Zhang and Mu (Neural Processing Letters 56, 2024), M = 10.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> rule = cfgd.zoo.AdaGL2024(0.03, alpha=0.3)
    >>> print(cfgd.minimize(f, [0.0, 0.0], rule, max_iterations=2000).x.round(3))
    [-1.2  2.6]
    """

    def update(
        self, at: Evaluation, memory: AdamMemory, k: Count, objective: Any
    ) -> tuple[Vector, AdamMemory]:
        change = jnp.abs(memory[0][0] - at.gradient)
        step, memory = super().update(at, memory, k, objective)
        return (1.1 - 0.5 / (1 + change)) * step, memory


class Kan2021(UpdateRule):
    r"""Rule 14: momentum with a fractional difference of the steps.

    $$ v_k = -b \sum_{j=1}^{K} w_j v_{k-j} + (1 - b) g_k, \quad x_{k+1} = x_k - \eta\, v_k $$

    with the weights of `FracAdam2025`. For alpha = 1 it is v_k = b v_{k-1} + (1 - b) g_k.

    Published range: 0 < alpha <= 1, 0 <= b < 1.

    Contradictory: the source has no factor b before the sum, and says that alpha = 1 is classical
    momentum. Without it alpha = 1 is v_k = v_{k-1} + (1 - b) g_k, momentum without damping, which
    does not converge on any quadratic. Here the factor is added. In the steady state of a constant
    gradient v is (1 - b) g / (1 - b + b W), with W the sum of w_0, ..., w_K.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.9
        The order, in (0, 1]: one number, or one for each coordinate.
    b : number or array, default 0.9
        The decay rate of the momentum, in [0, 1).
    terms : int, default 10
        K, how many past steps are taken.

    References
    ----------
    Kan, Gao, Yang and Jian (Neurocomputing 449, 2021, "FCM"), K about 10.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Kan2021(0.3)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 14
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER, 0.9)
    b: Any = parameter(DECAY, 0.9)
    terms: int = count(10)

    def start(self, x: Vector) -> Vectors:
        return jnp.zeros((self.terms, *x.shape), x.dtype)

    def update(
        self, at: Evaluation, memory: Vectors, k: Count, objective: Any
    ) -> tuple[Vector, Vectors]:
        weights = binomial_weights(self.alpha, self.terms + 1)[1:].astype(at.x.dtype)
        v = (1 - self.b) * at.gradient - self.b * (weights @ memory)
        return self.eta * v, pushed(memory, v)


class Xie2022(UpdateRule):
    r"""Rule 15: the gradient flow with a fractional derivative in time.

    $$ x_{k+1} = x_0 - \eta^\alpha g_k - \sum_{i \le k} w_{k+1-i} (x_i - x_0) $$

    with the weights of `FracAdam2025`: Gruenwald and Letnikov's scheme for the Caputo derivative of
    order alpha in time, D^alpha x = -g.

    Published range: 0 < alpha <= 1, best near 0.95 to 0.99 there.

    Contradictory: a catalogue has eta^alpha before the sum, too, with which alpha = 1 is gradient
    descent for eta = 1 only. Here alpha = 1 is gradient descent. The sum has the last `terms`
    points, which are all points while k < terms. With all points the error falls only as k^-alpha
    for alpha < 1, since the flow depends on x_0 at all times. With a window, the limit is the
    solution of eta^alpha g = -W (x - x_0), W the sum of w_0, ..., w_terms: no stationary point, but
    one with a penalty towards x_0.

    Parameters
    ----------
    eta : number or array
        The step size, positive: one number, or one for each coordinate.
    alpha : number or array, default 0.95
        The order, in (0, 1]: one number, or one for each coordinate.
    terms : int, default 100
        How many past points are taken.

    References
    ----------
    Xie and Li (Axioms 11, 2022, 507).

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Xie2022(0.3, alpha=1.0)).x.round(3))
    [-1.2  2.6]
    """

    number: ClassVar[int] = 15
    eta: Any = parameter(POSITIVE)
    alpha: Any = parameter(ORDER, 0.95)
    terms: int = count(100)

    def start(self, x: Vector) -> tuple[Vector, Vectors]:
        return x, jnp.zeros((self.terms, *x.shape), x.dtype)

    def update(
        self, at: Evaluation, memory: tuple[Vector, Vectors], k: Count, objective: Any
    ) -> tuple[Vector, tuple[Vector, Vectors]]:
        x0, past = memory
        past = pushed(past, at.x - x0)  # x_k - x_0 has the weight w_1
        weights = binomial_weights(self.alpha, self.terms + 1)[1:].astype(at.x.dtype)
        new = x0 - jnp.asarray(self.eta) ** self.alpha * at.gradient - weights @ past
        return at.x - new, (x0, past)
