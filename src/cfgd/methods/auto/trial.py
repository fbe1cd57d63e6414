"""The next point to look at, and what came of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd._core.either import branch, chosen, smaller, space
from cfgd._core.linalg import eps_of, inner, size as size_of
from cfgd._core.types import Count, Flag, Number, Offset, Scalar, Vector
from cfgd.methods.auto.subspace import Memory, is_small
from cfgd.objectives.evaluation import Evaluation

# x counts as no smaller than this part of the way from the start: the solution may be zero
AWAY = 1e-3


class Trial(NamedTuple):
    """The next point to look at, x + aside - t p, and why."""

    p: Vector
    slope: Scalar  # <g, p>
    t: Scalar
    tries: Count
    eta: Scalar
    gamma: Scalar
    probe: Count  # its number, or -1 for a step
    leaves: Flag  # it follows negative curvature away from a saddle
    aside: Offset  # zero, unless a flat valley is looked along


def no_offset(x: Vector) -> Offset:
    """Nothing beside x; in few dimensions, where there may be something, a vector."""
    return space(x).zeros(x.size if is_small(x.size) else 1, x.dtype)


class Start(NamedTuple):
    """What is known of the start."""

    x: Vector
    value: Scalar
    norm: Scalar  # of the gradient
    known: Scalar  # all that values there may be compared with

    @classmethod
    def at(cls, point: Evaluation, norm2: Scalar) -> Start:
        sqrt = space(norm2).sqrt
        known = abs(point.value) + sqrt(norm2) * (1 + sqrt(inner(point.x, point.x)))
        return cls(point.x, point.value, sqrt(norm2), known)

    def learns(self, point: Evaluation, norm2: Scalar) -> Start:
        """Where value and gradient were zero at the start, values are compared with later ones."""
        return branch(
            self.known > 0,
            lambda: self,
            lambda: self._replace(known=Start.at(point, norm2).known),
        )

    def is_far_above(self, value: Scalar) -> Flag:
        """Whether f fell by 1/eps^2 times all that the start knows of: it falls without end."""
        eps = eps_of(self.x)
        return (self.known > 0) & (value < self.value - self.known / eps**2) | (value == -np.inf)


class Around(NamedTuple):
    """A point and what is known around it."""

    memory: Memory
    point: Evaluation
    start: Start
    P: Vector

    def size(self) -> Scalar:
        """Of x in the norm of P; no smaller than a part of the way from the start."""
        x, x0 = self.point.x, self.start.x
        return size_of(x, self.P) + AWAY * size_of(x - x0, self.P)


def judged(
    trial: Trial, point: Evaluation, at: Evaluation, resolution: Number
) -> tuple[Flag, Scalar]:
    """Whether f(x - t p) <= f(x) - t <g, p> / 10^4, and the value as it counts.

    Where rounding may hide the decrease that a trial promises, any non-increase will do, and slopes
    at both ends say what is none. `resolution` is that of values, however small they are.
    """
    value, eps = point.value, eps_of(point.value)
    enough = at.value <= value - 1e-4 * trial.t * trial.slope
    enough = enough & (~trial.leaves | (at.value < value))

    def by_slopes() -> tuple[Flag, Scalar]:
        least = np.finfo(value.dtype).tiny * resolution
        hides = trial.slope <= eps**0.6 * abs(value) + 1e3 * least
        flat = inner(at.gradient, trial.p) >= -0.8 * trial.slope
        same = hides & flat & (at.value <= value + eps**0.8 * abs(value) + least)
        seen = chosen(same, smaller(at.value, value), at.value)
        return hides & (seen <= value), seen

    return branch(enough | trial.leaves, lambda: (enough, at.value), by_slopes)


def shorter(trial: Trial, point: Evaluation, value: Scalar) -> Trial:
    t, slope = trial.t, trial.slope
    parabola = slope * t * t / (2 * (value - point.value + slope * t))
    inside = space(t).clip(parabola, t / 10, t / 2)
    finite = abs(parabola) < np.inf
    return trial._replace(t=chosen(finite, inside, t / 10), tries=trial.tries + 1)
