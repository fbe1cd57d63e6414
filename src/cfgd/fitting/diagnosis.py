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

# Points that a message names; more of them say nothing new.
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
        slopes_bad = ~np.isfinite(np.asarray(slopes)) & counts[..., None]
        if values_bad.any():
            return (
                f"The model is not finite at {_points(values_bad, data.x)}{at}: start elsewhere, "
                "or give bounds within which it is finite."
            )
        if slopes_bad.any():
            columns = np.flatnonzero(slopes_bad.reshape(-1, slopes_bad.shape[-1]).any(0))
            names = ", ".join(f"`{problem.free[j]}`" for j in columns)
            return (
                f"The derivative of the model with respect to {names} is not finite at "
                f"{_points(slopes_bad.any(-1), data.x)}{at}, though the model is. {REMEDY}"
            )
    return ""


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


def _values_and_slopes(objective: Residuals, z: Any) -> list[tuple[Any, Any]]:
    """Return the results of the models at z, and their derivatives, for each data set."""
    fn = objective.fn
    assert isinstance(fn, WeightedResiduals)
    fixed, measured = objective.args

    def predictions(z: Any) -> list[Any]:
        p = fn.complete(z, fixed)
        return [fn.predict(p, each.x, i) for i, each in enumerate(measured)]

    return list(zip(predictions(z), jax.jacfwd(predictions)(z), strict=True))
