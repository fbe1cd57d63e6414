"""The damped system of a Levenberg-Marquardt step under bounds.

A step minimises the damped model in the box; see `box_step`. If the step without bounds lies in the
box, it is taken, so that inactive bounds do not change the run. Reference: Kanzow,
Yamashita and Fukushima, J. Comput. Appl. Math. 172 (2004), on constrained Levenberg-Marquardt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from cfgd._core.linalg import inner
from cfgd._core.types import Column, Number, Scalar, Vector
from cfgd.methods.auto.box_step import minimise_in_box
from cfgd.methods.auto.damped_system import DampedStep, DampedSystem, damped_system
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.select import can_factor
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import Evaluation


def system_at(
    oracle: Oracle,
    curvature: Curvature,
    evaluation: Evaluation,
    old_scaling: Vector,
    reduction: Scalar,
) -> DampedSystem:
    """Set up the damped system at a point, whose steps stay in the box of the oracle if it has one.

    The parameters are those of `damped_system`.
    """
    whole = damped_system(oracle, curvature, evaluation, old_scaling, reduction)
    if oracle.box is None:
        return whole
    x, f, g = evaluation[:3]
    lower, upper = x - oracle.box.upper, x - oracle.box.lower  # bounds of p, for x - p
    times, D = _product(oracle, curvature), whole.scaling

    def face_at(free: np.ndarray, fixed: Vector) -> DampedSystem:
        on_face = restricted(curvature, free, fixed)
        at = Evaluation(x[free], f, (g - times(fixed))[free])
        return damped_system(oracle, on_face, at, D[free], reduction)

    def in_box(p: Vector) -> bool:
        return bool(((p >= lower) & (p <= upper)).all())

    def solve(damping: Number) -> DampedStep:
        found = whole.solve(damping)
        if in_box(found.p):
            return found
        faces: list[tuple[np.ndarray, DampedStep]] = []  # free coordinates, and the step in them

        def solve_on_face(free: np.ndarray, fixed: Vector) -> Vector:
            faces.append((free, face_at(free, fixed).solve(damping)))
            return _filled(fixed, free, faces[-1][1].p)

        def slope(p: Vector) -> Vector:
            return g - times(p) - damping * D * p

        p = minimise_in_box(solve_on_face, slope, found.p, lower, upper)
        decrease = inner(g, p) - inner(p, times(p)) / 2
        free, step = faces[-1] if faces else (np.zeros(0, bool), found)
        if not faces or (p[~free] != 0).any():  # the acceleration is for straight steps on a face
            return DampedStep(p, decrease, None, None)
        return DampedStep(
            p, decrease, _embedded(step.for_residuals, free), _embedded_vector(step, free)
        )

    def newton() -> Vector:
        p = whole.newton()
        if in_box(p):
            return p

        def newton_on_face(free: np.ndarray, fixed: Vector) -> Vector:
            return _filled(fixed, free, face_at(free, fixed).newton())

        return minimise_in_box(newton_on_face, lambda p: g - times(p), p, lower, upper)

    return whole._replace(solve=solve, newton=newton)


def restricted(curvature: Curvature, free: np.ndarray, fixed: Vector) -> Curvature:
    """Return the curvature in the coordinates `free`, where the others have moved by -`fixed`."""
    rows, matrix, extra = curvature.rows, curvature.matrix, curvature.extra_damping

    def rows_on_face() -> JacobianRows:
        assert rows is not None
        J, r = rows()
        return JacobianRows(J[:, free], r - J[:, ~free] @ fixed[~free])

    def times(v: Vector) -> Vector:
        return curvature.times(_filled(np.zeros_like(fixed), free, v))[free]

    shape = curvature.shape if can_factor(curvature) else None
    return dataclasses.replace(
        curvature,
        times=times,
        diagonal=lambda: curvature.diagonal()[free],
        shape=None if shape is None else (shape[0], int(free.sum())),
        rows=None if rows is None else rows_on_face,
        matrix=None if matrix is None else lambda: matrix()[np.ix_(free, free)],
        extra_damping=None if extra is None else lambda: extra()[free],
        cost=0.0,  # its matrix is known already
    )


def _product(oracle: Oracle, curvature: Curvature) -> Callable[[Vector], Vector]:
    """Return v -> Hv, by the matrix or the Jacobian where they are formed in any case."""

    def times(v: Vector) -> Vector:
        if not v.any():
            return np.zeros_like(v)
        if can_factor(curvature) and curvature.rows is not None:
            J = curvature.rows().jacobian
            return (J @ v) @ J
        if can_factor(curvature) and curvature.matrix is not None:
            return curvature.matrix() @ v
        oracle.cost += curvature.product_cost
        return curvature.times(v)

    return times


def _filled(whole: Vector, free: np.ndarray, part: Column) -> Vector:
    """Return a copy of a vector with its coordinates `free` replaced."""
    filled = whole.copy()
    filled[free] = part
    return filled


def _embedded(
    for_residuals: Callable[[Column], Vector] | None, free: np.ndarray
) -> Callable[[Column], Vector] | None:
    """Return a function whose results have zeros in the coordinates that are not free."""
    if for_residuals is None:
        return None

    def whole(k: Column) -> Vector:
        part = for_residuals(k)
        return _filled(np.zeros(free.size, part.dtype), free, part)

    return whole


def _embedded_vector(step: DampedStep, free: np.ndarray) -> Callable[[Vector], Vector] | None:
    for_vector = step.for_vector
    return None if for_vector is None else _embedded(lambda v: for_vector(v[free]), free)
