"""The face of a box on which a point lies: the problem of the coordinates that may move.

At a solution with active bounds the gradient vanishes only in the free coordinates, and only the
curvature in these distinguishes a minimum from a saddle. Under bounds, the curvature is therefore
checked on the face: in a problem without the active coordinates.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np

from cfgd._core.box import Box
from cfgd._core.types import Column, Data, Scalar, Vector
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import SolverState
from cfgd.objectives.evaluation import Evaluation

State = TypeVar("State", bound=SolverState)


class FaceOracle(Oracle):
    """An oracle for the free coordinates; the others are constant.

    Its evaluations keep those of all coordinates in `aux`. A point on the other side of a bound is
    reflected at x, so that a difference along a coordinate at its bound is taken inside the box.
    """

    def __init__(self, oracle: Oracle, evaluation: Evaluation, free: np.ndarray) -> None:
        self.oracle, self.whole, self.free = oracle, evaluation, free
        self.traits, self.resolution = oracle.traits, oracle.resolution
        self.x0 = oracle.x0[free]
        assert oracle.box is not None
        self.box: Box | None = Box(oracle.box.lower[free], oracle.box.upper[free])

    @property
    def cost(self) -> float:
        return self.oracle.cost

    @cost.setter
    def cost(self, cost: float) -> None:
        self.oracle.cost = cost

    def restrict(self, evaluation: Evaluation) -> Evaluation:
        x, value, g = evaluation[:3]
        return Evaluation(x[self.free], value, g[self.free], evaluation)

    def embed(self, v: Data) -> Data:
        """Return a vector, or rows of vectors, with zeros in the coordinates that do not move."""
        whole = np.zeros((*v.shape[:-1], self.free.size), v.dtype)
        whole[..., self.free] = v
        return whole

    def embed_point(self, z: Column, x: Vector) -> Vector:
        """Return x with its free coordinates replaced."""
        whole = x.copy()
        whole[self.free] = z
        return whole

    def _point(self, z: Column) -> Vector:
        return self.embed_point(z, self.whole.x)

    def evaluate(self, x: Vector) -> Evaluation:
        assert self.box is not None
        center = self.whole.x[self.free]
        is_outside = (x < self.box.lower) | (x > self.box.upper)
        inside = np.where(is_outside, 2 * center - x, x) if is_outside.any() else x
        return self.restrict(self.oracle.evaluate(self._point(inside)))

    def value(self, x: Vector) -> Scalar:
        return self.oracle.value(self._point(x))

    def hessian_times(
        self, evaluation: Evaluation, v: Vector, sizes: Vector | None = None
    ) -> Vector:
        whole_sizes = None
        if sizes is not None:
            whole_sizes = np.ones_like(self.whole.x)
            whole_sizes[self.free] = sizes
        product = self.oracle.hessian_times(evaluation.aux, self.embed(v), whole_sizes)
        return product[self.free]

    def check_stop(self) -> None:
        self.oracle.check_stop()

    def restrict_state(self, state: State, **vectors: Any) -> State:
        """Return a state of the free coordinates; `vectors` replace further fields."""
        start = state.start._replace(x=state.start.x[self.free])
        return dataclasses.replace(
            state, evaluation=self.restrict(state.evaluation), start=start, **vectors
        )


def face_of(oracle: Oracle, evaluation: Evaluation) -> FaceOracle | None:
    """Return the problem of the coordinates that may move, or None where all of them may."""
    if oracle.box is None:
        return None
    free = ~oracle.box.is_active(evaluation.x, evaluation.gradient)
    at_bound = oracle.box.mask(evaluation.x) != 0
    return FaceOracle(oracle, evaluation, free) if at_bound.any() else None
