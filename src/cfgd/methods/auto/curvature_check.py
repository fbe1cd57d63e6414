"""The check of the curvature around a point before a run counts as converged.

A small gradient does not make a minimum: the point may be a saddle, or lie in a valley along which
f still falls. The curvature is measured along a few directions, by differences of gradients or by
products with the Hessian: along every coordinate in up to 16 dimensions, along 16 Krylov directions
beyond. Its eigenvalues give the Newton step, the decrease that is predicted for it, and, where one
of them is negative, the direction along which a saddle is left. References: Nocedal and Wright,
section 3.4 (modified Newton methods) and 7.1 (Lanczos vectors).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import eps_of, inner, symmetric_eigen, weighted_norm
from cfgd._core.types import Column, Number, Scalar, Vector, Vectors
from cfgd.methods.auto.longest_step import longest_fraction
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.state import Start, change_is_negligible, size_of_x
from cfgd.objectives.evaluation import Evaluation

# Directions along which the curvature is measured: all of them in few dimensions, and as many as
# L-BFGS has pairs, because they become its memory.
MOST_DIRECTIONS = 16
# From this dimension on there are fewer directions: with two vectors for each, a run then takes
# about forty vectors of memory.
LONG, FEWER_DIRECTIONS = 10_000, 11
# If coordinates have grown by this factor along a direction without curvature, the minimiser is
# assumed to be at infinity. The coefficients of two merging exponentials of NIST's MGH17 grow by
# 60.
FAR = 30.0
# Distance along a flat valley, relative to the size of x, at which the curvature is checked as
# well: a valley through x may lead to a saddle, for example if two terms of a sum have become
# equal.
VALLEY_DISTANCE = 2.0
# Size of a coordinate below which a probe moves it no less, relative to the typical one.
SMALLEST_PROBE = 1e-3
# Squared length of a unit vector after the others are projected out, below which it lies in their
# span up to rounding.
IN_SPAN = 1e-12
# If this share of the squared length of a unit vector is in coordinates that have grown far, the
# direction leads to infinity.
SHARE_FAR = 0.1
# Squared length that distinguishes unit vectors from rows of zeros, which are no directions.
NOT_ZERO = 0.5
# Rounding units of an entry of the gradient: a smaller change along a probe may be rounding only.
UNMEASURED_UNITS = 64
# Such a probe is lengthened by this factor, and one along which the curvature changes is shortened
# by it, at most so many times: coordinates whose units differ by 1e30 can then be measured.
OTHER_LENGTH, MOST_LENGTHS = 1e4, 8
# Share of h (g' - g) / 2 by which f may differ along a probe from its quadratic model.
NEAR_QUADRATIC = 0.25
# Rounding units by which a slope, a sum of products, and an asymmetry of two differences count as
# zero.
FEW_UNITS = 4


def is_small(d: int) -> bool:
    """Return whether the curvature is measured along every coordinate."""
    return d <= MOST_DIRECTIONS


def most_directions(d: int) -> int:
    """Return along how many directions the curvature is measured at most."""
    return MOST_DIRECTIONS if d < LONG else FEWER_DIRECTIONS


class Probes(NamedTuple):
    """Steps from a point and the changes of the gradient along them, as rows."""

    steps: Vectors
    changes: Vectors

    def inverse_lengths(self, scaling: Vector) -> Column:
        """Return 1 / |step| in the norm of `scaling`; 0 for steps that are zero."""
        norms = np.array([weighted_norm(step, scaling) for step in self.steps])
        return (norms > 0) / np.where(norms > 0, norms, 1)


class Spectrum(NamedTuple):
    """Predictions from the measured curvatures, with the Hessian replaced by its absolute value."""

    newton: Vector  # the Newton step
    decrease: Scalar  # the largest decrease that is compatible with the measurement
    length: Scalar  # of the longest step that is, in the norm of the scaling
    least: Scalar  # the least curvature relative to the largest; negative at a saddle
    downwards: Vector  # the direction of the least curvature, of length one
    flat: Vector  # a direction without measurable curvature, or zero
    is_convex: bool  # all curvatures are measurable and positive


class Assessment(NamedTuple):
    """Whether a point is a minimum, and the step to take if it is not."""

    step: Vector  # the next trial is x - t step
    slope: Scalar  # <g, step>
    t: Number
    leaves_saddle: bool
    is_negligible: bool  # the change by the Newton step is below the tolerance
    is_unbounded: bool  # no longest step can be predicted
    decrease: Scalar  # that the Newton step predicts
    valley: Vector  # an offset along a flat direction at which to check the curvature, or zero
    is_convex: bool


# ------------------------------------------------------------------ measuring


def difference_noise(g: Vector) -> Scalar:
    """Return the error of curvatures by differences, relative to the largest curvature.

    It is eps^(2/3) for central differences, which are taken in few dimensions, and eps^(1/2) for
    one-sided ones, with their best steps; the factor 8 is a margin.
    """
    return 8 * eps_of(g) ** (2 / 3 if is_small(g.size) else 1 / 2)


def one_sided_noise(g: Vector) -> Scalar:
    """Return that error for one-sided differences with the steps of central ones."""
    return 8 * eps_of(g) ** (1 / 3)


def probe_along_coordinates(
    oracle: Oracle,
    evaluation: Evaluation,
    start: Start,
    scaling: Vector,
    sign: float,
    offset: Any = 0.0,
) -> Probes:
    """Difference the gradient along every coordinate, to one side of x or of x + offset."""
    x, x0 = evaluation.x, start.x
    d, eps = x.size, eps_of(x)
    size = size_of_x(x, start, scaling)
    typical = size if size > 0 else 1.0
    # a coordinate without curvature is moved no further than the others are large
    others = np.sqrt(max(inner(x, x), inner(x0, x0)) / d)
    steps, changes = np.zeros((d, d), x.dtype), np.zeros((d, d), x.dtype)
    for j in range(d):
        least = min(SMALLEST_PROBE * typical / np.sqrt(scaling[j]), others if others > 0 else 1.0)
        h = sign * eps ** (1 / 3) * max(abs(x[j]), least)
        if np.ndim(offset):
            probe = x + offset
            probe[j] += h
            at = oracle.evaluate(probe)
        else:
            at = _probe_coordinate(oracle, evaluation, j, h)
        steps[j] = at.x - x
        changes[j] = at.gradient - evaluation.gradient
    return Probes(steps, changes)


def _probe_coordinate(oracle: Oracle, evaluation: Evaluation, j: int, h: Scalar) -> Evaluation:
    """Evaluate f where coordinate j is moved by h, or by more or less where its unit is another.

    `h` is a guess from the size of x. It is too short where the gradient does not change, and too
    long where f is far from quadratic along it.
    """
    x, f, g = evaluation[:3]
    eps = eps_of(x)
    first, is_longer = None, False
    for _ in range(1 + MOST_LENGTHS):
        probe = x.copy()
        probe[j] = x[j] + h
        at = oracle.evaluate(probe)
        first = at if first is None else first
        moved, change = at.x[j] - x[j], at.gradient[j] - g[j]  # a bound may be nearer than h
        error = abs(at.value - f - moved * (g[j] + at.gradient[j]) / 2)
        rounding = FEW_UNITS * eps * (abs(f) + abs(at.value))
        if not error <= NEAR_QUADRATIC * abs(moved * change) / 2 + rounding:
            shorter = h / OTHER_LENGTH
            if is_longer or abs(shorter) < eps * abs(x[j]):
                return first
            h = shorter
        elif abs(change) <= UNMEASURED_UNITS * eps * abs(g[j]) and g[j] != 0:
            h, is_longer = OTHER_LENGTH * h, True
        else:
            return at
    return first if first is not None else at


def probe_krylov(
    oracle: Oracle, evaluation: Evaluation, start: Start, scaling: Vector, out: Probes
) -> Probes:
    """Difference the gradient along the directions g, Hg, ..., orthonormalised.

    The probes are written into the arrays of `out`, as many as these have rows.
    """
    x = evaluation.x
    size = size_of_x(x, start, scaling)
    h = eps_of(x) ** 0.5 * (size if size > 0 else 1.0)

    def change_along(v: Vector) -> tuple[Vector, Vector]:
        at = oracle.evaluate(x + h * v)
        return at.x - x, at.gradient - evaluation.gradient

    return _krylov(evaluation, scaling, change_along, out)


def probe_hessian(oracle: Oracle, evaluation: Evaluation, start: Start, scaling: Vector) -> Probes:
    """Multiply with the Hessian along every coordinate, or along Krylov directions."""
    x, d = evaluation.x, evaluation.x.size
    # where products are differences, coordinates are moved in their own units, those without
    # curvature no further than the others are large
    others = np.sqrt(max(inner(x, x), inner(start.x, start.x)) / d)
    least = SMALLEST_PROBE * size_of_x(x, start, scaling) / np.sqrt(scaling)
    sizes = np.maximum(abs(x), np.minimum(least, others if others > 0 else 1.0))

    def times(v: Vector) -> Vector:
        return oracle.hessian_times(evaluation, v, sizes)

    if is_small(d):
        steps = np.diag(1 / np.sqrt(scaling))
        changes = np.array([times(step) for step in steps])
        return Probes(steps, changes)
    n = most_directions(d)
    out = Probes(np.empty((n, d), scaling.dtype), np.empty((n, d), scaling.dtype))
    return _krylov(evaluation, scaling, lambda v: (v, times(v)), out)


def _krylov(
    evaluation: Evaluation,
    scaling: Vector,
    change_along: Callable[[Vector], tuple[Vector, Vector]],
    out: Probes,
) -> Probes:
    """Build directions that are orthonormal in the norm of `scaling`, each from the last change."""
    x, (steps, changes) = evaluation.x, out
    n, d = steps.shape
    steps[:] = 0
    inverse2 = np.zeros(n, x.dtype)  # 1 / |step|^2

    def orthogonal(w: Vector) -> Vector:
        for _ in range(2):  # twice is enough against rounding (Parlett)
            w -= (inverse2 * (steps @ (scaling * w))) @ steps
        return w

    def unit(w: Vector) -> Vector:
        length = weighted_norm(w, scaling)
        w /= length if length > 0 else 1
        return w

    for k in range(n):
        w = (evaluation.gradient if k == 0 else changes[k - 1]) / scaling
        w = orthogonal(unit(w))
        if not inner(scaling * w, w) > IN_SPAN:
            # the gradient is in an invariant subspace, as at a saddle: continue with another vector
            pattern = np.arange(1, d + 1, dtype=x.dtype)
            pattern *= pattern
            w = orthogonal(np.sin((k + 1) * pattern) / np.sqrt(scaling))
        steps[k], changes[k] = change_along(unit(w))
        length2 = inner(scaling * steps[k], steps[k])
        inverse2[k] = 1 / length2 if length2 > 0 else 0
    return out


# ------------------------------------------------------------------ assessing


def spectrum(
    probes: Probes, g: Vector, scaling: Vector, size: Scalar, noise: Number, far: np.ndarray
) -> Spectrum:
    """Diagonalise the measured curvatures, whose directions are orthogonal in the scaled norm.

    Curvatures below `noise` times the largest one are not measurable. The Newton step takes them
    for that large; the predicted decrease and length take them for the rounding unit, unless the
    slope along them is zero to rounding.

    Parameters
    ----------
    size
        The size of x in the norm of `scaling`.
    far
        For each coordinate whether it has grown by `FAR` since the start. Where a direction without
        measurable curvature moves such coordinates, the predictions are infinite.
    """
    eps = eps_of(g)
    scale = probes.inverse_lengths(scaling)
    products = scale[:, None] * (probes.steps @ probes.changes.T) * scale  # u_i'H u_j
    asymmetry = np.sqrt(((products - products.T) ** 2).sum())  # an estimate of the error
    curvatures, axes = symmetric_eigen((products + products.T) / 2)
    sizes = abs(curvatures)
    largest = sizes.max()
    weights = axes.T * scale  # row k times the steps is the unit vector of curvature k
    slopes = weights @ (probes.steps @ g)
    noise = np.maximum(noise, FEW_UNITS * asymmetry / largest)
    known = sizes > noise * largest
    negligible = ~known & (abs(slopes) <= FEW_UNITS * eps * largest * size)
    newton = slopes / np.where(known, sizes, noise * largest)
    longest = np.where(negligible, 0, slopes / np.where(known, sizes, eps * largest))

    downwards = weights[0] @ probes.steps
    if inner(downwards, g) < 0:
        downwards = -downwards
    least = curvatures[0] / largest if known[0] else g.dtype.type(0)

    length2, far_length2 = np.zeros(len(weights)), np.zeros(len(weights))
    for k, row in enumerate(weights):  # one vector at a time, to save memory
        squares = row @ probes.steps
        squares *= squares
        squares *= scaling
        length2[k], far_length2[k] = squares.sum(), squares[far].sum()
    length, decrease = np.sqrt(inner(longest, longest)), inner(slopes, longest) / 2
    if (~known & (far_length2 > SHARE_FAR)).any() or not length < np.inf:
        length = decrease = length.dtype.type(np.inf)
    is_flat = ~known & (length2 > NOT_ZERO)
    flat = weights[is_flat.argmax()] @ probes.steps if is_flat.any() else np.zeros_like(g)
    is_convex = bool(not is_flat.any() and least >= 0)
    return Spectrum(
        (newton @ weights) @ probes.steps, decrease, length, least, downwards, flat, is_convex
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
        Whether no step lowers f. A saddle is then left as well, if its curvature is negative beyond
        rounding without the scaling of coordinates.
    noise
        Relative error of the curvatures, where it is more than that of `difference_noise`.
    """
    x, _, g = evaluation[:3]
    size = size_of_x(x, start, scaling)
    far = has_grown_far(x, start.x)
    found = spectrum(probes, g, scaling, size, difference_noise(g) if noise is None else noise, far)
    down = found.downwards
    is_clear = -found.least > difference_noise(g) * inner(down, down) * scaling.max()
    leaves = bool(found.least < 0 and (is_stationary or (is_stuck and is_clear)))
    size = size if size > 0 else g.dtype.type(1)
    step = size * down if leaves else found.newton
    if not leaves and not inner(g, step) > 0:
        step = g / scaling  # no curvature is measurable
    negligible = change_is_negligible(
        evaluation, start, scaling, step, found.decrease, found.length, tolerance
    )
    return Assessment(
        step,
        inner(g, step),
        # at a saddle x may be zero, so that its size sets no bound
        1.0 if leaves else longest_fraction(x, start.x, step),
        leaves,
        negligible,
        not found.length < np.inf,
        inner(g, found.newton) / 2,
        _valley_offset(x, start.x, size * found.flat),
        found.is_convex,
    )


def has_grown_far(x: Vector, x0: Vector) -> np.ndarray:
    """Return which coordinates have grown by `FAR` since the start x0."""
    far = abs(x) > FAR * (abs(x0) + np.sqrt((x0**2).mean()))
    return far & (x0 != 0).any()


def _valley_offset(x: Vector, x0: Vector, flat: Vector) -> Vector:
    """Return an offset along `flat` that moves no coordinate by more than twice its size."""
    sizes = abs(x) + np.sqrt(max(inner(x, x), inner(x0, x0)) / x.size)
    furthest = (abs(flat) / np.where(sizes > 0, sizes, 1)).max()
    return VALLEY_DISTANCE * flat / max(furthest, 1) * (sizes > 0).all()
