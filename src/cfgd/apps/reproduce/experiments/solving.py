"""The solver as experiments use it: watched by a meter, stopped by Ctrl-C, several at a time."""

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


def point(x: Any) -> Any:
    """The point itself, for `record`; one function for all, so that it is traced once."""
    return x


def whole(solution: cfgd.Solution) -> cfgd.Solution:
    """The solution, unless Ctrl-C ended its run: half a run must not be judged as a whole one."""
    states = solution.status if isinstance(solution.status, list) else [solution.status]
    if cfgd.Status.interrupted in states:
        raise KeyboardInterrupt
    return solution


def held(history: Mapping[str, Any], iterations: int, every: int = 1) -> dict[str, Any]:
    """The history to the last iteration: a run that rounding has ended stands still from there."""
    label = np.append(np.arange(0, iterations, every), iterations)
    rows = np.minimum(np.arange(len(label)), len(history["iteration"]) - 1)
    axis = np.ndim(history["value"]) - 1  # a sweep's settings come first
    longer = {name: np.take(history[name], rows, axis) for name in history if name != "iteration"}
    return longer | {"iteration": label}


class Watch:
    """A callback that tells the meter of every iteration once."""

    def __init__(self, meter: Meter, weight: float) -> None:
        self.meter, self.weight, self.seen = meter, weight, 0

    def __call__(self, solution: cfgd.Solution) -> bool:
        done = int(np.max(solution.iterations))
        self.meter.advance(self.weight * (done - self.seen))
        self.seen = done
        return self.meter.stopped


def watched(
    meter: Meter,
    solve: Callable[..., cfgd.Solution],
    *args: Any,
    weight: float = 1.0,
    **options: Any,
) -> cfgd.Solution:
    """`cfgd.minimize` or `cfgd.sweep`, to its last iteration, with progress.

    `weight` is the work of an iteration in the meter's units.
    """
    watch = Watch(meter, weight)
    solution = solve(*args, tolerance=0.0, callback=watch, **options)
    if meter.stopped:
        raise KeyboardInterrupt
    whole(solution)
    # a run that ended early is done too
    meter.advance(weight * (options["max_iterations"] - watch.seen))
    history = held(solution.history, options["max_iterations"], options.get("every", 1))
    return dataclasses.replace(solution, history=history)


def side_by_side(meter: Meter, jobs: Sequence[Callable[[], T]]) -> list[T]:
    """The results of the jobs, which run in threads: an iteration keeps one core busy, not two."""
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            meter.stopped = True
            for future in futures:
                future.cancel()
            raise
