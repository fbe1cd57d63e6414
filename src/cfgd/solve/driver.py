"""One call of `minimize` or `sweep`: the host loop over chunks, and its solution."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.either import replaced
from cfgd._core.process_group import ProcessGroup
from cfgd._core.pytrees import match_array_type
from cfgd._core.sharding import any_sharded, shard_like, shard_rows_like, to_host
from cfgd.objectives.base import Sight
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.linear.sharded import host_of
from cfgd.objectives.rescaled import Scaled, safe_factor
from cfgd.solve.agreement import Next, agreed
from cfgd.solve.checkpoint import Checkpoint, Kept
from cfgd.solve.compiled_loop import CONVERGED, RUNNING, Carry, Goal, look, settle
from cfgd.solve.compiling import seconds_compiling
from cfgd.solve.covariance import Information
from cfgd.solve.drift import as_good, looked_at
from cfgd.solve.ending import Numbers, details_of, norms_of, statuses_of
from cfgd.solve.history import History
from cfgd.solve.host_loop import Outside
from cfgd.solve.inside import Inside
from cfgd.solve.interrupt import Interrupt
from cfgd.solve.options import Options
from cfgd.solve.problem import Problem
from cfgd.solve.program import bind
from cfgd.solve.progress import Progress
from cfgd.solve.solution import Solution
from cfgd.status import STATUSES, Status

# seconds that a chunk should take: time limit, progress and Ctrl-C are looked at in between
CHUNK_SECONDS = 0.1
# looks from Python after which a run is worth a loop of its own: counted, for the clock would make
# runs differ
LONG = 5000
# how much longer than the last one a chunk may be: the time of an iteration is not known at first
GROWTH = 8


class Run:
    """The host's side of a run: progress, callback, time limit and Ctrl-C live here."""

    def __init__(
        self,
        options: Options,
        problem: Problem,
        interrupt: Interrupt,
        began: float,
        group: ProcessGroup,
    ) -> None:
        self.options, self.problem, self.began = options, problem, began
        self.interrupt, self.group = interrupt, group
        own = problem.last_iteration
        self.last = min(options.max_iterations, own or options.max_iterations)
        self.compiled = seconds_compiling()
        self.walk: Inside | Outside
        self.objective, self.factor = problem.objective, 1.0  # what is walked on: factor * f

    def go(self) -> Solution:
        file = self.options.checkpoint
        kept = "" if file is None else f" The same call goes on from its checkpoint, {file}."
        with in_precision(self.problem.dtype), self.group.report_lost_process(kept):
            return self._go()

    def _go(self) -> Solution:
        options, problem = self.options, self.problem
        meter = Progress(self.last, options.progress and self.group.is_main)
        tick, length = time.perf_counter(), problem.loop.block
        carry, row, goal = self._begin()
        if self.group.is_single:  # else all must have the same, and nothing is agreed yet
            length = self._length(length, 1, time.perf_counter() - tick)
        objective = self.objective  # in units in which its squares can be computed
        tally = to_host(carry.tally)
        self.value0, self.norm0 = to_host(carry.state.point.value), np.sqrt(tally.norm2)
        history = History(row)
        status = None
        block = 1 if isinstance(self.walk, Outside) else problem.loop.block
        whole = self.last - self.last % block
        checkpoint = None
        if options.checkpoint is not None:
            checkpoint = Checkpoint(options, problem, carry, self.walk, self.group)
        kept = None if checkpoint is None else checkpoint.found()
        if kept is not None:
            carry, history = self._resumed(kept), History.of(kept.labels, kept.rows)
            tally = to_host(carry.tally)
            best = to_host(carry.best.value)
            wished = Next(self._status(tally), length, False)
            status, length, _ = self._agreed(wished, tally, best)
        try:
            while status is None:
                if self.interrupt.asked and self.group.is_single:
                    raise KeyboardInterrupt
                done, tick = int(np.max(tally.iterations)), time.perf_counter()
                if isinstance(self.walk, Outside) and not self.walk.goes_on:
                    carry = self.walk.handed_over(carry)
                    self.walk = Inside(problem.loop, objective, problem.method)
                last = self.last if checkpoint is None or done >= whole else whole
                wanted = self._whole(length), np.int32(last)
                after, rows, labels = self.walk(carry, *wanted, goal)
                seen, best = to_host((after.tally, after.best.value))
                history.add(rows, labels)
                # together, so that an interruption leaves nothing half done
                carry, tally = after, seen
                made = max(int(np.max(tally.iterations)) - done, 1)
                length = self._length(length, made, time.perf_counter() - tick)
                error = objective.error()
                if error is not None:
                    raise _with(error, self._solution(carry, tally, Status.nonfinite, history))
                status = self._status(tally)
                if meter.shown:
                    meter.update(*self._seen(tally, best))
                failed = None
                if options.callback is not None and status is None:
                    status, failed = self._called_back(carry, tally, history)
                due = checkpoint is not None and checkpoint.is_due()
                wished = Next(status, length, due)
                status, length, due = self._agreed(wished, tally, best, failed)
                at_whole = last == whole == int(np.max(tally.iterations))
                if checkpoint is not None and status is None and (at_whole or due):
                    checkpoint.keep(self.walk, carry, history)
        except KeyboardInterrupt:
            if not self.group.is_single:  # a second Ctrl-C, of which the others know nothing
                raise
            status = Status.interrupted
        # what waits for the end of its block has lost its memory: the file has what was before
        if checkpoint is not None and not np.any(tally.is_open & (tally.iterations % block != 0)):
            checkpoint.keep(self.walk, carry, history)
        ended = status in (Status.max_iterations, Status.stages_done)
        if ended and not problem.method.judges:
            carry = bind(settle, problem.loop, objective, problem.method)(carry, goal)
            tally = to_host(carry.tally)
            if problem.rows is None and tally.code == CONVERGED:
                status = Status.converged
        if meter.shown:
            meter.close(*self._seen(tally, to_host(carry.best.value)))
        solution = self._solution(carry, tally, status, history)
        self.walk.let_go()
        return solution

    def _resumed(self, kept: Kept) -> Carry:
        """The carry from which the run goes on, where it was."""
        if kept.walk is not None and isinstance(self.walk, Outside):
            return self.walk.resumed(kept.walk)
        assert kept.carry is not None
        problem, carry = self.problem, kept.carry
        self.walk = Inside(problem.loop, self.objective, problem.method)
        if any_sharded(self.objective):
            point = carry.state.point
            there = bind(look, problem.loop, self.objective)(point.x).aux
            carried = jax.tree.map(shard_like, there, point.aux)
            carry = replaced(carry, state=replaced(carry.state, point=replaced(point, aux=carried)))
        return jax.tree.map(partial(shard_rows_like, problem.start), carry)

    def _begin(self) -> tuple[Carry, Any, Goal]:
        """Iteration 0, its row and the goal, of f or, where squares of its gradient are lost, c f.

        What `factor` and `objective` are from then on.
        """
        given = self.options.tolerance, self.options.gradient_tolerance or 0
        goal = Goal(*(np.asarray(number, self.problem.dtype) for number in given))
        carry, row = self._look_at_start(goal)
        point = carry.state.point
        value, gradient, norm2 = to_host((point.value, point.gradient, carry.tally.norm2))
        largest = np.max(np.abs(gradient), axis=-1)
        self._check_start(np.ravel(value), np.ravel(largest))
        lost = np.any((largest > 0) & ~((norm2 > 0) & np.isfinite(norm2)))
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
            checks.fail(self.options.owner, "x0", wanted, got)
        return carry, row, goal

    def _look_at_start(self, goal: Goal) -> tuple[Carry, Any]:
        problem, objective = self.problem, self.objective
        if problem.rows is None and problem.method.from_outside(objective):
            host = problem.host if objective is problem.objective else host_of(objective)
            see = host.evaluate if host else bind(look, problem.loop, objective)
            sight = objective.sight or _sight(see)
            hops = host is None and objective.sight is None
            most = LONG if hops else math.inf
            self.walk = Outside(problem.loop, objective, host, problem.method, sight, most)
        else:
            self.walk = Inside(problem.loop, objective, problem.method)
        return self.walk.begin(problem.start, goal)

    def _agreed(self, wished: Next, tally: Any, best: Any, failed: Exception | None = None) -> Next:
        """What all processes do next."""
        at = int(np.max(tally.iterations)), float(np.min(best))
        return agreed(self.group, self.interrupt, wished, at, failed)

    def _called_back(
        self, carry: Carry, tally: Any, history: History
    ) -> tuple[Status | None, Exception | None]:
        """What the callback wants; an error of its own goes up with the solution so far."""
        so_far = self._solution(carry, tally, Status.running, history)
        assert self.options.callback is not None
        try:
            return Status.callback if self.options.callback(so_far) else None, None
        except StopIteration:
            return Status.callback, None
        except Exception as error:
            _with(error, so_far)
            if self.group.is_single:
                raise
            return None, error

    def _check_start(self, value: Any, largest: Any) -> None:
        good = np.isfinite(value) & np.isfinite(largest)
        if np.all(good):
            return
        first = int(np.argmin(good))
        got = f"the value {value[first]}"
        if np.isfinite(value[first]):
            got = f"a gradient of norm {largest[first]}"
        checks.fail(self.options.owner, "x0", "give a finite value and gradient", got)

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
        rows = self.problem.rows
        running = int(np.sum(np.ravel(tally.is_open)[:rows]))
        note = "" if rows is None else f"  {running} of {rows} running"
        norm = float(np.sqrt(np.max(tally.norm2))) / self.factor
        return int(np.max(tally.iterations)), float(np.min(best)) / self.factor, norm, note

    def _best_point(self, carry: Carry, tally: Any) -> tuple[Evaluation, int]:
        """The best point by value, or the last one, looked at; and how many looks it took."""
        problem, most = self.problem, np.inf
        point = carry.state.point
        last, best, x, x_best = to_host((point.value, carry.best.value, point.x, carry.best.x))
        # the last point of a run that broke off may lie beyond its end
        take_last = (tally.code == RUNNING) | (tally.code == CONVERGED)
        if problem.method.seeks_minimiser:
            take_last = take_last & as_good(self.objective, last, best, self.value0)
            most = self.value0 + np.sqrt(np.finfo(best.dtype).eps) * np.abs(self.value0)
        if problem.method.judges and np.all(take_last | np.all(x == x_best, -1)):
            seen = getattr(carry.state, "seen")  # noqa: B009 - of the states of such methods
            return replaced(point, value=seen), 0
        x, start = np.where(take_last[..., None], x, x_best), to_host(problem.start)
        see = bind(look, problem.loop, self.objective)
        point, looks = looked_at(self.objective, see, x, x_best, start, most)
        return point, looks - 1

    def _solution(self, carry: Carry, tally: Any, status: Status, history: History) -> Solution:
        problem = self.problem
        tuning, one = problem.tuning, problem.rows is None
        point, more = self._best_point(carry, tally)
        at, value, gradient = to_host((point.x, point.value, point.gradient))
        norms = norms_of(gradient)
        real, integer = (float, int) if one else (np.asarray, np.asarray)
        first = Numbers(self.norm0, self.value0)
        last = Numbers(norms, value)
        statuses = statuses_of(problem.method, tally, status, first, last)
        details = details_of(problem.method, tally, statuses, first, last, self.factor)
        rows = history.joined(batched=not one)
        if self.factor != 1:
            value, norms = value / self.factor, norms / self.factor
            rows = rows | {name: rows[name] / self.factor for name in ("value", "gradient_norm")}
        found = Solution(
            x=match_array_type(problem.structure.unravel(at), problem.x0),
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
            information=self._information(status, at),
        )
        return found if problem.rows is None else found.of_first(problem.rows)

    def _information(self, status: Status, x: Any) -> Information | None:
        one = self.problem.rows is None
        ended = status not in (Status.running, Status.nonfinite)
        ended = ended and self.problem.method.seeks_minimiser
        return self.walk.information(x) if one and ended and np.all(np.isfinite(x)) else None


def _sight(see: Callable[[Any], Evaluation]) -> Sight:
    def seen(x: Any) -> tuple[Any, Any, Any]:
        point = see(x)
        return point.value, point.gradient, point.aux

    return seen


def _with(error: Exception, solution: Solution) -> Exception:
    """The error, which goes up with the best point so far."""
    error.solution = solution  # type: ignore[attr-defined]
    error.add_note("The best point so far is in the `solution` of this error.")
    return error
