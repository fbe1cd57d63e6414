"""Rules for the step size eta_k along a line x - eta d."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cfgd._core import checks
from cfgd._core.types import ArrayInput, Count, DType, Flag, Number, Numbers, Scalar, Vector
from cfgd.methods.paper.settings import Rule, is_open, number
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation, Line

# how often a search may shorten its step: 2^-60 of a step is below rounding
MAX_BACKTRACKS = 60
# Rounding units of f by which its values may differ at equal points: f may be ten times smaller
# than the terms of its sum, as that of a Poisson model, where 8 units were too few.
ROUNDING_UNITS = 64

# the state of a search: eta, f(x - eta d), the number of evaluations
Search: TypeAlias = tuple[Scalar, Scalar, Count]


class Chosen(NamedTuple):
    """A step size, the rule's new memory, its cost in gradients, and whether d'Hd < 0.

    Parameters
    ----------
    eta : number or array
        The step size: one number, or one for each coordinate.
    memory : pytree, optional
        The memory of the rule for the next iteration.
    cost : float, default 0.0
        What the choice cost, in gradients.
    indefinite : bool, default False
        Whether d'Hd < 0, so that f falls without bound along d if it is quadratic.

    Examples
    --------
    >>> import cfgd
    >>> print(cfgd.Chosen(0.5, cost=2.0))
    Chosen(eta=0.5, memory=None, cost=2.0, indefinite=False)
    """

    eta: Numbers
    memory: Any = None
    cost: Number = 0.0
    indefinite: Flag | bool = False


class StepRule(Rule):
    """Base class of step rules; a subclass must define `choose`.

    `choose` gets the line x - eta d. Its slope and curvature are those of f if the terminal moves
    with x, and those of f + gamma/2 |x - c|^2_D, whose gradient is d, if the terminal is fixed.
    `stalls` says for which directions the step of the rule would be zero.

    Examples
    --------
    >>> import cfgd
    >>> class Half(cfgd.StepRule):
    ...     def choose(self, line, memory):
    ...         return cfgd.Chosen(0.5 * line.slope / line.curvature())
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> print(cfgd.minimize(f, [1.0, -10.0], cfgd.GradientDescent(Half())).success)
    True
    """

    _internal: ClassVar[tuple[str, ...]] = ("check", "choose", "init", "scale_free", "stalls")

    def owner(self, preset: str | None) -> str:
        return type(self).__name__  # users give the step rule itself, not its numbers

    @property
    def scale_free(self) -> bool:
        """Whether scaling f by any c > 0 leaves the next point unchanged."""
        return False

    def init(self, dtype: DType) -> Any:
        """Return the memory of the rule at the start of a run."""
        return None

    def check(self, objective: Objective) -> None:
        """Raise a `ValueError` for an objective that the rule does not support."""

    def stalls(
        self, objective: Objective, point: Evaluation, d: Vector, slope: Scalar, square: Scalar
    ) -> Flag:
        """Return whether <g, d> = `slope` is zero up to rounding, with |g|^2 = `square`.

        The method then restarts its memory, c = x, because the step would be zero.
        """
        return is_no_descent(slope, square)

    @abc.abstractmethod
    def choose(self, line: Line, memory: Any) -> Chosen:
        """Return the step size on `line`, and the memory of the next iteration."""


def is_no_descent(slope: Scalar, square: Scalar) -> Flag:
    """Return whether <g, d> is not positive beyond rounding, with |g|^2 = `square`."""
    # |g|^2 is one of the terms of <g, d>, so its rounding is part of the error
    return slope <= 4 * jnp.finfo(slope.dtype).eps * square


class FixedStep(StepRule):
    """eta_k = eta: the constant step of the theorems, without any safeguard.

    `FixedStep("best")` leaves eta to `AdaptiveTerminal(gamma="best")`.

    Parameters
    ----------
    eta : number, array or "best"
        The step size, positive: one number, or one for each coordinate.

    Raises
    ------
    ValueError
        If `eta` is neither "best" nor a positive finite number or an array of them.

    Examples
    --------
    >>> import cfgd
    >>> print(cfgd.FixedStep(0.1).eta)
    0.1
    """

    eta: Any = number()

    def __init__(self, eta: ArrayInput | Literal["best"]) -> None:
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
    r"""The exact line search on a quadratic (equation 3.3 of the paper); eta may be negative.

    $$ \eta_k = \frac{\langle g_k, d_k\rangle}{d_k' H d_k} $$

    On other objectives it is the same formula with a Hessian-vector product, and eta is halved
    until the value decreases enough. With a fixed terminal (`NonAdaptive`, `AdaptiveOrder`) it is
    the formula for the function whose gradient is d, <d, d> / d'(H + gamma D)d: with <g, d> the run
    would descend on f and miss the Tikhonov solution.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), equation 3.3.

    Examples
    --------
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
        return is_no_descent(jnp.abs(slope), square)

    def choose(self, line: Line, memory: Any) -> Chosen:
        curvature = line.curvature()
        cost = line.costs.curvature
        if line.objective.traits.is_quadratic:
            eta = jnp.where(curvature > 0, line.slope / curvature, 0)
            return Chosen(eta, cost=cost, indefinite=(curvature < 0) & (line.slope != 0))
        # a lower bound on the curvature: that of a step 1/eps times as long as x. At x = 0 nothing
        # is known of its unit, and only where there is no curvature a step of 1/eps is taken
        size = jnp.max(jnp.abs(line.evaluation.x))
        is_unknown = (size == 0) & (curvature != 0)
        per_size = jnp.max(jnp.abs(line.d)) / jnp.where(size > 0, size, 1)
        least = jnp.where(is_unknown, 0, jnp.abs(line.slope) * per_size)
        eta = line.slope / jnp.maximum(jnp.abs(curvature), jnp.finfo(curvature.dtype).eps * least)
        if not line.descends_on_f:
            return Chosen(jnp.where(curvature != 0, eta, 0), cost=cost)
        units = ROUNDING_UNITS  # the step is that of the model: where rounding hides f, it is taken
        eta, tries = backtrack(line, eta, shrink=0.5, fraction=1e-4, rounding_units=units)
        return Chosen(eta, cost=cost + line.costs.value * tries)


class GridStep(StepRule):
    """The best of the paper's 32 candidates, t 10^-l with t in {1/4, ..., 1} and l in 1..8.

    All are evaluated in one batch, and the one with the smallest value is taken (section 4.3 of the
    paper).

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), section 4.3.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> descent = cfgd.GradientDescent(cfgd.GridStep())
    >>> print(cfgd.minimize(f, [1.0, -10.0], descent, record={"step": "eta"}).history["step"][1:4])
    [0.1   0.075 0.1  ]
    """

    def choose(self, line: Line, memory: Any) -> Chosen:
        etas = grid_candidates(line.d.dtype)
        return Chosen(best_candidate(etas, line.values(etas)), cost=len(etas) * line.costs.value)


def grid_candidates(dtype: DType) -> Float[Array, " n"]:
    """Return the 32 candidates of section 4.3, in decreasing order from 1/10."""
    t, scale = np.array([1.0, 0.75, 0.5, 0.25]), 10.0 ** -np.arange(1, 9)
    return jnp.asarray(np.outer(scale, t).ravel(), dtype)


def best_candidate(etas: Float[Array, " n *d"], values: Float[Array, " n"]) -> Numbers:
    """Return the eta of the smallest value; 0 if no value is finite."""
    values = jnp.where(jnp.isfinite(values), values, jnp.inf)
    return jnp.where(jnp.isfinite(jnp.min(values)), etas[jnp.argmin(values)], 0)


class ArmijoStep(StepRule):
    """Backtracking line search: the first eta with f(x - eta d) <= f(x) - fraction eta <g, d>.

    The first search starts from `initial`, each later one from the last step divided by `shrink`.

    Parameters
    ----------
    initial : float, default 1.0
        The first step size of the first search, positive.
    shrink : float, default 0.5
        The factor by which a rejected step is multiplied, in (0, 1).
    fraction : float, default 0.0001
        The part of the decrease along the slope that a step must reach, in (0, 1).

    Raises
    ------
    ValueError
        If `initial` is not positive, or `shrink` or `fraction` is not in (0, 1).

    References
    ----------
    Nocedal and Wright, Numerical Optimization (2nd edition, 2006), algorithm 3.1.

    Examples
    --------
    >>> import cfgd
    >>> careful = cfgd.GradientDescent(cfgd.ArmijoStep(initial=0.1, shrink=0.3))
    >>> print(careful.step_rule.shrink)
    0.3
    """

    initial: Any = number(per_coordinate=False)
    shrink: Any = number(per_coordinate=False)
    fraction: Any = number(per_coordinate=False)

    def __init__(
        self, initial: ArrayInput = 1.0, shrink: ArrayInput = 0.5, fraction: ArrayInput = 1e-4
    ) -> None:
        self.initial = checks.positive("ArmijoStep", "initial", initial)
        self.shrink = checks.in_open_unit_interval("ArmijoStep", "shrink", shrink)
        self.fraction = checks.in_open_unit_interval("ArmijoStep", "fraction", fraction)

    def init(self, dtype: DType) -> Scalar:
        return jnp.asarray(self.initial, dtype)

    def choose(self, line: Line, memory: Any) -> Chosen:
        eta, tries = backtrack(line, memory, self.shrink, self.fraction)
        # after a search without a step start from `initial` again: the scale has changed
        memory = jnp.where(eta > 0, eta / self.shrink, self.initial).astype(line.d.dtype)
        return Chosen(eta, memory, line.costs.value * tries)


def backtrack(
    line: Line, eta: Scalar, shrink: Number, fraction: Number, rounding_units: Number = 0
) -> tuple[Scalar, Count]:
    """Shrink eta until f decreases by `fraction` of eta times the slope (Armijo's condition).

    A step whose decrease is below `rounding_units` rounding units of f may increase f by as much.
    Returns the step size, 0 if f does not decrease at all, and the number of evaluations.
    """
    f = line.evaluation.value
    rounding = rounding_units * jnp.finfo(f.dtype).eps * jnp.abs(f)

    def slack(eta: Scalar) -> Scalar:
        return jnp.where(eta * line.slope <= rounding, rounding, 0)

    def value(eta: Scalar) -> Scalar:
        return line.values(eta[None])[0]

    def is_too_long(state: Search) -> Flag:
        eta, value, tries = state
        decreases = value <= f - fraction * eta * line.slope + slack(eta)
        return ~decreases & (tries < MAX_BACKTRACKS)

    def shorten(state: Search) -> Search:
        eta, _, tries = state
        return shrink * eta, value(shrink * eta), tries + 1

    eta = jnp.asarray(eta, line.d.dtype)
    eta, last, tries = jax.lax.while_loop(is_too_long, shorten, (eta, value(eta), jnp.array(1)))
    is_lower = (last < f) | (last - f < slack(eta))
    return jnp.where(is_lower, eta, 0), tries
