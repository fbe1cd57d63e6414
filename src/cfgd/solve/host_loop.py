"""The loop on the host: Auto's solvers step in Python, and ask an oracle for evaluations."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from cfgd._core.box import Box
from cfgd._core.compiled import bind
from cfgd._core.sharding import shard_like, to_host
from cfgd._core.types import Points
from cfgd.methods.auto.conjugate_gradients import CGState
from cfgd.methods.auto.oracle import Oracle, StopRunError
from cfgd.methods.auto.state import Goal, SolverState
from cfgd.methods.base import State
from cfgd.objectives.base import Objective
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation
from cfgd.solve.history import History
from cfgd.solve.loop import Loop
from cfgd.solve.recompute import evaluate_finite, value_is_as_good
from cfgd.solve.run_stats import LoopSettings, Rows, RunStats, Tolerances
from cfgd.solve.terms import TermRecorder
from cfgd.status import Status


def recorded(settings: LoopSettings, state: State) -> Rows:
    """Return what the user asked to record of an iteration."""
    return {name: of(state) for name, of in settings.records.items()}


@dataclasses.dataclass
class HostRun:
    """One run: its solver's state and its oracle."""

    oracle: Oracle
    state: SolverState
    goal: Goal
    cost: float  # of the oracle where the state was reached
    offset: int = 0  # iterations before the solver began

    @property
    def is_open(self) -> bool:
        return self.state.status is Status.running

    @property
    def iteration(self) -> int:
        return self.offset + self.state.iteration


class HostLoop(Loop):
    """A run, or the runs of a sweep in turns, of a solver on the host.

    Parameters
    ----------
    settings
        What the history records.
    objective
        On the host: NumPy arrays in and out.
    solver
        A solver of `Auto`.
    should_stop
        Asked before every evaluation, so that a time limit or Ctrl-C ends a long step.
    resolution, box
        Parameters of the oracle.
    """

    block = 1
    enough = -np.inf  # the value at which a run ends: see `separating_value`

    def __init__(
        self,
        settings: LoopSettings,
        objective: Objective,
        solver: Any,
        should_stop: Callable[[], bool] | None,
        resolution: float = 1.0,
        box: Box | None = None,
    ) -> None:
        self.settings, self.objective, self.solver = settings, objective, solver
        self.should_stop, self.resolution, self.box = should_stop, resolution, box
        self.runs: list[HostRun] = []
        self._stats: tuple[list[SolverState], RunStats] | None = None
        terms = {name: of for name, of in settings.records.items() if isinstance(of, TermRecorder)}
        others = {name: of for name, of in settings.records.items() if name not in terms}
        self._terms = terms
        self._record = bind(recorded, settings._replace(records=others)) if others else None

    # ------------------------------------------------------------------ iterations

    def begin(self, start: Points, tolerances: Tolerances) -> Rows:
        starts = np.asarray(start)
        starts = starts if self.settings.is_batched else starts[None]
        self.tolerances = tolerances
        with np.errstate(all="ignore"):
            self.runs = [self._begin(np.array(x0), tolerances) for x0 in starts]
        evaluations = [run.state.evaluation for run in self.runs]
        self.value0 = self._joined([at.value for at in evaluations])
        self.gradient0 = self._joined([at.gradient for at in evaluations])
        return self._row()

    def _begin(
        self, x0: np.ndarray, tolerances: Tolerances, before: SolverState | None = None
    ) -> HostRun:
        """Begin a run at x0; `before` is the state at the same x before f was replaced."""
        oracle = Oracle(self.objective, x0, None, self.resolution, self.box)
        is_first = before is None
        state = self.solver.init(oracle, x0) if is_first else self.solver.restart(oracle, before)
        oracle.should_stop = self.should_stop
        floor, absolute = tolerances.floor(state.norm2), tolerances.absolute
        absolute2 = absolute**2 if absolute > 0 else -1.0
        goal = Goal(tolerances.relative[()], np.asarray(floor)[()], absolute2)
        run = HostRun(oracle, state, goal, max(oracle.cost, 1.0))
        if not np.isfinite(state.norm2):
            run.state = dataclasses.replace(state, status=Status.nonfinite)
        self._test_absolute(run)
        return run

    def run(self, length: int, last: int, history: History) -> None:
        """Make iterations; where a step raises, the rows of those before it are added, too."""
        every, done = self.settings.every, self._iteration()
        end = min(done - done % every + length, last)
        labels = [history.last]  # that of the last row, then those of new ones
        rows: list[Rows] = []
        try:
            with np.errstate(all="ignore"):
                while done < end and len(rows) < self.settings.capacity and self._is_open():
                    self._advance(done + 1)
                    done = self._iteration()
                    if done % every == 0 and done > labels[-1]:
                        labels.append(done)
                        rows.append(self._row())
        except StopRunError:
            pass  # the driver finds out why
        finally:
            done = self._iteration()
            if done > labels[-1]:  # the last iteration of a run has a row, whatever its number is
                labels.append(done)
                rows.append(self._row())
            names = rows[0] if rows else {}
            joined = {name: np.array([row[name] for row in rows]) for name in names}
            history.add(joined, np.array(labels[1:], int))

    def _advance(self, iteration: int) -> None:
        """Let every open run make its steps up to an iteration.

        A step need not be an iteration: some only find that a run has converged, or leave x where
        it is. A run may be ahead of others where a stop came between them.
        """
        for run in self.runs:
            while run.is_open and run.iteration < iteration:
                run.state = self.solver.step(run.oracle, run.state, run.goal)
                run.cost = run.oracle.cost
                self._test_absolute(run)

    def _test_absolute(self, run: HostRun) -> None:
        state = run.state
        is_small = state.norm2 <= run.goal.absolute2 and state.is_computed
        if (is_small or state.evaluation.value < self.enough) and run.is_open:
            run.state = dataclasses.replace(state, status=Status.converged)

    def _is_open(self) -> bool:
        if len(self.runs) == 1:
            return self.runs[0].is_open
        return any(run.is_open for run in self.runs)

    def _iteration(self) -> int:
        """Return the iteration that all open runs have reached; the last one if none is open."""
        if len(self.runs) == 1:
            return self.runs[0].iteration
        reached = [run.iteration for run in self.runs if run.is_open]
        return min(reached) if reached else max(run.iteration for run in self.runs)

    def _joined(self, entries: list[Any]) -> Any:
        return np.stack(entries) if self.settings.is_batched else np.asarray(entries[0])

    def _row(self) -> Rows:
        if not self.settings.is_batched:
            return self._row_of(self.runs[0].state, self.runs[0].iteration)
        rows = [self._row_of(run.state, run.iteration) for run in self.runs]
        return {name: self._joined([row[name] for row in rows]) for name in rows[0]}

    def _row_of(self, state: SolverState, iteration: int) -> Rows:
        at = state.evaluation
        row = {"value": at.value, "gradient_norm": np.sqrt(state.norm2)}
        if self._terms:
            row |= {name: of.of(state) for name, of in self._terms.items()}
        if self._record is None:
            return row
        dtype = at.x.dtype.type
        view = State(
            k=np.int32(iteration),
            evaluation=at._replace(aux=None),
            eta=dtype(state.eta),
            gamma=dtype(state.gamma),
        )
        return row | jax.tree.map(np.asarray, self._record(view))

    # ------------------------------------------------------------------ for the driver

    def stats(self) -> RunStats:
        # the driver asks several times between two iterations
        states = [run.state for run in self.runs]
        if self._stats is not None and all(map(operator.is_, states, self._stats[0])):
            return self._stats[1]
        self._stats = states, self._stats_of(states)
        return self._stats[1]

    def _stats_of(self, states: list[SolverState]) -> RunStats:
        norm2 = self._joined([state.norm2 for state in states])
        zero = np.zeros(np.shape(norm2), np.int32)
        return RunStats(
            iterations=self._joined([np.int32(run.iteration) for run in self.runs]),
            evaluations=self._joined([norm2.dtype.type(run.cost) for run in self.runs]),
            resets=zero,
            norm2=norm2,
            floor=self._joined([norm2.dtype.type(run.goal.floor) for run in self.runs]),
            least_norm2=norm2,
            idle=zero,
            code=self._joined([np.int32(state.status.code) for state in states]),
            needs_recheck=np.zeros(np.shape(norm2), bool),
        )

    def best_value(self) -> Any:
        return self._joined([run.state.evaluation.value for run in self.runs])

    def can_checkpoint(self) -> bool:
        return True

    def snapshot(self) -> list[dict[str, Any]]:
        """Return the states of all runs, and what they cost.

        `aux` has numbers for each sample. It is left out and computed again by `restore`, unless it
        is updated by recurrence: then another evaluation has other digits.
        """

        def saved(run: HostRun) -> dict[str, Any]:
            at = run.state.evaluation
            at = at._replace(aux=to_host(at.aux) if self._updates_aux else None)
            state = dataclasses.replace(run.state, evaluation=at)
            return {"state": state, "cost": run.cost, "floor": run.goal.floor}

        return [saved(run) for run in self.runs]

    def restore(self, snapshot: list[dict[str, Any]]) -> None:
        for run, saved in zip(self.runs, snapshot, strict=True):
            first, at = run.state.evaluation, saved["state"].evaluation
            if self._updates_aux:
                at = at._replace(aux=jax.tree.map(shard_like, first.aux, at.aux))
            elif first.aux is not None:
                with np.errstate(all="ignore"):
                    at = at._replace(aux=self.objective.evaluate(at.x).aux)
            run.state = dataclasses.replace(saved["state"], evaluation=at)
            run.oracle.cost = run.cost = saved["cost"]
            run.goal = run.goal._replace(floor=saved["floor"])
        self._stats = None

    @property
    def _updates_aux(self) -> bool:
        return self.objective.traits.accumulates_rounding

    def recheck_final(self) -> None:
        """Do nothing: a solver tests every point that it reaches."""

    def result(self) -> tuple[Evaluation, Any]:
        found = [self._result(run) for run in self.runs]
        parts = [self._joined([at[i] for at, _ in found]) for i in range(3)]
        return Evaluation(*parts), self._joined([np.asarray(count) for _, count in found])

    def _result(self, run: HostRun) -> tuple[Evaluation, float]:
        state = run.state
        at = state.evaluation._replace(value=state.computed_value, aux=None)
        if not isinstance(state, CGState):
            return at, 0.0  # every step is a decrease: the last point is the best one
        first, best = state.start.value, state.best
        is_good = value_is_as_good(self.objective, at.value, best.value, first)
        if state.is_computed and is_good:
            return at, 0.0
        x = at.x if is_good and state.status is Status.running else best.x
        most = first + np.sqrt(np.finfo(x.dtype).eps) * abs(first)
        with np.errstate(all="ignore"):
            found, count = evaluate_finite(
                self.objective, self.objective.evaluate, x, best.x, state.start.x, most
            )
        return found._replace(aux=None), float(count)

    def known_result(self) -> tuple[Evaluation, bool]:
        found = [self._known_result(run) for run in self.runs]
        parts = [self._joined([at[i] for at, _ in found]) for i in range(3)]
        return Evaluation(*parts), all(is_exact for _, is_exact in found)

    def _known_result(self, run: HostRun) -> tuple[Evaluation, bool]:
        state = run.state
        at = state.evaluation._replace(value=state.computed_value, aux=None)
        if not isinstance(state, CGState):
            return at, True
        is_good = value_is_as_good(self.objective, at.value, state.best.value, state.start.value)
        return at if is_good else state.best, bool(is_good and state.is_computed)

    def curvature_at(self, x: np.ndarray) -> Curvature | None:
        run = self.runs[0]
        if np.array_equal(x, run.state.evaluation.x):  # its matrix is known already
            return run.oracle.curvature(run.state.evaluation)
        return self.objective.curvature(self.objective.evaluate(x))

    def fingerprint(self, x: np.ndarray) -> tuple[Any, ...]:
        points = x if self.settings.is_batched else x[None]
        found: list[Any] = []
        for point in points:
            try:
                with np.errstate(all="ignore"):
                    at = self.objective.evaluate(point)
            except Exception:  # the function may fail at other points than those of the run
                return ()
            found += [at.value, at.gradient]
        return tuple(found)
