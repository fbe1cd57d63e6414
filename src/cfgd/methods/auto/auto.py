"""Auto: the default method, which chooses a solver for the objective."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import equinox as eqx

from cfgd._core import checks
from cfgd._core.types import Number, Scalar, Vector
from cfgd.methods.auto.cg_then_lm import CGThenLM
from cfgd.methods.auto.conjugate_gradients import ConjugateGradients
from cfgd.methods.auto.lbfgs import LBFGS
from cfgd.methods.auto.lbfgs_then_lm import LBFGSThenLM
from cfgd.methods.auto.lm_then_quasi_newton import LMThenQuasiNewton
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.quasi_newton import QuasiNewton
from cfgd.methods.auto.select import Choice, choose
from cfgd.methods.auto.state import Goal, Solver, SolverState
from cfgd.methods.auto.trust_region import TrustRegion
from cfgd.methods.auto.variable_projection import VariableProjection
from cfgd.methods.base import Method, MethodTraits
from cfgd.objectives.base import Objective
from cfgd.objectives.function import as_objective

SOLVERS: dict[str, Solver[Any]] = {
    "conjugate_gradients": ConjugateGradients(),
    "cg_then_lm": CGThenLM(),
    "lbfgs": LBFGS(),
    "levenberg_marquardt": TrustRegion(),
    "lbfgs_then_lm": LBFGSThenLM(),
    "lm_then_quasi_newton": LMThenQuasiNewton(),
    "quasi_newton": QuasiNewton(),
    "variable_projection": VariableProjection(),
}
TRAITS = MethodTraits(runs_on_host=True, is_scale_invariant=True)
# Solvers that a user may choose by name; the others are combinations of them.
NAMED = ("conjugate_gradients", "levenberg_marquardt", "lbfgs", "quasi_newton")


class Auto(Method):
    """The default method: it chooses a solver by the structure of the objective.

    Each solver is a member of the paper's family, with the best parameters for its structure:

    - conjugate gradients for quadratics and least squares, in the residual form;
    - Levenberg-Marquardt for `Residuals`, `ShallowNetwork` and `LinearModel`: its step leads to the
      limit point of the non-adaptive method on the quadratic model at x (Theorem 3), with a damping
      that is lowered while the model predicts the decrease well. The smaller of J'J and JJ' is
      factorised. Beyond about 2e9 operations, and for a sparse X, the system is solved by conjugate
      gradients instead;
    - variable projection for networks: steps are taken on the hidden weights, and the output
      weights are always at their minimiser for these;
    - L-BFGS with 16 pairs and a diagonal scaling for other objectives, and at first for linear
      models with more than 120 columns. In long runs with up to 5,000 unknowns, a dense matrix of
      the self-scaled Broyden family replaces the pairs. The same matrix is used for `Residuals`
      with more than 100 unknowns on which Levenberg-Marquardt makes slow progress.

    `Auto().explain(objective)` prints which solver is taken and why; `methods/auto/select.py` has
    the table. All solvers run in NumPy on the host; only the objective itself is compiled.

    A run has `converged` if both conditions hold:

    - the norm of the gradient has fallen to `tolerance` times its value at the start, or rounding
      errors prevent a further decrease;
    - a Newton step at x is predicted to lower f by at most tolerance/100 |f| and to move no
      coordinate by more than sqrt(tolerance) of its size, or to move x by at most tolerance |x|.

    The curvatures for the second condition are differences of gradients around x: along every
    coordinate in up to 16 dimensions, along 16 Krylov directions in more. If one is negative, x is
    a saddle, and the run leaves it; if one is zero, in up to 16 dimensions, f is also evaluated on
    both sides of x along that direction. On quadratics the gradient must also be small relative to
    the terms that it is the sum of. With a Gauss-Newton matrix or a Hessian, the undamped step is
    tested and, by products with the Hessian, the Newton step; in fits of up to 100 unknowns the
    second test is left out if the last steps shrank fast enough to prove a minimum.

    `Auto` is for deterministic objectives. With minibatches every evaluation is of another
    function, so that differences of gradients and line searches have no meaning.

    Parameters
    ----------
    solver : {"conjugate_gradients", "levenberg_marquardt", "lbfgs", "quasi_newton"}, optional
        The solver to use. By default it is chosen by the structure of the objective.

    Raises
    ------
    ValueError
        If `solver` is another name. `minimize` raises it if the solver does not apply to the
        objective.

    References
    ----------
    Nocedal and Wright, Numerical Optimization (2nd edition, 2006), chapters 5, 7 and 10. Golub and
    Pereyra (1973) for variable projection, Al-Baali (1998) for the self-scaled Broyden family.

    Examples
    --------
    >>> import cfgd
    >>> f = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    >>> print(cfgd.minimize(f, [-1.2, 1.0]).x.round(6))
    [1. 1.]
    """

    solver: str | None = eqx.field(static=True)
    is_bounded: bool = eqx.field(static=True)

    _internal: ClassVar[tuple[str, ...]] = ("choice", "is_bounded", "solver_for")

    def __init__(self, solver: str | None = None) -> None:
        if solver is not None and not (isinstance(solver, str) and solver in NAMED):
            checks.fail("Auto", "solver", f"be None or one of {', '.join(NAMED)}", repr(solver))
        self.solver, self.is_bounded = solver, False

    @property
    def traits(self) -> MethodTraits:
        return TRAITS

    def in_box(self) -> Auto:
        bounded = copy.copy(self)
        object.__setattr__(bounded, "is_bounded", True)
        return bounded

    def choice(self, objective: Objective) -> Choice:
        """Return the solver for an objective and the reason, or raise where it does not apply."""
        if self.solver is None:
            return choose(objective, self.is_bounded)
        traits, name = objective.traits, self.solver
        if name == "conjugate_gradients" and not traits.is_quadratic:
            checks.fail(
                "Auto", "solver", "be used with a quadratic", f"{name!r} for {traits.label}"
            )
        if name == "levenberg_marquardt" and traits.curvature is None:
            wanted = "be used with Residuals, ShallowNetwork or LinearModel"
            checks.fail("Auto", "solver", wanted, f"{name!r} for {traits.label}")
        if name == "conjugate_gradients" and self.is_bounded:
            name = "cg_then_lm"
        return Choice(name, "the user chose it")

    def explain(self, objective: object) -> None:
        """Print which solver is taken for an objective or a function, and why.

        `Solution.how` names the solver that ran. It differs for a network whose gradient at the
        start is above 1e60 or below 1e-60: this is rescaled, and minimised without variable
        projection.

        Parameters
        ----------
        objective : Objective or callable
            An objective of cfgd, or a function f(x) written in JAX.

        Examples
        --------
        >>> import cfgd
        >>> cfgd.Auto().explain(cfgd.Quadratic([[2.0, 0.0], [0.0, 1.0]], [1.0, 1.0]))
        conjugate gradients (scaled by diag(A)), because the objective is quadratic.
        """
        f = as_objective("explain", objective)
        chosen = self.choice(f)
        print(f"{SOLVERS[chosen.solver].describe(f)}, because {chosen.reason}.")

    def describe(self, objective: Objective) -> str:
        return f"Auto: {SOLVERS[self.choice(objective).solver].describe(objective)}"

    def solver_for(self, objective: Objective) -> Solver[Any]:
        """Return the solver that minimises this objective."""
        return SOLVERS[self.choice(objective).solver]

    def init(self, objective: Oracle, x0: Vector) -> SolverState:
        """Return the state at the start; Auto's solvers take an oracle for an objective."""
        return self.solver_for(objective.objective).init(objective, x0)

    def step(
        self, objective: Oracle, state: Any, floor: Number = 0.0, tolerance: Number = 0.0
    ) -> SolverState:
        return self.solver_for(objective.objective).step(objective, state, Goal(tolerance, floor))

    def measure(self, objective: Oracle, state: SolverState) -> Scalar:
        return state.norm2
