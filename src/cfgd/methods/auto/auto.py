"""Auto: fractional descent with nothing to choose.

The adaptive terminal is heavy ball whose momentum is weighted by curvature. In coordinates scaled
by that curvature the direction is P^-1 g + gamma (x - c), and the best eta and gamma of every step
follow from products with what was seen at the last few terminals.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx

from cfgd._core import checks
from cfgd._core.types import Number, Scalar, Vector
from cfgd.methods.auto.conjugate import Conjugate
from cfgd.methods.auto.projected import Projected
from cfgd.methods.auto.relay import Relay
from cfgd.methods.auto.span import Span
from cfgd.methods.auto.tikhonov import Tikhonov
from cfgd.methods.base import Info, Method, State
from cfgd.objectives.base import Objective

RELAY, PROJECTED = Relay(), Projected()
MODELS: dict[str, Method] = {"conjugate": Conjugate(), "tikhonov": Tikhonov(), "span": Span()}


class Auto(Method):
    """No parameters to choose: the step follows from what the objective knows of itself.

    On quadratics and least squares: the terminal is the previous point, coordinates are scaled by
    D = diag(A), and eta_k and gamma_k are the best of the plane of D^-1 g and x - c, in the
    residual form of conjugate gradients: the gamma_k that makes successive directions conjugate is
    the best one. A singular system converges to the solution nearest to x0 in the norm of D.

    On `Residuals`, `ShallowNetwork` and `LinearModel`, which have a model: the limit point of the
    non-adaptive method on the quadratic model at x with terminal x, at once. (H + gamma D) p = g,
    H being the matrix of Gauss and Newton (for convex losses of linear models the Hessian) and D
    its diagonal, kept from shrinking: the step of Levenberg and Marquardt. gamma falls as the model
    proves true; a step along which residuals accelerate is bent accordingly; every step is a
    decrease. The smaller of J'J and JJ' is factored; where that takes more than 2e9 products of
    numbers (and, of a linear model, more than 512 columns), or X is sparse, conjugate iterations on
    products take its place. An iteration costs one matrix and a few values. On a linear model with
    more than 120 columns, or a sparse one, a matrix costs many gradients, and on well scaled data
    few are needed: the span below goes first, for as many iterations as six matrices cost. On a
    network the output weights a are then kept at their own limit point, with terminal 0: the
    minimiser of |Phi a - y|^2 / 2 + gamma/2 |a|^2, whose gamma falls with f; the steps are those of
    the hidden weights, until no more comes of it. So from the start where there are more weights
    than samples, else from a thousandth of f at the start on; not so in sweeps, with an activation
    of one's own, or where the samples are spread.

    On other objectives: the span of P^-1 g, of x - c, and of P^-1 times the gradient at c, for the
    last 16 terminals c, with the weights of L-BFGS. P is the curvature diagonal: Gauss-Newton's
    where the objective has one, else one that the gradients seen keep up to date. An iteration
    costs one gradient, and another where the step has to be shortened; where steps have to be,
    the next one begins shorter, no step moves a coordinate by more than ten times its size,
    in up to 16 dimensions the curvature is looked at anew every 30 iterations, and every step is a
    decrease. A function is walked on from Python and alone is compiled, as are models whose
    formulas NumPy does not take; sweeps are walked on in one compiled loop.

    `converged` means: the gradient has fallen to `tolerance` times its start, or rounding lets it
    fall no further, and Newton's step promises to lower f by at most tolerance/100 |f| and to move
    no coordinate by more than sqrt(tolerance) of its size, or to move x by at most tolerance |x|.
    Its curvatures are differences of gradients around x: along every coordinate up to dimension
    16 (on one side, and on the other too unless all are clearly positive), beyond along 16 of
    Krylov's directions. Where they are negative, x is a saddle and is left;
    where one is zero, up to dimension 16, f is also looked at on both sides of x along that valley.
    On quadratics: the gradient has fallen so far, and is that small beside the terms it is the sum
    of. On models: the same of the step without gamma and of Newton's, by products with the Hessian.

    `model` insists on one of them: "conjugate", "tikhonov" or "span".

    It is for deterministic objectives: with a minibatch another function is seen at every step
    and neither the model nor the search means anything.

    >>> import cfgd
    >>> f = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    >>> print(cfgd.minimize(f, [-1.2, 1.0]).x.round(6))
    [1. 1.]
    """

    model: str | None = eqx.field(static=True)

    def __init__(self, model: str | None = None) -> None:
        if model is not None and model not in MODELS:
            checks.fail("Auto", "model", f"be None or one of {', '.join(MODELS)}", repr(model))
        self.model = model

    def on(self, objective: Objective) -> Method:
        kind = self.model
        if kind is None and objective.model_is_costly and not objective.is_quadratic:
            return RELAY
        if kind is None and objective.has_model and objective.hidden is not None:
            return PROJECTED
        if kind is None:
            has_steps = objective.has_model and not objective.by_gradients
            kind = "tikhonov" if has_steps else "span"
            kind = "conjugate" if objective.is_quadratic else kind
        if kind == "conjugate" and not objective.is_quadratic:
            checks.fail("Auto", "model", "go with a quadratic", f"{kind!r} for {objective.kind()}")
        if kind == "tikhonov" and not objective.has_model:
            wanted = "go with Residuals, ShallowNetwork or LinearModel"
            checks.fail("Auto", "model", wanted, f"{kind!r} for {objective.kind()}")
        return MODELS[kind]

    def describe(self, objective: Objective) -> str:
        return f"Auto: {self.on(objective).describe(objective)}"

    def start(self, objective: Objective, x0: Vector) -> State:
        return self.on(objective).start(objective, x0)

    def step(
        self, objective: Objective, state: Any, floor: Number = 0.0, tolerance: Number = 0.0
    ) -> tuple[Any, Info]:
        return self.on(objective).step(objective, state, floor, tolerance)

    def measure(self, objective: Objective, state: Any) -> Scalar:
        return self.on(objective).measure(objective, state)
