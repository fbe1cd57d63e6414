"""The best eta and gamma of every step on a quadratic: conjugate directions."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from cfgd._core.linalg import inner
from cfgd._core.types import Flag, Number, Scalar, Vector
from cfgd.methods.base import Info, Method, State, ending
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation

NEAREST = "; the system is singular and x the solution nearest to x0 in the norm of diag(A)"


class ConjugateState(State):
    """`p` is the last direction and `product` its <g, D^-1 g>: what conjugacy needs.

    So does a D that stays: the one of the start, also where every point has another estimate.
    """

    gamma: Scalar
    p: Vector
    product: Scalar
    scaling: Vector
    norm0: Scalar  # of the gradient at the start


class Conjugate(Method):
    """The plane of D^-1 g and x - c, c being the previous point and D = diag(A).

    The gamma that makes successive directions conjugate is the best one, so that both numbers of
    a step are ratios.
    """

    def describe(self, objective: Objective) -> str:
        words = "best eta and gamma of every step, coordinates scaled by diag(A)"
        return words + (NEAREST if objective.is_singular() else "")

    def view(self, objective: Objective) -> Objective:
        return objective.in_residual_form()

    def measure(self, objective: Objective, state: ConjugateState) -> Scalar:
        return inner(state.point.gradient, state.point.gradient)

    def start_cost(self, objective: Objective, d: int) -> float:
        return 1.0 + objective.slopes_cost(1, d)

    def start(self, objective: Objective, x0: Vector) -> ConjugateState:
        point, none = objective.evaluate(x0), jnp.full((), jnp.nan, x0.dtype)
        D = objective.diagonal_at(point)
        typical = jnp.mean(jnp.abs(D))
        return ConjugateState(
            k=jnp.zeros((), jnp.int32),
            point=point,
            eta=none,
            gamma=none,
            p=jnp.zeros_like(x0),
            product=jnp.ones((), x0.dtype),
            scaling=jnp.where(D > 0, D, jnp.where(typical > 0, typical, 1)),
            norm0=jnp.sqrt(inner(point.gradient, point.gradient)),
        )

    def forget(self, objective: Objective, state: ConjugateState) -> ConjugateState:
        # the share of the last direction is then zero
        return dataclasses.replace(state, product=jnp.full_like(state.product, jnp.inf))

    @property
    def scale_free(self) -> bool:
        return True

    @property
    def patience(self) -> int:
        return 1000

    def confirms(self, objective: Objective, point: Evaluation, tolerance: Number) -> Flag:
        return objective.solved(point, tolerance)

    def step(
        self,
        objective: Objective,
        state: ConjugateState,
        floor: Number = 0.0,
        tolerance: Number = 0.0,
    ) -> tuple[ConjugateState, Info]:
        point, g = state.point, state.point.gradient
        z = g / state.scaling
        norm2, product = jnp.stack([g, z]) @ g
        share = jnp.where(state.k > 0, product / state.product, 0)
        p = z + share * state.p
        slope = inner(g, p)
        # rounding has spoilt conjugacy: start over from the scaled gradient
        reset = ~(slope > 0)
        p, slope = jnp.where(reset, z, p), jnp.where(reset, product, slope)
        line = objective.line(point, p, slope)
        curvature = line.curvature()
        moves = norm2 > floor
        eta = jnp.where(moves & (curvature > 0), slope / curvature, 0)
        new = ConjugateState(
            k=state.k + moves,
            point=line.to(eta),
            eta=jnp.where(moves, eta, state.eta),
            # x - c is -eta p of the step before
            gamma=jnp.where(moves, jnp.where(state.k > 0, -share / state.eta, 0), state.gamma),
            p=p,
            product=product,
            scaling=state.scaling,
            norm0=state.norm0,
        )
        # a direction without curvature, and a slope that is no rounding: f falls along it for ever
        rounding = 64 * jnp.finfo(g.dtype).eps
        flat = curvature <= rounding * inner(p * state.scaling, p)
        clear = norm2 > (rounding * state.norm0) ** 2
        ends = ending(unbounded=moves & flat & clear, stalled=moves & (eta == 0))
        cost = jnp.where(moves, 1.0 + line.costs.curvature, 0)
        return new, Info(norm2, cost, reset & moves, ends, moves)
