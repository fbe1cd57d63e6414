"""One call of `minimize` or `sweep`: set up, the host loop, and its solution."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd import _check
from cfgd.chunk import (
    BLOCK,
    CONVERGED,
    INDEFINITE,
    NONFINITE,
    RUNNING,
    STALLED,
    Carry,
    Loop,
    begin,
    chunk,
    look,
)
from cfgd.fitting import fit
from cfgd.objective.base import Objective, Point
from cfgd.objective.smooth import Smooth
from cfgd.options import Options
from cfgd.precision import cast, in_precision, precision_of
from cfgd.progress import Progress
from cfgd.solution import Solution, Status
from cfgd.structure import Structure, as_tree, like

CODES = {
    CONVERGED: Status.converged,
    NONFINITE: Status.nonfinite,
    INDEFINITE: Status.indefinite,
    STALLED: Status.stalled,
}
# rows of the history that a chunk may write, and the numbers in them
MOST_ROWS, MOST_NUMBERS = 2**14, 2**23
# seconds that a chunk should take: time_limit, progress and Ctrl-C are looked at in between
CHUNK_SECONDS = 0.1


class Run:
    """One call of `minimize` or `sweep`: set up, the host loop, and the solution of it."""

    def __init__(
        self, options: Options, objective: Any, x0: Any, methods: list[Any], batched: bool
    ) -> None:
        self.options, self.batched = options, batched
        self.began = time.perf_counter()
        x0 = as_tree(options.owner, "x0", x0)
        if not isinstance(objective, Objective):
            if not callable(objective):
                wanted = "be an objective or a function"
                _check.fail(options.owner, "objective", wanted, repr(objective))
            objective = Smooth(objective)
        x0 = self._starts(objective, x0, len(methods))
        self.x0 = x0[0] if self.batched else x0
        self.structure = Structure.of(self.x0)
        self.dtype = precision_of(x0, objective)
        self.methods = methods
        with in_precision(self.dtype):
            self._set_up(objective, x0)

    def _starts(self, objective: Objective, x0: Any, rows: int) -> Any:
        """x0, or for a sweep the list of one x0 for each setting."""
        d = objective.dimension
        given = jnp.shape(x0) if not isinstance(x0, dict | list | tuple) else ()
        many = self.batched and d is not None and len(given) == 2
        if d is not None and given != ((rows, d) if many else (d,)):
            wanted = f"have shape ({d},)" + (f" or ({rows}, {d})" if self.batched else "")
            _check.fail(self.options.owner, "x0", wanted, given)
        if not self.batched:
            return x0
        return list(x0) if many else [x0] * rows

    def _set_up(self, objective: Objective, x0: Any) -> None:
        options, structure = self.options, self.structure
        starts = [structure.ravel(x) for x in (x0 if self.batched else [x0])]
        objective = objective.flat(structure)
        if isinstance(objective, Smooth):
            _check.scalar_function(options.owner, objective.fn, cast(starts[0], self.dtype))
        d = starts[0].size
        methods = [fit(method, structure, d) for method in self.methods]
        self.methods = methods
        stack = (lambda *leaves: jnp.stack(leaves)) if self.batched else lambda leaf: leaf
        self.objective = cast(objective, self.dtype)
        self.method = cast(jax.tree.map(stack, *methods), self.dtype)
        self.start = cast(jax.tree.map(stack, *starts), self.dtype)

        ends = [m.last_iteration for m in methods if m.last_iteration is not None]
        self.last = min([options.max_iterations, *ends[:1]])
        records = {name: _of_vector(fn, structure) for name, fn in options.record.items()}
        numbers = 1 + sum(
            leaf.size
            for fn in records.values()
            for leaf in jax.tree.leaves(jax.eval_shape(fn, self.start[0] if self.batched else self.start))
        )
        rows = max(1, min(MOST_ROWS, MOST_NUMBERS // (numbers * len(methods))))
        block = BLOCK if self.objective.is_quadratic else 1
        if options.every > 1 or options.callback is not None:
            block = math.gcd(block, options.every)
        self.loop = Loop(records, options.every, rows, block, self.batched)

    def go(self) -> Solution:
        with in_precision(self.dtype):
            return self._go()

    def _go(self) -> Solution:
        options = self.options
        meter = Progress(self.last, options.progress)
        carry, row = begin(self.loop, self.objective, self.method, self.start)
        if np.any(np.asarray(carry.tally.code) != RUNNING):
            got = np.asarray(carry.state.point.value)
            wanted = "give a finite value and gradient"
            _check.fail(options.owner, "x0", wanted, f"the value {got if got.ndim == 0 else got[0]}")
        floor = (jnp.asarray(options.tolerance, self.dtype) ** 2) * carry.tally.norm2
        history = History(row)
        best = carry
        length, status = 64, None
        try:
            while status is None:
                done = self._done(carry)
                limit = self._limit(done, length)
                tick = time.perf_counter()
                after, rows, written = chunk(
                    self.loop, self.objective, self.method, carry, jnp.asarray(limit), floor
                )
                labels = done + self.options.every * np.arange(1, int(written) + 1)
                history.add(rows, np.minimum(labels, self._done(after)))
                best = self._better(carry, after, best)
                carry = after
                elapsed = time.perf_counter() - tick
                length = self._length(length, self._done(carry) - done, elapsed)
                status = self._status(carry)
                meter.update(*self._seen(carry))
                if options.callback is not None and status is None:
                    so_far = self._solution(carry, best, floor, Status.running, history)
                    status = Status.callback if options.callback(so_far) else None
        except KeyboardInterrupt:
            status = Status.interrupted
        meter.close(*self._seen(carry))
        assert status is not None
        return self._solution(carry, best, floor, status, history)

    def _limit(self, done: int, length: int) -> int:
        """Where the next chunk ends: not inside a block, unless the run ends there."""
        if self.options.callback is not None:
            return min(done + self.options.every, self.last)
        unit = max(self.loop.block, self.options.every)
        return min(done + max(1, length // unit) * unit, self.last)

    def _length(self, length: int, made: int, elapsed: float) -> int:
        seconds = CHUNK_SECONDS
        if self.options.time_limit is not None:
            left = self.options.time_limit - (time.perf_counter() - self.began)
            seconds = max(1e-3, min(seconds, left))
        # compilation makes the first chunk slow, so no estimate may shrink it much at once
        wished = length * seconds / max(elapsed, 1e-6) if made > 0 else length
        return int(min(max(wished, length / 2, 1), 8 * length))

    def _status(self, carry: Carry) -> Status | None:
        """Why the host ends the run: all are over, or no more may be done."""
        running = np.asarray(carry.tally.code) == RUNNING
        limit = self.options.time_limit
        if not running.any():
            return CODES[int(np.max(np.asarray(carry.tally.code)))]
        if self._done(carry) >= self.last:
            ended = self.last < self.options.max_iterations
            return Status.stages_done if ended else Status.max_iterations
        if limit is not None and time.perf_counter() - self.began >= limit:
            return Status.time_limit
        return None

    def _done(self, carry: Carry) -> int:
        return int(np.max(np.asarray(carry.tally.iterations)))

    def _seen(self, carry: Carry) -> tuple[int, float, float, str]:
        tally = carry.tally
        running = int(np.sum(np.asarray(tally.code) == RUNNING))
        note = f"  {running} of {len(self.methods)} running" if self.batched else ""
        value, norm2 = np.min(np.asarray(tally.best_value)), np.max(np.asarray(tally.norm2))
        return self._done(carry), float(value), float(np.sqrt(norm2)), note

    def _better(self, before: Carry, after: Carry, best: Carry) -> Carry:
        """The carry from which the best point is reached by going on to its iteration."""
        improved = after.tally.best_iteration > before.tally.best_iteration
        if not self.batched:
            return before if bool(improved) else best

        def pick(new: Any, old: Any) -> Any:
            return jnp.where(improved.reshape((-1,) + (1,) * (new.ndim - 1)), new, old)

        return jax.tree.map(pick, before, best)

    def _best_x(self, carry: Carry, best: Carry, floor: Any) -> Any:
        """The best point: only its iteration was kept, so iterate up to it once more."""
        target = carry.tally.best_iteration
        if not self.methods[0].seeks_minimiser:
            finite = np.asarray(carry.tally.code) != NONFINITE
            if finite.all():
                return carry.state.point.x
        if np.all(np.asarray(target == carry.tally.iterations)):
            return carry.state.point.x
        while np.any(np.asarray(best.tally.iterations < target)):
            again, _, _ = chunk(self.loop, self.objective, self.method, best, target, floor)
            if np.array_equal(again.tally.iterations, best.tally.iterations):
                break
            best = again
        return best.state.point.x

    def _solution(
        self, carry: Carry, best: Carry, floor: Any, status: Status, history: History
    ) -> Solution:
        point = look(self.loop, self.objective, self._best_x(carry, best, floor))
        tally = jax.tree.map(np.asarray, carry.tally)
        norms = np.sqrt(np.sum(np.square(np.asarray(point.gradient)), -1))
        integer, real = (np.asarray, np.asarray) if self.batched else (int, float)
        return Solution(
            x=like(self.structure.unravel(point.x), self.x0),
            value=real(point.value),
            gradient_norm=real(norms),
            iterations=integer(tally.iterations),
            evaluations=real(tally.evaluations),
            resets=integer(tally.resets),
            status=[CODES.get(int(c), status) for c in tally.code] if self.batched else status,
            history=history.joined(self.batched),
            seconds=time.perf_counter() - self.began,
        )


class History:
    """Rows as the chunks give them, joined when they are asked for."""

    def __init__(self, first: dict[str, Any]) -> None:
        self.labels = [np.zeros(1, int)]
        self.parts = [jax.tree.map(lambda leaf: np.asarray(leaf)[None], first)]

    def add(self, rows: dict[str, Any], labels: Any) -> None:
        self.labels.append(labels)
        self.parts.append(jax.tree.map(lambda leaf: np.asarray(leaf)[: len(labels)], rows))

    def joined(self, batched: bool) -> dict[str, Any]:
        """The entries over iterations; for a sweep, settings first."""
        rows = jax.tree.map(lambda *parts: np.concatenate(parts), *self.parts)
        if batched:
            rows = jax.tree.map(lambda leaf: np.moveaxis(leaf, 1, 0), rows)
        return {"iteration": np.concatenate(self.labels), **rows}


def _of_vector(fn: Callable[[Any], Any], structure: Structure) -> Callable[[Any], Any]:
    if structure.is_vector:
        return lambda x: jnp.asarray(fn(x))
    return lambda x: jnp.asarray(fn(structure.unravel(x)))
