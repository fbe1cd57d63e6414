"""How a run ends: the one vocabulary, from a step inside the jitted loop to the solution."""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """How a run ended; the value says the cause and the remedy.

    >>> import cfgd
    >>> print(cfgd.minimize(lambda x: x[0] ** 2, [1.0]).status.name)
    converged
    >>> print(cfgd.Status.callback.value)
    Stopped because `callback` asked for it.
    """

    running = "The run is under way."  # the first: its code is the least, which the loop uses
    converged = "Converged: `x` meets the tolerance."
    stages_done = (
        "All stages of `AdaptiveOrder` were done before `tolerance` was met: "
        "add stages with a smaller gamma, or more iterations to the last one."
    )
    max_iterations = (
        "Stopped at `max_iterations` before `tolerance` was met: "
        "raise `max_iterations`, or loosen `tolerance`."
    )
    time_limit = (
        "Stopped at `time_limit` before `tolerance` was met: raise `time_limit`, or go on from `x`."
    )
    callback = "Stopped because `callback` asked for it."
    interrupted = "Interrupted by the keyboard: `x` is the best point so far; go on from it."
    nonfinite = "A value or gradient became non-finite; `x` is the best finite point."
    indefinite = (
        "A direction of negative curvature was met: the quadratic is not convex and has no "
        "minimiser; check that `A` is positive semi-definite."
    )
    unbounded = (
        "The value falls without end: the objective has no minimum. Check its sign and its data, "
        "or add a penalty; `x` is the best finite point."
    )
    saddle = (
        "The gradient vanished at a saddle or maximum that no step could leave: start elsewhere."
    )
    stalled = (
        "No step improves on `x` any further, and `tolerance` is not met: this is the accuracy "
        "that the precision allows. Use float64, rescale the problem, or loosen `tolerance`."
    )

    @property
    def code(self) -> int:
        """Its number, for use inside the jitted loop."""
        return CODES[self]


CODES = {status: code for code, status in enumerate(Status)}
STATUSES = tuple(Status)  # by code
