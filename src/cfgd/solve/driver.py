"""One call of `minimize` or `sweep`: run chunks until a status ends the run, and sum it up."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.process_group import ProcessGroup
from cfgd._core.pytrees import match_array_type
from cfgd._core.sharding import to_host
from cfgd.methods.auto.select import can_factor
from cfgd.objectives.information import Information
from cfgd.objectives.rescaled import Rescaled, safe_factor
from cfgd.solve import clock
from cfgd.solve.agreement import Next, agreed
from cfgd.solve.bounds import details_in_box
from cfgd.solve.checkpoint import Checkpoint
from cfgd.solve.compiling import seconds_compiling
from cfgd.solve.covariance import information
from cfgd.solve.ending import (
    NormAndValue,
    describe_tolerance,
    final_statuses,
    row_norms,
    status_details,
)
from cfgd.solve.history import History, settle_values
from cfgd.solve.interrupt import Interrupt
from cfgd.solve.loop import Loop
from cfgd.solve.make_loop import make_loop
from cfgd.solve.options import Options
from cfgd.solve.problem import Problem, check_start
from cfgd.solve.progress import Progress
from cfgd.solve.run_stats import CONVERGED, Rows, RunStats, Tolerances
from cfgd.solve.separated import separated
from cfgd.solve.solution import Solution, attach
from cfgd.solve.terms import describe_terms, terms_at
from cfgd.solve.wrong_gradient import diagnosed
from cfgd.status import STATUSES, Status

# Seconds that a chunk should take. Between chunks the driver reads the clock, shows the progress
# and handles Ctrl-C: a delay of a tenth of a second is hardly noticed.
CHUNK_SECONDS = 0.1
# How many times as long as the last one a chunk may be: the first ones also measure what is done
# once, such as compiling.
MAX_GROWTH = 8


class Run:
    """A call of `minimize` or `sweep` after its arguments have been checked.

    It runs a loop chunk by chunk. Progress, callback, time limit, checkpoints and Ctrl-C are
    handled between chunks, and only here.

    Parameters
    ----------
    options, problem
        The checked arguments.
    interrupt
        Whether Ctrl-C was pressed.
    began, compiled
        The time and the seconds of compilation at the call.
    group
        The processes that make this call together.
    """

    def __init__(
        self,
        options: Options,
        problem: Problem,
        interrupt: Interrupt,
        began: float,
        group: ProcessGroup,
        compiled: float,
    ) -> None:
        self.options, self.problem, self.began = options, problem, began
        self.interrupt, self.group, self.compiled = interrupt, group, compiled
        self.traits = problem.method.traits
        most = options.max_iterations
        self.last = min(most, self.traits.last_iteration or most)  # iteration
        self.objective, self.factor = problem.objective, 1.0  # `objective` is factor * f
        self.loop: Loop
        self.checkpoint: Checkpoint | None = None
        self.has_started = False  # the start has been evaluated: there is a result
        limit = options.time_limit

        # not a method: a reference to this run in its own loop would keep its arrays
        def should_stop() -> bool:
            """Return whether a solver on the host is to stop in the middle of a step."""
            return interrupt.is_asked or (limit is not None and clock.now() - began >= limit)

        self._should_stop = should_stop

    def go(self) -> Solution:
        """Run to the end and return the solution."""
        with in_precision(self.problem.dtype), self.group.report_lost_process(self._advice()):
            try:
                return self._go()
            except KeyboardInterrupt as error:
                if not self.has_started or not self.group.is_single:
                    raise  # there is no result yet, or other processes do not know of the Ctrl-C
                return self._interrupted(error)

    def _advice(self) -> str:
        """Return how to resume after a process was lost."""
        file = self.options.checkpoint
        return "" if file is None else f" The same call resumes from its checkpoint, {file}."

    def _go(self) -> Solution:
        tick = clock.now()
        self.history = History(self._begin())
        self.chunk_length = self.problem.loop.block
        if self.group.is_single:  # else all processes must agree on it first
            self.chunk_length = self._next_length(1, clock.now() - tick)
        self.meter = Progress(self.last, self.options.progress and self.group.is_main)
        self.has_started = True
        if self.options.checkpoint is not None:
            self.checkpoint = Checkpoint(self.options, self.problem, self.loop, self.group)
        status = self._resume()
        while status is None:
            status = self._chunk()
        self._write_checkpoint()
        if status in (Status.max_iterations, Status.stages_done):
            self.loop.recheck_final()
            if self.problem.n_settings is None and self.loop.stats().code == CONVERGED:
                status = Status.converged
        if self.meter.shown:
            self.meter.close(*self._progress(self.loop.stats()))
        # after Ctrl-C a function of the user is not called again: it may take long
        asks_user = self.objective.traits.runs_user_code
        only_known = status is Status.interrupted and asks_user
        return self._diagnosed(self._solution(status, only_known=only_known))

    def _diagnosed(self, solution: Solution) -> Solution:
        """Return the solution of a run that may have failed because of its data or gradient."""
        is_minimize = self.problem.n_settings is None and self.group.is_single
        if not is_minimize or not self.traits.seeks_minimiser or self._should_stop():
            return solution
        x = np.array(self.problem.structure.ravel(solution.x), self.problem.dtype)
        box = self.problem.box
        solution = separated(solution, self.traits, self.problem.objective, x, box)
        if box is not None:  # differences of values might leave it
            return solution
        start = np.asarray(to_host(self.problem.start))
        return diagnosed(solution, self.traits, x, start, self.loop.fingerprint, self.factor)

    # ------------------------------------------------------------------ the start

    def _begin(self) -> Rows:
        """Evaluate the start; rescale f if squares of the gradient would overflow or underflow."""
        given = self.options.tolerance, self.options.gradient_tolerance or 0
        tolerances = Tolerances(*(np.asarray(number, self.problem.dtype) for number in given))
        row = self._begin_loop(tolerances)
        value, gradient = self.loop.value0, self.loop.gradient0
        if self.problem.box is not None:
            gradient = self.problem.box.free_gradient(to_host(self.problem.start), gradient)
        largest = np.asarray(np.abs(gradient).max(-1))
        check_start(self.options.owner, value.ravel(), largest.ravel())
        may_grow = self.traits.runs_on_host and not self.objective.traits.is_quadratic
        factor = safe_factor(float(largest.max()), self.problem.dtype, may_grow)
        if self.traits.is_scale_invariant and factor != 1:
            self.factor = factor
            scalar = jnp.asarray(factor, self.problem.dtype)
            self.objective = Rescaled(self.objective, scalar)
            absolute = np.asarray(factor * tolerances.absolute, self.problem.dtype)
            return self._begin_loop(tolerances._replace(absolute=absolute))
        norm2 = self.loop.stats().norm2
        # at a bound the part of the gradient that counts may be 0 while the gradient is not
        is_lost = norm2 == 0 if self.problem.box is None else np.zeros_like(norm2, bool)
        if ((largest > 0) & (is_lost | ~np.isfinite(norm2))).any():
            wanted = "give a gradient whose square can be computed: multiply the objective"
            got = f"a largest entry of {np.max(largest):.3g}"
            checks.fail(self.options.owner, "x0", wanted, got)
        return row

    def _begin_loop(self, tolerances: Tolerances) -> Rows:
        """Create the loop and evaluate the start."""
        stop = self._should_stop if self.group.is_single else None
        self.loop = make_loop(self.options, self.problem, self.factor, stop)
        row = self.loop.begin(self.problem.start, tolerances)
        self.value0 = self.loop.value0
        self.norm0 = np.sqrt(self.loop.stats().norm2)
        return row

    def _resume(self) -> Status | None:
        """Resume from the checkpoint, if there is one; return a status if the run has ended."""
        if self.checkpoint is None:
            return None
        found = self.checkpoint.read(self.loop, self.history)
        if found is None:
            if self.last < self.loop.block:  # too short a run to save more than its start
                self.checkpoint.write(self.loop, self.history)
            return None
        self.loop.restore(found.snapshot)
        self.history = History.from_rows(found.labels, found.rows)
        stats = self.loop.stats()
        status, _ = self._agree(Next(self._status(stats), self.chunk_length, False), stats)
        if status is None:
            self.history.drop_partial(self.options.every)
        return status

    # ------------------------------------------------------------------ a chunk

    def _chunk(self) -> Status | None:
        """Run one chunk and return why the run ends now, if it does."""
        if self.interrupt.is_asked and self.group.is_single:
            return Status.interrupted
        done, tick = self.loop.stats().last_iteration, clock.now()
        last = self._last_of_chunk(done)
        try:
            self.loop.run(self._whole_rows(self.chunk_length), last, self.history)
        except Exception as error:
            attach(error, self._solution(Status.nonfinite))
            raise
        stats = self.loop.stats()
        made = max(stats.last_iteration - done, 1)
        self.chunk_length = self._next_length(made, clock.now() - tick)
        status = self._status(stats)
        if self.meter.shown:
            self.meter.update(*self._progress(stats))
        failed = None
        if self.options.callback is not None and status is None:
            status, failed = self._call_back()
        due = self.checkpoint is not None and self.checkpoint.is_due()
        status, due = self._agree(Next(status, self.chunk_length, due), stats, failed)
        is_last_block = stats.last_iteration == last < self.last
        if self.checkpoint is not None and status is None and (is_last_block or due):
            self.checkpoint.write(self.loop, self.history)
        return status

    def _last_of_chunk(self, done: int) -> int:
        """Return the iteration at which the next chunk ends at the latest.

        A run can only resume from the end of a block. With a checkpoint, a chunk therefore ends at
        the last whole block, where the file is written, before the iterations that are left.
        """
        whole_blocks = self.last - self.last % self.loop.block
        return self.last if self.checkpoint is None or done >= whole_blocks else whole_blocks

    def _whole_rows(self, length: int) -> int:
        """Return the length of the next chunk: whole blocks and rows."""
        if self.options.callback is not None:
            return self.options.every
        unit = math.lcm(self.problem.loop.block, self.options.every)
        return max(1, length // unit) * unit

    def _next_length(self, made: int, elapsed: float) -> int:
        """Return the length of the next chunk after one whose iterations took `elapsed` seconds."""
        seconds = CHUNK_SECONDS
        if self.options.time_limit is not None:
            left = self.options.time_limit - (clock.now() - self.began)
            seconds = max(1e-3, min(seconds, left))
        wished = made * seconds / max(elapsed, 1e-6)
        return int(min(max(wished, 1), MAX_GROWTH * self.chunk_length, 2**30))

    def _agree(
        self, wished: Next, stats: RunStats, failed: BaseException | None = None
    ) -> tuple[Status | None, bool]:
        """Return what all processes do next: end with a status, or write a checkpoint."""
        if self.group.is_single:
            return wished.status, wished.due
        at = stats.last_iteration, float(np.min(self.loop.best_value()))
        status, self.chunk_length, due = agreed(
            self.group, self.interrupt, wished, at, failed, self._advice()
        )
        return status, due

    def _status(self, stats: RunStats) -> Status | None:
        """Return why the run ends now, if it does."""
        if not stats.is_open.any():
            return STATUSES[int(stats.code.max())]
        if not (stats.is_open & (stats.iterations < self.last)).any():
            by_itself = self.traits.last_iteration == self.last
            return Status.stages_done if by_itself else Status.max_iterations
        return Status.time_limit if self._is_late() else None

    def _is_late(self) -> bool:
        limit = self.options.time_limit
        return limit is not None and clock.now() - self.began >= limit

    def _call_back(self) -> tuple[Status | None, BaseException | None]:
        """Call the user's callback; return its wish to end, or an error for all processes."""
        so_far = self._solution(Status.running)
        assert self.options.callback is not None
        if not self.group.is_single:
            self.group.barrier()  # so that `patience` is for the callback and not for compilation
        try:
            # a copy: the callback may change it, and an error gets the original
            return Status.callback if self.options.callback(replace(so_far)) else None, None
        except StopIteration:
            return Status.callback, None
        except KeyboardInterrupt:
            if self.group.is_single or self.interrupt.is_second:
                raise
            self.interrupt.is_asked = True  # all processes end after this chunk
            return None, None
        except BaseException as error:  # SystemExit, too: the others would wait for this process
            attach(error, so_far)
            if self.group.is_single:
                raise
            return None, error

    # ------------------------------------------------------------------ the end

    def _progress(self, stats: RunStats) -> tuple[int, str, str]:
        """Return iteration, numbers and a note for the progress line."""
        n, best = self.problem.n_settings, self.loop.best_value()
        running = int(np.sum(np.ravel(stats.is_open)[:n]))
        note = "" if n is None else f"  {running} of {n} running"
        norm, value = (float(v) / self.factor for v in (np.sqrt(np.max(stats.norm2)), np.min(best)))
        numbers = f"value {value:.6g}  norm {norm:.3g}"
        numbers += describe_terms(self.problem.objective, self.history)
        return stats.last_iteration, numbers, note

    def _interrupted(self, error: KeyboardInterrupt) -> Solution:
        """Return the best point after Ctrl-C; after a second one, raise the error with it."""
        with self.interrupt.held():  # from here on a Ctrl-C must not lose the solution
            solution = self._solution(Status.interrupted, only_known=True)
            _, is_exact = self.loop.known_result()
        try:
            if not self.interrupt.is_second:
                self._write_checkpoint()
                # a function of the user may take long
                if not is_exact and not self.objective.traits.runs_user_code:
                    solution = self._solution(Status.interrupted)
                if self.meter.shown:
                    self.meter.close(*self._progress(self.loop.stats()))
                return solution
        except KeyboardInterrupt as second:
            error = second
        attach(error, solution)
        raise error

    def _write_checkpoint(self) -> None:
        """Write the checkpoint at the end of a run."""
        if self.checkpoint is not None and self.loop.can_checkpoint():
            self.checkpoint.write(self.loop, self.history)

    def _solution(self, status: Status, only_known: bool = False) -> Solution:
        """Return the best point so far with the status that the run has, or ends with.

        With `only_known` nothing is evaluated for it.
        """
        problem, stats, factor = self.problem, self.loop.stats(), self.factor
        tuning, one = problem.tuning, problem.n_settings is None
        at, more = (self.loop.known_result()[0], 0) if only_known else self.loop.result()
        box, g = problem.box, at.gradient
        norms = row_norms(g if box is None else box.free_gradient(at.x, g))
        real, integer = (float, int) if one else (np.asarray, np.asarray)
        first, last = NormAndValue(self.norm0, self.value0), NormAndValue(norms, at.value)
        statuses = final_statuses(self.traits, stats, status, first, last)
        note = describe_tolerance(self.options.tolerance, problem.dtype) + self.loop.note()
        if status is Status.interrupted and self.options.checkpoint is not None:
            note += " The same call resumes from `checkpoint`."
        details = status_details(self.traits, stats, statuses, first, last, factor, note)
        if box is not None:
            details = details_in_box(details, box, at.x, problem.structure, problem.was_moved)
        rows = self.history.as_dict(batched=not one)
        value, how = at.value, problem.how
        if factor != 1:
            if self.traits.runs_on_host:  # no variable projection on a multiple of a network
                how = problem.method.describe(self.objective)
            value, norms = value / factor, norms / factor
            rows = rows | {name: rows[name] / factor for name in ("value", "gradient_norm")}
        if self.traits.seeks_minimiser:
            rows["value"] = settle_values(rows["value"], value, self.options.every == 1)
        found = Solution(
            x=match_array_type(problem.structure.unravel(at.x), problem.x0),
            value=real(value),
            gradient_norm=real(norms),
            iterations=integer(stats.iterations),
            evaluations=real(stats.evaluations + more + (tuning.cost if tuning else 0)),
            resets=integer(stats.resets),
            status=statuses[0] if one else statuses,
            history=rows,
            seconds=clock.now() - self.began,
            compile_seconds=seconds_compiling() - self.compiled,
            details=details[0] if one else details,
            how=how,
            rate=tuning.rate if tuning else None,
            tolerance=self.options.tolerance,
            active_mask=box and problem.structure.unravel_parameters(box.mask(at.x)),
            terms=terms_at(problem.objective, rows, at.x, self.traits.runs_on_host),
            information=None if only_known else self._information(status, at.x),
        )
        return found if one else found.of_first(problem.n_settings or 0)

    def _information(self, status: Status, x: Any) -> Information | None:
        """Return the information matrix at the end of a fit, where its inverse is a covariance."""
        ended = status not in (Status.running, Status.nonfinite)
        if self.problem.n_settings is not None or not ended or not np.all(np.isfinite(x)):
            return None
        if not self.traits.seeks_minimiser or self.objective.traits.curvature is None:
            return None
        curvature = self.loop.curvature_at(to_host(x))
        return None if curvature is None or not can_factor(curvature) else information(curvature)
