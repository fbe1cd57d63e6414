"""What the processes of a run tell one another after every chunk, and what follows from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cfgd._core.process_group import ProcessGroup
from cfgd.solve.interrupt import Interrupt
from cfgd.status import Status

# what a process finds out alone; all else follows from numbers that every process has
OWN = (None, Status.time_limit, Status.callback)


class Next(NamedTuple):
    """What comes: the end, or a chunk of that length; and whether a checkpoint is due."""

    status: Status | None
    length: int
    due: bool


def agreed(
    group: ProcessGroup,
    interrupt: Interrupt,
    wished: Next,
    at: tuple[int, float],
    error: Exception | None = None,
) -> Next:
    """The end for all where one wishes it; length and checkpoint as the first process wishes.

    An `error` of one process's callback is raised on all; so is a difference between processes of
    iteration and value, which is what they are `at`.
    """
    status, length, due = wished
    if group.is_single or status not in OWN:
        return wished
    late, stops = status is Status.time_limit, status is Status.callback
    flags = (interrupt.asked, late, stops, error is not None)
    said = group.gather([*flags, length, due, *at])
    asked, late, stops, failed = map(bool, np.any(said[:, :4], axis=0))
    if failed:
        group.raise_collectively(error)
        assert error is not None
        raise error
    where = said[:, 6:]
    if not np.array_equal(where, np.broadcast_to(where[0], where.shape), equal_nan=True):
        raise RuntimeError(
            "The processes no longer agree on where they are: iterations and values are "
            f"{where.tolist()}. Are they of one version, on machines of one kind?"
        )
    ends = {Status.interrupted: asked, Status.time_limit: late, Status.callback: stops}
    status = next((status for status, wanted in ends.items() if wanted), None)
    return Next(status, int(said[0, 4]), bool(said[0, 5]))
