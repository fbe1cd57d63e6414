"""One call of `minimize` or `sweep`: set up, the host loop, and its solution."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd import _check, chunk as chunks
from cfgd.best import Tuning
from cfgd.chunk import Carry, Loop, begin, chunk, look, settle
from cfgd.iteration import Iteration
from cfgd.objective.base import Objective, Point
from cfgd.objective.local import Local
from cfgd.objective.smooth import Smooth
from cfgd.options import Options
from cfgd.precision import cast, in_precision, precision_of
from cfgd.progress import Progress
from cfgd.solution import Solution, Status
from cfgd.structure import Structure, as_tree, like

STATUS = {
    chunks.CONVERGED: Status.converged,
    chunks.NONFINITE: Status.nonfinite,
    chunks.INDEFINITE: Status.indefinite,
    chunks.STALLED: Status.stalled,
}
# rows of the history that a chunk may write, and the numbers in them (1 MiB)
MOST_ROWS, MOST_NUMBERS = 2**16, 2**17
# seconds that a chunk should take: time limit, progress and Ctrl-C are looked at in between
CHUNK_SECONDS = 0.1
FIRST_LENGTH = 128
# gradients that a direction may cost before the user is told
COSTLY = 10_000


class Run:
    """`rows` is the number of settings of a sweep; None for one method."""

    def __init__(
        self, options: Options, objective: Any, x0: Any, method: Any, rows: int | None
    ) -> None:
        self.began = time.perf_counter()
        self.options, self.rows = options, rows
        if rows is None and not isinstance(method, Iteration):
            _check.fail(
                options.owner, "method", "be a method such as GradientDescent()", repr(method)
            )
        x0 = as_tree(options.owner, "x0", x0)
        if not isinstance(objective, Objective):
            if not callable(objective):
                wanted = "be an objective or a function"
                _check.fail(options.owner, "objective", wanted, repr(objective))
            objective = Smooth(objective)
        starts = self._starts(objective, x0)
        self.x0 = starts[0]
        self.structure = Structure.of(self.x0)
        self.dtype = precision_of(x0, objective)
        with in_precision(self.dtype):
            self._set_up(objective, starts, method)

    def _starts(self, objective: Objective, x0: Any) -> list[Any]:
        """x0 alone, or one x0 for each setting of a sweep."""
        d, rows, shape = objective.dimension, self.rows or 1, getattr(x0, "shape", None)
        if d is not None and self.rows is not None and shape == (rows, d):
            return list(x0)
        if d is not None and shape != (d,):
            also = f" or ({rows}, {d})" if self.rows is not None else ""
            got = "a pytree" if shape is None else shape
            _check.fail(self.options.owner, "x0", f"have shape ({d},){also}", got)
        return [x0]

    def _set_up(self, objective: Objective, starts: list[Any], method: Any) -> None:
        options, structure, rows = self.options, self.structure, self.rows
        vectors = [cast(structure.ravel(x), self.dtype) for x in starts]
        objective = objective.flat(structure)
        inside: Any = objective
        while isinstance(inside, Local):
            inside = inside.objective
        if isinstance(inside, Smooth):
            _check.scalar_function(options.owner, "objective", inside.fn, vectors[0])
        d = vectors[0].size
        method, self.tuning = self._tuned(method, objective, d)
        if isinstance(method, list | tuple):
            settings = [one.fit(structure, d) for one in method]
            method = jax.tree.map(lambda *leaves: jnp.stack(leaves), *settings)
        else:
            method = method.fit(structure, d, rows)
        objective = method.view(objective)
        self._say_cost(objective, method.direction_cost(objective, d))
        self.objective, self.method = cast(objective, self.dtype), cast(method, self.dtype)
        self.start = vectors[0]
        if rows is not None:
            self.start = jnp.asarray(np.broadcast_to(np.stack(vectors), (rows, d)))
        self.how = method.describe(objective)
        if self.tuning is not None:
            self.how += f", {self.tuning.words}"
        self.last = min(options.max_iterations, method.last_iteration or options.max_iterations)

        records = {
            name: OfVector(entry, structure) if callable(entry) else OfState(entry)
            for name, entry in options.record.items()
        }
        shapes = self._shapes(records, vectors[0]) if records else []
        numbers = (1 + sum(shape.size for shape in shapes)) * (rows or 1)
        block = chunks.BLOCK if objective.is_quadratic else 1
        if options.every > 1 or options.callback is not None:
            block = math.gcd(block, options.every)
        capacity = max(1, min(MOST_ROWS, MOST_NUMBERS // numbers))
        self.loop = Loop(records, options.every, capacity, block, rows is not None)

    def _tuned(self, method: Any, objective: Objective, d: int) -> tuple[Any, Tuning | None]:
        if self.rows is None:
            return method.tuned(objective, d, self.dtype)
        for one in method if isinstance(method, list | tuple) else [method]:
            if one.step_rule.is_best or getattr(one.order, "given", "") == "best":
                _check.fail("sweep", "methods", "have numbers for gamma and eta", repr("best"))
        return method, None

    def _shapes(self, records: Mapping[str, Any], x0: Any) -> list[Any]:
        """What the records give, checked without any work."""
        one = self.method if self.rows is None else jax.tree.map(lambda a: a[0], self.method)
        state = jax.eval_shape(lambda x: one.start(self.objective, x), x0)
        for entry in records.values():
            if isinstance(entry, OfState) and not hasattr(state, entry.name):
                known = ", ".join(name for name in ("eta", "gamma") if hasattr(state, name))
                wanted = f"name a number that the method keeps ({known})"
                _check.fail(self.options.owner, "record", wanted, repr(entry.name))
        return [jax.eval_shape(entry, state) for entry in records.values()]

    def _say_cost(self, objective: Objective, cost: float) -> None:
        """Warn before a direction that costs many gradients."""
        local = isinstance(objective, Local)
        cheaper = 'the curvature "hutchinson"' if local else "cfgd.Local(objective, ...)"
        if cost >= COSTLY:
            warnings.warn(
                "An exact direction moves one coordinate at a time and costs about "
                f"{cost:.0f} gradients here; {cheaper} costs a few.",
                stacklevel=5,
            )

    def go(self) -> Solution:
        with in_precision(self.dtype):
            return self._go()

    def _go(self) -> Solution:
        options = self.options
        meter = Progress(self.last, options.progress)
        carry, row = begin(self.loop, self.objective, self.method, self.start)
        tally = jax.device_get(carry.tally)
        if np.any(tally.code != chunks.RUNNING):
            value, norm = np.ravel(carry.state.point.value), np.sqrt(np.ravel(tally.norm2))
            first = int(np.argmax(np.ravel(tally.code) != chunks.RUNNING))
            got = f"the value {value[first]}"
            if np.isfinite(value[first]):
                got = f"a gradient of norm {norm[first]}"
            _check.fail(options.owner, "x0", "give a finite value and gradient", got)
        self.value0 = np.asarray(carry.state.point.value)
        floor = (options.tolerance**2 * tally.norm2).astype(self.dtype)
        history = History(row)
        best, length, status = carry, FIRST_LENGTH, None
        try:
            while status is None:
                done, tick = int(np.max(tally.iterations)), time.perf_counter()
                after, rows, labels, written = chunk(
                    self.loop,
                    self.objective,
                    self.method,
                    carry,
                    np.int32(self._whole(length)),
                    np.int32(self.last),
                    floor,
                )
                tally = jax.device_get(after.tally)
                now = int(np.max(tally.iterations))
                history.add(rows, np.asarray(labels)[: int(written)].astype(int))
                best, carry = self._start_of_best(best, carry, after), after
                length = self._length(length, now - done, time.perf_counter() - tick)
                status = self._status(tally)
                meter.update(*self._seen(tally))
                if options.callback is not None and status is None:
                    so_far = self._solution(carry, best, floor, Status.running, history)
                    status = Status.callback if options.callback(so_far) else None
        except KeyboardInterrupt:
            status = Status.interrupted
        if status in (Status.max_iterations, Status.stages_done):
            carry = settle(self.loop, self.objective, self.method, carry, floor)
            tally = jax.device_get(carry.tally)
            if self.rows is None and tally.code == chunks.CONVERGED:
                status = Status.converged
        meter.close(*self._seen(tally))
        return self._solution(carry, best, floor, status, history)

    def _whole(self, length: int) -> int:
        """The length of the next chunk: whole blocks and rows."""
        if self.options.callback is not None:
            return self.options.every
        unit = math.lcm(self.loop.block, self.options.every)
        return max(1, length // unit) * unit

    def _length(self, length: int, made: int, elapsed: float) -> int:
        seconds = CHUNK_SECONDS
        if self.options.time_limit is not None:
            left = self.options.time_limit - (time.perf_counter() - self.began)
            seconds = max(1e-3, min(seconds, left))
        # compilation makes the first chunk slow, so no estimate shrinks the next one much
        wished = made * seconds / max(elapsed, 1e-6)
        return int(min(max(wished, length / 2, 1), 16 * length))

    def _status(self, tally: Any) -> Status | None:
        """Why the run ends now, if it does."""
        if not np.any(tally.is_open):
            return STATUS[int(np.max(tally.code))]
        if not np.any(tally.is_open & (tally.iterations < self.last)):
            ends = self.method.last_iteration == self.last
            return Status.stages_done if ends else Status.max_iterations
        limit = self.options.time_limit
        late = limit is not None and time.perf_counter() - self.began >= limit
        return Status.time_limit if late else None

    def _seen(self, tally: Any) -> tuple[int, float, float, str]:
        running = int(np.sum(tally.is_open))
        note = "" if self.rows is None else f"  {running} of {self.rows} running"
        norm = float(np.sqrt(np.max(tally.norm2)))
        return int(np.max(tally.iterations)), float(np.min(tally.best_value)), norm, note

    def _start_of_best(self, best: Carry, before: Carry, after: Carry) -> Carry:
        """The carry from which the best point is reached by going on to its iteration."""
        improved = np.asarray(after.tally.best_iteration) > np.asarray(before.tally.best_iteration)
        if not np.any(improved):
            return best
        if np.all(improved):
            return before

        def pick(new: Any, old: Any) -> Any:
            return jnp.where(improved.reshape((-1,) + (1,) * (new.ndim - 1)), new, old)

        return jax.tree.map(pick, before, best)

    def _best_point(self, carry: Carry, best: Carry, floor: Any) -> Point:
        """The best point: its number is known, so iterate up to it once more."""
        tally, last = jax.device_get((carry.tally, carry.state.point.value))
        over = tally.code == chunks.NONFINITE
        target = tally.best_iteration
        if not self.method.seeks_minimiser:  # then the last point, as long as it is finite
            target = np.where(over, target, tally.iterations)
            best = best if np.any(over) else carry
        if self.objective.drifts:  # a value known by recurrence is known to rounding of its start
            rounding = 8 * np.finfo(self.dtype).eps * np.maximum(np.abs(self.value0), np.abs(last))
            as_good = ~over & (last <= tally.best_value + rounding)
            target = np.where(as_good, tally.iterations, target)
        if np.all(target == tally.iterations):
            return look(self.loop, self.objective, carry.state.point.x)
        base = np.asarray(best.tally.iterations)
        while True:
            point = look(self.loop, self.objective, self._x_at(target, best, floor))
            finite = np.isfinite(point.value) & np.all(np.isfinite(point.x), -1)
            if np.all(finite | (target <= base)):
                return point
            # by recurrence the value was finite, but it is not: take an earlier point
            target = np.where(finite, target, (base + target) // 2)

    def _x_at(self, target: Any, carry: Carry, floor: Any) -> Any:
        """x of iteration `target`, by going on to it from an earlier one."""
        far, last = np.int32(2**30), target.astype(np.int32)
        while np.any(np.asarray(carry.tally.iterations) < target):
            carry, _, _, written = chunk(
                self.loop, self.objective, self.method, carry, far, last, floor
            )
            if int(written) == 0:
                break
        return carry.state.point.x

    def _solution(
        self, carry: Carry, best: Carry, floor: Any, status: Status, history: History
    ) -> Solution:
        point = self._best_point(carry, best, floor)
        tally = jax.device_get(carry.tally)
        norms = np.sqrt(np.sum(np.square(np.asarray(point.gradient)), -1))
        one = self.rows is None
        real, integer = (float, int) if one else (np.asarray, np.asarray)
        return Solution(
            x=like(self.structure.unravel(np.asarray(point.x)), self.x0),
            value=real(point.value),
            gradient_norm=real(norms),
            iterations=integer(tally.iterations),
            evaluations=real(tally.evaluations + (self.tuning.cost if self.tuning else 0)),
            resets=integer(tally.resets),
            status=status if one else [STATUS.get(int(code), status) for code in tally.code],
            history=history.joined(batched=not one),
            seconds=time.perf_counter() - self.began,
            how=self.how,
            rate=self.tuning.rate if self.tuning else None,
        )


class History:
    """Rows as the chunks give them, joined when they are asked for."""

    def __init__(self, first: dict[str, Any]) -> None:
        self.labels = [np.zeros(1, int)]
        self.parts = [jax.tree.map(lambda leaf: np.asarray(leaf)[None], first)]

    def add(self, rows: dict[str, Any], labels: Any) -> None:
        self.labels.append(labels)
        self.parts.append(
            jax.tree.map(lambda leaf: np.array(np.asarray(leaf)[: len(labels)]), rows)
        )

    def joined(self, batched: bool) -> dict[str, Any]:
        """The entries over iterations; for a sweep, settings first."""
        rows = jax.tree.map(lambda *parts: np.concatenate(parts), *self.parts)
        # a callback asks often: what is joined stays joined
        self.parts, self.labels = [rows], [np.concatenate(self.labels)]
        if batched:
            rows = jax.tree.map(lambda leaf: np.moveaxis(leaf, 1, 0), rows)
        return {"iteration": self.labels[0], **rows}


@dataclasses.dataclass(frozen=True)
class OfVector:
    """A function of the user's x, as one of the state; equal functions are one trace."""

    fn: Callable[[Any], Any]
    structure: Structure

    def __call__(self, state: Any) -> Any:
        return jnp.asarray(self.fn(self.structure.unravel(state.point.x)))


@dataclasses.dataclass(frozen=True)
class OfState:
    """A number that the method keeps: eta, gamma."""

    name: str

    def __call__(self, state: Any) -> Any:
        return getattr(state, self.name)
