"""The final status of each setting, and the numbers behind it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd._core.types import DType
from cfgd.methods.base import MethodTraits
from cfgd.solve.options import DEFAULT_TOLERANCE
from cfgd.solve.run_stats import RUNNING, RunStats
from cfgd.status import STATUSES, Status

# A gradient that is computed again may differ by rounding from the one that met the tolerance.
SLACK = 1.01
# A function is unbounded below if its value has fallen by this factor times |f| + |g| at the start.
UNBOUNDED_FALL = 1e25

GRADIENT_GREW = (
    " The gradient has grown: `x` may lie at the edge of the domain of the objective, at a kink or "
    "at a pole."
)


class NormAndValue(NamedTuple):
    """Gradient norm and value at one point, or at one point for each setting."""

    norm: Any
    value: Any


def final_statuses(
    traits: MethodTraits, stats: RunStats, status: Status, first: NormAndValue, last: NormAndValue
) -> list[Status]:
    """Return the status of each setting, for the point that is returned.

    `status` ended the run as a whole; a setting that ended earlier keeps its status. `first` are
    the numbers at the start, `last` those at the returned point.
    """
    if stats.code.ndim == 0:
        statuses = [status]
    else:
        statuses = [status if code == RUNNING else STATUSES[code] for code in stats.code]
    # in float64: the product may overflow in float32
    scale = np.asarray(np.abs(first.value) + first.norm, float)
    is_unbounded = np.ravel(last.value < first.value - UNBOUNDED_FALL * scale)
    failures = (Status.nonfinite, Status.indefinite)
    statuses = [
        Status.unbounded if unbounded and status in failures else status
        for status, unbounded in zip(statuses, is_unbounded, strict=True)
    ]
    if traits.runs_on_host or not traits.seeks_minimiser:
        return statuses  # the returned point is the one that passed the convergence test
    # The returned point has the least value. The last point may have met the tolerance where this
    # one does not.
    meets_tolerance = np.ravel(np.square(last.norm) <= SLACK * stats.floor)
    return [
        Status.stalled if status is Status.converged and not met else status
        for status, met in zip(statuses, meets_tolerance, strict=True)
    ]


def status_details(
    traits: MethodTraits,
    stats: RunStats,
    statuses: list[Status],
    first: NormAndValue,
    last: NormAndValue,
    factor: float,
    tolerance: str,
) -> list[str]:
    """Return a sentence for each setting: norm and value at the start and at the end.

    `factor` is the number by which the objective was multiplied for the run, `tolerance` a sentence
    about the tolerance, or empty.
    """
    seeks = traits.seeks_minimiser
    last_norm = last.norm if seeks else np.sqrt(stats.norm2)
    numbers = (first.norm, last_norm, first.value, last.value)
    columns = [np.asarray(column).reshape(-1) / factor for column in numbers]
    what = "gradient" if seeks else "direction"
    return [
        f"The norm of the {what} went from {a:.3g} to {b:.3g}, the value from {c:.6g} to {d:.6g}."
        + tolerance
        + (GRADIENT_GREW if status is Status.stalled and b > a else "")
        + (f" {traits.advice[status]}" if status in traits.advice else "")
        for status, a, b, c, d in zip(statuses, *columns, strict=True)
    ]


def describe_tolerance(tolerance: float, dtype: DType) -> str:
    """Return a sentence on the tolerance of a run in float32, where it is not the usual 1e-8."""
    if np.dtype(dtype) != np.float32:
        return ""
    default = DEFAULT_TOLERANCE[np.dtype(dtype)]
    if tolerance == default:
        return f" `tolerance` is {tolerance:g}, the default in float32."
    return f" `tolerance` is {tolerance:g}; the default in float32 is {default:g}."


def row_norms(gradient: Any) -> Any:
    """Return the norm of each row, scaled so that no square overflows."""
    largest = np.abs(gradient).max(-1)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1)
    return unit * np.sqrt(np.square(gradient / unit[..., None]).sum(-1))
