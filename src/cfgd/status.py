"""How a run ended: one enumeration for compiled loops, host loops and solutions.

The value of a member is the message that a `Solution` shows: what happened, why, and what to do
about it. Compiled loops use `Status.code`, the position of a member in this list.
"""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """How a run ended. The value is the message: what happened, why, and what to do.

    Attributes
    ----------
    name : str
        One word, such as "converged".
    value : str
        The message.
    code : int
        The number of the status in this enumeration, by which compiled programs refer to it.

    Examples
    --------
    >>> import cfgd
    >>> print(cfgd.minimize(lambda x: x[0] ** 2, [1.0]).status.name)
    converged
    >>> print(cfgd.Status.callback.value)
    Stopped because `callback` asked for it.
    """

    # `running` must stay first: loops test for it by the smallest code
    running = "The run is not finished yet."
    converged = "Converged: `x` meets the tolerance."
    stages_done = (
        "All stages of `AdaptiveOrder` are finished, but `tolerance` is not met: "
        "add stages with a smaller gamma, or more iterations to the last one."
    )
    max_iterations = (
        "Stopped at `max_iterations` before `tolerance` was met: "
        "raise `max_iterations`, or loosen `tolerance`."
    )
    time_limit = (
        "Stopped at `time_limit` before `tolerance` was met: "
        "raise `time_limit`, or start again from `x`."
    )
    callback = "Stopped because `callback` asked for it."
    interrupted = "Interrupted by Ctrl-C: `x` is the best point so far; start again from it."
    nonfinite = "A value or gradient became non-finite; `x` is the best finite point."
    indefinite = (
        "The quadratic has a direction of negative curvature, so it has no minimum: "
        "check that `A` is positive semi-definite."
    )
    unbounded = (
        "The value decreases without bound, so the objective has no minimum: check its sign and "
        "its data, or add a penalty. `x` is the best finite point."
    )
    saddle = (
        "The gradient vanishes at a saddle point, at a maximum or on a plateau, and no step could "
        "leave it: start from another point."
    )
    stalled = (
        "No step improves on `x`, although `tolerance` is not met: rounding errors limit the "
        "accuracy, or `x` lies on a plateau. Use float64, rescale the problem, loosen `tolerance`, "
        "or start from another point."
    )
    wrong_gradient = (
        "The gradient contradicts the values of the objective: compare it with differences by "
        "`cfgd.check_gradient(objective, x)`, and correct it."
    )
    no_data = "There is nothing to fit, because every point is missing or masked: check the data."
    separated = (
        "The classes are separated, so that the likelihood has no maximum and the coefficients "
        "grow without bound: add a penalty (`l2`), or leave out the columns that separate them. "
        "`x` is where the run ended."
    )

    @property
    def code(self) -> int:
        """The number of the status in this enumeration, by which compiled programs refer to it."""
        return CODES[self]


CODES = {status: code for code, status in enumerate(Status)}
STATUSES = tuple(Status)  # by code
