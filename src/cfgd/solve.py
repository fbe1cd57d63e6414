"""minimize and sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cfgd.auto import Auto
from cfgd.fitting import rows_of
from cfgd.objective.base import Objective
from cfgd.options import Options
from cfgd.run import Run
from cfgd.solution import ConvergenceError, Solution


def minimize(
    objective: Objective | Callable[[Any], Any],
    x0: Any,
    method: Any = None,
    *,
    max_iterations: int = 10_000,
    tolerance: float = 1e-8,
    time_limit: float | None = None,
    record: Mapping[str, Callable[[Any], Any]] | None = None,
    every: int = 1,
    callback: Callable[[Solution], Any] | None = None,
    progress: bool = False,
    throw: bool = False,
) -> Solution:
    """Minimise an objective or any JAX function from x0, a number, an array or a pytree.

    A run ends when the norm of the gradient (for `NonAdaptive` of the direction) is at most
    `tolerance` times its start, at `max_iterations` or `time_limit` (seconds), when `callback`,
    called with the `Solution` so far every `every` iterations, returns something true, at a
    non-finite value and at Ctrl-C. In every case the best point seen is returned, with a status
    whose message names cause and remedy; `throw=True` raises unless the run converged.

    `history` holds `iteration`, `value` and what the functions of x in `record` gave, at iteration
    0 and then every `every` iterations, the last one included. `progress=True` shows a live line.
    float64 data is solved in float64, whatever JAX is configured to.

    >>> import cfgd, jax.numpy as jnp
    >>> f = cfgd.Quadratic([[20.0, 0.0], [0.0, 2.0]], [0.0, 0.0])
    >>> method = cfgd.AdaptiveTerminal(gamma=-0.25)
    >>> solution = cfgd.minimize(f, [1.0, -10.0], method, record={"distance": jnp.linalg.norm})
    >>> print(solution.iterations, solution.message)
    28 Converged: the norm fell to `tolerance` times its start.
    >>> print(solution.history["distance"][:3].round(3))
    [10.05   8.223  4.1  ]
    """
    options = Options(
        "minimize",
        max_iterations,
        tolerance,
        time_limit,
        {} if record is None else record,
        every,
        callback,
        progress,
    )
    run = Run(options, objective, x0, Auto() if method is None else method, rows=None)
    solution = run.go()
    if throw and not solution.success:
        raise ConvergenceError(solution)
    return solution


def sweep(
    objective: Objective | Callable[[Any], Any],
    x0: Any,
    methods: Any,
    *,
    max_iterations: int = 10_000,
    tolerance: float = 1e-8,
    time_limit: float | None = None,
    record: Mapping[str, Callable[[Any], Any]] | None = None,
    every: int = 1,
    callback: Callable[[Solution], Any] | None = None,
    progress: bool = False,
) -> Solution:
    """Many settings of one method from x0, as one batched computation.

    `methods` is a list of settings, or one method whose numeric fields carry a leading axis of
    settings (a vector of gammas is then one gamma for each setting; write (settings, d) for one
    for each coordinate). Every field of the returned `Solution` has a leading axis of settings,
    the history's entries too, except `iteration`.

    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> ends = cfgd.sweep(f, [0.0, 0.0], cfgd.AdaptiveTerminal(gamma=[-0.5, -0.25, 0.0]))
    >>> print(ends.x.shape, ends[0].x.round(6))
    (3, 2) [-1.2  2.6]
    """
    options = Options(
        "sweep",
        max_iterations,
        tolerance,
        time_limit,
        {} if record is None else record,
        every,
        callback,
        progress,
    )
    return Run(options, objective, x0, methods, rows=rows_of(methods)).go()
