"""The damped system (H + gamma D) p = g of a Levenberg-Marquardt step.

H is the matrix of a curvature at a point and D its diagonal, kept from shrinking. The system is
solved by a Cholesky factorisation of the smaller of J'J and JJ', or, where both are too large, by
conjugate gradients. References: Moré (1978), "The Levenberg-Marquardt algorithm"; Nocedal and
Wright, section 10.3, and 7.1 for inexact Newton steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.linalg import add_to_diagonal, cholesky_solver, inner
from cfgd._core.types import Column, Number, Scalar, Vector
from cfgd.methods.auto.oracle import Oracle
from cfgd.methods.auto.select import can_factor
from cfgd.objectives.curvature import Curvature, second_difference
from cfgd.objectives.evaluation import Evaluation

# Smallest damping: below it a factorisation in float64 may fail by rounding.
LEAST_DAMPING = 1e-14
# The largest factor by which entries of D decrease from one point to the next: large enough for the
# influence of a bad start to vanish in a few steps, and small enough that D does not jump with x.
MOST_SHRINKAGE = 1e6
# Largest relative residual of conjugate gradients (the forcing term of Nocedal and Wright, section
# 7.1), and the largest number of products.
FORCING, MOST_PRODUCTS = 0.1, 200
# Fraction of the step at which the acceleration of the residuals is measured, and the largest ratio
# of acceleration to step with which it is used (Transtrum and Sethna: 0.1 and 0.75).
PROBE_FRACTION, MOST_ACCELERATION = 0.1, 0.75


class DampedStep(NamedTuple):
    """The solution of a damped system for one damping."""

    p: Vector
    decrease: Scalar  # of f, as the model without damping predicts it
    for_residuals: Callable[[Column], Vector] | None  # k -> (H + gamma D)^-1 J'k; None without J
    for_vector: Callable[[Vector], Vector] | None  # v -> (H + gamma D)^-1 v; None where J is wide


class DampedSystem(NamedTuple):
    """(H + gamma D) p = g, to be solved for any damping gamma."""

    scaling: Vector  # D
    diagonal: Callable[[], Vector]  # of H, with ones where it is zero
    solve: Callable[[Number], DampedStep]
    newton: Callable[[], Vector]  # p with the least damping, scaled by the diagonal of H
    jacobian_times: Callable[[Vector], Column] | None  # v -> Jv; None without J


def keep_from_shrinking(old: Vector, new: Vector) -> Vector:
    """Return the larger of two diagonals, where `old` is clipped to 10^6 times `new`.

    Where `new` is zero, the entry is that of `old`; where both are zero, it is 1.
    """
    bounded = np.minimum(old, MOST_SHRINKAGE * new)
    if new.min() > 0:
        return np.maximum(new, bounded)
    D = np.maximum(new, np.where(new > 0, bounded, old))
    return np.where(D > 0, D, 1)


def damped_system(
    oracle: Oracle,
    curvature: Curvature,
    evaluation: Evaluation,
    old_scaling: Vector,
    reduction: Scalar,
) -> DampedSystem:
    """Set up the damped system at a point.

    Parameters
    ----------
    oracle
        Counts the cost of the matrix, or of the products.
    old_scaling
        D of the last point; zeros at the start.
    reduction
        |g| relative to its value at the start: the smaller it is, the more accurate is the solution
        by conjugate gradients.
    """
    if not can_factor(curvature):
        return _system_by_products(oracle, curvature, evaluation, old_scaling, reduction)
    oracle.cost += curvature.cost
    g, extra = evaluation.gradient, curvature.extra_damping
    added = 0.0 if extra is None else extra()
    J: Any = None
    is_wide = False
    if curvature.rows is not None:
        J, r = curvature.rows()
        is_wide = J.shape[0] < J.shape[1]
    if is_wide:
        D = keep_from_shrinking(old_scaling, np.einsum("ij,ij->j", J, J) + added)
        root = np.sqrt(D)
        rows = J / root
        matrix = rows @ rows.T
    else:
        H = J.T @ J if J is not None else curvature.matrix()  # type: ignore[misc]
        D = keep_from_shrinking(old_scaling, H.diagonal() + added)
        root = np.sqrt(D)
        rows = None if J is None or curvature.residuals_at is None else J / root
        matrix = H / root / root[:, None]

    def diagonal() -> Vector:
        squares = np.einsum("ij,ij->j", rows, rows) if is_wide else matrix.diagonal()
        return keep_from_shrinking(np.zeros_like(D), D * squares)

    def solve_wide(damping: Number) -> DampedStep:
        solve = cholesky_solver(add_to_diagonal(matrix, damping))

        def for_residuals(k: Column) -> Vector:
            return (solve(np.asarray(k)) @ rows) / root

        return _step(g, D, damping, for_residuals(r), for_residuals)

    def solve_tall(damping: Number) -> DampedStep:
        solve = cholesky_solver(add_to_diagonal(matrix, damping))

        def for_vector(v: Vector) -> Vector:
            return solve(v / root) / root

        for_residuals = None if rows is None else lambda k: solve(k @ rows) / root
        return _step(g, D, damping, for_vector(g), for_residuals, for_vector)

    def newton() -> Vector:
        if is_wide:
            return solve_wide(LEAST_DAMPING).p
        size = np.sqrt(diagonal())
        ratio = root / size
        solve = cholesky_solver(add_to_diagonal(matrix * ratio * ratio[:, None], LEAST_DAMPING))
        return solve(g / size) / size

    jacobian_times = None if rows is None else lambda p: rows @ (root * p)
    return DampedSystem(D, diagonal, solve_wide if is_wide else solve_tall, newton, jacobian_times)


def _step(
    g: Vector,
    D: Vector,
    damping: Number,
    p: Vector,
    for_residuals: Callable[[Column], Vector] | None = None,
    for_vector: Callable[[Vector], Vector] | None = None,
) -> DampedStep:
    """Return a step p that solves the system, for which p'Hp = g'p - damping p'Dp."""
    return DampedStep(p, (inner(g, p) + damping * inner(D * p, p)) / 2, for_residuals, for_vector)


def _system_by_products(
    oracle: Oracle,
    curvature: Curvature,
    evaluation: Evaluation,
    old_scaling: Vector,
    reduction: Scalar,
) -> DampedSystem:
    """Set up a system that conjugate gradients solve by products with H."""
    extra = curvature.extra_damping
    P = keep_from_shrinking(np.zeros_like(old_scaling), curvature.diagonal())
    D = keep_from_shrinking(old_scaling, P if extra is None else P + extra())
    forcing = min(FORCING, np.sqrt(reduction))

    def solve(damping: Number, scaling: Vector) -> Vector:
        return solve_by_products(oracle, curvature, evaluation.gradient, scaling, damping, forcing)

    return DampedSystem(
        D,
        lambda: P,
        lambda damping: _step(evaluation.gradient, D, damping, solve(damping, D)),
        lambda: solve(LEAST_DAMPING, P),
        None,
    )


def solve_by_products(
    oracle: Oracle, curvature: Curvature, g: Vector, D: Vector, damping: Number, forcing: Number
) -> Vector:
    """Solve (H + damping D) p = g by conjugate gradients, preconditioned by D.

    The residual falls to `forcing` times |g| in the norm of D^-1, unless that takes more than 200
    products with H.
    """
    p, residual, q = np.zeros_like(g), g, g / D
    size = inner(g, g / D)
    enough = forcing**2 * size
    products = 0
    while size > enough and products < MOST_PRODUCTS:
        oracle.check_stop()
        image = curvature.times(q) + damping * D * q
        along = inner(q, image)
        alpha = size / (along if along > 0 else 1)
        p = p + alpha * q
        residual = residual - alpha * image
        old, size = size, inner(residual, residual / D)
        q = residual / D + size / old * q
        products += 1
    oracle.cost += curvature.product_cost * products
    return p


def accelerated_step(
    oracle: Oracle,
    curvature: Curvature,
    system: DampedSystem,
    found: DampedStep,
    evaluation: Evaluation,
    length2: Scalar,
) -> Vector:
    """Return the step with the geodesic acceleration of the residuals along it.

    To second order r(x - t p) is r - t Jp + t^2 k / 2; the curve x - t p + t^2 a follows it, where
    (H + gamma D) a = -J'k / 2. If a is too long relative to p, the step is p.
    """
    p = found.p
    if curvature.acceleration is not None and found.for_vector is not None:
        a = -found.for_vector(oracle.acceleration(curvature, p, PROBE_FRACTION)) / 2
    elif curvature.residuals_at is not None and found.for_residuals is not None:
        assert curvature.rows is not None
        assert system.jacobian_times is not None
        r, along = curvature.rows().residuals, system.jacobian_times(p)
        ahead = oracle.residuals(curvature, evaluation.x - PROBE_FRACTION * p)
        a = -found.for_residuals(second_difference(ahead, r, along, PROBE_FRACTION)) / 2
    else:
        return p
    bends_little = 4 * inner(system.scaling * a, a) <= MOST_ACCELERATION**2 * length2
    return p - a if bends_little else p


def scaled_by_sizes(curvature: Curvature, scaling: Vector, sizes: Vector) -> Curvature:
    """Return a curvature whose D also scales coordinates by their own size.

    On a plateau the diagonal of H may be 1e-70 in one coordinate; every step that is scaled only by
    the diagonal is far too long in this coordinate.
    """
    level = (scaling * sizes**2).max()
    extra = curvature.extra_damping
    return dataclasses.replace(
        curvature,
        extra_damping=lambda: level / sizes**2 + (0.0 if extra is None else extra()),
        cost=0.0,  # its matrix is known already
    )
