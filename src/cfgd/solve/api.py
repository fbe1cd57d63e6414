"""minimize and sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

from cfgd._core import checks
from cfgd._core.process_group import ProcessGroup
from cfgd.methods.auto.auto import Auto
from cfgd.objectives.base import Objective
from cfgd.objectives.function import as_objective
from cfgd.solve.driver import Run
from cfgd.solve.interrupt import Interrupt
from cfgd.solve.options import Options
from cfgd.solve.problem import alike, problem, shared_out
from cfgd.solve.solution import ConvergenceError, Solution

AUTO = Auto()


def minimize(
    objective: Objective | Callable[[Any], Any],
    x0: Any,
    method: Any = None,
    *,
    args: tuple[Any, ...] = (),
    max_iterations: int = 10_000,
    tolerance: float = 1e-8,
    gradient_tolerance: float | None = None,
    time_limit: float | None = None,
    record: Mapping[str, Any] | None = None,
    every: int = 1,
    callback: Callable[[Solution], Any] | None = None,
    progress: bool = False,
    checkpoint: Any = None,
    checkpoint_every: float = 60.0,
    throw: bool = False,
) -> Solution:
    """Minimise an objective or any JAX function from x0, a number, an array or a pytree.

    A run converges when the norm of the gradient (for `NonAdaptive` of the direction) is at most
    `tolerance` times its start, for the default `Auto` if moreover the curvature around x promises
    nothing more, or when it is at most `gradient_tolerance`, a number for those who know their
    scale. It ends, too, at `max_iterations` or `time_limit` (seconds), when `callback`, called with
    the `Solution` so far every `every` iterations, returns something true or raises StopIteration,
    where nothing improves any more, where the value falls without end, at a non-finite value and at
    Ctrl-C. In every case the best point seen is returned, with a status whose message names cause
    and remedy; `throw=True` raises unless the run converged.

    `history` holds `iteration`, `value`, `gradient_norm` and what `record` asks for, at iteration 0
    and then every `every` iterations, the last one included: functions of x, or the names "eta" and
    "gamma" of the numbers that the method chose for its last step (NaN at iteration 0).
    `progress=True` shows a live line. float64 data is solved in float64, whatever JAX is
    configured to.

    `checkpoint` names a file that is written every `checkpoint_every` seconds and at the end: the
    same call goes on from it bit for bit, however the run was stopped, and where it has ended, from
    there if `max_iterations` or `time_limit` leave room. A file of another problem, method or
    version is refused; the one before it is kept beside it and used where the last is damaged.

    Data in `args` is passed to the function, f(x, *args): other data of the same shapes does not
    compile again. Where data is spread over the devices of several processes, each of them makes
    this call, and each has the same solution (docs/guides/processes.md).

    >>> import cfgd, jax.numpy as jnp
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> method = cfgd.AdaptiveTerminal(gamma=-0.25)
    >>> record = {"distance": jnp.linalg.norm, "step": "eta"}
    >>> solution = cfgd.minimize(f, [1.0, -10.0], method, record=record)
    >>> print(solution.iterations, solution.message)
    28 Converged: `x` meets the tolerance. The norm of the gradient went from 28.3 to 2.33e-08, the
    value from 110 to 2.77804e-17.
    >>> print(solution.history["distance"][:3].round(3), solution.history["step"][:3].round(3))
    [10.05   8.223  4.1  ] [  nan 0.091 0.243]
    """
    began = time.perf_counter()
    group = ProcessGroup.of(objective, args)
    with Interrupt() as interrupt, checks.concrete("minimize"):
        with group.propagate_errors():
            options = Options(
                owner="minimize",
                max_iterations=max_iterations,
                tolerance=tolerance,
                gradient_tolerance=gradient_tolerance,
                time_limit=time_limit,
                record={} if record is None else record,
                every=every,
                callback=callback,
                progress=progress,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                writes=group.is_main,
            )
            method = AUTO if method is None else method
            f = as_objective("minimize", objective, args)
            posed = problem(options, f, x0, method, swept=False)
        if not group.is_single:
            group.assert_replicated("minimize", alike(options, posed))
        solution = Run(options, posed, interrupt, began, group).go()
    if throw and not solution.success:
        raise ConvergenceError(solution)
    return solution


def sweep(
    objective: Objective | Callable[[Any], Any],
    x0: Any,
    methods: Any,
    *,
    args: tuple[Any, ...] = (),
    max_iterations: int = 10_000,
    tolerance: float = 1e-8,
    gradient_tolerance: float | None = None,
    time_limit: float | None = None,
    record: Mapping[str, Any] | None = None,
    every: int = 1,
    callback: Callable[[Solution], Any] | None = None,
    progress: bool = False,
    checkpoint: Any = None,
    checkpoint_every: float = 60.0,
    spread: bool = False,
) -> Solution:
    """Many settings of one method from x0, as one batched computation.

    `methods` is a list of settings, or one method whose numeric fields carry a leading axis of
    settings (a vector of gammas is then one gamma for each setting; write (settings, d) for one
    for each coordinate). For an objective of d coordinates x0 may be (settings, d): one start for
    each setting, and with one setting of a method, such as `Auto()`, as many runs as starts. Every
    field of the returned `Solution` has a leading axis of settings, the history's entries too,
    except `iteration`. The keywords are those of `minimize`, `checkpoint` among them.

    `spread=True` shares the settings out among all devices of all processes
    (docs/guides/processes.md): each computes its own, and every process returns the solution of
    all. The objective is then the same on every process, and not spread itself.

    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> ends = cfgd.sweep(f, [0.0, 0.0], cfgd.AdaptiveTerminal(gamma=[-0.5, -0.25, 0.0]))
    >>> print(ends.x.shape, ends[0].x.round(6))
    (3, 2) [-1.2  2.6]
    >>> print(cfgd.sweep(f, [[0.0, 0.0], [5.0, 5.0]], cfgd.Auto()).iterations)
    [2 2]
    """
    began = time.perf_counter()
    spread = checks.flag("sweep", "spread", spread)
    group = ProcessGroup(jax.devices()) if spread else ProcessGroup.of(objective, args)
    with Interrupt() as interrupt, checks.concrete("sweep"):
        with group.propagate_errors():
            options = Options(
                owner="sweep",
                max_iterations=max_iterations,
                tolerance=tolerance,
                gradient_tolerance=gradient_tolerance,
                time_limit=time_limit,
                record={} if record is None else record,
                every=every,
                callback=callback,
                progress=progress,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                writes=group.is_main,
            )
            f = as_objective("sweep", objective, args)
            posed = problem(options, f, x0, methods, swept=True)
        if not group.is_single:
            group.assert_replicated("sweep", alike(options, posed))
        posed = shared_out(posed) if spread else posed
        return Run(options, posed, interrupt, began, group).go()
