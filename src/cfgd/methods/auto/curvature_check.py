"""The look at the curvature around a point before a run is called converged.

A small gradient is no minimum: the point may be a saddle, or lie in a valley along which f still
falls. The curvature is measured along a few directions, by differences of gradients or by products
with the Hessian: along every coordinate in up to 16 dimensions, beyond along 16 Krylov directions.
Its eigenvalues give Newton's step, what that step is predicted to gain, and, where one of them is
negative, the direction along which a saddle is left. Reference: Nocedal and Wright, section 3.4
(modified Newton methods) and 7.1 (Lanczos vectors).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import eps_of, inner, symmetric_eigen, weighted_norm
from cfgd._core.types import Number, Scalar, Vector, Vectors
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Start, change_is_negligible, size_of_x
from cfgd.objectives.evaluation import Evaluation

# Directions along which the curvature is measured: enough for Newton's step in few dimensions, and
# as many as L-BFGS has pairs, whose memory they become.
MOST_DIRECTIONS = 16
# Coordinates from which on the memory of a run counts, with two vectors for each direction.
LONG, FEWER = 10_000, 11
# A valley along which x has grown by this factor is taken to lead to infinity.
FAR = 1e2
# How far to look along a flat valley, relative to the size of x: a minimum at x may be a saddle
# further on, as where two terms of a sum have become one and the same.
ALONG_VALLEY = 2.0
# Times its size that a coordinate may move in one step.
LONGEST_STEP = 10.0


def is_small(d: int) -> bool:
    """Return whether the curvature is measured along every coordinate."""
    return d <= MOST_DIRECTIONS


def number_of_directions(d: int) -> int:
    """Return along how many directions the curvature is measured."""
    return d if is_small(d) else MOST_DIRECTIONS if d < LONG else FEWER


class Probes(NamedTuple):
    """Steps from a point and the changes of the gradient along them, in rows."""

    steps: Vectors
    changes: Vectors

    def scale(self, scaling: Vector) -> np.ndarray:
        """Return what makes the length of each step one in the norm of `scaling`."""
        norms = np.array([weighted_norm(step, scaling) for step in self.steps])
        return (norms > 0) / np.where(norms > 0, norms, 1)


class Spectrum(NamedTuple):
    """What the measured curvatures say of a point."""

    newton: Vector  # Newton's step, curvatures counting by their absolute value
    decrease: Scalar  # that f may have left at most
    length: Scalar  # of the longest step that is predicted, in the norm of the scaling
    least: Scalar  # curvature relative to the largest one; negative at a saddle
    downwards: Vector  # direction of the least curvature, of length one
    flat: Vector  # direction without measurable curvature, or zero
    is_convex: bool  # all curvatures are measurable and positive


class Assessment(NamedTuple):
    """Whether a point is a minimum, and the step to take if it is not."""

    step: Vector  # x - t step is to be tried
    slope: Scalar  # <g, step>
    t: Scalar
    leaves_saddle: bool
    is_negligible: bool  # Newton's step changes nothing beyond the tolerance
    is_unbounded: bool  # it leads to infinity
    valley: Vector  # an offset along a flat direction to look at, or zero
    is_convex: bool


# ------------------------------------------------------------------ measuring


def difference_noise(g: Vector) -> Any:
    """Return the error of curvatures by differences, relative to the largest curvature."""
    return 8 * eps_of(g) ** (2 / 3 if is_small(g.size) else 1 / 2)


def one_sided_noise(g: Vector) -> Any:
    """Return that error for differences to one side, which see a changing curvature."""
    return 8 * eps_of(g) ** (1 / 3)


def probe_along_coordinates(
    oracle: Oracle,
    evaluation: Evaluation,
    start: Start,
    scaling: Vector,
    sign: float,
    offset: Any = 0.0,
) -> Probes:
    """Difference the gradient to one side of every coordinate, perhaps at an offset from x."""
    x, x0 = evaluation.x, start.x
    d, eps = x.size, eps_of(x)
    size = size_of_x(x, start, scaling)
    typical = size if size > 0 else 1.0
    # a coordinate without curvature is moved no further than the others are large
    others = np.sqrt(max(inner(x, x), inner(x0, x0)) / d)
    steps, changes = np.zeros((d, d), x.dtype), np.zeros((d, d), x.dtype)
    for j in range(d):
        least = min(1e-3 * typical / np.sqrt(scaling[j]), others if others > 0 else 1.0)
        h = sign * eps ** (1 / 3) * max(abs(x[j]), least)
        probe = x.copy()
        probe[j] = x[j] + h
        at = oracle.evaluate(probe + offset)
        steps[j] = at.x - x
        changes[j] = at.gradient - evaluation.gradient
    return Probes(steps, changes)


def probe_krylov(oracle: Oracle, evaluation: Evaluation, start: Start, scaling: Vector) -> Probes:
    """Difference the gradient along Krylov directions of the Hessian from the gradient."""
    x = evaluation.x
    size = size_of_x(x, start, scaling)
    h = eps_of(x) ** 0.5 * (size if size > 0 else 1.0)

    def change_along(v: Vector) -> tuple[Vector, Vector]:
        at = oracle.evaluate(x + h * v)
        return at.x - x, at.gradient - evaluation.gradient

    return _krylov(evaluation, scaling, change_along)


def probe_hessian(oracle: Oracle, evaluation: Evaluation, scaling: Vector) -> Probes:
    """Measure the curvature by products with the Hessian."""
    d = evaluation.x.size
    if is_small(d):
        steps = np.diag(1 / np.sqrt(scaling))
        changes = np.array([oracle.hessian_times(evaluation, step) for step in steps])
        return Probes(steps, changes)
    return _krylov(evaluation, scaling, lambda v: (v, oracle.hessian_times(evaluation, v)))


def _krylov(evaluation: Evaluation, scaling: Vector, change_along: Any) -> Probes:
    """Build directions orthonormal in the norm of `scaling`, each from the last change."""
    x = evaluation.x
    n, d = number_of_directions(x.size), x.size
    steps, changes = np.zeros((n, d), x.dtype), np.zeros((n, d), x.dtype)
    inverse2 = np.zeros(n, x.dtype)  # of the squared lengths of the steps

    def orthogonal(w: Vector) -> Vector:
        for _ in range(2):  # once leaves what rounding put there
            w -= (inverse2 * (steps @ (scaling * w))) @ steps
        return w

    def unit(w: Vector) -> Vector:
        length = weighted_norm(w, scaling)
        w /= length if length > 0 else 1
        return w

    for k in range(n):
        w = (evaluation.gradient if k == 0 else changes[k - 1]) / scaling
        w = orthogonal(unit(w))
        if not inner(scaling * w, w) > 1e-12:
            # nothing new, as at a saddle: numbers without a pattern may find what there is
            pattern = np.arange(1, d + 1, dtype=x.dtype)
            pattern *= pattern
            w = orthogonal(np.sin((k + 1) * pattern) / np.sqrt(scaling))
        steps[k], changes[k] = change_along(unit(w))
        length2 = inner(scaling * steps[k], steps[k])
        inverse2[k] = 1 / length2 if length2 > 0 else 0
    return Probes(steps, changes)


# ------------------------------------------------------------------ judging


def spectrum(
    probes: Probes, g: Vector, scaling: Vector, size: Scalar, noise: Number, far: Any
) -> Spectrum:
    """Diagonalise the measured curvatures, whose directions are orthogonal in the scaled norm.

    Curvatures below `noise`, relative to the largest one, are not measurable: Newton's step takes
    them for that large, the prediction for zero to rounding, unless the gradient along them is
    zero to rounding. Where such a direction moves coordinates that are `far` from the start, the
    prediction is infinite.
    """
    eps = eps_of(g)
    scale = probes.scale(scaling)
    among = scale[:, None] * (probes.steps @ probes.changes.T) * scale
    asymmetry = np.sqrt(((among - among.T) ** 2).sum())  # zero but for rounding
    curvatures, axes = symmetric_eigen((among + among.T) / 2)
    sizes = abs(curvatures)
    largest = sizes.max()
    weights = axes.T * scale  # of each curvature, those of the steps that make a unit vector
    slopes = weights @ (probes.steps @ g)
    noise = np.maximum(noise, 4 * asymmetry / largest)
    known = sizes > noise * largest
    negligible = ~known & (abs(slopes) <= 4 * eps * largest * size)
    best = slopes / np.where(known, sizes, noise * largest)
    most = np.where(negligible, 0, slopes / np.where(known, sizes, eps * largest))

    downwards = weights[0] @ probes.steps
    if inner(downwards, g) < 0:
        downwards = -downwards
    least = curvatures[0] / largest if known[0] else 0 * largest

    whole, gone = np.zeros(len(weights)), np.zeros(len(weights))
    for k, row in enumerate(weights):  # one vector at a time: there may not be room for all
        squares = row @ probes.steps
        squares *= squares
        squares *= scaling
        whole[k], gone[k] = squares.sum(), squares[far].sum()
    length, decrease = np.sqrt(inner(most, most)), inner(slopes, most) / 2
    if (~known & (gone > 0.1)).any():
        length = 0 * length + np.inf
    if not length < np.inf:
        decrease = 0 * length + np.inf
    unknown = ~known & (whole > 0.5)  # and not a row of zeros
    flat = weights[unknown.argmax()] @ probes.steps if unknown.any() else 0 * g
    is_convex = bool(not unknown.any() and least >= 0)
    return Spectrum(
        (best @ weights) @ probes.steps, decrease, length, least, downwards, flat, is_convex
    )


def assess(
    probes: Probes,
    evaluation: Evaluation,
    start: Start,
    scaling: Vector,
    tolerance: Number,
    *,
    is_stationary: bool,
    is_stuck: bool = False,
    noise: Number | None = None,
) -> Assessment:
    """Return whether a point is a minimum, from probes around it.

    Parameters
    ----------
    is_stationary
        Whether the gradient meets the tolerance, so that a saddle is left.
    is_stuck
        Whether no step lowers f: then a saddle is left, too, if its curvature is clear beside the
        largest one in the units of x.
    noise
        Relative error of the curvatures, where it is more than that of central differences.
    """
    x, _, g = evaluation[:3]
    size = size_of_x(x, start, scaling)
    far = abs(x) > FAR * (abs(start.x) + np.sqrt((start.x**2).mean()))
    far = far & (start.x != 0).any()
    found = spectrum(probes, g, scaling, size, difference_noise(g) if noise is None else noise, far)
    down = found.downwards
    is_clear = -found.least > difference_noise(g) * inner(down, down) * scaling.max()
    leaves = bool(found.least < 0 and (is_stationary or (is_stuck and is_clear)))
    size = size if size > 0 else 0 * size + 1
    step = size * down if leaves else found.newton
    if not leaves and not inner(g, step) > 0:
        step = g / scaling  # there is no curvature to speak of
    negligible = change_is_negligible(
        evaluation, start, scaling, step, found.decrease, found.length, tolerance
    )
    return Assessment(
        step,
        inner(g, step),
        # at a saddle the size of x may say nothing
        1.0 if leaves else longest_part(x, start.x, step),
        leaves,
        negligible,
        not found.length < np.inf,
        _valley_offset(x, start.x, size * found.flat),
        found.is_convex,
    )


def longest_part(x: Vector, x0: Vector, step: Vector) -> float:
    """Return the part of a step that moves no coordinate by more than ten times its size."""
    typical2 = inner(x, x) / x.size
    if not (typical2 > 0 and inner(step, step) > LONGEST_STEP**2 * typical2):
        return 1.0
    sizes = abs(x - x0)
    sizes += abs(x)
    sizes += np.sqrt(typical2)
    parts = abs(step)
    parts /= sizes
    most = parts.max()
    return LONGEST_STEP / most if most > LONGEST_STEP else 1.0


def _valley_offset(x: Vector, x0: Vector, flat: Vector) -> Vector:
    """Return how far to look along a flat direction: as its scaled size says, and as x is large."""
    sizes = abs(x) + np.sqrt(max(inner(x, x), inner(x0, x0)) / x.size)
    furthest = (abs(flat) / np.where(sizes > 0, sizes, 1)).max()
    return ALONG_VALLEY * flat / max(furthest, 1) * (sizes > 0).all()
