"""A run on the host: the objective is looked at from outside, and the step is NumPy's.

Nothing but the function itself is compiled, and a function that JAX cannot trace is called as it
is.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from cfgd.either import Plain, made
from cfgd.method.base import Method, State
from cfgd.objective.base import Objective, Sight
from cfgd.objective.line import Point
from cfgd.solve.best_point import Best
from cfgd.solve.chunk import CONVERGED, NONFINITE, RUNNING, Carry, Goal, Loop, Rows, Tally
from cfgd.solve.program import bind
from cfgd.types import Vector


class UnseenError(Exception):
    """Nothing can be seen any more: the objective's `error` says why."""


class Watched(Plain, Objective):
    """An objective that is looked at from here: `at` stands among its values.

    A method of an equinox module would be bound anew at every call, which takes as long as a step.
    """

    least: Any

    def value(self, x: Any) -> Any:
        return self.at(x).value

    @property
    def resolution(self) -> Any:
        return self.least


def recorded(loop: Loop, kept: dict[str, Any]) -> Rows:
    """What the user asked for, of an iteration."""
    state = State(**kept)
    return {name: of(state) for name, of in loop.records.items()}


class Outside:
    """`begin`, then calls, give what those of `Inside` give."""

    def __init__(self, loop: Loop, objective: Objective, method: Method, see: Sight) -> None:
        self.loop, self.method, self.see = loop, method, see
        self.least = objective.resolution
        self.step = partial(type(method).step, method)  # bound once, as above
        self.record = bind(recorded, loop) if loop.records else None

    def begin(self, start: Vector, goal: Goal) -> tuple[Carry, Rows]:
        """The carry and the row of iteration 0."""
        x0 = np.asarray(start)
        self.state = self.method.start(None, x0)  # type: ignore[arg-type]
        self.iterations, self.looks = 0, 0
        self.floor: Any = np.zeros((), x0.dtype)[()]
        least = np.asarray(self.least, x0.dtype)[()]
        self.objective = made(Watched, least=least, at=self._look)
        info = self._step(goal)
        if info is None:
            return self._carry(np.zeros((), x0.dtype)[()], RUNNING), {}
        self.floor = np.asarray(goal.floor(info.norm2))[()]
        row = jax.tree.map(np.asarray, self._row(info))
        return self._carry(info.norm2, self._code(goal, info)), row

    def __call__(
        self, carry: Carry, length: int, last: Any, goal: Goal
    ) -> tuple[Carry, Rows, np.ndarray]:
        """At most `length` iterations: the carry, rows and the iterations they are of."""
        base, every, code = self.iterations, self.loop.every, int(carry.tally.code)
        labels: list[int] = []
        rows: list[Rows] = []
        info, norm2 = None, carry.tally.norm2
        while (
            code == RUNNING
            and self.iterations < min(base + length, last)
            and len(rows) < self.loop.capacity
        ):
            info = self._step(goal)
            if info is None:
                break
            norm2, code = info.norm2, self._code(goal, info)
            if info.moved:
                self.iterations += 1
                if self.iterations % every == 0:
                    labels.append(self.iterations)
                    rows.append(self._row(info))
        if info is not None and self.iterations > max([base, *labels[-1:]]):
            labels.append(self.iterations)  # the last one, wherever it is
            rows.append(self._row(info))
        joined = jax.tree.map(lambda *parts: np.stack(parts), *rows) if rows else {}
        return self._carry(norm2, code), joined, np.asarray(labels, int)

    def _look(self, x: Vector) -> Point:
        with np.errstate(**self.errors):  # the user's function may warn
            seen = self.see(x)
        if seen is None:
            raise UnseenError
        self.looks += 1
        value, gradient = np.asarray(seen[0])[()], np.asarray(seen[1])
        return made(Point, x=x, value=value, gradient=gradient, carried=None)

    def _step(self, goal: Goal) -> Any:
        """One look and what comes of it; None where nothing can be seen."""
        self.errors: Any = np.geterr()
        try:
            with np.errstate(all="ignore"):
                tolerance: Any = goal.tolerance[()]
                self.state, info = self.step(self.objective, self.state, self.floor, tolerance)
        except UnseenError:
            return None
        return info

    def _code(self, goal: Goal, info: Any) -> int:
        """Of the status after a step."""
        ends, value = int(info.ending), self.state.point.value
        bad = not (abs(value) < np.inf and info.norm2 < np.inf)
        if ends != RUNNING:
            return ends
        return NONFINITE if bad else CONVERGED if goal.met(info.norm2) else RUNNING

    def _row(self, info: Any) -> Rows:
        state = self.state
        row = {"value": state.point.value, "gradient_norm": np.sqrt(info.norm2)}
        if self.record is None:
            return row
        kept = {name: getattr(state, name) for name in ("k", "point", "eta", "gamma")}
        return row | jax.tree.map(np.asarray, self.record(kept))

    def _carry(self, norm2: Any, code: int) -> Carry:
        zero = np.int32(0)
        tally = made(
            Tally,
            iterations=np.int32(self.iterations),
            evaluations=np.asarray(self.looks, norm2.dtype)[()],
            resets=zero,
            norm2=norm2,
            floor=self.floor,
            least=norm2,
            idle=zero,
            code=np.int32(code),
            reached=np.False_,
        )
        # every step is a decrease: the last point is the best one
        return made(Carry, state=self.state, tally=tally, best=Best.of(self.state.point))
