"""Passes over the processes of `cfgd.distributed`, each of which has its own parts of the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cfgd._core.arrays import in_precision
from cfgd._core.engines.base import Arrays, Engine, Pass
from cfgd._core.process_group import ProcessGroup
from cfgd._core.sharding import WIDE


class ProcessesEngine(Engine):
    """Computes the parts of this process by `own`, and exchanges the results with the others.

    Every call is collective: an error of one process is raised on all. The result is the same on
    all processes.
    """

    def __init__(self, own: Engine, group: ProcessGroup) -> None:
        self.own, self.group = own, group

    def map(self, function: Pass, *args: Any) -> Iterator[Any]:
        with self.group.propagate_errors():
            found = list(self.own.map(function, *args))
        for results in self.group.gather_objects(found):
            yield from results

    def sum(self, function: Pass, *args: Any) -> Arrays:
        with self.group.propagate_errors():
            found = self.own.sum(function, *args)
        with in_precision(WIDE):
            # copies: those of JAX are read-only
            return tuple(np.array(self.group.all_reduce_sum(array)) for array in found)
