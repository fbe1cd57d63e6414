"""A network as a function of its hidden weights alone: the output ones are the best for them.

They enter f quadratically, so the non-adaptive method with terminal 0 and gamma > 0 has its limit
point (Theorem 3) at once: the a that minimises |Phi a - y|^2 / 2 + gamma/2 |a|^2. As gamma falls,
this is variable projection; without gamma, features that nearly depend on each other would make a
so large that rounding hides what is left of f.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from cfgd._core.either import Plain, basis, made, reflected, replaced, triangular_solved
from cfgd._core.linalg import inner
from cfgd._core.types import Column, Matrix, Rows, Scalar, Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Normal, is_wide, kept
from cfgd.objectives.evaluation import Evaluation

# phi'^2 that a unit is taken to have at least, where steps are damped: less than where the output
# weights are damped, too, for gamma keeps them small
SATURATED = 1e-5


class Features(NamedTuple):
    """What hidden weights alone say: a_1 z + a_2, phi and phi' of it."""

    inside: Rows
    phi: Rows
    slope: Rows


class Settled(NamedTuple):
    """What is known with the best output weights."""

    features: Features
    reflections: Matrix  # of [Phi, y; sqrt(gamma) I, 0], in LAPACK's form
    tau: Column
    output: Column
    residuals: Column  # Phi a - y, then sqrt(gamma) a
    value: Scalar  # of f itself


class Walkable(Plain, Objective):
    """An objective whose functions stand among its values: a module's are bound at every call."""

    NAMES: ClassVar = (
        *("evaluate", "value", "residuals", "normal"),
        *("model_shape", "model_cost", "affords"),
    )
    model_is_exact: bool = False

    def value(self, x: Any) -> Any:
        raise NotImplementedError  # it stands among the values


class Projection:
    """Of hidden weights w: min over a of f(w, a) + gamma/2 |a|^2, and its Gauss-Newton model.

    It is there on the host alone; `as_objective` is what a Tikhonov step walks on.
    """

    def __init__(self, network: Any, gamma: Scalar, below: Scalar) -> None:
        """A value is infinite where f itself is not `below` that: what is gained in |a| is none."""
        self.network, self.gamma, self.below = network, gamma, below
        self.last: Evaluation | None = None
        self.equations: Normal | None = None

    def as_objective(self) -> Objective:
        return made(Walkable, **{name: getattr(self, name) for name in Walkable.NAMES})

    def evaluate(self, w: Vector) -> Evaluation:
        if self.last is None or (w != self.last.x).any():
            self.last = self.settled(w, self.network.features(w))
        return self.last

    def value(self, w: Vector) -> Scalar:
        at = self.evaluate(w)
        return at.value if at.aux.value < self.below else at.value + np.inf

    def settled(self, w: Vector, features: Features) -> Evaluation:
        """The point of features that are known already, without its gradient: see `ready`."""
        network, phi = self.network, features.phi
        (m, n), root = phi.shape, np.sqrt(self.gamma)
        stack = np.zeros((m + n, n + 1), phi.dtype, order="F")
        stack[:m, :n], stack[:m, n] = phi, network.y
        stack[m:, :n].T.flat[:: n + 1] = root
        reflections, tau = reflected(stack)
        output = triangular_solved(reflections[:n, :n], reflections[:n, n])
        misfit = phi @ output - network.y
        residuals = np.concatenate([misfit, root * output])
        value = inner(misfit, misfit) / 2
        known = Settled(features, reflections, tau, output, residuals, value)
        whole = inner(residuals, residuals) / 2
        return made(Evaluation, x=w, value=whole, gradient=None, aux=known)

    def residuals(self, point: Evaluation) -> Column:
        return point.aux.residuals

    def model_shape(self, point: Evaluation) -> tuple[int, ...]:
        m, n = point.aux.features.phi.shape
        return m + n, point.x.size

    def affords(self, shape: tuple[int, ...]) -> bool:
        return True

    def model_cost(self, shape: tuple[int, ...]) -> float:
        return 1.0

    def ready(self, point: Evaluation, old: Vector) -> Evaluation:
        """The point with its gradient, for a step from there.

        The output weights follow w and are the best, so the rows times the residuals are all of it.
        Off the span of the features these have digits that the network's own gradient has lost.
        """
        self.equations = self._normal(point, old)
        r: Any = self.equations.r
        D, _, rows, _ = self.equations
        return replaced(point, gradient=(r @ rows) * np.sqrt(D))

    def normal(self, point: Evaluation, old: Vector) -> Normal:
        assert self.equations is not None
        return self.equations

    def _normal(self, point: Evaluation, old: Vector) -> Normal:
        """Kaufman's rows: the change of N with the hidden weights, off what the features span."""
        network, (features, reflections, tau, output, residuals, _) = self.network, point.aux
        m, n = features.phi.shape
        change = network.hidden_rows(features.slope, output)
        Q = basis(reflections[:, :n], tau[:n])
        along = Q[:m].T @ change
        rows = -(Q @ along)
        rows[:m] += change
        more = SATURATED * (network.z**2).sum(0)[:, None] * output**2
        D = kept(old, np.einsum("ij,ij->j", rows, rows) + more.reshape(-1))
        rows /= np.sqrt(D)
        matrix = rows @ rows.T if is_wide(rows.shape) else rows.T @ rows
        return Normal(D, matrix, rows, residuals)
