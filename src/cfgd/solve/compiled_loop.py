"""The compiled loop: a method of JAX makes its iterations in compiled programs."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import numpy as np

from cfgd._core.compiled import bind
from cfgd._core.sharding import (
    any_sharded,
    devices_across_processes,
    shard_like,
    shard_rows_like,
    to_host,
)
from cfgd._core.types import Points
from cfgd.methods.base import Method
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.external import for_one_run, pop_error
from cfgd.objectives.host import HostObjective, host_objective
from cfgd.objectives.projected import Projected
from cfgd.solve.compiled_chunk import Carry, begin, chunk, evaluate, recheck_final
from cfgd.solve.history import History
from cfgd.solve.loop import Loop
from cfgd.solve.recompute import evaluate_finite, value_is_as_good
from cfgd.solve.run_stats import CONVERGED, RUNNING, LoopSettings, Rows, RunStats, Tolerances


class CompiledLoop(Loop):
    """A run, or the runs of a sweep, of a method whose steps are compiled."""

    def __init__(self, settings: LoopSettings, objective: Objective, method: Method) -> None:
        self.settings, self.method = settings, method
        # errors of the user's functions are stored under this number
        self.objective, self.number = for_one_run(objective)
        self.block = settings.block
        self._chunk = bind(chunk, settings, self.objective, method)
        self.carry: Any = None

    def begin(self, start: Points, tolerances: Tolerances) -> Rows:
        self.start, self.tolerances = start, tolerances
        program = bind(begin, self.settings, self.objective, self.method)
        carry, row = program(start, tolerances)
        self._raise_error(carry)
        self.carry = carry
        at = carry.state.evaluation
        self.value0, self.gradient0 = to_host((at.value, at.gradient))
        return row

    def run(self, length: int, last: int, history: History) -> None:
        carry, rows, labels, written = self._chunk(
            self.carry, np.int32(length), np.int32(last), self.tolerances, self.value0
        )
        try:
            self._raise_error(carry)
        except KeyboardInterrupt:
            # the state before the chunk is whole; its rows are those of the history
            self.carry = dataclasses.replace(self.carry, best=carry.best)
            raise
        except BaseException:
            self.carry = carry
            raise
        self.carry = carry
        history.add(rows, np.asarray(labels)[: int(written)].astype(int))

    def _raise_error(self, answer: Any) -> None:
        """Raise what a function of the user raised while the program computed its answer."""
        jax.block_until_ready(answer)  # a program may still run when its call returns
        error = pop_error(self.number)
        if error is not None:
            raise error

    def _evaluate(self, x: Any) -> Evaluation:
        found = bind(evaluate, self.settings, self.objective)(x)
        self._raise_error(found)
        return found

    def stats(self) -> RunStats:
        return to_host(self.carry.stats)

    def best_value(self) -> Any:
        return to_host(self.carry.best.value)

    def can_checkpoint(self) -> bool:
        stats = self.stats()
        # a run that waits for the end of its block has overwritten its memory with x
        return not np.any(stats.is_open & (stats.iterations % self.block != 0))

    def snapshot(self) -> Carry:
        # what an evaluation has for each row comes along: a few numbers
        return to_host(self.carry) if devices_across_processes(self.carry) else self.carry

    def restore(self, snapshot: Carry) -> None:
        carry = snapshot
        if any_sharded(self.objective):
            at = carry.state.evaluation
            sharded = bind(evaluate, self.settings, self.objective)(at.x).aux
            aux = jax.tree.map(shard_like, sharded, at.aux)
            state = dataclasses.replace(carry.state, evaluation=at._replace(aux=aux))
            carry = dataclasses.replace(carry, state=state)
        self.carry = jax.tree.map(partial(shard_rows_like, self.start), carry)

    def recheck_final(self) -> None:
        recheck = bind(recheck_final, self.settings, self.objective, self.method)
        carry = recheck(self.carry, self.tolerances)
        self._raise_error(carry)
        self.carry = carry

    def result(self) -> tuple[Evaluation, Any]:
        take_last, most = self._take_last(), np.inf
        x, x_best = to_host((self.carry.state.evaluation.x, self.carry.best.x))
        if self.method.traits.seeks_minimiser:
            most = self.value0 + np.sqrt(np.finfo(x.dtype).eps) * np.abs(self.value0)
        x, start = np.where(take_last[..., None], x, x_best), to_host(self.start)
        compute = self._evaluate
        try:
            found, count = evaluate_finite(self.objective, compute, x, x_best, start, most)
        except Exception:
            # a function of the user that failed before may fail again: the best value is known
            return self.known_result()[0], np.zeros(take_last.shape, int)
        return to_host(found._replace(aux=None)), count - 1

    def known_result(self) -> tuple[Evaluation, bool]:
        take_last, best = self._take_last(), to_host(self.carry.best)
        at = to_host(self.carry.state.evaluation._replace(aux=None))
        has_all = best.gradient is not None or bool(np.all(take_last))
        is_exact = has_all and not self.objective.traits.accumulates_rounding
        column = take_last[..., None]
        known = Evaluation(
            np.where(column, at.x, best.x),
            np.where(take_last, at.value, best.value)[()],
            np.where(column, at.gradient, np.nan if best.gradient is None else best.gradient),
        )
        return known, is_exact

    def _take_last(self) -> Any:
        """Return whether the last point, and not the best one, is the result of each run."""
        last, best = to_host((self.carry.state.evaluation.value, self.carry.best.value))
        code = self.stats().code
        # the last point of a run that failed may be no number
        take_last = (code == RUNNING) | (code == CONVERGED)
        if self.method.traits.seeks_minimiser:
            take_last = take_last & value_is_as_good(self.objective, last, best, self.value0)
        return np.asarray(take_last)

    def fingerprint(self, x: np.ndarray) -> tuple[Any, ...]:
        try:
            at = self._evaluate(x)
        except Exception:  # the function may fail at other points than those of the run
            return ()
        return to_host((at.value, at.gradient))

    def curvature_at(self, x: np.ndarray) -> Curvature | None:
        whole = self.objective
        objective = host_objective(whole.objective if isinstance(whole, Projected) else whole)
        if isinstance(objective, HostObjective):
            return None  # it would have to be compiled
        return objective.curvature(objective.evaluate(x))
