"""How far: the rules for the step size eta_k along x - eta d."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cfgd import _check
from cfgd.objective.base import Objective, Point, inner
from cfgd.objective.network import ShallowNetwork
from cfgd.rule import Rule


class Line(NamedTuple):
    """The line x - eta d that a step is chosen on.

    `slope` and `curvature` are those of what d descends on: of f, <g, d> and d'Hd, for a terminal
    that moves with x; of f + gamma/2 |x - c|^2_D, whose gradient d is, for one that stays.
    """

    objective: Objective
    point: Point
    d: Any
    image: Any
    slope: Any
    curvature: Callable[[], Any]
    descends_on_f: bool


class Chosen(NamedTuple):
    """A step size, what the rule remembers, what it cost in gradients, and if d'Hd < 0."""

    eta: Any
    memory: Any = None
    cost: Any = 0.0
    indefinite: Any = False


class StepRule(Rule):
    """`choose` a step on a line. `stalls` says which slopes make the rule's step zero."""

    def init(self, dtype: Any) -> Any:
        return None

    @property
    def is_best(self) -> bool:
        """Whether the method is to choose the step's numbers."""
        return False

    def check(self, objective: Objective) -> None:
        """Refuse an objective that the rule is not for."""

    def stalls(self, line: Line, square: Any) -> Any:
        """Whether the line leaves the rule no step, |g|^2 being `square`."""
        # <g, d> = |g|^2 + ..., so it is known to rounding of |g|^2 and no better
        return line.slope <= 4 * jnp.finfo(line.slope.dtype).eps * square

    @abc.abstractmethod
    def choose(self, line: Line, memory: Any) -> Chosen: ...


class FixedStep(StepRule):
    """eta_k = eta: the step of the theorems, with no safeguard.

    `FixedStep("best")` leaves eta to `AdaptiveTerminal(gamma="best")`.

    >>> import cfgd
    >>> print(cfgd.FixedStep(0.1).eta)
    0.1
    """

    eta: Any
    ranks: ClassVar[dict[str, int]] = {"eta": 0}

    def __init__(self, eta: Any) -> None:
        self.eta = eta if _check.is_best(eta) else _check.positive("FixedStep", "eta", eta)

    @property
    def is_best(self) -> bool:
        return _check.is_best(self.eta)

    def stalls(self, line: Line, square: Any) -> Any:
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
    """

    def stalls(self, line: Line, square: Any) -> Any:
        return jnp.abs(line.slope) <= 4 * jnp.finfo(line.slope.dtype).eps * square

    def choose(self, line: Line, memory: Any) -> Chosen:
        curvature = line.curvature()
        cost = line.objective.curvature_cost
        if line.objective.is_quadratic:
            eta = jnp.where(curvature > 0, line.slope / curvature, 0)
            return Chosen(eta, cost=cost, indefinite=(curvature < 0) & (line.slope != 0))
        # where the curvature vanishes, the step that moves as far as x or 1 is large
        least = jnp.abs(line.slope) / (1 + jnp.max(jnp.abs(line.point.x)))
        eta = line.slope / jnp.maximum(jnp.abs(curvature), jnp.finfo(curvature.dtype).eps * least)
        if not line.descends_on_f:
            return Chosen(jnp.where(curvature != 0, eta, 0), cost=cost)
        eta, tries = backtrack(line, eta, shrink=0.5, fraction=1e-4)
        return Chosen(eta, cost=cost + line.objective.value_cost * tries)


class GridStep(StepRule):
    """The best of the paper's 32 candidates, t 10^-l with t in {1/4, ..., 1}, l in 1..8.

    All are evaluated as one batch; the best is the one with the least value (section 4.3).
    """

    def choose(self, line: Line, memory: Any) -> Chosen:
        etas = candidates(line.d.dtype)
        values = line.objective.values_along(line.point, line.d, line.image, etas)
        values = jnp.where(jnp.isfinite(values), values, jnp.inf)
        eta = jnp.where(jnp.isfinite(jnp.min(values)), etas[jnp.argmin(values)], 0)
        return Chosen(eta, cost=len(etas) * line.objective.value_cost)


def candidates(dtype: Any) -> Any:
    """The 32 candidates of section 4.3, from 1/10 down."""
    t, scale = np.array([1.0, 0.75, 0.5, 0.25]), 10.0 ** -np.arange(1, 9)
    return jnp.asarray(np.outer(scale, t).ravel(), dtype)


class NetworkStep(StepRule):
    """For `ShallowNetwork`: the exact step for its output layer, 32 candidates for the hidden one.

    The output weights enter f quadratically, so their own line has an exact step; the candidates
    are tried with it, and the one with the least value is taken (section 4.3 and erratum 8).
    """

    def check(self, objective: Objective) -> None:
        if not isinstance(_network(objective), ShallowNetwork):
            _check.fail("NetworkStep", "objective", "be a ShallowNetwork", objective.kind())
        if getattr(objective, "curvature", None) == "hutchinson":
            wanted = "be a ShallowNetwork or its local model without probes"
            _check.fail("NetworkStep", "objective", wanted, "one with the curvature hutchinson")

    def stalls(self, line: Line, square: Any) -> Any:
        hidden = _network(line.objective).hidden
        slope = inner(line.point.gradient[:hidden], line.d[:hidden])
        return slope <= 4 * jnp.finfo(slope.dtype).eps * square

    def choose(self, line: Line, memory: Any) -> Chosen:
        hidden, d = _network(line.objective).hidden, line.d
        change = line.point.carried.phi @ d[hidden:]
        curvature = inner(change, change)
        slope = inner(line.point.gradient[hidden:], d[hidden:])
        output = jnp.where(curvature > 0, slope / curvature, 0)
        etas = jnp.where(jnp.arange(d.size) < hidden, candidates(d.dtype)[:, None], output)
        values = line.objective.values_along(line.point, d, line.image, etas)
        values = jnp.where(jnp.isfinite(values), values, jnp.inf)
        eta = jnp.where(jnp.isfinite(jnp.min(values)), etas[jnp.argmin(values)], 0)
        return Chosen(eta, cost=len(etas) * line.objective.value_cost)


def _network(objective: Any) -> Any:
    """The network itself, or the one inside a local model."""
    return getattr(objective, "objective", objective)


class ArmijoStep(StepRule):
    """Backtracking: the first eta with f(x - eta d) <= f(x) - fraction eta <g, d>.

    The search starts from `initial`, later from the last step over `shrink`.
    """

    initial: Any
    shrink: Any
    fraction: Any
    ranks: ClassVar[dict[str, int]] = {"initial": 0, "shrink": 0, "fraction": 0}
    per_coordinate: ClassVar[bool] = False

    def __init__(self, initial: Any = 1.0, shrink: Any = 0.5, fraction: Any = 1e-4) -> None:
        self.initial = _check.positive("ArmijoStep", "initial", initial)
        self.shrink = _check.order("ArmijoStep", "shrink", shrink)
        self.fraction = _check.order("ArmijoStep", "fraction", fraction)

    def init(self, dtype: Any) -> Any:
        return jnp.asarray(self.initial, dtype)

    def choose(self, line: Line, memory: Any) -> Chosen:
        eta, tries = backtrack(line, memory, self.shrink, self.fraction)
        # after a search that found nothing, start over: the scale has changed
        memory = jnp.where(eta > 0, eta / self.shrink, self.initial).astype(line.d.dtype)
        return Chosen(eta, memory, line.objective.value_cost * tries)


def backtrack(line: Line, eta: Any, shrink: Any, fraction: Any) -> tuple[Any, Any]:
    """Shrink eta until f decreases by `fraction` of what the slope promises; 0 if it never does."""

    def value(eta: Any) -> Any:
        return line.objective.values_along(line.point, line.d, line.image, eta[None])[0]

    def too_far(state: Any) -> Any:
        eta, value, tries = state
        enough = value <= line.point.value - fraction * eta * line.slope
        return ~enough & (tries < MOST_TRIES)

    def shorter(state: Any) -> Any:
        eta, _, tries = state
        return shrink * eta, value(shrink * eta), tries + 1

    eta = jnp.asarray(eta, line.d.dtype)
    eta, last, tries = jax.lax.while_loop(too_far, shorter, (eta, value(eta), jnp.array(1)))
    return jnp.where(last < line.point.value, eta, 0), tries


MOST_TRIES = 60
