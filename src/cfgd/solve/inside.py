"""A run inside of one compiled loop, the objective included."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from cfgd.method.base import Method
from cfgd.objective.base import Objective
from cfgd.solve.chunk import Carry, Goal, Loop, Rows, begin, blanks, chunk
from cfgd.solve.program import bind
from cfgd.solve.uncertainty import Information, information
from cfgd.types import Points


class Inside:
    def __init__(self, loop: Loop, objective: Objective, method: Method) -> None:
        self.loop, self.objective, self.method = loop, objective, method
        self.chunk = bind(chunk, loop, objective, method, loops=True)

    def begin(self, start: Points, goal: Goal) -> tuple[Carry, Rows]:
        """The carry and the row of iteration 0."""
        if not self.method.judges:
            return bind(begin, self.loop, self.objective, self.method)(start, goal)
        carry = bind(blanks, self.loop.batched, self.method)(start)
        carry, rows, _ = self(carry, self.loop.block, np.int32(0), goal)
        return carry, jax.tree.map(lambda leaf: np.asarray(leaf)[0], rows)

    def __call__(
        self, carry: Carry, length: int, last: Any, goal: Goal
    ) -> tuple[Carry, Rows, np.ndarray]:
        """A chunk: the carry, rows and the iterations they are of."""
        carry, rows, labels, written = self.chunk(carry, np.int32(length), last, goal)
        return carry, rows, np.asarray(labels)[: int(written)].astype(int)

    def information(self, x: Any) -> Information | None:
        """What is known of x, where NumPy can say it."""
        host = self.objective.in_numpy() if self.objective.has_model else None
        return None if host is None else information(self.objective, host.at(x), host.normal)
