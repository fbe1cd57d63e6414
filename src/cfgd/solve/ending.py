"""How runs ended: the status of each setting, and the numbers behind it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cfgd.methods.base import Method
from cfgd.solve.compiled_loop import RUNNING
from cfgd.status import STATUSES, Status

# a gradient that was looked at anew may differ from the one that was judged by rounding
SLACK = 1.01
# a value this far below the start, in units of all that was known there, falls without end
ENDLESS = 1e25


class Numbers(NamedTuple):
    """Of a point, or of one for each setting."""

    norm: Any
    value: Any


def statuses_of(
    method: Method, tally: Any, status: Status, first: Numbers, last: Numbers
) -> list[Status]:
    """Of each setting: its own, or what ended the run; of the point that is returned."""
    if np.ndim(tally.code) == 0:
        statuses = [status]
    else:
        statuses = [status if code == RUNNING else STATUSES[code] for code in tally.code]
    known = np.abs(first.value) + first.norm
    endless = np.ravel(last.value < first.value - ENDLESS * known)
    broken = (Status.nonfinite, Status.indefinite)
    statuses = [
        Status.unbounded if fell and status in broken else status
        for status, fell in zip(statuses, endless, strict=True)
    ]
    if method.judges or not method.seeks_minimiser:
        return statuses  # the point that was judged is the one that is returned
    # a run may arrive where the value is higher than at the best point, which has not arrived
    met = np.ravel(np.square(last.norm) <= SLACK * tally.floor)
    return [
        Status.stalled if status is Status.converged and not arrived else status
        for status, arrived in zip(statuses, met, strict=True)
    ]


def details_of(
    method: Method,
    tally: Any,
    statuses: list[Status],
    first: Numbers,
    last: Numbers,
    factor: float,
) -> list[str]:
    """From what to what, for each setting; `factor` is that of the objective."""
    seeks = method.seeks_minimiser
    ends = last.norm if seeks else np.sqrt(tally.norm2)
    seen = (first.norm, ends, first.value, last.value)
    columns = (np.ravel(column) / factor for column in seen)
    what = "gradient" if seeks else "direction"
    return [
        f"The norm of the {what} went from {a:.3g} to {b:.3g}, the value from {c:.6g} to {d:.6g}."
        + (f" {method.advice[status]}" if status in method.advice else "")
        for status, a, b, c, d in zip(statuses, *columns, strict=True)
    ]


def norms_of(gradient: Any) -> Any:
    """Of each row, without squares that overflow."""
    largest = np.max(np.abs(gradient), -1)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1)
    return unit * np.sqrt(np.sum(np.square(gradient / unit[..., None]), -1))
