"""The two functions that solve: `minimize` for one run, `sweep` for a batch of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from cfgd._core import checks
from cfgd._core.process_group import ProcessGroup
from cfgd._core.unknown_arguments import explains_arguments
from cfgd.methods.auto.auto import Auto
from cfgd.objectives.base import Objective
from cfgd.objectives.function import as_objective
from cfgd.objectives.parameters import Parameters
from cfgd.solve import clock
from cfgd.solve.compiling import seconds_compiling
from cfgd.solve.driver import Run
from cfgd.solve.interrupt import Interrupt
from cfgd.solve.named import NamedProblem
from cfgd.solve.options import Options
from cfgd.solve.problem import prepare_problem, replicated_arguments, shard_settings
from cfgd.solve.resample import Resample, check_resample
from cfgd.solve.scipy_names import INSTEAD
from cfgd.solve.solution import ConvergenceError, Solution, attach, unevaluated

AUTO = Auto()


@explains_arguments(INSTEAD)
def minimize(
    objective: Objective | Callable[[Any], Any],
    x0: Any,
    method: Any = None,
    *,
    args: tuple[Any, ...] = (),
    bounds: Any = None,
    max_iterations: int = 10_000,
    tolerance: float | None = None,
    gradient_tolerance: float | None = None,
    time_limit: float | None = None,
    record: Mapping[str, Any] | None = None,
    every: int = 1,
    callback: Callable[[Solution], Any] | None = None,
    progress: bool = False,
    checkpoint: Any = None,
    checkpoint_every: float = 60.0,
    resample: Resample | None = None,
    throw: bool = False,
) -> Solution:
    """Minimise an objective or a JAX function, starting from x0.

    Parameters
    ----------
    objective : Objective or callable
        An objective of cfgd, or a scalar function f(x, *args) written in JAX.
    x0 : number, array, pytree or Parameters
        The start. The returned `x` has the same structure. Data in float64 is solved in float64,
        whatever JAX is configured to. With `Parameters`, for `Residuals` or a function of a dict,
        some may be fixed or tied; their bounds hold, and `x` is the dict of all of them.
    method : Method, optional
        `Auto()` by default.
    args : tuple, default ()
        Data that is passed to the function. New data of the same shapes does not compile again.
    bounds : list of pairs, tuple (lower, upper), scipy.optimize.Bounds or dict, optional
        Bounds of x: a pair (lower, upper) for each coordinate, where None or an infinity means that
        there is none; two numbers or arrays (lower, upper); or, for a dict x0, a dict of pairs.
        Equal bounds keep a coordinate fixed. f is evaluated inside the bounds only, and a start
        outside is moved to the nearest point inside. `converged` then means that the gradient is
        small in the coordinates that may move: f falls out of the box along the others (the
        conditions of Karush, Kuhn and Tucker).
    max_iterations : int, default 10000
        The run ends after this many iterations.
    tolerance : float, optional
        The run has converged when the norm of the gradient is at most `tolerance` times its norm at
        x0. By default it follows the precision of the run: 1e-8 in float64, 1e-4 in float32, whose
        rounding hides smaller gradients; `Solution.tolerance` is the one that was used. `Auto` also
        requires that its model predicts no further decrease; `NonAdaptive`, which does not minimise
        f, measures its direction in place of the gradient.
    gradient_tolerance : float, optional
        The run has also converged when the norm of the gradient is at most this number.
    time_limit : float, optional
        The run ends after this many seconds.
    record : mapping of str to callable or str, optional
        What to add to the history: functions of x, or the names "eta" and "gamma" of the numbers
        that the method used in its last step (NaN at iteration 0).
    every : int, default 1
        Iterations between two rows of the history and between two calls of `callback`.
    callback : callable, optional
        Called with the `Solution` so far. The run ends if it returns something true or raises
        StopIteration.
    progress : bool, default False
        Whether to show a progress line on the terminal.
    checkpoint : path, optional
        A file that is written regularly and at the end. The same call resumes from it bit for bit,
        also after the process was killed; a run that has ended resumes if a larger `max_iterations`
        or `time_limit` allows it. A file of another problem, method or version is refused. The
        previous file is kept as well, and is used if the last one is damaged.
    checkpoint_every : float, default 60.0
        Seconds between two checkpoints.
    resample : Resample, optional
        New samples every so many iterations, for `Auto`.
    throw : bool, default False
        Whether to raise an error if the run does not converge.

    Returns
    -------
    Solution
        The best point found and why the run ended: its `message` names cause and remedy. A run also
        ends where no step improves, where the value falls without bound, at a value that is not
        finite, and at Ctrl-C. The `history` holds `iteration`, `value`, `gradient_norm` and the
        entries of `record`, for iteration 0, every `every` iterations and the last iteration.

    Raises
    ------
    ValueError
        If the shape of `x0` is not that of the objective, or value or gradient are not finite
        there; if `args`, `bounds`, `record`, `resample` or `method` do not fit the objective; or if
        an argument is of another type, or a number out of its range.
    ConvergenceError
        With `throw=True`, if the run does not converge. Its `solution` is the solution.

    Notes
    -----
    Where data is sharded over the devices of several processes, every process makes this call and
    gets the same solution (docs/guides/processes.md).

    Examples
    --------
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
    named, throw = None, checks.flag("minimize", "throw", throw)
    if isinstance(x0, Parameters):
        if bounds is not None:
            checks.fail("minimize", "bounds", "be None: Parameters have their own", "some")
        named = NamedProblem("minimize", as_objective("minimize", objective, args), x0)
        objective, x0, args, bounds = named.objective, named.start, (), named.bounds
        record, callback = named.of_all(record), named.with_all(callback)
        resample = named.drawing(resample)
    solution = _solve(
        "minimize",
        objective,
        x0,
        AUTO if method is None else method,
        args,
        bounds=bounds,
        max_iterations=max_iterations,
        tolerance=tolerance,
        gradient_tolerance=gradient_tolerance,
        time_limit=time_limit,
        record=record,
        every=every,
        callback=callback,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resample=resample,
    )
    solution = solution if named is None else named.completed(solution)
    if throw and not solution.success:
        raise ConvergenceError(solution)
    return solution


@explains_arguments(INSTEAD)
def sweep(
    objective: Objective | Callable[[Any], Any],
    x0: Any,
    methods: Any = None,
    *,
    args: tuple[Any, ...] = (),
    bounds: Any = None,
    max_iterations: int = 10_000,
    tolerance: float | None = None,
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
    """Run many settings of one method from x0, as one batched computation.

    Parameters
    ----------
    objective : Objective or callable
        As in `minimize`.
    x0 : number, array or pytree
        The start. For an objective of d coordinates it may have the shape (settings, d): one start
        for each setting, or, with one setting of a method such as `Auto()`, one run for each start.
        For a function of any shape, or `Residuals`, the rows of a matrix are starts unless the
        function takes the matrix itself.
    methods : Method or list of Method, optional
        A list of settings, or one method whose numeric fields have a leading axis of settings. A
        vector of gammas is then one gamma for each setting; an array of shape (settings, d) has one
        for each coordinate. `Auto()` by default.
    args : tuple, default ()
        As in `minimize`.
    bounds : list of pairs, tuple (lower, upper), scipy.optimize.Bounds or dict, optional
        As in `minimize`.
    max_iterations : int, default 10000
        As in `minimize`.
    tolerance, gradient_tolerance, time_limit : float, optional
        As in `minimize`.
    record : mapping of str to callable or str, optional
        As in `minimize`.
    every : int, default 1
        As in `minimize`.
    callback : callable, optional
        As in `minimize`, called with the `Solution` of all settings.
    progress : bool, default False
        As in `minimize`.
    checkpoint : path, optional
        As in `minimize`.
    checkpoint_every : float, default 60.0
        As in `minimize`.
    spread : bool, default False
        Whether to distribute the settings over all devices of all processes
        (docs/guides/processes.md). Every process returns the solution of all settings. The
        objective must be the same on every process, and not sharded itself.

    Returns
    -------
    Solution
        Every field has a leading axis of settings, and so have the entries of the history, except
        `iteration`. `solution[i]` is the solution of setting i.

    Raises
    ------
    ValueError
        As in `minimize`; and if `methods` are not settings of one method with numbers in all their
        fields, or fields or starts have different numbers of settings.

    Examples
    --------
    >>> import cfgd
    >>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    >>> ends = cfgd.sweep(f, [0.0, 0.0], cfgd.AdaptiveTerminal(gamma=[-0.5, -0.25, 0.0]))
    >>> print(ends.x.shape, ends[0].x.round(6))
    (3, 2) [-1.2  2.6]
    >>> print(cfgd.sweep(f, [[0.0, 0.0], [5.0, 5.0]]).iterations)
    [2 2]
    """
    return _solve(
        "sweep",
        objective,
        x0,
        AUTO if methods is None else methods,
        args,
        bounds=bounds,
        spread=checks.flag("sweep", "spread", spread),
        max_iterations=max_iterations,
        tolerance=tolerance,
        gradient_tolerance=gradient_tolerance,
        time_limit=time_limit,
        record=record,
        every=every,
        callback=callback,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )


def _solve(
    owner: str,
    objective: Objective | Callable[[Any], Any],
    x0: Any,
    methods: Any,
    args: tuple[Any, ...],
    *,
    bounds: Any,
    spread: bool = False,
    record: Mapping[str, Any] | None,
    **keywords: Any,
) -> Solution:
    """Check the input of the function `owner`, `minimize` or `sweep`, and run it."""
    began, compiled = clock.now(), seconds_compiling()
    group = ProcessGroup(jax.devices()) if spread else ProcessGroup.of(objective, args)
    with Interrupt(group.is_single) as interrupt, checks.concrete(owner):
        try:
            with group.propagate_errors():
                record = {} if record is None else record
                options = Options(owner=owner, record=record, writes=group.is_main, **keywords)
                f = as_objective(owner, objective, args)
                problem = prepare_problem(options, f, x0, methods, bounds, swept=owner == "sweep")
                options = options.in_precision(problem.dtype)
                if options.resample is not None:
                    check_resample(problem, options.resample, record)
            if not group.is_single:
                group.assert_replicated(owner, replicated_arguments(options, problem))
            if spread:
                problem = shard_settings(problem)
            return Run(options, problem, interrupt, began, group, compiled).go()
        except KeyboardInterrupt as error:
            if hasattr(error, "solution") or owner == "sweep" or not group.is_single:
                raise
            start = unevaluated(x0, clock.now() - began)
            if interrupt.is_second:
                attach(error, start)
                raise
            return start
