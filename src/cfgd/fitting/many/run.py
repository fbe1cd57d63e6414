"""Run many fits: blocks of them on several threads, with progress, checkpoints and Ctrl-C."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from cfgd._core.arrays import in_precision
from cfgd._core.compiled import bind
from cfgd.fitting.many.inputs import Inputs
from cfgd.fitting.many.program import SUMMARY, Goal, advance, start_states, tabulate
from cfgd.fitting.many.regions import Region
from cfgd.solve.interrupt import Interrupt
from cfgd.status import Status

# Fits in a block for each fit that takes steps at a time: enough for the last ones of a block,
# which leave slots idle, to count for little.
PER_SLOT = 16
# Share of the slots whose fits may be left at the end of a block; they go on together later.
LEFT = 8

Task = Callable[[int], None]
# the column of the table that holds the status
STATUS = SUMMARY.index("status") - len(SUMMARY)


class Rows(NamedTuple):
    """Fits of a block: their places in the table, data and states."""

    places: np.ndarray
    data: dict[str, np.ndarray]
    states: np.ndarray

    def where(self, which: Any) -> Rows:
        """Return some of the fits, by a mask, a slice or indices."""
        return jax.tree.map(lambda array: array[which], self)


class ManyRun:
    """The fits of some regions, whose results go into a table.

    Parameters
    ----------
    table
        One row for each fit of Y. Rows of fits that have not ended are `unfinished`, and are
        written where they end.
    n_rows
        How many fits a block has; see `block_size`.
    n_threads
        How many blocks are computed at a time.
    """

    def __init__(
        self, inputs: Inputs, goal: Goal, table: np.ndarray, n_rows: int, n_threads: int
    ) -> None:
        self.inputs, self.goal, self.table, self.n_threads = inputs, goal, table, n_threads
        self.n_rows = n_rows
        self.form = inputs.form
        self.devices = jax.local_devices()
        self.is_compiled = False
        self.left: list[Rows] = []  # fits that have not ended

    def __call__(
        self, todo: list[Region], on_block: Callable[[], None], interrupt: Interrupt
    ) -> None:
        """Fit the regions; return early after Ctrl-C.

        `on_block` is called in this thread after every block.
        """
        with ThreadPoolExecutor(self.n_threads) as pool:
            # the first block alone compiles the programs that all others use
            for tasks in (self._tasks(todo[:1]), self._tasks(todo[1:]), self._blocks_of_left()):
                self._work(pool, tasks, on_block, interrupt)

    def _tasks(self, todo: list[Region]) -> Iterator[Task]:
        """Yield regions to fit, and whole blocks of fits that are left as soon as there are any."""
        for region in todo:
            yield partial(self._fit_region, region)
            if sum(len(rows.places) for rows in self.left) >= self.n_rows:
                yield from self._blocks_of_left()

    def _work(
        self,
        pool: ThreadPoolExecutor,
        tasks: Iterator[Task],
        on_block: Callable[[], None],
        interrupt: Interrupt,
    ) -> None:
        """Do tasks on all threads, with no more of them in memory than there are threads.

        A task is called with its number.
        """
        running: set[Future[None]] = set()
        number = 0
        while True:
            while len(running) < self.n_threads and not interrupt.is_asked:
                task = next(tasks, None)
                if task is None:
                    break
                running.add(pool.submit(task, number))
                number += 1
            if not running:
                return
            # Ctrl-C is seen within the time of a block, and a thread cannot be interrupted
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                each.result()
            on_block()

    def _fit_region(self, region: Region, number: int) -> None:
        places = np.arange(region.start, region.stop)
        is_open = unfinished(self.table[places])
        if not is_open.any():
            return
        data, starts = self.inputs.read(region)
        with in_precision(self.inputs.dtype):
            begin = bind(start_states, self.form)
            states = np.asarray(begin(_padded(starts, self.n_rows), self.inputs.shared))
        rows = Rows(places, data, states[: region.size]).where(is_open)
        n_slots = min(self.form.n_slots, self.n_rows)
        left = self._run(rows, n_slots // LEFT, number)
        if len(left.places):
            self.left.append(left)

    def _finish(self, rows: Rows, number: int) -> None:
        self._run(rows, 0, number)

    def _blocks_of_left(self) -> Iterator[Task]:
        """Yield the blocks of fits that have not ended, in the order of the table."""
        # one by one, because other threads may add to the list
        parts = [self.left.pop() for _ in range(len(self.left))]
        if not parts:
            return
        whole = jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)
        whole = whole.where(np.argsort(whole.places))
        for start in range(0, len(whole.places), self.n_rows):
            yield partial(self._finish, whole.where(slice(start, start + self.n_rows)))

    def _run(self, rows: Rows, n_left: int, number: int) -> Rows:
        """Go on with fits, write those that end into the table, and return the others."""
        count = len(rows.places)
        data, states = jax.tree.map(
            lambda array: _padded(array, self.n_rows), (rows.data, rows.states)
        )
        device = self.devices[number % len(self.devices)]
        with in_precision(self.inputs.dtype), jax.default_device(device):
            numbers = np.int32(count), np.int32(n_left), self.goal
            with self._compiled_aside(tabulate, data, states):
                states, is_running = self._call(advance, data, states, *numbers)
            table = np.asarray(self._call(tabulate, data, states))[:count]
            states, is_running = (np.asarray(each)[:count] for each in (states, is_running))
        self.table[rows.places[~is_running]] = table[~is_running]
        return rows._replace(states=states).where(is_running)

    def _call(self, program: Callable[..., Any], *arguments: Any) -> Any:
        bound = bind(program, self.inputs.residuals, self.form)
        return bound(self.inputs.shared, *arguments)

    @contextlib.contextmanager
    def _compiled_aside(self, program: Callable[..., Any], *arguments: Any) -> Iterator[None]:
        """Compile a program in a thread of its own, once, while this thread continues."""
        if self.is_compiled:
            yield
            return
        self.is_compiled = True

        def compile_by_calling() -> None:
            with in_precision(self.inputs.dtype):
                jax.block_until_ready(self._call(program, *arguments))

        with ThreadPoolExecutor(1) as aside:
            called = aside.submit(compile_by_calling)
            yield
        called.result()


def _padded(array: np.ndarray, n_rows: int) -> np.ndarray:
    """Return an array with its last row repeated, so that all blocks have one size."""
    missing = n_rows - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, 0)]) if missing else array


def empty_table(inputs: Inputs) -> np.ndarray:
    """Return a table of fits that have not begun."""
    table = np.full((inputs.n_fits, inputs.form.width), np.nan, inputs.dtype)
    table[:, STATUS] = Status.interrupted.code
    return table


def unfinished(table: np.ndarray) -> np.ndarray:
    """Return which fits of a table have not ended."""
    return table[:, STATUS] == Status.interrupted.code


def block_size(inputs: Inputs, n_workers: int) -> int:
    """Return how many fits a block has, so that all workers have some.

    It is a power of two, so that few sizes are compiled.
    """
    return int(
        min(PER_SLOT * inputs.n_slots, 2 ** int(np.ceil(np.log2(inputs.n_fits / n_workers + 1))))
    )


def usable_cores() -> int:
    """Return how many cores this process may use."""
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count is not None else os.cpu_count() or 1
