"""How far: the rules for the step size eta_k along a line x - eta d."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cfgd._core import checks
from cfgd._core.types import Count, DType, Flag, Number, Numbers, Scalar, Vector
from cfgd.methods.paper.settings import Rule, is_open, number
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation, Line

# how often a search may shorten its step: 2^-60 of it is nothing
MOST_TRIES = 60

# of a search: eta, the value there, tries
Search: TypeAlias = tuple[Scalar, Scalar, Count]


class Chosen(NamedTuple):
    """A step size, what the rule remembers, what it cost in gradients, and if d'Hd < 0.

    >>> import cfgd
    >>> print(cfgd.Chosen(0.5, cost=2.0))
    Chosen(eta=0.5, memory=None, cost=2.0, indefinite=False)
    """

    eta: Numbers
    memory: Any = None
    cost: Number = 0.0
    indefinite: Flag | bool = False


class StepRule(Rule):
    """`choose` a step on a line: all that a subclass must define.

    The line's slope and curvature are those of what d descends on: of f for a terminal that moves
    with x, of f + gamma/2 |x - c|^2_D, whose gradient d is, for one that stays. `stalls` says
    which directions make the rule's step zero.

    >>> import cfgd
    >>> class Half(cfgd.StepRule):
    ...     def choose(self, line, memory):
    ...         return cfgd.Chosen(0.5 * line.slope / line.curvature())
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> print(cfgd.minimize(f, [1.0, -10.0], cfgd.GradientDescent(Half())).success)
    True
    """

    def owner(self, preset: str | None) -> str:
        return type(self).__name__  # a step is given as one

    @property
    def scale_free(self) -> bool:
        """Whether the step along c d on c f ends where that along d on f does, for every c > 0."""
        return False

    def init(self, dtype: DType) -> Any:
        """What the rule remembers at the start."""
        return None

    def check(self, objective: Objective) -> None:
        """Refuse an objective that the rule is not for."""

    def stalls(
        self, objective: Objective, point: Evaluation, d: Vector, slope: Scalar, square: Scalar
    ) -> Flag:
        """Whether <g, d> is zero to rounding, |g|^2 being `square`, so that c must become x."""
        return no_descent(slope, square)

    @abc.abstractmethod
    def choose(self, line: Line, memory: Any) -> Chosen: ...


def no_descent(slope: Scalar, square: Scalar) -> Flag:
    # <g, d> = |g|^2 + ..., so it is known to rounding of |g|^2 and no better
    return slope <= 4 * jnp.finfo(slope.dtype).eps * square


class FixedStep(StepRule):
    """eta_k = eta: the step of the theorems, with no safeguard.

    `FixedStep("best")` leaves eta to `AdaptiveTerminal(gamma="best")`.

    >>> import cfgd
    >>> print(cfgd.FixedStep(0.1).eta)
    0.1
    """

    eta: Any = number()

    def __init__(self, eta: Any) -> None:
        self.eta = eta if is_open(eta) else checks.positive("FixedStep", "eta", eta)

    @property
    def is_open(self) -> bool:
        return is_open(self.eta)

    def stalls(
        self, objective: Objective, point: Evaluation, d: Vector, slope: Scalar, square: Scalar
    ) -> Flag:
        return jnp.zeros((), bool)

    def choose(self, line: Line, memory: Any) -> Chosen:
        return Chosen(self.eta)


class ExactStep(StepRule):
    r"""The minimiser along the line for a quadratic (equation 3.3); signed.

    $$ \eta_k = \frac{\langle g_k, d_k\rangle}{d_k' H d_k} $$

    For other objectives the same formula with the Hessian-vector product, halved until the value
    decreases enough. With a terminal that stays (`NonAdaptive`, `AdaptiveOrder`) the formula is
    that of the function whose gradient d is, <d, d> / d'(H + gamma D)d: with <g, d> the run would
    descend on f and pass by the Tikhonov solution.

    >>> import cfgd
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> end = cfgd.minimize(f, [1.0, -10.0], cfgd.GradientDescent(cfgd.ExactStep()))
    >>> print(end.iterations, end.how)
    92 GradientDescent with ExactStep
    """

    @property
    def scale_free(self) -> bool:
        return True

    def stalls(
        self, objective: Objective, point: Evaluation, d: Vector, slope: Scalar, square: Scalar
    ) -> Flag:
        return no_descent(jnp.abs(slope), square)

    def choose(self, line: Line, memory: Any) -> Chosen:
        curvature = line.curvature()
        cost = line.costs.curvature
        if line.objective.is_quadratic:
            eta = jnp.where(curvature > 0, line.slope / curvature, 0)
            return Chosen(eta, cost=cost, indefinite=(curvature < 0) & (line.slope != 0))
        # where the curvature vanishes, the step that moves as far as x or 1 is large
        least = jnp.abs(line.slope) / (1 + jnp.max(jnp.abs(line.point.x)))
        eta = line.slope / jnp.maximum(jnp.abs(curvature), jnp.finfo(curvature.dtype).eps * least)
        if not line.descends_on_f:
            return Chosen(jnp.where(curvature != 0, eta, 0), cost=cost)
        eta, tries = backtrack(line, eta, shrink=0.5, fraction=1e-4)
        return Chosen(eta, cost=cost + line.costs.value * tries)


class GridStep(StepRule):
    """The best of the paper's 32 candidates, t 10^-l with t in {1/4, ..., 1}, l in 1..8.

    All are evaluated as one batch; the best is the one with the least value (section 4.3).

    >>> import cfgd
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> descent = cfgd.GradientDescent(cfgd.GridStep())
    >>> print(cfgd.minimize(f, [1.0, -10.0], descent, record={"step": "eta"}).history["step"][1:4])
    [0.1   0.075 0.1  ]
    """

    def choose(self, line: Line, memory: Any) -> Chosen:
        etas = candidates(line.d.dtype)
        return Chosen(least(etas, line.values(etas)), cost=len(etas) * line.costs.value)


def candidates(dtype: DType) -> Float[Array, " n"]:
    """The 32 candidates of section 4.3, from 1/10 down."""
    t, scale = np.array([1.0, 0.75, 0.5, 0.25]), 10.0 ** -np.arange(1, 9)
    return jnp.asarray(np.outer(scale, t).ravel(), dtype)


def least(etas: Float[Array, " n *d"], values: Float[Array, " n"]) -> Numbers:
    """The eta of the least value; 0 where none is finite."""
    values = jnp.where(jnp.isfinite(values), values, jnp.inf)
    return jnp.where(jnp.isfinite(jnp.min(values)), etas[jnp.argmin(values)], 0)


class ArmijoStep(StepRule):
    """Backtracking: the first eta with f(x - eta d) <= f(x) - fraction eta <g, d>.

    The search starts from `initial`, later from the last step over `shrink`.

    >>> import cfgd
    >>> careful = cfgd.GradientDescent(cfgd.ArmijoStep(initial=0.1, shrink=0.3))
    >>> print(careful.step_rule.shrink)
    0.3
    """

    initial: Any = number(per_coordinate=False)
    shrink: Any = number(per_coordinate=False)
    fraction: Any = number(per_coordinate=False)

    def __init__(self, initial: Any = 1.0, shrink: Any = 0.5, fraction: Any = 1e-4) -> None:
        self.initial = checks.positive("ArmijoStep", "initial", initial)
        self.shrink = checks.in_open_unit_interval("ArmijoStep", "shrink", shrink)
        self.fraction = checks.in_open_unit_interval("ArmijoStep", "fraction", fraction)

    def init(self, dtype: DType) -> Scalar:
        return jnp.asarray(self.initial, dtype)

    def choose(self, line: Line, memory: Any) -> Chosen:
        eta, tries = backtrack(line, memory, self.shrink, self.fraction)
        # after a search that found nothing, start over: the scale has changed
        memory = jnp.where(eta > 0, eta / self.shrink, self.initial).astype(line.d.dtype)
        return Chosen(eta, memory, line.costs.value * tries)


def backtrack(line: Line, eta: Scalar, shrink: Number, fraction: Number) -> tuple[Scalar, Count]:
    """Shrink eta until f decreases by `fraction` of what the slope promises; 0 if it never does."""

    def value(eta: Scalar) -> Scalar:
        return line.values(eta[None])[0]

    def too_far(state: Search) -> Flag:
        eta, value, tries = state
        enough = value <= line.point.value - fraction * eta * line.slope
        return ~enough & (tries < MOST_TRIES)

    def shorter(state: Search) -> Search:
        eta, _, tries = state
        return shrink * eta, value(shrink * eta), tries + 1

    eta = jnp.asarray(eta, line.d.dtype)
    eta, last, tries = jax.lax.while_loop(too_far, shorter, (eta, value(eta), jnp.array(1)))
    return jnp.where(last < line.point.value, eta, 0), tries
