"""Rows from anywhere, block by block: X and y, of which only a block or two are in memory."""

from __future__ import annotations

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

T = TypeVar("T")


class Block(NamedTuple):
    """Some rows; `weight` and `offset` are None where there are none."""

    X: Any  # dense or sparse
    y: Any
    weight: Any = None
    offset: Any = None


Source: TypeAlias = Callable[[], Iterator[Block]]  # called for every pass

OWNER = "Blocks"
# numbers of a row that stand in memory at once, for each of its numbers: half of them are two
# blocks, one of them being read, and what is made of it; the other half is left for a matrix
COPIES = 8
LEAST_ROWS, MOST_ROWS = 64, 2**16  # of a block: more are not faster
ENTRY = 1.5  # numbers that an entry of a sparse matrix takes, with its place
WANTED = (
    "be a matrix, a list of .npy, .npz or .parquet files, or a function that returns an iterator "
    "of X and y"
)


def source_of(source: Any, given: Block, target: str | None, memory: float) -> Source:
    """What gives the rows anew at every pass; `given` is what came with X."""
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
    """The same blocks, the next one being read while one computes; never more than these two."""
    ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
    wanted, left = threading.Semaphore(1), threading.Event()

    def read() -> None:
        try:
            for block in blocks:
                ready.put(("block", block))
                del block
                wanted.acquire()
                if left.is_set():
                    return
            ready.put(("end", None))
        except BaseException as error:  # goes up where the blocks are wanted
            ready.put(("error", error))

    wanted.acquire()
    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        while True:
            kind, found = ready.get()
            if kind == "error":
                raise found
            if kind == "end":
                return
            wanted.release()
            yield found
            del found
    finally:
        left.set()
        wanted.release()
        thread.join()


def rows_of_block(memory: float, columns: int, copies: int = COPIES) -> int:
    """As many rows as can be worked on in so many bytes."""
    return int(np.clip(memory / (8 * copies * max(columns, 1)), LEAST_ROWS, MOST_ROWS))


def rows_within(memory: float, columns: int) -> int:
    """As many, where the bytes suffice for a few."""
    least = 8 * COPIES * LEAST_ROWS * columns
    if memory < least:
        wanted = f"be at least {least:,} for {LEAST_ROWS} rows of {columns:,} numbers"
        checks.fail(OWNER, "memory", wanted, f"{memory:g}")
    return rows_of_block(memory, columns)


def of_arrays(given: Block, memory: float) -> Source:
    """Of matrices and vectors that may stand in files, as np.memmap has them."""
    X, y, _, _ = given
    if y is None:
        checks.fail(OWNER, "y", "be given with a matrix", "None")
    if X.ndim != 2:
        checks.fail(OWNER, "source", "be a matrix", f"shape {tuple(X.shape)}")
    m, d = X.shape
    for name, of in (("y", y), ("sample_weight", given.weight), ("offset", given.offset)):
        most = 2 if name == "offset" else 1  # of several classes one for each
        if of is not None and not (np.shape(of)[:1] == (m,) and np.ndim(of) <= most):
            checks.fail(OWNER, name, f"have shape {(m,)}", np.shape(of))
    if scipy.sparse.issparse(X):
        given = given._replace(X=X.tocsr())
        ends = _ends(given.X.indptr, memory / (8 * ENTRY * COPIES))
    else:
        size = rows_within(memory, d)
        ends = np.append(np.arange(size, m, size), m)

    def blocks() -> Iterator[Block]:
        start = 0
        for end in ends:
            yield Block(*(_part(of, slice(start, end)) for of in given))
            start = end

    return blocks


def _ends(starts: np.ndarray, most: float) -> np.ndarray:
    """Rows at which blocks of so many entries end, each with a row at least."""
    ends, m = [0], len(starts) - 1
    while ends[-1] < m:
        end = int(np.searchsorted(starts, starts[ends[-1]] + most, "right")) - 1
        ends.append(min(max(end, ends[-1] + 1), ends[-1] + MOST_ROWS))
    return np.array(ends[1:])


def _part(of: Any, rows: slice) -> Any:
    """Rows of an array; those of a file are read now, by the thread that reads ahead."""
    if of is None or not isinstance(of, np.memmap):
        return None if of is None else of[rows]
    part = np.array(of[rows])
    _let_go(of)
    return part


def _let_go(of: Any) -> None:
    """What was read of a file counts as memory until it is let go."""
    if of.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return  # the former may have been written into
    file: Any = of
    while file is not None and not isinstance(file, mmap.mmap):
        file = getattr(file, "base", None)
    if file is not None:
        file.madvise(mmap.MADV_DONTNEED)


def is_path(part: Any) -> bool:
    return isinstance(part, str | os.PathLike)


def refuse(given: Block, wanted: str) -> None:
    for field, of in (("y", given.y), ("sample_weight", given.weight), ("offset", given.offset)):
        if of is not None:
            checks.fail(OWNER, field, wanted, checks.describe(of))
