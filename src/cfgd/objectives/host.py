"""Objectives on the host: NumPy arrays in, NumPy arrays out, for Auto's solvers."""

from __future__ import annotations

import dataclasses
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import numpy_in_numpy_out
from cfgd._core.linalg import inner
from cfgd._core.pytrees import Structure
from cfgd._core.records import changed
from cfgd._core.sharding import any_sharded, to_host
from cfgd._core.types import Column, Data, Matrix, Rows, Scalar, Vector, Vectors
from cfgd.objectives.base import Objective, Traits
from cfgd.objectives.curvature import Curvature, JacobianRows, second_difference
from cfgd.objectives.evaluation import Evaluation, Line, LineCosts
from cfgd.objectives.finite_differences import hessian_product
from cfgd.objectives.function import Smooth
from cfgd.objectives.linear.model import LinearModel
from cfgd.objectives.linear.sharded import sharded_on_host
from cfgd.objectives.network.model import ShallowNetwork
from cfgd.objectives.programs import Programs, outline_of
from cfgd.objectives.rescaled import Rescaled
from cfgd.objectives.residual_terms import ResidualTerms
from cfgd.objectives.residuals import Residuals


def host_objective(objective: Objective) -> Objective:
    """Return the objective in NumPy where its formulas allow that, else as compiled functions."""
    found = objective.on_host()
    if found is None and isinstance(objective, LinearModel) and any_sharded(objective):
        found = sharded_on_host(objective)
    if found is None and isinstance(objective, Rescaled):
        return Rescaled(host_objective(objective.objective), np.asarray(objective.factor)[()])
    if found is None and type(objective) is Residuals and not any_sharded(objective):
        return HostResiduals(objective)
    return HostObjective(objective) if found is None else found


# Functions of the contract of an objective, which are compiled when they are first called.


def _evaluate(objective: Objective, x: Vector) -> tuple[Scalar, Vector, Any]:
    return objective.evaluate(x)[1:]


def _linearise(objective: Residuals, x: Vector) -> Data:
    """Return the matrix [J r]: one array is fetched from the device in half the time of two."""
    return jnp.concatenate([objective.jacobian(x), objective.vector(x)[:, None]], 1)


def _diagonal(objective: Objective, evaluation: Evaluation) -> Vector:
    return _curvature(objective, evaluation).diagonal()


def _rows(objective: Objective, evaluation: Evaluation) -> JacobianRows:
    curvature = _curvature(objective, evaluation)
    assert curvature.rows is not None
    return curvature.rows()


def _matrix(objective: Objective, evaluation: Evaluation) -> Matrix:
    curvature = _curvature(objective, evaluation)
    if curvature.matrix is not None:
        return curvature.matrix()
    J = _rows(objective, evaluation).jacobian
    return J.T @ J


def _residuals_at(objective: Objective, evaluation: Evaluation, x: Vector) -> Column:
    curvature = _curvature(objective, evaluation)
    assert curvature.residuals_at is not None
    return curvature.residuals_at(x)


def _acceleration(objective: Objective, evaluation: Evaluation, p: Vector, t: Scalar) -> Vector:
    curvature = _curvature(objective, evaluation)
    if curvature.acceleration is not None:
        return curvature.acceleration(p, t)
    assert curvature.rows is not None
    assert curvature.residuals_at is not None
    J, r = curvature.rows()
    return second_difference(curvature.residuals_at(evaluation.x - t * p), r, J @ p, t) @ J


def _times(objective: Objective, evaluation: Evaluation, v: Vector) -> Vector:
    return _curvature(objective, evaluation).times(v)


def _extra_damping(objective: Objective, evaluation: Evaluation) -> Vector:
    curvature = _curvature(objective, evaluation)
    assert curvature.extra_damping is not None
    return curvature.extra_damping()


def _coordinate_derivatives(
    objective: Objective, evaluation: Evaluation, t: Vectors
) -> tuple[Vectors, Vectors]:
    return objective.coordinate_derivatives(evaluation, t)


def _line_values(objective: Objective, evaluation: Evaluation, d: Vector, etas: Column) -> Column:
    return objective.line(evaluation, d).values(etas)


def _line_curvature(objective: Objective, evaluation: Evaluation, d: Vector) -> Scalar:
    return objective.line(evaluation, d).curvature()


def _line_to(objective: Objective, evaluation: Evaluation, d: Vector, eta: Scalar) -> Evaluation:
    return objective.line(evaluation, d).to(eta)


def _is_stationary(objective: Objective, evaluation: Evaluation, tolerance: Scalar) -> Any:
    curvature = _curvature(objective, evaluation)
    assert curvature.is_stationary is not None
    return curvature.is_stationary(tolerance)


def _curvature(objective: Objective, evaluation: Evaluation) -> Curvature:
    found = objective.curvature(evaluation)
    assert found is not None
    return found


# Entries of a Jacobian up to which it is computed together with the residuals: this takes much less
# time than a call of a compiled program.
MOST_ENTRIES = 20_000
# Points whose Jacobians are stored: a step may try two points before it takes the first one.
MOST_POINTS = 2

# Costs of lines, which depend only on the structure of the objective.
_line_costs: dict[Any, LineCosts] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class HostLine(Line):
    """A line whose results come from compiled functions."""

    @property
    def costs(self) -> LineCosts:
        wrapped = self.objective.objective
        structure = jax.tree.structure(wrapped)

        def trace(evaluation: Evaluation, d: Vector) -> None:
            _line_costs[structure] = wrapped.line(evaluation, d).costs

        if structure not in _line_costs:
            jax.eval_shape(trace, self.evaluation, self.d)  # nothing is computed
        return _line_costs[structure]

    def curvature(self) -> Scalar:
        return self.objective.call(_line_curvature, self.evaluation, self.d)

    def values(self, etas: Any) -> Any:
        return self.objective.call(_line_values, self.evaluation, self.d, etas)

    def to(self, eta: Any) -> Evaluation:
        return self.objective.call(_line_to, self.evaluation, self.d, np.asarray(eta))


class HostObjective(Objective):
    """An objective of JAX, called from NumPy by compiled functions.

    Arrays that are sharded by samples stay on their devices. Products with the Hessian are
    differences of gradients, for which nothing has to be compiled.
    """

    objective: Objective
    programs: Programs

    __getattribute__ = object.__getattribute__  # it is called in every iteration, and never traced

    def __init__(self, objective: Objective) -> None:
        self.objective, self.programs = objective, Programs.kept(objective)

    def call(self, fn: Any, *args: Any) -> Any:
        """Call a compiled fn(objective, *args) and return NumPy arrays."""
        d = args[0].x.size if isinstance(args[0], Evaluation) else args[0].size
        return to_host(self.programs.of(fn, self.objective)(*args), d)

    @numpy_in_numpy_out
    def value(self, x: Any) -> Any:
        return self.objective.value(x)

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.objective.shape

    @cached_property  # it is read many times in a run
    def traits(self) -> Traits:
        return changed(self.objective.traits, hessian_by_differences=True)

    def evaluate(self, x: Vector) -> Evaluation:
        if not isinstance(self.objective, Smooth) or checks.is_traced(x):
            value, gradient, aux = self.call(_evaluate, x)
            return Evaluation(x, value[()], gradient, aux)
        # for small functions the conversion of a tree takes longer than the function
        value, gradient, _ = self.programs.of(_evaluate, self.objective)(x)
        return Evaluation(x, np.asarray(value)[()], np.asarray(gradient))

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        slope = evaluation.gradient @ d if slope is None else slope
        return HostLine(self, evaluation, d, slope)

    def coordinate_derivatives(self, evaluation: Evaluation, t: Vectors) -> tuple[Vectors, Vectors]:
        return self.call(_coordinate_derivatives, evaluation, t)

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        return hessian_product(lambda x: self.evaluate(x).gradient, evaluation.x, v)

    def curvature(self, evaluation: Evaluation) -> Curvature | None:
        outline = self.objective.curvature(evaluation)
        if outline is None:
            return None
        rows: Any = None
        matrix: Any = None
        if outline.rows is not None and not any_sharded(self.objective):
            rows = lambda: self.call(_rows, evaluation)  # noqa: E731
        elif outline.rows is not None or outline.matrix is not None:
            # the rows of a sharded Jacobian stay on their devices
            matrix = lambda: self.call(_matrix, evaluation)  # noqa: E731
        changes: dict[str, Any] = {
            "times": lambda v: self.call(_times, evaluation, v),
            "diagonal": lambda: self.call(_diagonal, evaluation),
            "rows": rows,
            "matrix": matrix,
        }
        changes["residuals_at"] = None
        has_residuals = outline.rows is not None and outline.residuals_at is not None
        if has_residuals and rows is not None:
            changes["residuals_at"] = lambda x: self._residuals_at(evaluation, x)
        if (has_residuals and rows is None) or outline.acceleration is not None:
            changes["acceleration"] = lambda p, t: self.call(
                _acceleration, evaluation, p, np.asarray(t, p.dtype)
            )
        if outline.extra_damping is not None:
            changes["extra_damping"] = lambda: self.call(_extra_damping, evaluation)
        if outline.is_stationary is not None:
            changes["is_stationary"] = lambda tolerance: self.call(
                _is_stationary, evaluation, np.asarray(tolerance, evaluation.x.dtype)
            )
        return dataclasses.replace(outline, **changes)

    def _residuals_at(self, evaluation: Evaluation, x: Vector) -> Column:
        """Return the residuals at x; for objectives of cfgd they are part of an evaluation."""
        if type(self.objective) is ResidualTerms:
            return self.objective.residuals(self.evaluate(x).aux)
        if type(self.objective) is ShallowNetwork:
            return self.evaluate(x).aux.misfit
        return self.call(_residuals_at, evaluation, x)

    def on_host(self) -> HostObjective:
        return self

    def raveled(self, structure: Structure) -> HostObjective:
        return HostObjective(self.objective.raveled(structure))

    def check(self, owner: str, x: Vector) -> None:
        self.objective.check(owner, x)


class Linearisation(NamedTuple):
    """Residuals and Jacobian at x; for the square loss times the roots of the weights."""

    point: tuple[str, bytes]  # x
    residuals: Column
    jacobian: Rows


def point_of(x: Vector) -> tuple[str, bytes]:
    """Return a key for a point, which takes less time than a comparison of the entries."""
    return x.dtype.char, x.tobytes()


def _outline(objective: Residuals, evaluation: Evaluation) -> Curvature:
    """Return the part of the curvature that is the same at all points: shape and costs."""
    found = objective.curvature(evaluation)
    cost = max(found.cost - 1.0, 0.0)  # the gradient, counted by itself, is J'r
    functions = ("times", "diagonal", "rows", "residuals_at", "information")
    return changed(found, cost=cost, **dict.fromkeys(functions))


class Linearised:
    """The cache of `HostResiduals`: one object, because fields of Equinox modules are slow."""

    def __init__(self, objective: Residuals) -> None:
        self.recent: list[Linearisation] = []
        self.outline: Curvature | None = None
        self.is_squared = objective.is_squared
        weights = jax.tree.leaves(objective.weights)
        self.is_weighted = self.is_squared and any(np.ndim(w) > 0 or w != 1 for w in weights)

    def at(self, point: tuple[str, bytes]) -> Linearisation | None:
        for found in self.recent:
            if found.point == point:
                return found
        return None

    def of(self, evaluation: Evaluation) -> Linearisation | None:
        """Return the linearisation from which an evaluation was made, or one at the same point."""
        for found in self.recent:
            if found.residuals is evaluation.aux:
                return found
        return self.at(point_of(evaluation.x))

    def add(self, found: Linearisation) -> None:
        self.recent[:] = [found, *self.recent[: MOST_POINTS - 1]]


class HostResiduals(HostObjective):
    """`Residuals` called from NumPy: one compiled program gives residuals and Jacobian together.

    Value, gradient and curvature are computed from these in NumPy, so that a new function compiles
    one program, and no point is evaluated twice. Large Jacobians are computed only if they are
    needed.
    """

    known: Linearised

    def __init__(self, objective: Residuals) -> None:
        super().__init__(objective)
        found = objective._kept.get(Linearised)  # a fit evaluates its end again, after the run
        if found is None:
            found = objective._kept[Linearised] = Linearised(objective)
        self.known = found

    def evaluate(self, x: Vector) -> Evaluation:
        f: Any = self.objective
        point = point_of(x)
        found = self.known.at(point)
        if found is None:
            outline = self.programs.outlines.get(x.size)
            if outline is None:
                outline = self.programs.outlines[x.size] = outline_of(f, x)
            if outline.size * x.size > MOST_ENTRIES:
                return super().evaluate(x)
            program = self.programs.of(_linearise, f, is_quick=not outline.has_loops)
            both = np.asarray(program(x))
            found = self._weighted(Linearisation(point, both[:, -1], both[:, :-1]))
            self.known.add(found)
        r, J = found.residuals, found.jacobian
        if self.known.is_squared:
            return Evaluation(x, inner(r, r) / 2, r @ J, r)
        return Evaluation(x, f._value(r), f._cotangent(r) @ J, r)

    def _weighted(self, found: Linearisation) -> Linearisation:
        if not self.known.is_weighted:
            return found
        f: Any = self.objective
        root = np.sqrt(np.asarray(f.weight(found.residuals.size)))
        J = root[..., None] * found.jacobian
        return Linearisation(found.point, root * found.residuals, J)

    def curvature(self, evaluation: Evaluation) -> Curvature | None:
        found = self.known.of(evaluation)
        if found is None:
            return super().curvature(evaluation)
        f: Any = self.objective
        J, r = found.jacobian, found.residuals
        if not self.known.is_squared:
            root, r = f._row_scale(evaluation.aux)
            J = root[:, None] * J
        outline = self.known.outline
        if outline is None or outline.shape != J.shape:
            outline = self.known.outline = _outline(f, evaluation)
        return changed(
            outline,
            rows=lambda: JacobianRows(J, r),
            times=lambda v: (J @ v) @ J,
            diagonal=lambda: (J * J).sum(0),
            residuals_at=self._residuals if self.known.is_squared else None,
            information=partial(f._information, evaluation),
        )

    def _residuals(self, x: Vector) -> Column:
        return self.evaluate(x).aux

    def _residuals_at(self, evaluation: Evaluation, x: Vector) -> Column:
        return self._residuals(x)
