"""New samples, such as collocation points, every so many iterations of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.interruptible import interruptible
from cfgd._core.pytrees import match_array_type
from cfgd._core.representation import ShowsCall
from cfgd.methods.auto.oracle import Oracle
from cfgd.objectives.base import Objective
from cfgd.objectives.function import Smooth, array_arguments
from cfgd.objectives.residual_terms import ResidualTerms
from cfgd.objectives.residuals import Residuals
from cfgd.solve.history import History
from cfgd.solve.host_loop import HostLoop, HostRun
from cfgd.solve.problem import Problem
from cfgd.solve.run_stats import RUNNING, Rows, RunStats
from cfgd.status import Status

OWNER = "Resample"
# Statuses after which other samples may allow further steps.
ENDED_WELL = (Status.converged, Status.stalled, Status.saddle)
# The entry of the history with the iteration at which the samples of a row were drawn.
ENTRY = "drawn"


@dataclasses.dataclass(frozen=True, repr=False)
class Resample(ShowsCall):
    """New samples every so many iterations, for `minimize(resample=...)`.

    With new samples f is another function. The solver restarts from the same x, and keeps only a
    dense quasi-Newton matrix if it has one; the value may rise. The entry `drawn` of the history is
    the iteration at which the samples of each row were drawn, 0 for the first ones. If the run
    converges before samples are due, they are drawn at once, and the run has converged if x also
    meets the tolerance with these. Nothing is compiled again.

    Parameters
    ----------
    draw : callable
        draw(k, x) returns the samples from iteration k on, where x is the current point: a tuple of
        arrays with the shapes of `Residuals(samples=...)`; for `ResidualTerms` a dict of such
        tuples for the terms that change; for a function, or `Residuals` without samples, its
        `args`. It must return the same for the same k and x, so that a run resumes from its
        checkpoint as if it had not been stopped.
    every : int
        The number of iterations between two drawings.

    Raises
    ------
    ValueError
        If `draw` is no function or `every` is not an integer of at least 1. `minimize` raises it if
        `draw` returns arrays of other shapes than the samples have.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> f = cfgd.Residuals(lambda p, t: p[0] + p[1] * t - t**2, samples=(np.linspace(0, 1, 50),))
    >>> def draw(k, p):
    ...     return (np.random.default_rng(k).uniform(0, 1, 50),)
    >>> solution = cfgd.minimize(f, [0.0, 0.0], max_iterations=6, resample=cfgd.Resample(draw, 2))
    >>> print(solution.history["drawn"], solution.details.split(". ")[-1])
    [0 0 0 2 3 4 5] Value and status are about the 50 samples drawn at iteration 5.
    """

    draw: Callable[[int, Any], Any]
    every: int

    def __post_init__(self) -> None:
        checks.function(OWNER, "draw", self.draw, "be a function of the iteration and x")
        object.__setattr__(self, "every", checks.integer(OWNER, "every", self.every))


def check_resample(problem: Problem, resample: object, record: Mapping[str, Any]) -> None:
    """Raise unless the samples of a problem can be replaced during its run."""
    owner, objective = "minimize", problem.objective
    if not isinstance(resample, Resample):
        checks.fail(owner, "resample", "be a cfgd.Resample", checks.describe(resample))
    if not problem.method.traits.runs_on_host:
        got = type(problem.method).__name__
        checks.fail(owner, "resample", "be used with the method Auto", got)
    if not isinstance(objective, Residuals | ResidualTerms | Smooth):
        wanted = "be used with Residuals, ResidualTerms or a function"
        checks.fail(owner, "resample", wanted, objective.traits.label)
    if not jax.tree.leaves(samples_of(objective)):
        wanted = "be used with an objective that has `samples` or `args`"
        checks.fail(owner, "resample", wanted, objective.traits.label)
    if ENTRY in record:
        wanted = f"use other names than {ENTRY!r}, where samples are drawn"
        checks.fail(owner, "record", wanted, repr(ENTRY))


def samples_of(objective: Any) -> Any:
    """Return what `draw` replaces: samples, arguments, or those of each term that has any."""
    if isinstance(objective, ResidualTerms):
        pairs = zip(objective.names, objective.terms, strict=True)
        return {name: samples_of(term) for name, term in pairs if samples_of(term)}
    return objective.args if _has_arguments_alone(objective) else objective.samples


def with_samples(objective: Any, drawn: Any, where: str = "draw") -> Any:
    """Return an objective with new samples; refuse those of other shapes."""
    if isinstance(objective, ResidualTerms):
        terms = dict(zip(objective.names, objective.terms, strict=True))
        if not isinstance(drawn, Mapping) or not drawn or not set(drawn) <= set(terms):
            wanted = f"return a dict with names among {', '.join(map(repr, terms))}"
            got = sorted(map(str, drawn)) if isinstance(drawn, Mapping) else checks.describe(drawn)
            checks.fail(OWNER, where, wanted, got)
        return objective.changed(
            {name: with_samples(terms[name], drawn[name], f"draw[{name!r}]") for name in drawn}
        )
    old = samples_of(objective)
    new = array_arguments(OWNER, drawn if isinstance(drawn, tuple) else (drawn,))
    shapes = [jax.tree.map(np.shape, tree) for tree in (old, new)]
    if shapes[0] != shapes[1]:
        checks.fail(OWNER, where, f"return arrays of the shapes {shapes[0]}", shapes[1])

    def fitting(one: Any, like: Any) -> Any:
        return np.asarray(checks.array(OWNER, where, one), like.dtype)

    field = "args" if _has_arguments_alone(objective) else "samples"
    return eqx.tree_at(lambda f: getattr(f, field), objective, jax.tree.map(fitting, new, old))


def _count(samples: Any) -> int:
    """Return the number of samples, of all terms together."""
    parts = samples.values() if isinstance(samples, Mapping) else [samples]
    return sum(len(np.atleast_1d(jax.tree.leaves(part)[0])) for part in parts)


def _has_arguments_alone(objective: Any) -> bool:
    return isinstance(objective, Smooth) or objective.samples is None


class ResampledLoop(HostLoop):
    """A run on the host whose samples are replaced every so many iterations.

    Parameters
    ----------
    resample
        When and how samples are drawn.
    problem
        The problem with the first samples.
    on_host
        Returns an objective like that of the problem as the solver needs it.
    *args
        Those of `HostLoop`.
    """

    def __init__(
        self,
        resample: Resample,
        problem: Problem,
        on_host: Callable[[Objective], Objective],
        *args: Any,
    ) -> None:
        super().__init__(*args)
        self.resample, self.problem, self.on_host = resample, problem, on_host
        self.sampled, self.n_drawn = problem.objective, 0  # samples of the last drawing

    @property
    def only_run(self) -> HostRun:
        return self.runs[0]

    def _wants_samples(self) -> bool:
        """Return whether samples are to be drawn before the next step.

        The solver counts its iterations from the last drawing.
        """
        state = self.only_run.state
        if state.status is Status.running:
            return state.iteration >= self.resample.every
        return state.status in ENDED_WELL and (state.iteration > 0 or not self.n_drawn)

    def run(self, length: int, last: int, history: History) -> None:
        super().run(length, last, history)
        if not self._is_open():  # the last samples may have been drawn at the last point
            history.replace_last(self._row())

    def _advance(self, iteration: int) -> None:
        if not self._wants_samples():
            super()._advance(iteration)
            return
        before = self.runs, self.sampled, self.objective, self.n_drawn
        try:
            self._draw()
            super()._advance(iteration)
        except BaseException:  # a stop before the next iteration: samples are drawn again then
            self.runs, self.sampled, self.objective, self.n_drawn = before
            raise

    def _draw(self) -> None:
        """Draw samples and restart from the current point, with the same goal and the cost so far.

        The run has converged if it had with the previous samples and the gradient meets the
        tolerance with the new ones, too.
        """
        old = self.only_run
        x, k = old.state.evaluation.x, old.iteration
        point = match_array_type(self.problem.structure.unravel(x), self.problem.x0)
        drawn = interruptible(self.resample.draw, k, point)
        self._use(with_samples(self.sampled, drawn))
        new = self._begin(np.array(x), self.tolerances, old.state)
        new.oracle.cost += old.cost
        new.cost, new.goal, new.offset = new.oracle.cost, old.goal, k
        if old.state.status is Status.converged and new.state.norm2 <= new.goal.floor:
            new.state = dataclasses.replace(new.state, status=Status.converged)
        self.runs, self.n_drawn = [new], _count(drawn)

    def _use(self, objective: Any) -> None:
        self.sampled, self.objective = objective, self.on_host(objective)

    def _is_open(self) -> bool:
        return super()._is_open() or self._wants_samples()

    def _row(self) -> Rows:
        return super()._row() | {ENTRY: np.asarray(self.only_run.offset)}

    def stats(self) -> RunStats:
        stats = super().stats()
        if self._wants_samples():
            return stats._replace(code=np.asarray(RUNNING, stats.code.dtype))
        return stats

    def note(self) -> str:
        n = self.n_drawn or _count(samples_of(self.sampled))
        what = "arguments" if isinstance(self.sampled, Smooth) else f"{n} samples"
        when = f"drawn at iteration {self.only_run.offset}" if self.n_drawn else "that were given"
        return f" Value and status are about the {what} {when}."

    def snapshot(self) -> list[dict[str, Any]]:
        (saved,) = super().snapshot()
        run = self.only_run
        drawn = {
            "samples": samples_of(self.sampled),
            "drawn_at": run.oracle.x0,
            "offset": run.offset,
            "n_drawn": self.n_drawn,
        }
        return [saved | drawn]

    def restore(self, snapshot: list[dict[str, Any]]) -> None:
        (saved,) = snapshot
        self._use(with_samples(self.sampled, saved["samples"]))
        run, x0 = self.only_run, saved["drawn_at"]
        run.oracle = Oracle(self.objective, x0, self.should_stop, self.resolution, self.box)
        run.offset, self.n_drawn = saved["offset"], saved["n_drawn"]
        super().restore(snapshot)
