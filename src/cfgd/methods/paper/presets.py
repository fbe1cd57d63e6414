"""The paper's methods: presets of terminal, order and step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx

from cfgd._core import checks
from cfgd._core.pytrees import checked_pytree
from cfgd._core.types import DType, UserInput
from cfgd.methods.base import Tuning
from cfgd.methods.paper.constants import tune
from cfgd.methods.paper.fractional import Fractional
from cfgd.methods.paper.order import Constant, Stage, Stages
from cfgd.methods.paper.settings import Rule
from cfgd.methods.paper.step import ExactStep, FixedStep, StepRule
from cfgd.methods.paper.terminal import CurrentPoint, Fixed, Lagged
from cfgd.objectives.base import Objective

EXACT = ExactStep()


class Preset(Fractional):
    """A method that makes its rules for terminal and order from its own arguments."""

    def owner_of(self, rule: Rule) -> str:
        name = type(self).__name__
        return rule.owner(name) if isinstance(rule, Rule) else name

    def _argument(self, name: str) -> Any:
        if name in ("terminal", "lag", "past"):
            return self.terminal._argument(name)
        if name in ("alpha", "beta", "gamma", "stages"):
            return self.order._argument(name)
        return super()._argument(name)


class GradientDescent(Preset):
    """x_{k+1} = x_k - eta_k g_k: the other methods with c = x, or with alpha = 1 and beta = 0.

    Parameters
    ----------
    step : StepRule, default ExactStep()
        The rule for the step size.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> print(cfgd.minimize(f, [1.0, -10.0], cfgd.GradientDescent()).iterations)
    92
    """

    def __init__(self, step: StepRule = EXACT) -> None:
        # with c = x order and smoothing have no effect
        super().__init__(CurrentPoint(), Constant(0.5, beta=0.0), step, nodes=1, reading="exact")


class NonAdaptive(Preset):
    """Fixed terminal, order and smoothing: converges to a Tikhonov solution.

    On a quadratic the limit minimises f + gamma/2 |x - c|^2_D with D = diag(A), and not f. A run
    has therefore converged when its direction is small, and its last point is the result. With
    `reading="printed"` (see `Fractional`) the penalty is gamma on the right of c and -(2 + gamma)
    on the left; one of the two is negative, and on that side the run is not bounded.

    Parameters
    ----------
    terminal : number, array or pytree
        The terminal c: of the structure of x0, or one number for all coordinates.
    alpha : number or array, default 0.5
        The order, in (0, 1): one number, or one for each coordinate.
    beta : number or array, optional
        The smoothing: one number, or one for each coordinate. Give either `beta` or `gamma`.
    gamma : number or array, optional
        beta - (1 - alpha)/(2 - alpha), in place of `beta`.
    nodes : int, default 10
        The number of quadrature nodes, at least 1. One is used where it is exact, as on a
        quadratic.
    step : StepRule, default ExactStep()
        The rule for the step size.
    reading : {"exact", "printed"}, default "exact"
        How the formula is read; see `Fractional`.

    Raises
    ------
    ValueError
        If neither or both of `beta` and `gamma` are given, `alpha` is not in (0, 1), an entry is
        not finite, `nodes` is not an integer of at least 1, `step` is no step rule, or `reading` is
        another word.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), section 3.1.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> end = cfgd.minimize(f, np.zeros(2), cfgd.NonAdaptive([1.0, 1.0], gamma=0.5))
    >>> print(end.x.round(6))
    [-0.28  1.76]
    """

    def __init__(
        self,
        terminal: UserInput,
        alpha: UserInput = 0.5,
        *,
        beta: UserInput = None,
        gamma: UserInput = None,
        nodes: int = 10,
        step: StepRule = EXACT,
        reading: str = "exact",
    ) -> None:
        owner = "NonAdaptive"
        order = Constant(alpha, beta=beta, gamma=gamma, owner=owner)
        super().__init__(
            Fixed(checked_pytree(owner, "terminal", terminal)), order, step, nodes, reading
        )


class AdaptiveTerminal(Preset):
    """c_k = x_{k - lag}: the terminal is the point of `lag` iterations ago.

    Without `past` the first step is a gradient step. `reading="printed"` replaces x - c by |x - c|,
    as the paper prints its formula. In a coordinate that the last step decreased, the direction is
    then no Caputo derivative: for a positive curvature and gamma, its additional term decreases x_j
    whatever the sign of the last step, and by more the longer that step was (see
    `fractional_gradient`).

    Parameters
    ----------
    alpha : number or array, default 0.5
        The order, in (0, 1): one number, or one for each coordinate.
    beta : number or array, optional
        The smoothing: one number, or one for each coordinate. Give either `beta` or `gamma`.
    gamma : number, array or "best", optional
        beta - (1 - alpha)/(2 - alpha), in place of `beta`. "best" is for a quadratic and goes with
        `FixedStep("best")`.
    lag : int, default 1
        How many iterations the terminal lies back, at least 1.
    past : array or list of points, optional
        The points before x0, (x_{-1}, ..., x_{-lag}). By default they are x0.
    nodes : int, default 10
        The number of quadrature nodes, at least 1. One is used where it is exact, as on a
        quadratic.
    step : StepRule, default ExactStep()
        The rule for the step size.
    reading : {"exact", "printed"}, default "exact"
        How the formula is read; see `Fractional`.

    Raises
    ------
    ValueError
        If neither or both of `beta` and `gamma` are given, `alpha` is not in (0, 1), an entry is
        not finite, `lag` or `nodes` is not an integer of at least 1, `step` is no step rule, or
        `reading` is another word. `minimize` raises it if `past` does not hold `lag` points of the
        structure of x0, or if "best" is given for anything but a quadratic, lag 1 and
        `FixedStep("best")`.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), section 3.2.

    Examples
    --------
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
        alpha: UserInput = 0.5,
        *,
        beta: UserInput = None,
        gamma: UserInput = None,
        lag: int = 1,
        past: UserInput = None,
        nodes: int = 10,
        step: StepRule = EXACT,
        reading: str = "exact",
    ) -> None:
        owner = "AdaptiveTerminal"
        lag = checks.integer(owner, "lag", lag)
        order = Constant(alpha, beta=beta, gamma=gamma, owner=owner)
        past = None if past is None else checked_pytree(owner, "past", past)
        super().__init__(Lagged(lag, past), order, step, nodes, reading)

    def tuned(self, objective: Objective, d: int, dtype: DType) -> tuple[Fractional, Tuning | None]:
        assert isinstance(self.order, Constant)
        assert isinstance(self.terminal, Lagged)
        if not self.order.is_open:
            return super().tuned(objective, d, dtype)
        owner = "AdaptiveTerminal"
        if not self.step_rule.is_open:
            got = repr(type(self.step_rule).__name__)
            checks.fail(owner, "step", 'be FixedStep("best"), as gamma is "best"', got)
        if self.reading != "exact":
            checks.fail(owner, "reading", 'be exact, as gamma is "best"', repr(self.reading))
        if self.terminal.lag != 1:
            checks.fail(owner, "lag", 'be 1, as gamma is "best"', self.terminal.lag)
        if not objective.traits.is_quadratic:
            wanted = 'be a number; "best" is for a Quadratic or LeastSquares'
            checks.fail(owner, "gamma", wanted, objective.traits.label)
        tuning = tune(objective, d, dtype)
        order = Constant(self.order.alpha, gamma=tuning.gamma, owner=owner)
        method = eqx.tree_at(lambda m: (m.order, m.step_rule), self, (order, FixedStep(tuning.eta)))
        return method, tuning


class AdaptiveOrder(Preset):
    """Fixed terminal, and stages of order and smoothing along which gamma tends to 0.

    Each stage starts where the previous one ended. The run ends with the last stage.

    Parameters
    ----------
    stages : list of Stage
        The stages in their order.
    terminal : number, array or pytree
        The terminal c: of the structure of x0, or one number for all coordinates.
    nodes : int, default 10
        The number of quadrature nodes, at least 1. One is used where it is exact, as on a
        quadratic.
    step : StepRule, default ExactStep()
        The rule for the step size.
    reading : {"exact", "printed"}, default "exact"
        How the formula is read; see `Fractional`.

    Raises
    ------
    ValueError
        If `stages` is not a list of at least one `Stage`, the terminal has an entry that is not
        finite, `nodes` is not an integer of at least 1, `step` is no step rule, or `reading` is
        another word.

    References
    ----------
    Shin, Darbon and Karniadakis (arXiv 2104.02259; Neural Networks 161, 2023), section 3.3.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> stages = [cfgd.Stage(20, gamma=0.5), cfgd.Stage(20, gamma=0.1), cfgd.Stage(60, gamma=0.0)]
    >>> print(cfgd.minimize(f, np.zeros(2), cfgd.AdaptiveOrder(stages, [1.0, 1.0])).x.round(6))
    [-1.2  2.6]
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        terminal: UserInput,
        nodes: int = 10,
        step: StepRule = EXACT,
        reading: str = "exact",
    ) -> None:
        owner = "AdaptiveOrder"
        order = Stages(stages, owner=owner)
        super().__init__(
            Fixed(checked_pytree(owner, "terminal", terminal)), order, step, nodes, reading
        )
