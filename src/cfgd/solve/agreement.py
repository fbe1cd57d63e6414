"""How the processes of a run agree, after every chunk, on what to do next.

Most decisions follow from numbers that all processes share. The clock, Ctrl-C and the callback
belong to one process, so their results are gathered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd._core.process_group import ProcessGroup
from cfgd.solve.interrupt import Interrupt
from cfgd.status import Status

# the statuses that one process can decide on alone; all others follow from shared numbers
LOCAL = (None, Status.time_limit, Status.callback)


class Next(NamedTuple):
    """The next action: end with `status`, or run a chunk of `length`; is a checkpoint `due`?"""

    status: Status | None
    length: int
    due: bool


def agreed(
    group: ProcessGroup,
    interrupt: Interrupt,
    wished: Next,
    at: tuple[int, float],
    error: BaseException | None = None,
    advice: str = "",
) -> Next:
    """Return the next action of all processes.

    The run ends if one process wants it to end. Length and checkpoint are those of the first
    process. An `error` in the callback of one process is raised on all of them. `at` are iteration
    and value; a RuntimeError is raised where the processes differ in them. `advice` is added to
    the message of a process that has waited too long.
    """
    status, length, due = wished
    if group.is_single or status not in LOCAL:
        return wished
    late, stops = status is Status.time_limit, status is Status.callback
    flags = (interrupt.is_asked, late, stops, error is not None)
    with group.limit_wait(advice):
        gathered = group.gather([*flags, length, due, *at])
    asked, late, stops, failed = map(bool, np.any(gathered[:, :4], axis=0))
    if failed:
        group.raise_collectively(error)
        assert error is not None
        raise error
    points = gathered[:, 6:]
    if not np.array_equal(points, np.broadcast_to(points[0], points.shape), equal_nan=True):
        raise RuntimeError(
            "The processes no longer agree: their iterations and values are "
            f"{points.tolist()}. Do they run the same version on machines of the same kind?"
        )
    ends = {Status.interrupted: asked, Status.time_limit: late, Status.callback: stops}
    status = next((status for status, wanted in ends.items() if wanted), None)
    return Next(status, int(gathered[0, 4]), bool(gathered[0, 5]))
