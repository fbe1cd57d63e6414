"""One call of `minimize` or `sweep`: the host loop over chunks, and its solution."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from cfgd import _check
from cfgd.either import replaced
from cfgd.objective.base import Sight
from cfgd.objective.line import Point
from cfgd.objective.scaled import Scaled, safe_factor
from cfgd.precision import fetched, in_precision
from cfgd.solve.checkpoint import Checkpoint, Kept
from cfgd.solve.chunk import CONVERGED, RUNNING, Carry, Goal, look, settle
from cfgd.solve.compiling import seconds_compiling
from cfgd.solve.drift import as_good, looked_at
from cfgd.solve.history import History
from cfgd.solve.inside import Inside
from cfgd.solve.interrupt import Interrupt
from cfgd.solve.options import Options
from cfgd.solve.outside import Outside
from cfgd.solve.problem import Problem
from cfgd.solve.program import bind
from cfgd.solve.progress import Progress
from cfgd.solve.solution import Solution
from cfgd.solve.uncertainty import Information
from cfgd.status import STATUSES, Status
from cfgd.structure import like

# seconds that a chunk should take: time limit, progress and Ctrl-C are looked at in between
CHUNK_SECONDS = 0.1
# looks from Python after which a run is worth a loop of its own: counted, for the clock would make
# runs differ
LONG = 5000
# how much longer than the last one a chunk may be: the time of an iteration is not known at first
GROWTH = 8
# a gradient that was looked at anew may differ from the one that was judged by rounding
SLACK = 1.01
# a value this far below the start, in units of all that was known there, falls without end
ENDLESS = 1e25


class Run:
    """The host's side of a run: progress, callback, time limit and Ctrl-C live here."""

    def __init__(
        self, options: Options, problem: Problem, interrupt: Interrupt, began: float
    ) -> None:
        self.options, self.problem, self.began = options, problem, began
        self.interrupt = interrupt
        own = problem.last_iteration
        self.last = min(options.max_iterations, own or options.max_iterations)
        self.compiled = seconds_compiling()
        self.walk: Inside | Outside
        self.objective, self.factor = problem.objective, 1.0  # what is walked on: factor * f

    def go(self) -> Solution:
        with in_precision(self.problem.dtype):
            return self._go()

    def _go(self) -> Solution:
        options, problem = self.options, self.problem
        meter = Progress(self.last, options.progress)
        carry, row, goal = self._begin()
        objective = self.objective  # in units in which its squares can be computed
        tally = fetched(carry.tally)
        self.value0, self.norm0 = np.asarray(carry.state.point.value), np.sqrt(tally.norm2)
        history = History(row)
        length, status = problem.loop.block, None
        block = 1 if isinstance(self.walk, Outside) else problem.loop.block
        whole = self.last - self.last % block
        checkpoint = None
        if options.checkpoint is not None:
            checkpoint = Checkpoint(options, problem, carry, self.walk)
        kept = None if checkpoint is None else checkpoint.found()
        if kept is not None:
            carry, history = self._resumed(kept), History.of(kept.labels, kept.rows)
            tally = fetched(carry.tally)
            status = self._status(tally)
        try:
            while status is None:
                if self.interrupt.asked:
                    raise KeyboardInterrupt
                done, tick = int(np.max(tally.iterations)), time.perf_counter()
                if isinstance(self.walk, Outside) and not self.walk.goes_on:
                    carry = self.walk.handed_over(carry)
                    self.walk = Inside(problem.loop, objective, problem.method)
                last = self.last if checkpoint is None or done >= whole else whole
                wanted = self._whole(length), np.int32(last)
                after, rows, labels = self.walk(carry, *wanted, goal)
                seen, best = fetched((after.tally, after.best.value))
                history.add(rows, labels)
                # together, so that an interruption leaves nothing half done
                carry, tally = after, seen
                made = max(int(np.max(tally.iterations)) - done, 1)
                length = self._length(length, made, time.perf_counter() - tick)
                error = objective.error()
                if error is not None:
                    raise _with(error, self._solution(carry, tally, Status.nonfinite, history))
                status = self._status(tally)
                meter.update(*self._seen(tally, best))
                if options.callback is not None and status is None:
                    status = self._called_back(carry, tally, history)
                at_whole = last == whole == int(np.max(tally.iterations))
                if checkpoint is not None and status is None and (at_whole or checkpoint.is_due()):
                    checkpoint.keep(self.walk, carry, history)
        except KeyboardInterrupt:
            status = Status.interrupted
        # what waits for the end of its block has lost its memory: the file has what was before
        if checkpoint is not None and not np.any(tally.is_open & (tally.iterations % block != 0)):
            checkpoint.keep(self.walk, carry, history)
        ended = status in (Status.max_iterations, Status.stages_done)
        if ended and not problem.method.judges:
            carry = bind(settle, problem.loop, objective, problem.method)(carry, goal)
            tally = fetched(carry.tally)
            if problem.rows is None and tally.code == CONVERGED:
                status = Status.converged
        meter.close(*self._seen(tally, np.asarray(carry.best.value)))
        return self._solution(carry, tally, status, history)

    def _resumed(self, kept: Kept) -> Carry:
        """The carry from which the run goes on, where it was."""
        if kept.walk is not None and isinstance(self.walk, Outside):
            return self.walk.resumed(kept.walk)
        assert kept.carry is not None
        self.walk = Inside(self.problem.loop, self.objective, self.problem.method)
        return kept.carry

    def _begin(self) -> tuple[Carry, Any, Goal]:
        """Iteration 0, its row and the goal, of f or, where squares of its gradient are lost, c f.

        What `factor` and `objective` are from then on.
        """
        given = self.options.tolerance, self.options.gradient_tolerance or 0
        goal = Goal(*(np.asarray(number, self.problem.dtype) for number in given))
        carry, row = self._look_at_start(goal)
        value, gradient = (
            np.asarray(of) for of in (carry.state.point.value, carry.state.point.gradient)
        )
        largest = np.max(np.abs(gradient), axis=-1)
        self._check_start(np.ravel(value), np.ravel(largest))
        lost = np.any((largest > 0) & ~((carry.tally.norm2 > 0) & np.isfinite(carry.tally.norm2)))
        factor = safe_factor(float(np.max(largest)), self.problem.dtype)
        if self.problem.method.scale_free and factor != 1:
            self.factor = factor
            units = jnp.asarray(factor, self.problem.dtype)
            self.objective = self.objective.times(units) or Scaled(self.objective, units)
            goal = Goal(goal.tolerance, np.asarray(factor * goal.absolute, self.problem.dtype))
            return *self._look_at_start(goal), goal
        if lost:
            wanted = "give a gradient whose square can be computed: multiply the objective"
            got = f"a largest entry of {np.max(largest):.3g}"
            _check.fail(self.options.owner, "x0", wanted, got)
        return carry, row, goal

    def _look_at_start(self, goal: Goal) -> tuple[Carry, Any]:
        problem, objective = self.problem, self.objective
        if problem.rows is None and problem.method.from_outside(objective):
            host = objective.in_numpy()
            see = host.at if host else bind(look, problem.loop, objective)
            sight = objective.sight or _sight(see)
            hops = host is None and objective.sight is None
            most = LONG if hops else math.inf
            self.walk = Outside(problem.loop, objective, host, problem.method, sight, most)
        else:
            self.walk = Inside(problem.loop, objective, problem.method)
        return self.walk.begin(problem.start, goal)

    def _called_back(self, carry: Carry, tally: Any, history: History) -> Status | None:
        """What the callback wants; an error of its own goes up with the solution so far."""
        so_far = self._solution(carry, tally, Status.running, history)
        assert self.options.callback is not None
        try:
            return Status.callback if self.options.callback(so_far) else None
        except StopIteration:
            return Status.callback
        except Exception as error:
            _with(error, so_far)
            raise

    def _check_start(self, value: Any, largest: Any) -> None:
        good = np.isfinite(value) & np.isfinite(largest)
        if np.all(good):
            return
        first = int(np.argmin(good))
        got = f"the value {value[first]}"
        if np.isfinite(value[first]):
            got = f"a gradient of norm {largest[first]}"
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
        wished = made * seconds / max(elapsed, 1e-6)
        return int(min(max(wished, 1), GROWTH * length, 2**30))

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
        norm = float(np.sqrt(np.max(tally.norm2))) / self.factor
        return int(np.max(tally.iterations)), float(np.min(best)) / self.factor, norm, note

    def _best_point(self, carry: Carry, tally: Any) -> tuple[Point, int]:
        """The best point by value, or the last one, looked at; and how many looks it took."""
        problem, most = self.problem, np.inf
        point = carry.state.point
        last, best, x, x_best = fetched((point.value, carry.best.value, point.x, carry.best.x))
        # the last point of a run that broke off may lie beyond its end
        take_last = (tally.code == RUNNING) | (tally.code == CONVERGED)
        if problem.method.seeks_minimiser:
            take_last = take_last & as_good(self.objective, last, best, self.value0)
            most = self.value0 + np.sqrt(np.finfo(best.dtype).eps) * np.abs(self.value0)
        if problem.method.judges and np.all(take_last | np.all(x == x_best, -1)):
            seen = getattr(carry.state, "seen")  # noqa: B009 - of the states of such methods
            return replaced(point, value=seen), 0
        x, start = np.where(take_last[..., None], x, x_best), np.asarray(problem.start)
        see = bind(look, problem.loop, self.objective)
        point, looks = looked_at(self.objective, see, x, x_best, start, most)
        return point, looks - 1

    def _solution(self, carry: Carry, tally: Any, status: Status, history: History) -> Solution:
        problem = self.problem
        tuning, one = problem.tuning, problem.rows is None
        point, more = self._best_point(carry, tally)
        value, norms = np.asarray(point.value), _norms(np.asarray(point.gradient))
        real, integer = (float, int) if one else (np.asarray, np.asarray)
        statuses = self._statuses(tally, status, value, norms)
        details = self._details(tally, statuses, value, norms)
        rows = history.joined(batched=not one)
        if self.factor != 1:
            value, norms = value / self.factor, norms / self.factor
            rows = rows | {name: rows[name] / self.factor for name in ("value", "gradient_norm")}
        return Solution(
            x=like(problem.structure.unravel(np.asarray(point.x)), problem.x0),
            value=real(value),
            gradient_norm=real(norms),
            iterations=integer(tally.iterations),
            evaluations=real(tally.evaluations + more + (tuning.cost if tuning else 0)),
            resets=integer(tally.resets),
            status=statuses[0] if one else statuses,
            history=rows,
            seconds=time.perf_counter() - self.began,
            compile_seconds=seconds_compiling() - self.compiled,
            details=details[0] if one else details,
            how=problem.how,
            rate=tuning.rate if tuning else None,
            information=self._information(status, point),
        )

    def _information(self, status: Status, point: Point) -> Information | None:
        x, one = np.asarray(point.x), self.problem.rows is None
        ended = status not in (Status.running, Status.nonfinite)
        ended = ended and self.problem.method.seeks_minimiser
        return self.walk.information(x) if one and ended and np.all(np.isfinite(x)) else None

    def _statuses(self, tally: Any, status: Status, value: Any, norm: Any) -> list[Status]:
        """Of each setting: its own, or what ended the run; of the point that is returned."""
        if self.problem.rows is None:
            statuses = [status]
        else:
            statuses = [status if code == RUNNING else STATUSES[code] for code in tally.code]
        known = np.abs(self.value0) + self.norm0
        endless = np.ravel(value < self.value0 - ENDLESS * known)
        broken = (Status.nonfinite, Status.indefinite)
        statuses = [
            Status.unbounded if fell and status in broken else status
            for status, fell in zip(statuses, endless, strict=True)
        ]
        method = self.problem.method
        if method.judges or not method.seeks_minimiser:
            return statuses  # the point that was judged is the one that is returned
        # a run may arrive where the value is higher than at the best point, which has not arrived
        met = np.ravel(np.square(norm) <= SLACK * tally.floor)
        return [
            Status.stalled if status is Status.converged and not arrived else status
            for status, arrived in zip(statuses, met, strict=True)
        ]

    def _details(self, tally: Any, statuses: list[Status], value: Any, norm: Any) -> list[str]:
        """From what to what, for each setting."""
        seeks = self.problem.method.seeks_minimiser
        ends = norm if seeks else np.sqrt(tally.norm2)
        seen = (self.norm0, ends, self.value0, value)
        columns = (np.ravel(column) / self.factor for column in seen)
        what = "gradient" if seeks else "direction"
        advice = self.problem.method.advice
        return [
            f"The norm of the {what} went from {a:.3g} to {b:.3g}, "
            f"the value from {c:.6g} to {d:.6g}."
            + (f" {advice[status]}" if status in advice else "")
            for status, a, b, c, d in zip(statuses, *columns, strict=True)
        ]


def _sight(see: Callable[[Any], Point]) -> Sight:
    def seen(x: Any) -> tuple[Any, Any, Any]:
        point = see(x)
        return point.value, point.gradient, point.carried

    return seen


def _norms(gradient: Any) -> Any:
    """Of each row, without squares that overflow."""
    largest = np.max(np.abs(gradient), -1)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1)
    return unit * np.sqrt(np.sum(np.square(gradient / unit[..., None]), -1))


def _with(error: Exception, solution: Solution) -> Exception:
    """The error, which goes up with the best point so far."""
    error.solution = solution  # type: ignore[attr-defined]
    error.add_note("The best point so far is in the `solution` of this error.")
    return error
