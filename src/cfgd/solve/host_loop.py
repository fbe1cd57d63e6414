"""A run on the host: the objective is looked at from outside, and the step is NumPy's.

Nothing but the function itself is compiled, and a function that JAX cannot trace is called as it
is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from cfgd._core.either import Plain, Unbound, made, on_host, replaced
from cfgd._core.sharding import to_host
from cfgd._core.types import Vector
from cfgd.methods.base import Method, State
from cfgd.objectives.base import Objective, Sight
from cfgd.objectives.evaluation import Evaluation
from cfgd.solve.best_point import Best
from cfgd.solve.compiled_loop import CONVERGED, NONFINITE, RUNNING, Carry, Goal, Loop, Rows, Tally
from cfgd.solve.covariance import Information, information
from cfgd.solve.outside_model import of_model
from cfgd.solve.program import bind


class UnseenError(Exception):
    """Nothing can be seen any more: the objective's `error` says why."""


class Watched(Plain, Objective):
    """An objective that is looked at from here: `at` and its kin stand among its values.

    A method of an equinox module would be bound anew at every call, which takes as long as a step.
    """

    least: Any
    product_cost: float = 2.0
    model_is_exact: bool = False
    hidden: int | None = None  # known where the formulas of a network take NumPy's arrays

    def value(self, x: Any) -> Any:
        return self.evaluate(x).value

    @property
    def resolution(self) -> Any:
        return self.least


class LatePoint(Evaluation):
    """A point whose gradient is computed where it is asked for: a step that fails needs none."""

    later: Any = None

    def __getattr__(self, name: str) -> Any:
        if name != "gradient":
            raise AttributeError(name)
        self.__dict__["gradient"] = self.later()
        return self.__dict__["gradient"]


def recorded(loop: Loop, kept: dict[str, Any]) -> Rows:
    """What the user asked for, of an iteration."""
    state = State(**kept)
    return {name: of(state) for name, of in loop.records.items()}


class Outside:
    """`begin`, then calls, give what those of `Inside` give."""

    def __init__(
        self,
        loop: Loop,
        objective: Objective,
        host: Unbound | None,
        method: Method,
        see: Sight,
        most: float,
    ) -> None:
        """`host` is the objective in NumPy, where that can be had; `most` are looks."""
        self.loop, self.method, self.see, self.host, self.most = loop, method, see, host, most
        self.whole = objective
        self.step = partial(type(method).step, method)  # bound once, as above
        self.spent = partial(type(objective).spent, objective)
        self.record = bind(recorded, loop) if loop.records else None

    @property
    def goes_on(self) -> bool:
        """Whether the run is not so long that it is worth a loop of its own."""
        return self.looks < self.most

    def begin(self, start: Vector, goal: Goal) -> tuple[Carry, Rows]:
        """The carry and the row of iteration 0."""
        x0 = np.asarray(start)
        self.state = self.method.start(None, x0)  # type: ignore[arg-type]
        self.iterations, self.looks, self.cost = 0, 0, 0.0
        self.floor: Any = np.zeros((), x0.dtype)[()]
        least = np.asarray(self.whole.resolution, x0.dtype)[()]
        self.last: Any = None
        self.asks_twice = self.whole.has_model  # a step on a model asks for its value first
        model = of_model(self.whole, self.host, self._look, x0)
        self.objective = made(Watched, least=least, evaluate=self._look, **model)
        with self._quiet():
            info = self._step(goal.tolerance[()])
            if info is None:
                return self._carry(np.zeros((), x0.dtype)[()], RUNNING), {}
            self.cost = max(self.cost, 1.0)  # one that the checks have made is remembered
            self.floor = np.asarray(goal.floor(info.norm2))[()]
            row = {name: np.asarray(entry) for name, entry in self._row(info).items()}
            return self._carry(info.norm2, self._code(goal, info)), row

    def __call__(
        self, carry: Carry, length: int, last: Any, goal: Goal
    ) -> tuple[Carry, Rows, np.ndarray]:
        """At most `length` iterations: the carry, rows and the iterations they are of."""
        with self._quiet():
            return self._walk(carry, length, last, goal)

    def _walk(
        self, carry: Carry, length: int, last: Any, goal: Goal
    ) -> tuple[Carry, Rows, np.ndarray]:
        base, every, code = self.iterations, self.loop.every, int(carry.tally.code)
        labels: list[int] = []
        rows: list[Rows] = []
        info, norm2, tolerance = None, carry.tally.norm2, goal.tolerance[()]
        end, capacity = min(base + length, int(last)), self.loop.capacity
        while code == RUNNING and self.iterations < end and len(rows) < capacity and self.goes_on:
            info = self._step(tolerance)
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
        joined = {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}
        return self._carry(norm2, code), joined, np.asarray(labels, int)

    def information(self, x: Any) -> Information | None:
        """What is known of x; where the run ended, the matrix is there already."""
        if not self.whole.has_model or self.whole.by_gradients or self.looks == 0:
            return None
        return information(self.whole, self._look(x), self.objective.normal)

    def _look(self, x: Vector) -> Evaluation:
        last = self.last
        if self.asks_twice and last is not None and (x is last.x or (x == last.x).all()):
            return last
        if self.host is None:
            with np.errstate(**self.errors):  # what users do warns as it would
                seen = self.see(x)
        else:
            seen = self.see(x)
        if seen is None:
            raise UnseenError
        self.looks += 1
        value, carried = np.asarray(seen[0])[()], seen[2]
        if not (carried is None or on_host(carried)):
            carried = to_host(carried, x.size)
        if callable(seen[1]):
            later = partial(self._later, seen[1])
            self.last = made(LatePoint, x=x, value=value, aux=carried, later=later)
        else:
            gradient = np.asarray(seen[1])
            self.last = made(Evaluation, x=x, value=value, gradient=gradient, aux=carried)
        return self.last

    def _later(self, gradient: Callable[[], Any]) -> np.ndarray:
        with np.errstate(**self.errors):
            found = gradient()
        if found is None:
            raise UnseenError
        return found

    def _quiet(self) -> np.errstate:
        """Only the step's own warnings are silenced, not the user's."""
        self.errors: Any = np.geterr()
        return np.errstate(all="ignore")

    def _step(self, tolerance: Any) -> Any:
        """One look and what comes of it; None where nothing can be seen."""
        before = self.spent()
        try:
            self.state, info = self.step(self.objective, self.state, self.floor, tolerance)
        except UnseenError:
            return None
        after = self.spent()
        self.cost += float(info.cost) if before is None or after is None else after - before
        return info

    def _code(self, goal: Goal, info: Any) -> int:
        """Of the status after a step."""
        ends, value = int(info.ending), self.state.point.value
        if ends != RUNNING:
            return ends
        bad = not (abs(value) < np.inf and info.norm2 < np.inf)
        if bad:
            return NONFINITE
        return CONVERGED if goal.absolute > 0 and goal.met(info.norm2) else RUNNING

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
            evaluations=np.asarray(self.cost, norm2.dtype)[()],
            resets=zero,
            norm2=norm2,
            floor=self.floor,
            least=norm2,
            idle=zero,
            code=np.int32(code),
            reached=np.False_,
        )
        # what a Solution needs: the rest would keep vectors of the last chunk alive
        names = ("k", "point", "eta", "gamma", "seen")
        state = made(State, **{name: getattr(self.state, name) for name in names})
        # every step is a decrease: the last point is the best one
        return made(Carry, state=state, tally=tally, best=Best.of(self.state.point))

    def kept(self, carry: Carry) -> dict[str, Any]:
        """All that it needs to go on from here."""
        point = self.state.point
        if isinstance(point, LatePoint):
            names = ("x", "value", "gradient", "aux")
            point = made(Evaluation, **{name: getattr(point, name) for name in names})
        tally = carry.tally
        return {
            "state": replaced(self.state, point=point),
            "numbers": [self.iterations, self.looks, self.cost],
            "tally": [self.floor, tally.norm2, tally.code],
        }

    def resumed(self, kept: dict[str, Any]) -> Carry:
        """The carry from which it goes on."""
        self.state = kept["state"]
        self.iterations, self.looks, self.cost = kept["numbers"]
        self.floor, norm2, code = kept["tally"]
        self.last = None  # looked at again where that is asked for
        return self._carry(norm2, int(code))

    def let_go(self) -> None:
        """Of what it holds most: its objective looks through it, and a circle is freed late."""
        del self.objective, self.state, self.last

    def handed_over(self, carry: Carry) -> Carry:
        """The whole of it, for a loop that goes on from there."""
        return replaced(carry, state=self.state)
