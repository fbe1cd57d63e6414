"""A method made of rules for terminal, order and step: a direction, then its step size."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from cfgd._core import checks
from cfgd._core.linalg import inner
from cfgd._core.pytrees import Structure
from cfgd._core.types import Count, DType, Etas, Flag, LineValues, Number, Numbers, Scalar, Vector
from cfgd.methods.base import Info, Method, MethodTraits, Prepared, State, Tuning, status_code
from cfgd.methods.paper.direction import CaputoMemory, check_reading, direction, penalty_curvature
from cfgd.methods.paper.order import Order
from cfgd.methods.paper.settings import Rule, lay_out
from cfgd.methods.paper.step import Chosen, StepRule
from cfgd.methods.paper.terminal import Terminal
from cfgd.objectives.base import Objective, hessian_diagonal
from cfgd.objectives.evaluation import Evaluation, Line, LineCosts
from cfgd.objectives.local import Local
from cfgd.status import Status

# Gradients that a direction may cost before the user is warned: seconds on a small problem.
COSTLY = 10_000

TERMINALS = ("CurrentPoint()", "Fixed(terminal)", "Lagged(lag)")
ORDERS = ("Constant(alpha, gamma=...)", "Stages(stages)")
STEPS = ("ExactStep()", "FixedStep(eta)", "GridStep()", "ArmijoStep()", "NetworkStep()")


ADVICE = {
    Status.max_iterations: "Other parameters of the method, or `Auto()`, may need fewer.",
    Status.nonfinite: (
        "The steps are too long: use a smaller `FixedStep`, `ArmijoStep` or `ExactStep`, or a "
        "gamma nearer to 0."
    ),
    Status.stalled: "Another step rule may make progress.",
}
ADVICE_WITHOUT_MINIMISER = ADVICE | {
    Status.converged: (
        "The direction vanishes here, which the gradient need not: with this terminal and order "
        "that is no minimum, but a Tikhonov solution. `AdaptiveTerminal` leads to a minimum."
    ),
}


# Iterations without progress after which a run ends as stalled. Many: with momentum both value and
# gradient may oscillate, for hundreds of iterations on ill-conditioned problems.
PATIENCE = 1000


class FractionalState(State):
    """State between two iterations: that of every rule."""

    past: Any  # of the terminal
    prepared: Any  # of the order
    step_memory: Any


class Proposal(NamedTuple):
    """A direction, and the numbers that the step along it depends on."""

    d: Vector
    slope: Scalar  # <g, d>
    norm2: Scalar  # the squared norm that the tolerance is for
    descent: Scalar  # slope of the function that d descends on: <g, d>, <d, d> if c is fixed
    gamma: Numbers
    penalty_factor: Numbers  # the derivative of d_j - g_j in x_j, in units of D_j
    reset: Flag
    past: Any


@dataclasses.dataclass(frozen=True, eq=False)
class TikhonovLine(Line):
    """The line of f + gamma/2 |x - c|^2_D, whose gradient is d where the terminal is fixed.

    Slope and curvature are those of this function; values and evaluations are those of f.
    """

    f_line: Line
    penalty: Vector  # the curvature that is added along each coordinate: gamma D, see `reading`
    descends_on_f: ClassVar[bool] = False

    @property
    def costs(self) -> LineCosts:
        return self.f_line.costs

    @property
    def of_f(self) -> Line:
        return self.f_line

    def curvature(self) -> Scalar:
        return self.f_line.curvature() + inner(self.penalty * self.d, self.d)

    def values(self, etas: Etas) -> LineValues:
        return self.f_line.values(etas)

    def to(self, eta: Numbers) -> Evaluation:
        return self.f_line.to(eta)


class Fractional(Method):
    """x_{k+1} = x_k - eta_k d_k with a rule for the terminal, the order and the step.

    The paper's methods are presets of this class, which allows any other combination. With
    `reading="printed"` the direction is no Caputo derivative where x < c: it has an additional term
    that does not change its sign and grows with |x - c| (see `fractional_gradient`).

    Parameters
    ----------
    terminal : cfgd.terminal.Terminal
        The rule for the terminal c_k.
    order : cfgd.order.Order
        The rule for alpha_k and beta_k.
    step : StepRule
        The rule for the step size.
    nodes : int, default 10
        The number of quadrature nodes, at least 1. One is used where it is exact, as on a
        quadratic.
    reading : {"exact", "printed"}, default "exact"
        "printed" replaces x - c by |x - c|, as in equation (2.6) of the paper.

    Raises
    ------
    ValueError
        If `terminal`, `order` or `step` is no rule of its kind, `nodes` is no integer of at least
        1, or `reading` is another word.

    Attributes
    ----------
    step_rule : StepRule
        The rule that was given as `step`; a method's `step` makes an iteration.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), section 3.

    Examples
    --------
    >>> import cfgd
    >>> method = cfgd.Fractional(
    ...     cfgd.terminal.Lagged(2), cfgd.order.Constant(0.5, gamma=-0.3), cfgd.ExactStep()
    ... )
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> print(cfgd.minimize(f, [0.0, 0.0], method).x.round(6))
    [-1.2  2.6]
    """

    terminal: Terminal
    order: Order
    step_rule: StepRule
    nodes: int = eqx.field(static=True)
    reading: str = eqx.field(static=True)
    _internal: ClassVar[tuple[str, ...]] = (
        "choose",
        "direction_at",
        "direction_cost",
        "is_open",
        "line",
        "nodes_on",
        "owner_of",
        "propose",
        "tuned",
    )

    def __init__(
        self, terminal: object, order: object, step: object, nodes: int = 10, reading: str = "exact"
    ) -> None:
        owner = type(self).__name__
        self.terminal = checks.instance(owner, "terminal", terminal, Terminal, TERMINALS)
        self.order = checks.instance(owner, "order", order, Order, ORDERS)
        self.step_rule = checks.instance(owner, "step", step, StepRule, STEPS)
        self.nodes = checks.integer(owner, "nodes", nodes)
        self.reading = check_reading(owner, reading)

    def _argument(self, name: str) -> Any:
        return self.step_rule if name == "step" else getattr(self, name)

    @property
    def is_open(self) -> bool:
        """Whether numbers are left to the method to choose."""
        return any(rule.is_open for rule in (self.terminal, self.order, self.step_rule))

    @property
    def _seeks_minimiser(self) -> bool:
        return self.order.vanishes or not self.terminal.is_fixed

    @property
    def traits(self) -> MethodTraits:
        return MethodTraits(
            is_scale_invariant=self.step_rule.scale_free,
            # a stage may wait for the next one at its Tikhonov solution
            patience=None if self.order.vanishes else PATIENCE,
            seeks_minimiser=self._seeks_minimiser,
            last_iteration=self.order.last_iteration,
            advice=ADVICE if self._seeks_minimiser else ADVICE_WITHOUT_MINIMISER,
        )

    def prepare(
        self,
        objective: Objective,
        structure: Structure,
        d: int,
        dtype: DType,
        settings: int | None = None,
    ) -> Prepared:
        method, tuning = self, None
        if settings is None:
            method, tuning = self.tuned(objective, d, dtype)
        method.step_rule.check(objective)
        cost = method.direction_cost(objective, d)
        if cost >= COSTLY:
            _warn_of_cost(objective, cost)
        return Prepared(lay_out(method, structure, d, settings), tuning)

    def tuned(self, objective: Objective, d: int, dtype: DType) -> tuple[Fractional, Tuning | None]:
        """Return the method with every "best" replaced by numbers."""
        wanted = 'be a number; "best" goes with AdaptiveTerminal(gamma="best")'
        if self.order.is_open:
            checks.fail(self.owner_of(self.order), "gamma", wanted, repr("best"))
        if self.step_rule.is_open:
            checks.fail("FixedStep", "eta", wanted, repr("best"))
        return self, None

    def owner_of(self, rule: Rule) -> str:
        """Return the name of the call in which the user gave a rule its numbers, for messages."""
        return rule.owner(None) if isinstance(rule, Rule) else type(rule).__name__

    def nodes_on(self, objective: Objective) -> int:
        """Return the number of quadrature nodes that are needed for this objective."""
        return 1 if objective.traits.linear_slopes else self.nodes

    def direction_cost(self, objective: Objective, d: int) -> float:
        """Return what a direction costs beyond the gradient, in gradients."""
        if self.terminal.is_gradient:
            return 0.0
        return objective.traits.derivative_cost.of(self.nodes_on(objective), d)

    def describe(self, objective: Objective) -> str:
        nodes = self.nodes_on(objective)
        nodes_in_words = f", {nodes} node{'' if nodes == 1 else 's'}"
        if self.reading == "printed":
            nodes_in_words += ", the formula as printed"
        rule = "" if self.terminal.is_gradient else nodes_in_words
        return f"{type(self).__name__} with {type(self.step_rule).__name__}{rule}"

    def init(self, objective: Objective, x0: Vector) -> FractionalState:
        # tables in NumPy cannot be indexed by a traced k
        prepared = jax.tree.map(jnp.asarray, self.order.prepare(self.nodes_on(objective)))
        none = jnp.full((), jnp.nan, x0.dtype)
        gamma = None
        if not self.terminal.is_gradient:
            zero = jnp.zeros((), jnp.int32)
            gamma = jnp.full_like(
                self._order_at(objective, prepared, zero, x0.dtype).gamma, jnp.nan
            )
        return FractionalState(
            k=jnp.zeros((), jnp.int32),
            evaluation=objective.evaluate(x0),
            eta=none,
            gamma=gamma,
            past=self.terminal.init(x0),
            prepared=prepared,
            step_memory=self.step_rule.init(x0.dtype),
        )

    def _order_at(
        self, objective: Objective, prepared: object, k: Count, dtype: DType
    ) -> CaputoMemory:
        return self.order.at(prepared, k, self.nodes_on(objective), dtype)

    def propose(self, objective: Objective, state: FractionalState) -> Proposal:
        """Return the direction of an iteration; its step size is chosen afterwards."""
        point, g = state.evaluation, state.evaluation.gradient
        c, past = self.terminal.next(state.past, point.x, state.k)
        memory = self._order_at(objective, state.prepared, state.k, state.evaluation.x.dtype)
        gamma = memory.gamma
        d = self.direction_at(objective, state, c, memory)
        penalty_factor = penalty_curvature(gamma, point.x, c, self.reading)
        if self.terminal.is_fixed:
            square, slope = jnp.stack([d, g]) @ d
            norm2 = inner(g, g) if self._seeks_minimiser else square
            return Proposal(
                d, slope, norm2, square, gamma, penalty_factor, jnp.zeros((), bool), past
            )
        if self.terminal.is_moving and not objective.traits.linear_slopes:
            # at c = x exactly the gradient, so that a run that cannot move is detected
            d = jnp.where(jnp.all(c == point.x), g, d)
        # one product of two rows is cheaper than two inner products
        norm2, slope = jnp.stack([g, d]) @ g
        reset = jnp.zeros((), bool)
        if self.terminal.is_moving:
            reset = self.step_rule.stalls(objective, point, d, slope, norm2)
            d, slope = jnp.where(reset, g, d), jnp.where(reset, norm2, slope)
        return Proposal(d, slope, norm2, slope, gamma, penalty_factor, reset, past)

    def direction_at(
        self, objective: Objective, state: FractionalState, c: Vector, memory: CaputoMemory
    ) -> Vector:
        """Return the direction with terminal c."""
        if self.terminal.is_gradient:
            return state.evaluation.gradient
        return direction(objective, state.evaluation, c, memory, self.reading)

    def line(self, objective: Objective, point: Evaluation, proposal: Proposal) -> Line:
        """Return the line along which the step is chosen."""
        line = objective.line(point, proposal.d, proposal.slope)
        if not self.terminal.is_fixed:
            return line
        penalty = proposal.penalty_factor * hessian_diagonal(objective, point)
        return TikhonovLine(objective, point, proposal.d, proposal.descent, line, penalty)

    def choose(self, line: Line, memory: Any) -> Chosen:
        """Return the step along the line; raise where a rule of the user returns something else."""
        chosen, rule = self.step_rule.choose(line, memory), type(self.step_rule).__name__
        if not isinstance(chosen, Chosen):
            checks.fail(rule, "choose", "return Chosen(eta, ...)", f"a {type(chosen).__name__}")
        if len({jax.tree.structure(chosen.memory), jax.tree.structure(memory)}) > 1:
            wanted = "return a memory like the one that `init` gave"
            checks.fail(rule, "choose", wanted, repr(jax.tree.structure(chosen.memory)))
        return chosen

    def step(
        self,
        objective: Objective,
        state: FractionalState,
        floor: Number = 0.0,
        tolerance: Number = 0.0,
    ) -> tuple[FractionalState, Info]:
        proposal = self.propose(objective, state)
        line = self.line(objective, state.evaluation, proposal)
        chosen = self.choose(line, state.step_memory)
        moves = proposal.norm2 > floor
        eta = jnp.where(moves, chosen.eta, 0)
        longest = eta if jnp.ndim(eta) == 0 else jnp.max(eta)
        new = FractionalState(
            k=state.k + moves,
            evaluation=line.to(eta),
            eta=jnp.where(moves, longest, state.eta),
            gamma=None if state.gamma is None else jnp.where(moves, proposal.gamma, state.gamma),
            past=proposal.past,
            prepared=state.prepared,
            step_memory=chosen.memory,
        )
        # a stage whose direction has vanished waits for the next one
        waits = self.terminal.is_fixed and self._seeks_minimiser
        along_gradient = proposal.descent == proposal.norm2
        stuck = moves & jnp.all(eta == 0) & along_gradient & (not waits)
        cost = 1.0 + self.direction_cost(objective, proposal.d.size) + chosen.cost
        code = status_code(indefinite=chosen.indefinite & moves, stalled=stuck)
        return new, Info(
            proposal.norm2, jnp.where(moves, cost, 0), proposal.reset & moves, code, moves
        )

    def restart(self, state: FractionalState) -> FractionalState:
        x = state.evaluation.x
        return dataclasses.replace(
            state,
            past=self.terminal.forget(state.past, x),
            step_memory=self.step_rule.init(x.dtype),
        )

    def measure(self, objective: Objective, state: FractionalState) -> Scalar:
        d = state.evaluation.gradient
        if not self._seeks_minimiser:
            c, _ = self.terminal.next(state.past, state.evaluation.x, state.k)
            memory = self._order_at(objective, state.prepared, state.k, state.evaluation.x.dtype)
            d = self.direction_at(objective, state, c, memory)
        return inner(d, d)


def _warn_of_cost(objective: Objective, cost: float) -> None:
    local = isinstance(objective, Local)
    cheaper = 'the curvature "hutchinson"' if local else "cfgd.Local(objective, ...)"
    checks.warn(
        "An exact direction moves one coordinate at a time and costs about "
        f"{cost:.0f} gradients here; {cheaper} costs a few."
    )
