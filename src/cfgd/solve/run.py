"""One call of `minimize` or `sweep`: the host loop over chunks, and its solution."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

import jax
import numpy as np

from cfgd import _check
from cfgd.objective.line import Point
from cfgd.precision import in_precision
from cfgd.solve.chunk import CONVERGED, RUNNING, Carry, begin, chunk, look, settle
from cfgd.solve.drift import as_good, looked_at
from cfgd.solve.history import History
from cfgd.solve.options import Options
from cfgd.solve.problem import Problem
from cfgd.solve.progress import Progress
from cfgd.solve.solution import Solution
from cfgd.status import STATUSES, Status
from cfgd.structure import like

# seconds that a chunk should take: time limit, progress and Ctrl-C are looked at in between
CHUNK_SECONDS = 0.1
FIRST_LENGTH = 128


class Run:
    """The host's side of a run: progress, callback, time limit and Ctrl-C live here."""

    def __init__(self, options: Options, problem: Problem, began: float) -> None:
        self.options, self.problem, self.began = options, problem, began
        own = problem.last_iteration
        self.last = min(options.max_iterations, own or options.max_iterations)

    def go(self) -> Solution:
        with in_precision(self.problem.dtype):
            return self._go()

    def _go(self) -> Solution:
        options, problem = self.options, self.problem
        parts = problem.loop, problem.objective, problem.method
        meter = Progress(self.last, options.progress)
        carry, row = begin(*parts, problem.start)
        tally = jax.device_get(carry.tally)
        self._check_start(carry, tally)
        self.value0 = np.asarray(carry.state.point.value)
        floor = (options.tolerance**2 * tally.norm2).astype(problem.dtype)
        history = History(row)
        length, status = FIRST_LENGTH, None
        try:
            while status is None:
                done, tick = int(np.max(tally.iterations)), time.perf_counter()
                wanted = np.int32(self._whole(length)), np.int32(self.last)
                after, rows, labels, written = chunk(*parts, carry, *wanted, floor)
                seen, best = jax.device_get((after.tally, after.best.value))
                history.add(rows, np.asarray(labels)[: int(written)].astype(int))
                # together, so that an interruption leaves nothing half done
                carry, tally = after, seen
                now = int(np.max(tally.iterations))
                length = self._length(length, now - done, time.perf_counter() - tick)
                status = self._status(tally)
                meter.update(*self._seen(tally, best))
                if options.callback is not None and status is None:
                    so_far = self._solution(carry, Status.running, history)
                    status = Status.callback if options.callback(so_far) else None
        except KeyboardInterrupt:
            status = Status.interrupted
        if status in (Status.max_iterations, Status.stages_done):
            carry = settle(*parts, carry, floor)
            tally = jax.device_get(carry.tally)
            if problem.rows is None and tally.code == CONVERGED:
                status = Status.converged
        meter.close(*self._seen(tally, np.asarray(carry.best.value)))
        return self._solution(carry, status, history)

    def _check_start(self, carry: Carry, tally: Any) -> None:
        closed = np.ravel(tally.code) != RUNNING
        if not np.any(closed):
            return
        first = int(np.argmax(closed))
        value, norm = np.ravel(carry.state.point.value), np.sqrt(np.ravel(tally.norm2))
        got = f"the value {value[first]}"
        if np.isfinite(value[first]):
            got = f"a gradient of norm {norm[first]}"
        _check.fail(self.options.owner, "x0", "give a finite value and gradient", got)

    def _whole(self, length: int) -> int:
        """The length of the next chunk: whole blocks and rows."""
        if self.options.callback is not None:
            return self.options.every
        unit = math.lcm(self.problem.loop.block, self.options.every)
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
            return STATUSES[int(np.max(tally.code))]
        if not np.any(tally.is_open & (tally.iterations < self.last)):
            ends = self.problem.last_iteration == self.last
            return Status.stages_done if ends else Status.max_iterations
        limit = self.options.time_limit
        late = limit is not None and time.perf_counter() - self.began >= limit
        return Status.time_limit if late else None

    def _seen(self, tally: Any, best: Any) -> tuple[int, float, float, str]:
        rows, running = self.problem.rows, int(np.sum(tally.is_open))
        note = "" if rows is None else f"  {running} of {rows} running"
        norm = float(np.sqrt(np.max(tally.norm2)))
        return int(np.max(tally.iterations)), float(np.min(best)), norm, note

    def _best_point(self, carry: Carry, tally: Any) -> tuple[Point, int]:
        """The best point by value, or the last one, looked at; and how many looks it took."""
        problem, most = self.problem, np.inf
        last, best, x, x_best = jax.device_get(
            (carry.state.point.value, carry.best.value, carry.state.point.x, carry.best.x)
        )
        # the last point of a run that broke off may lie beyond its end
        take_last = np.isin(tally.code, (RUNNING, CONVERGED))
        if problem.method.seeks_minimiser:
            take_last = take_last & as_good(problem.objective, last, best, self.value0)
            most = self.value0 + np.sqrt(np.finfo(best.dtype).eps) * np.abs(self.value0)
        x, start = np.where(take_last[..., None], x, x_best), np.asarray(problem.start)
        see = partial(look, problem.loop, problem.objective)
        return looked_at(problem.objective, see, x, x_best, start, most)

    def _solution(self, carry: Carry, status: Status, history: History) -> Solution:
        problem, tally = self.problem, jax.device_get(carry.tally)
        tuning, one = problem.tuning, problem.rows is None
        point, looks = self._best_point(carry, tally)
        more = looks - 1 + (tuning.cost if tuning else 0)
        norms = np.sqrt(np.sum(np.square(np.asarray(point.gradient)), -1))
        real, integer = (float, int) if one else (np.asarray, np.asarray)
        return Solution(
            x=like(problem.structure.unravel(np.asarray(point.x)), problem.x0),
            value=real(point.value),
            gradient_norm=real(norms),
            iterations=integer(tally.iterations),
            evaluations=real(tally.evaluations + more),
            resets=integer(tally.resets),
            status=status if one else self._statuses(tally, status),
            history=history.joined(batched=not one),
            seconds=time.perf_counter() - self.began,
            how=problem.how,
            rate=tuning.rate if tuning else None,
        )

    def _statuses(self, tally: Any, status: Status) -> list[Status]:
        """Of each setting: its own, or what ended the sweep."""
        return [status if code == RUNNING else STATUSES[code] for code in tally.code]
