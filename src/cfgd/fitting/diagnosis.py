"""Say at which points a model or its derivative is not finite."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from cfgd._core.arrays import in_precision
from cfgd._core.compiled import bind
from cfgd.fitting.model import WeightedResiduals
from cfgd.fitting.problem import FitProblem
from cfgd.objectives.residuals import Residuals

# Points that a message names; more of them add no information.
MOST_POINTS = 5
REMEDY = (
    "JAX differentiates every operation, and x**b, log(x) or sqrt(x) have no finite derivative at "
    "x = 0, inside of jnp.where neither. Keep such points away from them: with "
    "safe = jnp.where(x > 0, x, 1), write jnp.where(x > 0, safe**b, 0) for x**b. Or leave the "
    "points out: y = NaN with missing='drop'."
)


@contextlib.contextmanager
def names_points(problem: FitProblem) -> Iterator[None]:
    """Say at which points a model is not finite at the start, for which `minimize` raises."""
    try:
        yield
    except ValueError as error:
        sentence = where_not_finite(problem, np.clip(problem.start, problem.lower, problem.upper))
        if not sentence:
            raise
        raise ValueError(f"`curve_fit` needs a finite model and derivative. {sentence}") from error


def where_not_finite(problem: FitProblem, z: np.ndarray) -> str:
    """Return a sentence about the points where the model or its derivative is not finite at z.

    It is empty where all numbers are finite.
    """
    with in_precision(problem.start.dtype):
        numbers = bind(_values_and_slopes, problem.objective)(np.asarray(z, problem.start.dtype))
    for data, (values, slopes) in zip(problem.data, numbers, strict=True):
        at = f" of the data set {data.name}" if data.name else ""
        present = data.measured.present
        counts = np.ones(data.y.shape, bool) if present is None else present.reshape(data.y.shape)
        values_bad = ~np.isfinite(np.asarray(values)) & counts
        slopes_bad = {name: _bad_points(slope, counts) for name, slope in slopes.items()}
        if values_bad.any():
            return (
                f"The model is not finite at {_points(values_bad, data.x)}{at}: start elsewhere, "
                "or give bounds within which it is finite."
            )
        names = [name for name, bad in slopes_bad.items() if bad.any()]
        if names:
            bad = np.any([slopes_bad[name] for name in names], 0)
            by = ", ".join(f"`{name}`" for name in names)
            return (
                f"The derivative of the model with respect to {by} is not finite at "
                f"{_points(bad, data.x)}{at}, though the model is. {REMEDY}"
            )
    return ""


def _bad_points(slope: Any, counts: np.ndarray) -> np.ndarray:
    """Return at which points a derivative is not finite, by any number of a parameter."""
    numbers = np.asarray(slope).reshape(*counts.shape, -1)
    return ~np.isfinite(numbers).all(-1) & counts


def _points(bad: np.ndarray, x: Any) -> str:
    """Name points by their index, with x where that is a number."""
    indices = np.argwhere(bad)
    words = []
    for index in indices[:MOST_POINTS]:
        name = str(index[0]) if len(index) == 1 else str(tuple(map(int, index)))
        is_number = np.shape(x) == bad.shape and not isinstance(x, dict | tuple)
        words.append(f"{name} (x = {np.asarray(x)[tuple(index)]:g})" if is_number else name)
    more = len(indices) - len(words)
    label = "index" if len(indices) == 1 else f"{len(indices)} points, index"
    return f"{label} {', '.join(words)}" + (f" and {more} more" if more > 0 else "")


def _values_and_slopes(objective: Residuals, z: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Return the results of the models at z, and their derivatives by each free parameter.

    One parameter is moved and the others are constants: in a Jacobian by all of them, a NaN in the
    derivative by one is a NaN in those by all.
    """
    fn = objective.fn
    assert isinstance(fn, WeightedResiduals)
    fixed, measured = objective.args
    p = fn.complete(z, fixed)

    def predictions(**moved: Any) -> list[Any]:
        untied = {name: p[name] for name in p if name not in fn.layout.ties}
        found = fn.layout.tie(untied | moved, fn.expressions)
        return [fn.predict(found, each.x, i) for i, each in enumerate(measured)]

    free = dict.fromkeys(fn.layout.owners)
    slopes = {name: jax.jacfwd(lambda v, at=name: predictions(**{at: v}))(p[name]) for name in free}
    return [
        (values, {name: slopes[name][i] for name in free}) for i, values in enumerate(predictions())
    ]
