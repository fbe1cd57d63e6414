"""Sources of blocks of rows in parts: arrays, files or a function."""

from __future__ import annotations

import dataclasses
import functools
import mmap
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from cfgd._core import checks
from cfgd._core.engines.base import Part, even_slices
from cfgd._core.types import UserInput
from cfgd.objectives.linear.block_size import MAX_ROWS, MIN_ROWS, rows_of_memory


class Block(NamedTuple):
    """Consecutive rows of X with their targets; `weight` and `offset` are None if not given."""

    X: Any  # dense or sparse
    y: Any
    weight: Any = None
    offset: Any = None


OWNER = "Blocks"
# memory for a block, in multiples of the size of a block: half of it is for two blocks, of which
# one is being read, and temporaries; the other half is for the Hessian
COPIES = 8
NUMBERS_PER_ENTRY = 1.5  # memory for an entry of a sparse matrix with its indices, in numbers
WANTED = (
    "be a matrix, a Dask array or data frame, .npy, .npz or .parquet files, or a function, or a "
    "list of some, that returns an iterator of X and y"
)


def parts_of(
    source: UserInput, given: Block, target: str | None, memory: float, count: int
) -> Sequence[Part]:
    """Return the parts of `source`, about `count` where it can be divided.

    `given` holds the targets, weights and offsets that the user gave with X; `target` is the name
    of a column of .parquet files; `memory` is a limit in bytes.
    """
    functions = [source] if callable(source) else source
    if isinstance(functions, Sequence) and functions and all(map(callable, functions)):
        refuse(given, "not be given with a function, which returns it")
        refuse_target(target)
        return [FloatBlocks(function) for function in functions]
    if hasattr(source, "shape") or scipy.sparse.issparse(source):
        refuse_target(target)
        arrays = _checked_arrays(given._replace(X=source))
        ends = block_ends(arrays.X, memory)
        return [
            FloatBlocks(functools.partial(blocks_of_arrays, arrays, begin, chosen))
            for begin, chosen in divided(ends, count)
        ]
    if isinstance(source, str | os.PathLike) or _is_list_of_paths(source):
        from cfgd.objectives.linear.block_files import files_of, parts_of_files

        found = parts_of_files(files_of(source), given, target, memory, count)
        return [FloatBlocks(part) for part in found]
    checks.fail(OWNER, "source", WANTED, checks.describe(source))


def _is_list_of_paths(source: UserInput) -> bool:
    return isinstance(source, Sequence) and bool(source) and all(map(is_path, source))


@dataclasses.dataclass(frozen=True)
class FloatBlocks:
    """A part whose blocks are converted to float64, in the thread that reads them."""

    part: Part

    def __call__(self) -> Iterator[Any]:
        for given in self.part():
            is_block = isinstance(given, tuple | list) and 2 <= len(given) <= 4
            yield as_floats(Block(*given)) if is_block else given  # which the first pass refuses


def as_floats(block: Block) -> Block:
    """Convert a block to float64."""
    X = block.X
    X = X.tocsr().astype(float, copy=False) if scipy.sparse.issparse(X) else _dense_floats(X)
    return Block(X, *(None if of is None else _dense_floats(of) for of in block[1:]))


def _dense_floats(array: Any) -> np.ndarray:
    """Return an array as float64 at addresses that are multiples of 8.

    Arrays from another process may lie elsewhere in its message: NumPy copies them for each
    product, whose sums then differ by rounding.
    """
    floats = np.asarray(array, float)
    return floats if floats.flags.aligned else floats.copy()


def checked_rows_of_block(memory: float, columns: int) -> int:
    """Return `rows_of_block`; refuse a `memory` that is too small for `MIN_ROWS` rows."""
    least = 8 * COPIES * MIN_ROWS * columns
    if memory < least:
        wanted = f"be at least {least:,} for {MIN_ROWS} rows of {columns:,} numbers"
        checks.fail(OWNER, "memory", wanted, f"{memory:g}")
    return rows_of_memory(memory, columns, COPIES)


def _checked_arrays(given: Block) -> Block:
    """Return a dense matrix or one in CSR format with its vectors, if their shapes fit."""
    X, y, _, _ = given
    if y is None:
        checks.fail(OWNER, "y", "be given with a matrix", "None")
    if X.ndim != 2:
        checks.fail(OWNER, "source", "be a matrix", f"shape {tuple(X.shape)}")
    m = X.shape[0]
    for name, array in (("y", y), ("sample_weight", given.weight), ("offset", given.offset)):
        array = checks.real(OWNER, name, array) if isinstance(array, list | tuple) else array
        max_axes = 2 if name == "offset" else 1  # an offset may have a column for each class
        if array is not None and not (np.shape(array)[:1] == (m,) and np.ndim(array) <= max_axes):
            checks.fail(OWNER, name, f"have shape {(m,)}", np.shape(array))
    return given._replace(X=X.tocsr()) if scipy.sparse.issparse(X) else given


def block_ends(X: Any, memory: float) -> np.ndarray:
    """Return the rows at which the blocks of a matrix end, dense or in CSR format."""
    if scipy.sparse.issparse(X):
        return _ends_of_sparse(X.indptr, memory / (8 * NUMBERS_PER_ENTRY * COPIES))
    size = checked_rows_of_block(memory, X.shape[1])
    return np.append(np.arange(size, X.shape[0], size), X.shape[0])


def divided(ends: np.ndarray, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Divide blocks that end there into about `count` parts: where each begins, and its ends."""
    begin = 0
    for chosen in even_slices(len(ends), count):
        yield begin, ends[chosen]
        begin = int(ends[chosen][-1])


def blocks_of_arrays(given: Block, begin: int, ends: np.ndarray) -> Iterator[Block]:
    """Iterate over blocks of arrays, which may be of type np.memmap: from a row to each end."""
    for end in ends:
        yield Block(*(_rows(array, slice(begin, end)) for array in given))
        begin = end


def _ends_of_sparse(indptr: np.ndarray, max_entries: float) -> np.ndarray:
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


def refuse_target(target: str | None) -> None:
    """Refuse the name of a column where the source has no named columns."""
    if target is not None:
        wanted = "be given with .parquet files or a Dask data frame only"
        checks.fail(OWNER, "target", wanted, repr(target))
