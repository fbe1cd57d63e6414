"""Rows from files, block by block: .npy, .npz and .parquet."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd.objectives.linear.block_source import (
    OWNER,
    Block,
    Source,
    is_path,
    of_arrays,
    refuse,
    rows_within,
)
from cfgd.objectives.linear.npz_rows import Reader, member

KINDS = (".npy", ".npz", ".parquet")
IN_NPZ = ("X", "y", "sample_weight", "offset")


def of_files(paths: list[Path], given: Block, target: str | None, memory: float) -> Source:
    for path in paths:
        if path.suffix not in KINDS:
            checks.fail(OWNER, "source", f"be files of {', '.join(KINDS)}", f"{path}")
        if not path.is_file():
            checks.fail(OWNER, "source", "be files that are there", f"{path}")
    kinds = {path.suffix for path in paths}
    if len(kinds) > 1:
        checks.fail(OWNER, "source", "be files of one kind", ", ".join(sorted(kinds)))
    (kind,) = kinds
    if kind == ".npy":
        return _npy(paths, given, memory)
    if kind == ".npz":
        refuse(given, "not be given with .npz files, which hold it")
        return lambda: (block for path in paths for block in _npz(path, memory))
    if given.y is not None:
        checks.fail(OWNER, "y", "not be given with .parquet files", checks.describe(given.y))
    names = target, given.weight, given.offset
    if target is None:
        checks.fail(OWNER, "target", "name the column of the targets", "None")
    for field, name in zip(("sample_weight", "offset"), names[1:], strict=True):
        if not (name is None or isinstance(name, str)):
            checks.fail(OWNER, field, "name a column of .parquet files", checks.describe(name))
    return lambda: (block for path in paths for block in _parquet(path, names, memory))


def _npy(paths: list[Path], given: Block, memory: float) -> Source:
    """Each X with the y, and perhaps the weights and offsets, of as many files."""
    fields = {"y": given.y, "sample_weight": given.weight, "offset": given.offset}
    for field, files in fields.items():
        several = isinstance(files, Sequence) and len(files) == len(paths)
        if not (several and all(map(is_path, files))) and (field == "y" or files is not None):
            wanted = "be a list of .npy files, one for each of X"
            checks.fail(OWNER, field, wanted, repr(files) if several else checks.describe(files))
    columns = [paths, *(files or [None] * len(paths) for files in fields.values())]

    def opened(names: tuple[Any, ...]) -> Source:
        parts: list[Any] = [
            None if name is None else np.load(name, mmap_mode="r") for name in names
        ]
        X, y = parts[:2]
        if X.ndim != 2 or y.shape != X.shape[:1]:
            wanted = f"hold a matrix, and {names[1]} a target for each of its rows"
            got = f"shapes {X.shape} and {y.shape}"
            checks.fail(OWNER, "source", f"{wanted} ({names[0]})", got)
        return of_arrays(Block(*parts), memory)

    return lambda: (block for names in zip(*columns, strict=True) for block in opened(names)())


def _npz(path: Path, memory: float) -> Iterator[Block]:
    with contextlib.ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(path))
        files = {file.removesuffix(".npy"): file for file in archive.namelist()}
        if not {"X", "y"} <= set(files):
            wanted = f"hold arrays X and y in {path}"
            checks.fail(OWNER, "source", wanted, ", ".join(files) or "nothing")
        found = {name: member(path, archive, files[name]) for name in IN_NPZ if name in files}
        m = found["y"].shape[:1]
        if len(found["X"].shape) != 2 or any(of.shape[:1] != m for of in found.values()):
            got = ", ".join(f"{name} {of.shape}" for name, of in found.items())
            wanted = f"hold a matrix X with as many rows as all else in {path}"
            checks.fail(OWNER, "source", wanted, got)
        size = rows_within(memory, found["X"].shape[1])
        readers = {name: Reader(stack, archive, of) for name, of in found.items()}
        for start in range(0, m[0], size):
            count = min(size, m[0] - start)
            parts = {name: reader.rows(count) for name, reader in readers.items()}
            for name, of in found.items():
                parts[name] = parts[name].reshape(count, *of.shape[1:])
            yield Block(*(parts.get(name) for name in IN_NPZ))


def _parquet(path: Path, names: tuple[Any, ...], memory: float) -> Iterator[Block]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        there = file.schema_arrow.names
        for field, name in zip(("target", "sample_weight", "offset"), names, strict=True):
            if name is not None and name not in there:
                checks.fail(OWNER, field, f"be a column of {path}", repr(name))
        columns = [name for name in there if name not in names]

        def numbers(batch: Any, name: Any) -> Any:
            return None if name is None else np.asarray(batch.column(name), float)

        for batch in file.iter_batches(rows_within(memory, len(there))):
            X = np.empty((batch.num_rows, len(columns)))
            for j, name in enumerate(columns):
                X[:, j] = numbers(batch, name)
            yield Block(X, *(numbers(batch, name) for name in names))
