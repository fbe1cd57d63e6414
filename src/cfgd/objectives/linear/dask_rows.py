"""Rows in Dask arrays and data frames: blocks of their chunks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from cfgd._core import checks
from cfgd._core.engines.base import Part
from cfgd._core.engines.dask_graph import parts_of_collections
from cfgd.objectives.linear.block_source import (
    OWNER,
    Block,
    as_floats,
    block_ends,
    blocks_of_arrays,
    refuse_target,
)


def is_dask(value: Any) -> bool:
    """Return whether an object is a Dask array, series or data frame, without importing Dask."""
    return hasattr(value, "__dask_graph__") and hasattr(value, "ndim")


def parts_of_dask(
    source: Any, given: Block, target: str | None, memory: float, count: int
) -> list[Part]:
    """Return about `count` parts of a Dask array or data frame with its targets.

    `given` holds what the user gave for targets, weights and offsets: collections with the
    partitions of `source`, NumPy arrays, or names of columns of a data frame.
    """
    if hasattr(source, "dtypes"):
        return _parts_of_frame(source, given, target, memory, count)
    refuse_target(target)
    if source.ndim != 2:
        checks.fail(OWNER, "source", "be a matrix", f"a Dask array of {source.ndim} axes")
    if source.numblocks[1] > 1:
        wanted = "have all columns in one chunk: X.rechunk({1: -1})"
        checks.fail(OWNER, "source", wanted, f"{source.numblocks[1]} chunks of columns")
    if given.y is None:
        checks.fail(OWNER, "y", "be given with a matrix", "None")
    fields = ("y", given.y), ("sample_weight", given.weight), ("offset", given.offset)
    others = [_aligned(source, name, value) for name, value in fields]
    return list(parts_of_collections([source, *others], ChunkReader(memory), count))


def _aligned(X: Any, name: str, value: Any) -> Any:
    """Return a vector in the partitions of the array or data frame X; None if it is None."""
    if value is None:
        return None
    chunks = X.chunks[0] if hasattr(X, "chunks") else None
    is_known = chunks is not None and not np.isnan(chunks).any()
    if not is_dask(value):
        if not is_known:
            wanted = "be a Dask array where the chunks of X have unknown sizes"
            checks.fail(OWNER, name, wanted, checks.describe(value))
        import dask.array as da

        if np.shape(value)[:1] != X.shape[:1]:
            checks.fail(OWNER, name, f"have shape {X.shape[:1]}", np.shape(value))
        return da.from_array(np.asarray(value), chunks=(chunks, *np.shape(value)[1:]))
    if hasattr(value, "chunks"):
        if is_known and not np.isnan(value.chunks[0]).any():
            if value.shape[0] != X.shape[0]:
                checks.fail(OWNER, name, f"have shape {X.shape[:1]}", value.shape)
            value = value.rechunk({0: chunks, **dict.fromkeys(range(1, value.ndim), -1)})
        elif value.ndim > 1 and value.numblocks[1] > 1:
            value = value.rechunk({1: -1})
    if value.npartitions != X.npartitions:
        wanted = f"have the {X.npartitions} partitions of X"
        checks.fail(OWNER, name, wanted, f"{value.npartitions}")
    return value


def _parts_of_frame(
    frame: Any, given: Block, target: str | None, memory: float, count: int
) -> list[Part]:
    """Return the parts of a data frame; targets, weights and offsets may be columns of it."""
    if (target is None) == (given.y is None):
        wanted = "name the column of the targets, unless `y` has them"
        checks.fail(OWNER, "target", wanted, repr(target))
    columns: dict[str, str] = {}
    others: list[Any] = []
    fields = ("target", "y", target or given.y), ("sample_weight", "weight", given.weight)
    for field, name, value in (*fields, ("offset", "offset", given.offset)):
        if isinstance(value, str):
            if value not in frame.columns:
                checks.fail(OWNER, field, "be a column of the data frame", repr(value))
            columns[name] = value
            others.append(None)
        else:
            others.append(_aligned(frame, field, value))
    for column, kind in frame.dtypes.items():
        if getattr(kind, "kind", "O") not in "biuf" and not getattr(kind, "_is_numeric", False):
            wanted = "have columns of numbers"
            checks.fail(OWNER, "source", wanted, f"{column!r} of type {kind}")
    reader = ChunkReader(memory, columns)
    return list(parts_of_collections([frame, *others], reader, count))


@dataclasses.dataclass(frozen=True)
class ChunkReader:
    """Returns blocks of chunks of X, y, weights and offsets, at most `memory` bytes at a time.

    `columns` are the names of those that a data frame has, by the fields of a block.
    """

    memory: float
    columns: dict[str, str] = dataclasses.field(default_factory=dict)

    def __call__(self, X: Any, *others: Any) -> Iterator[Block]:
        names = list(self.columns.values())
        block = Block(_numbers(X.drop(columns=names) if names else X), *map(_numbers, others))
        own = {field: _numbers(X[name]) for field, name in self.columns.items()}
        block = block._replace(**own)
        sizes = {len_of(array) for array in block if array is not None}
        if len(sizes) > 1:
            got = " and ".join(f"{size:,}" for size in sorted(sizes))
            checks.fail(OWNER, "source", "have chunks of as many rows as its targets", got)
        if not len_of(block.X):
            return
        if scipy.sparse.issparse(block.X):
            block = block._replace(X=block.X.tocsr())
        for part in blocks_of_arrays(block, 0, block_ends(block.X, self.memory)):
            yield as_floats(part)


def len_of(array: Any) -> int:
    """Return the number of rows."""
    return int(array.shape[0])


def _numbers(chunk: Any) -> Any:
    """Return a chunk as an array: that of a data frame or a series as float64."""
    if hasattr(chunk, "to_numpy"):
        return chunk.to_numpy(dtype=float, na_value=np.nan)
    return chunk
