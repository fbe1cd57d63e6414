"""What a model adds to an objective that is looked at from outside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cfgd._core.either import Unbound
from cfgd._core.sharding import any_sharded, to_host
from cfgd._core.types import Etas, LineValues, Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.solve.inside import normal_equations
from cfgd.solve.program import bind


def times_model(objective: Objective, point: Evaluation, v: Vector) -> Vector:
    return objective.model_times(point, v)


def damping_of_model(objective: Objective, point: Evaluation, diagonal: Vector) -> Vector:
    return objective.damping(point, diagonal)


def times_hessian_of_model(objective: Objective, point: Evaluation, v: Vector) -> Vector:
    return objective.hessian_times(point, v)


def heights(objective: Objective, point: Evaluation, d: Vector, etas: Etas) -> LineValues:
    return objective.line(point, d).values(etas)


class Along(NamedTuple):
    """The line of an objective that is spread: its values, compiled."""

    values: Callable[[Etas], LineValues]


def diagonal_of_model(objective: Objective, point: Evaluation) -> Vector:
    return objective.gauss_newton_diagonal(point)


def of_model(
    objective: Objective, host: Unbound | None, at: Callable[[Vector], Evaluation], x0: np.ndarray
) -> dict[str, Any]:
    """NumPy's where the formulas take its arrays, else compiled when used."""
    if not objective.has_model:
        return {}
    kind = type(objective)
    shapes: list[Any] = []

    def shape_at(point: Evaluation) -> Any:
        if not shapes:  # every point is like the first, and to ask takes a trace
            shapes.append(kind.model_shape(objective, point))
        return shapes[0]

    def times_hessian(point: Evaluation, v: Vector) -> Vector:
        """By differences of gradients, for which nothing has to be compiled."""
        x = point.x
        typical = np.sqrt(max((x * x).mean(), (x0 * x0).mean()))
        sizes = np.maximum(abs(x), 1e-3 * typical)
        steps = abs(v) / np.where(sizes > 0, sizes, 1)
        h = np.finfo(x.dtype).eps ** (1 / 3) / steps.max()
        return (at(x + h * v).gradient - at(x - h * v).gradient) / (2 * h)

    def here(fn: Callable[..., Any]) -> Callable[..., Any]:
        program = bind(fn, objective)
        return lambda *args: to_host(program(*args), x0.size)

    own: dict[str, Callable[..., Any]]
    if host is None:
        own = {
            "normal": here(normal_equations),
            "model_times": here(times_model),
            "gauss_newton_diagonal": here(diagonal_of_model),
            "damping": here(damping_of_model),
            "hessian_times": times_hessian,
        }
        if any_sharded(objective) and kind.in_numpy is not Objective.in_numpy:
            values = here(heights)
            own["line"] = lambda point, d: Along(partial(values, point, d))
            own["hessian_times"] = here(times_hessian_of_model)
    else:
        names: tuple[str, ...]
        names = ("normal", "model_times", "gauss_newton_diagonal", "damping", "hessian_times")
        if objective.hidden is not None:
            names += ("hidden", "features", "seen_at", "hidden_rows", "y", "z")
        own = {name: getattr(host, name) for name in (*names, "line")}
        if not objective.has_hessian:
            own["hessian_times"] = times_hessian
    own["normal"] = _remembered(own["normal"])
    return own | {
        "model_shape": shape_at,
        "model_cost": functools.cache(partial(kind.model_cost, objective)),
        "affords": partial(kind.affords, objective),
        "residuals": partial(kind.residuals, objective),
        "product_cost": objective.product_cost,
        "model_is_exact": objective.model_is_exact,
    }


def _remembered(normal: Callable[[Evaluation, Vector], Any]) -> Callable[[Evaluation, Vector], Any]:
    """Asked for twice in a row at one point, as at the end, it is computed once."""
    last: list[Any] = [None, None]

    def at(point: Evaluation, old: Vector) -> Any:
        if last[0] is not point:
            last[:] = point, normal(point, old)
        return last[1]

    return at
