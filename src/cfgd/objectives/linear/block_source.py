"""Sources of blocks of rows: arrays, files or a function, with at most two blocks in memory."""

from __future__ import annotations

import contextlib
import mmap
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy.sparse

from cfgd._core import checks
from cfgd._core.interruptible import interruptible
from cfgd._core.types import UserInput
from cfgd.objectives.linear.block_size import MAX_ROWS, MIN_ROWS, rows_of_memory

T = TypeVar("T")


class Block(NamedTuple):
    """Consecutive rows of X with their targets; `weight` and `offset` are None if not given."""

    X: Any  # dense or sparse
    y: Any
    weight: Any = None
    offset: Any = None


Source: TypeAlias = Callable[[], Iterator[Block]]  # called once for every pass over the data

OWNER = "Blocks"
# memory for a block, in multiples of its own size: half of it is for two blocks, one of them being
# read, and temporaries; the other half is left for the Hessian
COPIES = 8
NUMBERS_PER_ENTRY = 1.5  # memory for an entry of a sparse matrix with its indices, in numbers
WANTED = (
    "be a matrix, a list of .npy, .npz or .parquet files, or a function that returns an iterator "
    "of X and y"
)


def source_of(source: UserInput, given: Block, target: str | None, memory: float) -> Source:
    """Return a function that iterates over the blocks of `source`, once for every call.

    `given` holds the targets, weights and offsets that the user gave with X; `target` is the name
    of a column of .parquet files; `memory` is a limit in bytes.
    """
    if isinstance(source, str | os.PathLike):
        source = [source]
    if callable(source):
        refuse(given, "not be given with a function, which returns it")
        return lambda: iter(source())
    if hasattr(source, "shape") or scipy.sparse.issparse(source):
        return of_arrays(given._replace(X=source), memory)
    if isinstance(source, Sequence) and source and all(is_path(part) for part in source):
        from cfgd.objectives.linear.block_files import of_files

        return of_files([Path(part) for part in source], given, target, memory)
    checks.fail(OWNER, "source", WANTED, checks.describe(source))


def prefetch(blocks: Iterable[T]) -> Iterator[T]:
    """Iterate over `blocks`, reading the next one in a thread while the current one is used.

    Never more than these two blocks exist. An error of the thread is raised to the caller.
    """
    ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
    wanted, is_closed = threading.Semaphore(1), threading.Event()

    def read() -> None:
        try:
            for block in blocks:
                ready.put(("block", block))
                del block
                wanted.acquire()
                if is_closed.is_set():
                    return
            ready.put(("end", None))
        except BaseException as error:  # raised again in the thread of the caller
            ready.put(("error", error))

    wanted.acquire()
    threading.Thread(target=read, daemon=True).start()
    try:
        while True:
            kind, found = interruptible(_next_item, ready)
            if kind == "error":
                raise found
            if kind == "end":
                return
            wanted.release()
            yield found
            del found
    finally:  # after an error or Ctrl-C of the caller, too: the thread ends after its block
        is_closed.set()
        wanted.release()


def _next_item(ready: queue.SimpleQueue[Any]) -> Any:
    """Wait for an item of a queue.

    A signal that comes just before the thread sleeps does not wake it, so that the wait is made of
    short ones.
    """
    while True:
        with contextlib.suppress(queue.Empty):
            return ready.get(timeout=0.1)


def checked_rows_of_block(memory: float, columns: int) -> int:
    """Return `rows_of_block`; refuse a `memory` that is too small for `MIN_ROWS` rows."""
    least = 8 * COPIES * MIN_ROWS * columns
    if memory < least:
        wanted = f"be at least {least:,} for {MIN_ROWS} rows of {columns:,} numbers"
        checks.fail(OWNER, "memory", wanted, f"{memory:g}")
    return rows_of_memory(memory, columns, COPIES)


def of_arrays(given: Block, memory: float) -> Source:
    """Return the source of a dense or sparse matrix and vectors, which may be of type np.memmap."""
    X, y, _, _ = given
    if y is None:
        checks.fail(OWNER, "y", "be given with a matrix", "None")
    if X.ndim != 2:
        checks.fail(OWNER, "source", "be a matrix", f"shape {tuple(X.shape)}")
    m, d = X.shape
    for name, array in (("y", y), ("sample_weight", given.weight), ("offset", given.offset)):
        max_axes = 2 if name == "offset" else 1  # an offset may have a column for each class
        if array is not None and not (np.shape(array)[:1] == (m,) and np.ndim(array) <= max_axes):
            checks.fail(OWNER, name, f"have shape {(m,)}", np.shape(array))
    if scipy.sparse.issparse(X):
        given = given._replace(X=X.tocsr())
        ends = _block_ends(given.X.indptr, memory / (8 * NUMBERS_PER_ENTRY * COPIES))
    else:
        size = checked_rows_of_block(memory, d)
        ends = np.append(np.arange(size, m, size), m)

    def blocks() -> Iterator[Block]:
        start = 0
        for end in ends:
            yield Block(*(_rows(array, slice(start, end)) for array in given))
            start = end

    return blocks


def _block_ends(indptr: np.ndarray, max_entries: float) -> np.ndarray:
    """Return where blocks of a CSR matrix end that have at most `max_entries`, or one row."""
    ends, m = [0], len(indptr) - 1
    while ends[-1] < m:
        end = int(np.searchsorted(indptr, indptr[ends[-1]] + max_entries, "right")) - 1
        ends.append(min(max(end, ends[-1] + 1), ends[-1] + MAX_ROWS))
    return np.array(ends[1:])


def _rows(array: Any, rows: slice) -> Any:
    """Return rows of an array; those of a memmap are read now, by the thread that prefetches."""
    if array is None or not isinstance(array, np.memmap):
        return None if array is None else array[rows]
    copy = np.array(array[rows])
    _release_pages(array)
    return copy


def _release_pages(array: np.memmap) -> None:
    """Release the pages that were read of a file, which count as memory of the process."""
    if array.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return  # with mode "c" the pages may hold changes of the user
    file: Any = array
    while file is not None and not isinstance(file, mmap.mmap):
        file = getattr(file, "base", None)
    if file is not None:
        file.madvise(mmap.MADV_DONTNEED)


def is_path(part: object) -> bool:
    """Return whether a value is the path of a file."""
    return isinstance(part, str | os.PathLike)


def refuse(given: Block, wanted: str) -> None:
    """Refuse targets, weights and offsets where the source itself has them."""
    fields = {"y": given.y, "sample_weight": given.weight, "offset": given.offset}
    for field, value in fields.items():
        if value is not None:
            checks.fail(OWNER, field, wanted, checks.describe(value))
