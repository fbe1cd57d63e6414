"""Fit one model to many data sets as one batched computation."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.process_group import ProcessGroup
from cfgd.fitting.many.checkpoint import TableFile
from cfgd.fitting.many.dask_arrays import dask_table, is_dask
from cfgd.fitting.many.fits import Fits
from cfgd.fitting.many.inputs import Inputs, read_inputs
from cfgd.fitting.many.labelled import read_labelled, unlabelled
from cfgd.fitting.many.program import Goal
from cfgd.fitting.many.regions import regions
from cfgd.fitting.many.run import (
    STATUS,
    ManyRun,
    block_size,
    empty_table,
    unfinished,
    usable_cores,
)
from cfgd.fitting.scipy_names import refuse_foreign
from cfgd.solve.interrupt import Interrupt
from cfgd.solve.options import DEFAULT_TOLERANCE
from cfgd.solve.progress import Progress
from cfgd.status import Status


def curve_fit_many(
    model: Callable[..., Any],
    x: Any,
    Y: Any,
    p0: Any = None,
    sigma: Any = None,
    *,
    mask: Any = None,
    bounds: Any = None,
    fixed: Any = None,
    tied: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
    absolute_sigma: bool = False,
    tolerance: float | None = None,
    max_iterations: int = 200,
    threads: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    **options: Any,
) -> Fits:
    """Fit model(x, *parameters) to every row of Y by nonlinear least squares, all in one batch.

    The fits take Levenberg-Marquardt steps side by side in one compiled program, each with its own
    damping and status: a fit that fails does not affect the others. Fits are computed in blocks, so
    that the memory does not grow with their number.

    Parameters
    ----------
    model : callable
        A function model(x, *parameters) written in JAX that returns one number for each point.
    x : array, or dict or tuple of arrays
        The first argument of `model`. It is shared by all fits; an array in the shape of Y (or with
        1 in place of the points) has its own row for each. For a DataArray Y, also the name of one
        of its coordinates.
    Y : array
        The data: one fit for each index of all axes but the last, which holds the points, such as
        (fits, points) or (rows, columns, points) for an image cube. NaN and masked points are left
        out. A NumPy array in memory or on a disk, any object with a shape that can be sliced (zarr,
        h5py), which is read by blocks; a DataArray of xarray, whose dimensions and coordinates the
        result has, too; or a Dask array, for which the result is one: each of its blocks is one
        task.
    p0 : list of numbers, dict, Parameters, array or callable, optional
        The start: one for all fits as in `curve_fit`; one for each, with the leading axes of Y and
        the parameters as the last axis, or a dict of arrays with those axes; or a function
        guess(x, y) in JAX that returns the start of one fit (y is NaN at missing points).
    sigma : number or array, optional
        The standard deviations of one fit, or of each: in the shape of Y, or with 1 in place of the
        points.
    mask : array of bool, optional
        True for points to leave out: in the shape of Y or of one fit, or for whole fits.
    bounds, fixed, tied, absolute_sigma
        As in `curve_fit`, the same for all fits. A parameter that is fixed by its name alone keeps
        the start of each fit.
    tolerance : float, optional
        As in `minimize`: 1e-8 in float64, 1e-4 in float32. The precision is that of Y and x.
    max_iterations : int, default 200
        The largest number of steps of each fit: about as many as SciPy's `curve_fit` makes by
        default.
    threads : int, optional
        How many blocks of fits are computed at a time; by default as many as there are cores. Where
        JAX has several devices, blocks go to them in turn.
    progress : bool, default False
        Whether to show a progress line on the terminal.
    checkpoint : path, optional
        A file with the results of the fits that have ended. The same call resumes from it.
    checkpoint_every : float, default 60.0
        Seconds between two checkpoints.
    **options
        No other arguments exist; one of SciPy or lmfit is refused with the name that it has here.

    Returns
    -------
    Fits
        Parameters, standard errors, chi-square, status and iterations, each with the leading shape
        of Y. After Ctrl-C the fits that have not ended have the status `interrupted` and NaN.

    Raises
    ------
    ValueError
        If Y is complex, has no axis of fits or no point; if the model does not return one number
        for each point or is not written in JAX; if `sigma` or `mask` has a wrong shape, or `sigma`
        is not positive; if `p0`, `bounds`, `fixed` or `tied` does not fit the parameters of the
        model; if `tolerance` is not positive, or `max_iterations` or `threads` is too small; for a
        Dask array, if `checkpoint` or `progress` is given. The message names the argument, what it
        must be, and what was given. A single fit that fails raises nothing: see `Fits.status`.
    TypeError
        For an argument that does not exist.

    Notes
    -----
    With several processes (`cfgd.distributed`) every process makes the same call, fits its share
    and gets all results.

    Examples
    --------
    >>> import cfgd, jax.numpy as jnp, numpy as np
    >>> t = np.linspace(0, 4, 9)
    >>> rates = np.array([0.5, 1.0, 1.5])
    >>> Y = 2.0 * np.exp(-rates[:, None] * t) + 0.01 * np.cos(7 * t)
    >>> fits = cfgd.curve_fit_many(lambda t, a, b: a * jnp.exp(-b * t), t, Y, [1.0, 1.0])
    >>> print(fits.values["b"].round(2), fits.status)
    [0.5  1.   1.51] ['converged' 'converged' 'converged']
    """
    owner = "curve_fit_many"
    refuse_foreign(owner, options, "squared", inspect.signature(curve_fit_many).parameters)
    checks.flag(owner, "absolute_sigma", absolute_sigma)
    max_iterations = checks.integer(owner, "max_iterations", max_iterations, 0)
    threads = checks.integer(owner, "threads", usable_cores() if threads is None else threads)
    checkpoint_every = checks.one_positive(owner, "checkpoint_every", checkpoint_every)
    x, Y, labels = read_labelled(owner, x, Y)
    sigma, mask = unlabelled(sigma, labels), unlabelled(mask, labels)
    inputs = read_inputs(owner, model, x, Y, p0, sigma, mask, bounds, fixed, tied, absolute_sigma)
    if tolerance is None:
        tolerance = DEFAULT_TOLERANCE[inputs.dtype]
    goal = Goal(checks.one_positive(owner, "tolerance", tolerance), max_iterations)
    if is_dask(Y):
        if checkpoint is not None or progress:
            wanted = "be left out for a Dask array, which is computed later"
            checks.fail(owner, "progress" if progress else "checkpoint", wanted, "it")
        return Fits(dask_table(owner, inputs, goal), inputs, labels, goal.tolerance)
    table = empty_table(inputs)
    group = ProcessGroup(jax.devices())
    file = None
    if checkpoint is not None:
        path = Path(checkpoint)
        if not group.is_single:  # each process has the file of its own share
            path = path.with_name(f"{path.name}.{jax.process_index()}")
        file = TableFile(owner, path, checkpoint_every, inputs, goal)
        file.read_into(table)
    _fit(inputs, goal, table, group, threads, progress, file)
    return Fits(table.reshape(*inputs.shape, -1), inputs, labels, goal.tolerance)


def _fit(
    inputs: Inputs,
    goal: Goal,
    table: np.ndarray,
    group: ProcessGroup,
    threads: int,
    progress: bool,
    file: TableFile | None,
) -> None:
    """Fill the table; of several processes each one fits its share of the regions."""
    me, count = group.indices.index(jax.process_index()), len(group.indices)
    size = block_size(inputs, threads * count)
    todo = list(regions(inputs.shape, size))
    todo = todo[me * len(todo) // count : (me + 1) * len(todo) // count]
    own = slice(todo[0].start, todo[-1].stop) if todo else slice(0, 0)
    meter = Progress(own.stop - own.start, progress and group.is_main, unit="fits")

    def report() -> tuple[int, str]:
        done = int(np.sum(~unfinished(table[own])))
        converged = int(np.sum(table[own, STATUS] == Status.converged.code))
        return done, f"{done - converged} failed"

    def on_block() -> None:
        if meter.shown:
            meter.update(*report())
        if file is not None:
            file.write_if_due(table)

    with Interrupt(group.is_single) as interrupt:
        ManyRun(inputs, goal, table, size, threads)(todo, on_block, interrupt)
    if file is not None:
        file.write(table)
    if meter.shown:
        meter.close(*report())
    if not group.is_single:
        share = np.zeros_like(table)
        share[own] = table[own]
        with in_precision(inputs.dtype):
            table[:] = group.all_reduce_sum(share)
