"""The fit: of rows in memory a LinearModel, of streamed ones a sum over the blocks of a pass."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cfgd import distributed
from cfgd.apps.fit.rows import Held, Rows
from cfgd.apps.fit.split import Part
from cfgd.methods import AdaptiveTerminal, Auto, GradientDescent
from cfgd.methods.base import Method
from cfgd.objectives import External, LinearModel
from cfgd.solve import Solution, minimize

TOLERANCE = 1e-8
CERTAIN = 1e-6  # of the loss at the start: what is left where every label is certain
FLAT = 1e-10  # of the largest variance: a direction of less is not stretched any further
METHODS: dict[str, Callable[[], Method]] = {
    "auto": Auto,
    "adaptive_terminal": lambda: AdaptiveTerminal(gamma=-0.25),
    "gradient_descent": GradientDescent,
}

Watch = Callable[[float, str], None]  # how far a run is, from 0 to 1, and words for it


@dataclasses.dataclass(frozen=True)
class Setting:
    l2: float
    method: str
    watch: Watch
    labels: bool
    tolerance: float = TOLERANCE
    checkpoint: Path | None = None


def is_certain(so_far: Solution) -> bool:
    """Of labels: whether nothing is left to learn, as where coefficients grow without end."""
    values = so_far.history["value"]
    return bool(values[-1] < CERTAIN * values[0])


def start(rows: Rows) -> np.ndarray:
    """The baseline: no column counts."""
    w = np.zeros(rows.shape)
    w[-1] = rows.target.start[0] if rows.target.classes == 1 else rows.target.start
    return w


def fitted(
    rows: Rows, part: Part, setting: Setting, w0: np.ndarray, correlation: np.ndarray | None
) -> tuple[np.ndarray, Solution]:
    """Coefficients of standardised columns, the intercept last, and the run that found them.

    `correlation` of the columns, where it is known, gives streamed rows coordinates in which the
    columns are uncorrelated: far fewer passes.
    """
    if isinstance(rows, Held):
        w, ends = _in_memory(rows, part, setting, w0)
    else:
        w, ends = _streamed(rows, part, setting, w0, correlation)
    if w.ndim == 2:  # what is added to all classes changes nothing
        w = w - w.mean(1, keepdims=True)
    return w, ends


def _in_memory(
    rows: Held, part: Part, setting: Setting, w0: np.ndarray
) -> tuple[np.ndarray, Solution]:
    held: tuple[Any, Any, Any] = (*rows.whole(part), None)
    me = distributed.start()
    if me.count > 1:  # a share of the rows on each process
        held = distributed.rows(*(of[me.index :: me.count] for of in held[:2]))
    X, y, weight = held
    f = LinearModel(X, y, rows.target.loss, setting.l2, weight, intercept=True)
    method = METHODS[setting.method]()
    if f.is_quadratic and isinstance(method, Auto):
        method = Auto("levenberg_marquardt")  # from Python: nothing is compiled
    ends = _solved(f, w0, method, setting)
    return np.asarray(ends.x), ends


def _streamed(
    rows: Rows, part: Part, setting: Setting, w0: np.ndarray, correlation: np.ndarray | None
) -> tuple[np.ndarray, Solution]:
    """One pass over the file for each value and gradient."""
    loss, n = rows.target.rule, rows.count
    basis = _basis(correlation, setting.l2 / n, rows.width)

    def coefficients(u: np.ndarray) -> np.ndarray:
        return np.concatenate([basis @ u[:-1], u[-1:]])

    def look(u: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean loss: its size does not grow with the file."""
        w = coefficients(u)
        value, gradient = 0.0, np.zeros_like(w)
        for X, y in rows.blocks(part):
            with np.errstate(over="ignore", invalid="ignore"):  # a trial may lie too far off
                p, targets = X @ w[:-1] + w[-1], as_wanted(rows, y)
                value += float(np.sum(loss.value(p, targets)))
                slope = np.asarray(loss.derivatives(p, targets)[0])
                gradient[:-1] += X.T @ slope
                gradient[-1] += slope.sum(0)
        value += setting.l2 / 2 * float(np.sum(w[:-1] ** 2))
        gradient[:-1] = basis.T @ (gradient[:-1] + setting.l2 * w[:-1])
        return value / n, gradient / n

    u0 = np.concatenate([np.linalg.solve(basis, w0[:-1]), w0[-1:]])
    ends = _solved(External(look), u0, METHODS[setting.method](), setting)
    return coefficients(np.asarray(ends.x)), ends


def as_wanted(rows: Rows, y: np.ndarray) -> Any:
    """Targets as the formulas of the loss take them."""
    return rows.target.rule.targets("fit", y) if rows.target.labels else y


def _basis(correlation: np.ndarray | None, l2: float, width: int) -> np.ndarray:
    if correlation is None:
        return np.eye(width)
    values, vectors = np.linalg.eigh(correlation)
    return vectors / np.sqrt(np.maximum(values, FLAT * values[-1]) + l2)


def _solved(objective: Any, x0: np.ndarray, method: Method, setting: Setting) -> Solution:
    def seen(so_far: Solution) -> bool:
        first, now = so_far.history["gradient_norm"][0], so_far.gradient_norm
        far = 0.0
        if 0 < now < first:
            far = (math.log(now) - math.log(first)) / math.log(setting.tolerance)
        setting.watch(min(1.0, far), f"iteration {so_far.iterations}")
        return setting.labels and is_certain(so_far)

    return minimize(
        objective,
        x0,
        method,
        tolerance=setting.tolerance,
        callback=seen,
        every=1 if isinstance(method, Auto) else 25,
        checkpoint=setting.checkpoint,
    )
