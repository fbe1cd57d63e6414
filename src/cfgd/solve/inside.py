"""A run inside of one compiled loop, the objective included."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from cfgd._core.sharding import any_sharded, to_host
from cfgd._core.types import Points, Vector
from cfgd.methods.base import Method
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.linear.sharded import host_of
from cfgd.solve.compiled_loop import Carry, Goal, Loop, Rows, begin, blanks, chunk
from cfgd.solve.covariance import Information, information
from cfgd.solve.program import bind


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
        return carry, jax.tree.map(lambda leaf: leaf[0], to_host(rows))

    def __call__(
        self, carry: Carry, length: int, last: Any, goal: Goal
    ) -> tuple[Carry, Rows, np.ndarray]:
        """A chunk: the carry, rows and the iterations they are of."""
        carry, rows, labels, written = self.chunk(carry, np.int32(length), last, goal)
        return carry, rows, np.asarray(labels)[: int(written)].astype(int)

    def let_go(self) -> None:
        """Nothing is kept here."""

    def information(self, x: Any) -> Information | None:
        """What is known of x, where nothing has to be compiled to say it, or the data is spread."""
        if not self.objective.has_model:
            return None
        host = host_of(self.objective)
        if host is not None:
            return information(self.objective, host.evaluate(x), host.normal)
        if not any_sharded(self.objective):
            return None
        normal, point = bind(normal_equations, self.objective), bind(at, self.objective)(x)
        return information(self.objective, point, lambda *of: to_host(normal(*of), x.size))


def normal_equations(objective: Objective, point: Evaluation, old: Vector) -> Any:
    return objective.normal(point, old)


def at(objective: Objective, x: Vector) -> Evaluation:
    return objective.evaluate(x)
