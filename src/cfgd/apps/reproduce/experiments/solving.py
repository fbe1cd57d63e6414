"""Runs of the solver in experiments: with progress, stopped by Ctrl-C, several in threads."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

import cfgd
from cfgd.apps.reproduce.experiment import Meter

T = TypeVar("T")


def identity(x: Any) -> Any:
    """Return x, to record points; one function for all runs, so that it is traced once."""
    return x


def check_uninterrupted(solution: cfgd.Solution) -> cfgd.Solution:
    """Return the solution; raise KeyboardInterrupt if Ctrl-C ended its run.

    Claims must not be checked against an incomplete run.
    """
    statuses = solution.status if isinstance(solution.status, list) else [solution.status]
    if cfgd.Status.interrupted in statuses:
        raise KeyboardInterrupt
    return solution


def extend_history(history: Mapping[str, Any], iterations: int, every: int = 1) -> dict[str, Any]:
    """Return the history up to `iterations`; a run that ended earlier stays at its last point."""
    labels = np.append(np.arange(0, iterations, every), iterations)
    rows = np.minimum(np.arange(len(labels)), len(history["iteration"]) - 1)
    axis = np.ndim(history["value"]) - 1  # the first axis of a sweep is its settings
    longer = {name: np.take(history[name], rows, axis) for name in history if name != "iteration"}
    return longer | {"iteration": labels}


class MeterCallback:
    """A callback that advances a meter by the new iterations, each with the work `weight`."""

    def __init__(self, meter: Meter, weight: float) -> None:
        self.meter, self.weight, self.iterations = meter, weight, 0

    def __call__(self, solution: cfgd.Solution) -> bool:
        iterations = int(np.max(solution.iterations))
        self.meter.advance(self.weight * (iterations - self.iterations))
        self.iterations = iterations
        return self.meter.stopped


def solve_with_progress(
    meter: Meter,
    solve: Callable[..., cfgd.Solution],
    *args: Any,
    weight: float = 1.0,
    **options: Any,
) -> cfgd.Solution:
    """Run `cfgd.minimize` or `cfgd.sweep` to `max_iterations` and advance the meter.

    `weight` is the work of an iteration in the units of the meter.
    """
    callback = MeterCallback(meter, weight)
    solution = solve(*args, tolerance=0.0, callback=callback, **options)
    if meter.stopped:
        raise KeyboardInterrupt
    check_uninterrupted(solution)
    # a run that ended early is complete too
    meter.advance(weight * (options["max_iterations"] - callback.iterations))
    history = extend_history(solution.history, options["max_iterations"], options.get("every", 1))
    return dataclasses.replace(solution, history=history)


def run_in_threads(meter: Meter, jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Return the results of the jobs; they run in threads, because a run keeps one core busy."""
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            meter.stopped = True
            for future in futures:
                future.cancel()
            raise
