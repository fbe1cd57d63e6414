"""Rows from anywhere, block by block: X and y, of which only a block is in memory."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse

from cfgd import _check

Block: TypeAlias = tuple[Any, Any]  # X, dense or sparse, and y
Source: TypeAlias = Callable[[], Iterator[Block]]  # called for every pass
T = TypeVar("T")

OWNER = "Blocks"
# numbers of a row that stand in memory at once, for each of its numbers: two blocks, one of them
# being read, each as it is in the file and as float64, and X' diag(s) of it
COPIES = 6
LEAST_ROWS, MOST_ROWS = 64, 2**16  # of a block: more are not faster
WANTED = (
    "be a matrix, a list of .npy, .npz or .parquet files, or a function that returns an iterator "
    "of pairs of X and y"
)
KINDS = (".npy", ".npz", ".parquet")


def source_of(source: Any, y: Any, target: str | None, memory: float) -> Source:
    """What gives the rows anew at every pass."""
    if isinstance(source, str | os.PathLike):
        source = [source]
    if callable(source):
        _refuse(y, "y", "not be given with a function, which returns it")
        return lambda: iter(source())
    if hasattr(source, "shape") or scipy.sparse.issparse(source):
        return _of_arrays(source, y, memory)
    if isinstance(source, Sequence) and source and all(_is_path(part) for part in source):
        return _of_files([Path(part) for part in source], y, target, memory)
    _check.fail(OWNER, "source", WANTED, _check.kind(source))


def ahead(blocks: Iterable[T]) -> Iterator[T]:
    """The same blocks, the next one being read while one computes."""
    ready: queue.Queue[Any] = queue.Queue(1)
    left = threading.Event()

    def put(entry: tuple[str, Any]) -> bool:
        while not left.is_set():
            try:
                ready.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for block in blocks:
                if not put(("block", block)):
                    return
            put(("end", None))
        except BaseException as error:  # goes up where the blocks are wanted
            put(("error", error))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        while True:
            kind, found = ready.get()
            if kind == "error":
                raise found
            if kind == "end":
                return
            yield found
    finally:
        left.set()
        thread.join()


def rows_of_block(memory: float, columns: int, copies: int = COPIES) -> int:
    """As many rows as can be worked on in so many bytes."""
    return int(np.clip(memory / (8 * copies * max(columns, 1)), LEAST_ROWS, MOST_ROWS))


def _of_arrays(X: Any, y: Any, memory: float) -> Source:
    if y is None:
        _check.fail(OWNER, "y", "be given with a matrix", "None")
    if X.ndim != 2:
        _check.fail(OWNER, "source", "be a matrix", f"shape {tuple(X.shape)}")
    if np.shape(y) != (X.shape[0],):
        _check.fail(OWNER, "y", f"have shape {(X.shape[0],)}", np.shape(y))
    X = X.tocsr() if scipy.sparse.issparse(X) else X
    size = rows_of_block(memory, X.shape[1])

    def blocks() -> Iterator[Block]:
        for start in range(0, X.shape[0], size):
            yield X[start : start + size], y[start : start + size]

    return blocks


def _of_files(paths: list[Path], y: Any, target: str | None, memory: float) -> Source:
    for path in paths:
        if path.suffix not in KINDS:
            _check.fail(OWNER, "source", f"be files of {', '.join(KINDS)}", f"{path}")
        if not path.is_file():
            _check.fail(OWNER, "source", "be files that are there", f"{path}")
    plain = [path.suffix == ".npy" for path in paths]
    if any(plain):
        several = isinstance(y, Sequence) and len(y) == len(paths) and all(map(_is_path, y))
        if not all(plain) or not several:
            wanted = "be a list of .npy files, one for each of X"
            _check.fail(OWNER, "y", wanted, repr(y) if several else _check.kind(y))
        pairs = list(zip(paths, map(Path, y), strict=True))
        return lambda: (block for pair in pairs for block in _npy(*pair, memory))
    _refuse(y, "y", "not be given with files that hold it")
    if target is None and any(path.suffix == ".parquet" for path in paths):
        _check.fail(OWNER, "target", "name the column of the targets", "None")
    return lambda: (block for path in paths for block in _read(path, target, memory))


def _npy(path: Path, targets: Path, memory: float) -> Iterator[Block]:
    X, y = (np.load(part, mmap_mode="r", allow_pickle=False) for part in (path, targets))
    if X.ndim != 2 or y.shape != X.shape[:1]:
        wanted = f"hold a matrix, and {targets} a target for each of its rows"
        _check.fail(OWNER, "source", f"{wanted} ({path})", f"shapes {X.shape} and {y.shape}")
    return _of_arrays(X, y, memory)()


def _read(path: Path, target: str | None, memory: float) -> Iterator[Block]:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as parts:
            if not {"X", "y"} <= set(parts.files):
                wanted = f"hold arrays X and y in {path}"
                _check.fail(OWNER, "source", wanted, ", ".join(parts.files) or "nothing")
            yield from _of_arrays(parts["X"], parts["y"], memory)()
        return
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if target not in names:
            _check.fail(OWNER, "target", f"be a column of {path}", repr(target))
        columns = [name for name in names if name != target]
        for batch in file.iter_batches(rows_of_block(memory, len(names))):
            X = np.column_stack([np.asarray(batch.column(name), float) for name in columns])
            yield X, np.asarray(batch.column(target), float)


def _is_path(part: Any) -> bool:
    return isinstance(part, str | os.PathLike)


def _refuse(given: Any, field: str, wanted: str) -> None:
    if given is not None:
        _check.fail(OWNER, field, wanted, _check.kind(given))
