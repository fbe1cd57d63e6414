"""Method = terminal x order x step; and the paper's methods as presets of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd import _check, terminal as terminals
from cfgd.best import Tuning, tune
from cfgd.direction import direction
from cfgd.fitting import fit
from cfgd.iteration import Info, Iteration
from cfgd.objective.base import Objective, Point, inner
from cfgd.order import Constant, Stages, alpha_and_beta
from cfgd.step import ExactStep, FixedStep, Line, StepRule
from cfgd.structure import Structure, as_tree

EXACT = ExactStep()
STEPS = ("ExactStep()", "FixedStep(eta)", "GridStep()", "ArmijoStep()", "NetworkStep()")


class State(eqx.Module):
    """What the next iteration needs."""

    k: Any
    point: Point
    past: Any
    order: Any
    step: Any
    eta: Any


class Method(Iteration):
    """x_{k+1} = x_k - eta_k d_k: a rule for the terminal, one for the order, one for the step."""

    terminal: Any
    order: Any
    step_rule: StepRule
    nodes: int = eqx.field(static=True)

    def _set(self, terminal: Any, order: Any, nodes: int, step: Any) -> None:
        owner = type(self).__name__
        self.terminal, self.order = terminal, order
        self.nodes = _check.integer(owner, "nodes", nodes)
        self.step_rule = _check.instance(owner, "step", step, StepRule, STEPS)

    def fit(self, structure: Structure, d: int, rows: int | None = None) -> Method:
        return fit(self, structure, d, rows)

    def tuned(self, objective: Objective, d: int, dtype: Any) -> tuple[Method, Tuning | None]:
        if self.step_rule.is_best:
            goes_with = 'be a number; "best" goes with AdaptiveTerminal(gamma="best")'
            _check.fail("FixedStep", "eta", goes_with, repr("best"))
        return self, None

    def view(self, objective: Objective) -> Objective:
        self.step_rule.check(objective)
        return objective

    def nodes_on(self, objective: Objective) -> int:
        return 1 if objective.linear_slopes else self.nodes

    def direction_cost(self, objective: Objective, d: int) -> float:
        if isinstance(self.terminal, terminals.Here):
            return 0.0
        return objective.slopes_cost(self.nodes_on(objective), d)

    def describe(self, objective: Objective) -> str:
        nodes = self.nodes_on(objective)
        nodes_in_words = f", {nodes} node{'' if nodes == 1 else 's'}"
        rule = "" if isinstance(self.terminal, terminals.Here) else nodes_in_words
        return f"{type(self).__name__} with {type(self.step_rule).__name__}{rule}"

    def start(self, objective: Objective, x0: Any) -> State:
        nodes = self.nodes_on(objective)
        return State(
            k=jnp.zeros((), jnp.int32),
            point=objective.at(x0),
            past=self.terminal.init(x0),
            order=self.order.prepare(nodes),
            step=self.step_rule.init(x0.dtype),
            eta=jnp.full((), jnp.nan, x0.dtype),
        )

    def step(self, objective: Objective, state: State, floor: Any = 0.0) -> tuple[State, Info]:
        point = state.point
        g = point.gradient
        c, past = self.terminal.next(state.past, point.x, state.k)
        rule, beta = self.order.at(state.order, state.k)
        if isinstance(self.terminal, terminals.Here):
            d = g
        else:
            d = direction(objective, point, c, rule, beta)
            if self.terminal.adaptive and not objective.linear_slopes:
                # at c = x the gradient to the last bit, so that a run that cannot move is seen
                d = jnp.where(jnp.all(c == point.x), g, d)
        fixed = isinstance(self.terminal, terminals.Fixed)
        if fixed:
            square, slope = jnp.stack([d, g]) @ d
            norm2 = inner(g, g) if self.seeks_minimiser else square
        else:  # one product of two rows is cheaper than two inner products
            norm2, slope = jnp.stack([g, d]) @ g
        reset = jnp.zeros((), bool)
        if self.terminal.adaptive:
            line = Line(objective, point, d, None, slope, lambda: None, True)
            reset = self.step_rule.stalls(line, norm2)
            d = jnp.where(reset, g, d)
            slope = jnp.where(reset, norm2, slope)
        image = objective.image(point, d)

        def curvature() -> Any:
            along = objective.curvature_along(point, d, image)
            if not fixed:
                return along
            return along + inner(_gamma(rule, beta) * objective.diagonal_at(point) * d, d)

        descent = square if fixed else slope
        line = Line(objective, point, d, image, descent, curvature, not fixed)
        chosen = self.step_rule.choose(line, state.step)
        moves = norm2 > floor
        eta = jnp.where(moves, chosen.eta, 0)

        new = State(
            k=state.k + moves,
            point=objective.move(point, d, image, eta, slope),
            past=past,
            order=state.order,
            step=chosen.memory,
            eta=jnp.where(moves, eta if jnp.ndim(eta) == 0 else jnp.max(eta), state.eta),
        )
        # a stage whose direction has vanished waits for the next one
        waits = fixed and self.seeks_minimiser
        stuck = moves & jnp.all(eta == 0) & (descent == norm2) & (not waits)
        cost = 1.0 + self.direction_cost(objective, d.size) + chosen.cost
        indefinite = chosen.indefinite & moves
        return new, Info(norm2, reset & moves, cost, indefinite, stuck, eta, _gamma(rule, beta))

    def forget(self, state: State) -> State:
        x = state.point.x
        past = jax.tree.map(lambda points: jnp.broadcast_to(x, points.shape), state.past)
        return dataclasses.replace(state, past=past, step=self.step_rule.init(x.dtype))

    def measure(self, objective: Objective, state: State) -> Any:
        d = state.point.gradient
        if not self.seeks_minimiser:
            c, _ = self.terminal.next(state.past, state.point.x, state.k)
            d = direction(objective, state.point, c, *self.order.at(state.order, state.k))
        return inner(d, d)


def _gamma(rule: Any, beta: Any) -> Any:
    """beta - (1 - alpha)/(2 - alpha), because the mean of U is 1/(2 - alpha)."""
    return beta + jnp.sum(rule[0] * rule[1], 0) - 1


class GradientDescent(Method):
    """x_{k+1} = x_k - eta_k g_k: alpha = 1 and beta = 0, or c = x, in every method here.

    >>> import cfgd
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> print(cfgd.minimize(f, [1.0, -10.0], cfgd.GradientDescent()).iterations)
    92
    """

    def __init__(self, step: StepRule = EXACT) -> None:
        # c = x makes order and smoothing void
        self._set(terminals.Here(), Constant(np.array(0.5), np.array(0.0), "beta"), 1, step)


class NonAdaptive(Method):
    """Fixed terminal, order and smoothing (section 3.1): converges to a Tikhonov solution.

    On a quadratic the limit minimises f + gamma/2 |x - c|^2_D with D = diag(A), and not f. A run
    is therefore judged by its direction, and its last point is the answer.

    >>> import cfgd, numpy as np
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> end = cfgd.minimize(f, np.zeros(2), cfgd.NonAdaptive([1.0, 1.0], gamma=0.5))
    >>> print(end.x.round(6))
    [-0.28  1.76]
    """

    def __init__(
        self,
        terminal: Any,
        alpha: Any = 0.5,
        *,
        beta: Any = None,
        gamma: Any = None,
        nodes: int = 10,
        step: StepRule = EXACT,
    ) -> None:
        order = Constant(*alpha_and_beta("NonAdaptive", alpha, beta, gamma))
        self._set(terminals.Fixed(as_tree("NonAdaptive", "terminal", terminal)), order, nodes, step)

    @property
    def seeks_minimiser(self) -> bool:
        return False


class AdaptiveTerminal(Method):
    """c_k = x_{k - lag} (section 3.2): the terminal follows at a distance of `lag` iterations.

    `past` holds the points before x0, (x_{-1}, ..., x_{-lag}); without it they are x0 itself and
    the first step is a gradient step.

    >>> import cfgd
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> figure1 = cfgd.AdaptiveTerminal(gamma=-1.0, past=[[-1.0, -1.0]])
    >>> print(cfgd.minimize(f, [1.0, -10.0], figure1).iterations)
    4

    On a quadratic, `AdaptiveTerminal(gamma="best", step=FixedStep("best"))` takes the constants
    with the best rate: gamma = -(sqrt h - sqrt l)^2 / 4 and eta = 4 / (sqrt h + sqrt l)^2 / diag(A)
    for the eigenvalues l to h of diag(A)^-1 A, which a few Lanczos steps find. The rate that is
    proved for them is the solution's `rate`.

    >>> best = cfgd.AdaptiveTerminal(gamma="best", step=cfgd.FixedStep("best"))
    >>> f = cfgd.Quadratic([[1.0, 0.8], [0.8, 1.0]], [1.0, 0.0])
    >>> print(round(cfgd.minimize(f, [0.0, 0.0], best).rate, 6))
    0.5
    """

    def __init__(
        self,
        alpha: Any = 0.5,
        *,
        beta: Any = None,
        gamma: Any = None,
        lag: int = 1,
        past: Any = None,
        nodes: int = 10,
        step: StepRule = EXACT,
    ) -> None:
        owner = "AdaptiveTerminal"
        lag = _check.integer(owner, "lag", lag)
        if _check.is_best(gamma) and beta is None:
            order = Constant(_check.order(owner, "alpha", alpha), np.array(0.0), "best")
        else:
            order = Constant(*alpha_and_beta(owner, alpha, beta, gamma))
        self._set(
            terminals.Lagged(past if past is None else as_tree(owner, "past", past), lag),
            order,
            nodes,
            step,
        )

    def tuned(self, objective: Objective, d: int, dtype: Any) -> tuple[Method, Tuning | None]:
        if self.order.given != "best":
            return super().tuned(objective, d, dtype)
        owner = "AdaptiveTerminal"
        if not self.step_rule.is_best:
            got = repr(type(self.step_rule).__name__)
            _check.fail(owner, "step", 'be FixedStep("best"), as gamma is "best"', got)
        if self.terminal.lag != 1:
            _check.fail(owner, "lag", 'be 1, as gamma is "best"', self.terminal.lag)
        if not objective.is_quadratic:
            wanted = 'be a number; "best" is for a Quadratic or LeastSquares'
            _check.fail(owner, "gamma", wanted, f"{objective.kind()}")
        tuning = tune(objective, d, dtype)
        order = Constant(*alpha_and_beta(owner, self.order.alpha, None, tuning.gamma))
        method = eqx.tree_at(lambda m: (m.order, m.step_rule), self, (order, FixedStep(tuning.eta)))
        return method, tuning


class Stage(eqx.Module):
    """A number of iterations with one order and smoothing, for `AdaptiveOrder`."""

    iterations: int = eqx.field(static=True)
    alpha: Any
    beta: Any
    given: str = eqx.field(static=True)

    def __init__(
        self, iterations: int, alpha: Any = 0.5, *, beta: Any = None, gamma: Any = None
    ) -> None:
        self.iterations = _check.integer("Stage", "iterations", iterations)
        self.alpha, self.beta, self.given = alpha_and_beta("Stage", alpha, beta, gamma)


class AdaptiveOrder(Method):
    """Fixed terminal, and stages of order and smoothing along which gamma -> 0 (section 3.3).

    Each stage starts where the one before it ended; the run ends with the last stage.

    >>> import cfgd, numpy as np
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> stages = [cfgd.Stage(20, gamma=0.5), cfgd.Stage(20, gamma=0.1), cfgd.Stage(60, gamma=0.0)]
    >>> print(cfgd.minimize(f, np.zeros(2), cfgd.AdaptiveOrder(stages, [1.0, 1.0])).x.round(6))
    [-1.2  2.6]
    """

    iterations: int = eqx.field(static=True)

    def __init__(
        self,
        stages: Sequence[Stage],
        terminal: Any,
        nodes: int = 10,
        step: StepRule = EXACT,
    ) -> None:
        several = isinstance(stages, Sequence) and len(stages) > 0
        if not several or not all(isinstance(stage, Stage) for stage in stages):
            _check.fail("AdaptiveOrder", "stages", "be a list of Stage(iterations, ...)", stages)
        shapes = {stage.beta.shape for stage in stages} - {()}
        if len(shapes) > 1:
            got = "shapes " + " and ".join(str(shape) for shape in sorted(shapes))
            _check.fail("AdaptiveOrder", "stages", "have numbers of one shape", got)
        ends = np.cumsum([stage.iterations for stage in stages])
        order = Stages(
            ends.astype(np.int32),
            np.stack(np.broadcast_arrays(*[stage.alpha for stage in stages])),
            np.stack(np.broadcast_arrays(*[stage.beta for stage in stages])),
            stages[0].given,
        )
        self.iterations = int(ends[-1])
        self._set(
            terminals.Fixed(as_tree("AdaptiveOrder", "terminal", terminal)), order, nodes, step
        )

    @property
    def last_iteration(self) -> int | None:
        return self.iterations
