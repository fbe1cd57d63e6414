"""Blocks of rows from .npy, .npz and .parquet files."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cfgd._core import checks
from cfgd._core.engines.base import Part, even_slices
from cfgd._core.files import first_line, printable, reason
from cfgd._core.npy import ARCHIVE_ERRORS, UnreadableError, check_size, read_header
from cfgd.objectives.linear.block_source import (
    OWNER,
    Block,
    checked_rows_of_block,
    is_path,
    parts_of,
    refuse,
    refuse_target,
)
from cfgd.objectives.linear.npz_rows import Reader, check_memory, member

KINDS = (".npy", ".npz", ".parquet")
BUFFER = 2**16  # bytes of each column of a .parquet file; a page of one is at most 1 MiB by default
IN_NPZ = ("X", "y", "sample_weight", "offset")
Errors: TypeAlias = tuple[type[Exception], ...]


def files_of(source: Any) -> list[Path]:
    """Return the files of a list of files, a directory, or a pattern such as data/*.parquet."""
    if not isinstance(source, str | os.PathLike):
        return [Path(part) for part in source]
    path = Path(source)
    if _is(path, Path.is_dir):
        found = sorted(part for part in path.iterdir() if part.suffix in KINDS)
        if not found:
            checks.fail(OWNER, "source", f"be a directory of {', '.join(KINDS)} files", f"{path}")
        return found
    if not _is(path, Path.is_file) and glob.has_magic(str(source)):
        found = [Path(part) for part in sorted(glob.glob(str(source), recursive=True))]
        if not found:
            checks.fail(OWNER, "source", "be a pattern of files that exist", repr(str(source)))
        return found
    return [path]


def parts_of_files(
    paths: list[Path], given: Block, target: str | None, memory: float, count: int
) -> list[Part]:
    """Return the parts of files of one kind; the parameters are those of `parts_of`."""
    for path in paths:
        if path.suffix not in KINDS:
            checks.fail(OWNER, "source", f"be files of {', '.join(KINDS)}", f"{path}")
        if not _is(path, Path.is_file):
            checks.fail(OWNER, "source", "be files that exist", f"{path}")
    kinds = {path.suffix for path in paths}
    if len(kinds) > 1:
        checks.fail(OWNER, "source", "be files of one kind", ", ".join(sorted(kinds)))
    (kind,) = kinds
    blocks: list[Part]  # of each file, or of some row groups
    if kind != ".parquet":
        refuse_target(target)
    if kind == ".npy":
        blocks = _npy_parts(paths, given, memory, -(-count // len(paths)))
    elif kind == ".npz":
        refuse(given, "not be given with .npz files, which hold it")
        blocks = [functools.partial(_npz, path, memory) for path in paths]
    else:
        names = _names_of_columns(given, target)
        blocks = [
            functools.partial(_parquet, path, groups, names, memory)
            for path in paths
            for groups in _row_groups(path, -(-count // len(paths)))
        ]
    return [Chain(blocks[chosen]) for chosen in even_slices(len(blocks), count)]


@dataclasses.dataclass(frozen=True)
class Chain:
    """Parts one after the other."""

    parts: Sequence[Part]

    def __call__(self) -> Iterator[Any]:
        return (block for part in self.parts for block in part())


def _names_of_columns(given: Block, target: str | None) -> tuple[Any, ...]:
    """Return the names of the columns of targets, weights and offsets of .parquet files."""
    if given.y is not None:
        checks.fail(OWNER, "y", "not be given with .parquet files", checks.describe(given.y))
    if target is None:
        checks.fail(OWNER, "target", "name the column of the targets", "None")
    for field, name in (("sample_weight", given.weight), ("offset", given.offset)):
        if not (name is None or isinstance(name, str)):
            checks.fail(OWNER, field, "name a column of .parquet files", checks.describe(name))
    return target, given.weight, given.offset


def _is(path: Path, test: Callable[[Path], bool]) -> bool:
    try:
        return test(path)
    except OSError:  # a name that is too long for the system
        return False


def _npy_parts(paths: list[Path], given: Block, memory: float, count: int) -> list[Part]:
    """Return the parts of .npy files of X with as many files of y, and of weights and offsets."""
    fields = {"y": given.y, "sample_weight": given.weight, "offset": given.offset}
    for field, files in fields.items():
        fits = isinstance(files, Sequence) and len(files) == len(paths)
        if not (fits and all(map(is_path, files))) and (field == "y" or files is not None):
            wanted = "be a list of .npy files, one for each of X"
            checks.fail(OWNER, field, wanted, repr(files) if fits else checks.describe(files))
    columns = [paths, *(files or [None] * len(paths) for files in fields.values())]

    return [
        functools.partial(_npy, names, memory, i, count)
        for names in zip(*columns, strict=True)
        for i in range(max(count, 1))
    ]


def _npy(names: tuple[Any, ...], memory: float, part: int, count: int) -> Iterator[Block]:
    """Iterate over the blocks of one of `count` parts of .npy files."""
    arrays: list[Any] = [None if name is None else _mapped(Path(name)) for name in names]
    X, y = arrays[:2]
    if X.ndim != 2 or y.shape != X.shape[:1]:
        wanted = f"hold a matrix, and {names[1]} a target for each of its rows"
        got = f"shapes {X.shape} and {y.shape}"
        checks.fail(OWNER, "source", f"{wanted} ({names[0]})", got)
    parts = parts_of(X, Block(None, *arrays[1:]), None, memory, count)
    return iter(parts[part]() if part < len(parts) else ())


def _mapped(path: Path) -> Any:
    """Return the array of a .npy file, whose numbers are read when they are used."""
    with _read_errors(path):
        with path.open("rb") as file:
            header = read_header(file)
        check_size(header, path.stat().st_size)
        _check_numbers(path.name, header.dtype)
        shape, by_column, dtype, begins = header
        if header.size == 0:  # an empty file cannot be mapped
            return np.zeros(shape, dtype)
        return np.memmap(path, dtype, "r", begins, shape, "F" if by_column else "C")


def _npz(path: Path, memory: float) -> Iterator[Block]:
    """Iterate over the blocks of one .npz file, without loading its arrays."""
    with _read_errors(path), contextlib.ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(path))
        files = {file.removesuffix(".npy"): file for file in archive.namelist()}
        if not {"X", "y"} <= set(files):
            wanted = f"hold arrays X and y in {path}"
            checks.fail(OWNER, "source", wanted, ", ".join(files) or "nothing")
        size = path.stat().st_size
        members = {name: member(archive, files[name], size) for name in IN_NPZ if name in files}
        m = members["y"].shape[:1]
        fits = all(one.shape and one.shape[:1] == m for one in members.values())
        if len(members["X"].shape) != 2 or not fits:
            got = ", ".join(f"{name} {one.shape}" for name, one in members.items())
            wanted = f"hold a matrix X with as many rows as the other arrays in {path}"
            checks.fail(OWNER, "source", wanted, got)
        for name, one in members.items():
            _check_numbers(name, one.dtype)
        check_memory(list(members.values()), memory)
        # an offset may have more columns than X
        widest = max(one.row_bytes // one.dtype.itemsize for one in members.values())
        block = checked_rows_of_block(memory, widest)
        readers = {name: Reader(stack, archive, one) for name, one in members.items()}
        for start in range(0, m[0], block):
            count = min(block, m[0] - start)
            arrays = {name: reader.rows(count) for name, reader in readers.items()}
            for name, one in members.items():
                arrays[name] = arrays[name].reshape(count, *one.shape[1:])
            yield Block(*(arrays.get(name) for name in IN_NPZ))


def _row_groups(path: Path, count: int) -> list[range | None]:
    """Return the row groups of about `count` parts of a .parquet file; None for all of them."""
    if count < 2:
        return [None]
    import pyarrow as pa
    from pyarrow import parquet

    with _read_errors(path, (pa.ArrowException, UnicodeError)), parquet.ParquetFile(path) as file:
        groups = range(file.num_row_groups)
    return [groups[chosen] for chosen in even_slices(len(groups), count)] or [None]


def _parquet(
    path: Path, groups: range | None, names: tuple[Any, ...], memory: float
) -> Iterator[Block]:
    """Iterate over the blocks of row groups of a .parquet file.

    `names` are of target, weight and offset.
    """
    import pyarrow as pa
    from pyarrow import parquet

    errors = pa.ArrowException, UnicodeError
    # by default all row groups are read at once; without a buffer, all of a column of one of them
    opened = functools.partial(parquet.ParquetFile, pre_buffer=False, buffer_size=BUFFER)
    with _read_errors(path, errors), opened(path) as file:
        all_names = file.schema_arrow.names
        for field, name in zip(("target", "sample_weight", "offset"), names, strict=True):
            if name is not None and name not in all_names:
                checks.fail(OWNER, field, f"be a column of {path}", repr(name))
        if len(set(all_names)) < len(all_names):
            checks.fail(OWNER, "source", f"have columns of different names ({path})", "equal ones")
        for column in file.schema_arrow:
            if not _is_number(pa.types, column.type):
                got = f"{column.name!r} of type {column.type}"
                checks.fail(OWNER, "source", f"have columns of numbers ({path})", got)
        columns = [name for name in all_names if name not in names]

        def numbers(batch: Any, name: Any) -> Any:
            if name is None:
                return None
            return batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)

        rows = checked_rows_of_block(memory, len(all_names))
        for batch in file.iter_batches(rows, None if groups is None else list(groups)):
            batch.validate(full=True)  # pyarrow trusts the numbers of the file
            X = np.empty((batch.num_rows, len(columns)))
            for j, name in enumerate(columns):
                X[:, j] = numbers(batch, name)
            yield Block(X, *(numbers(batch, name) for name in names))


def _is_number(types: Any, column_type: Any) -> bool:
    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(test(column_type) for test in tests)


def _check_numbers(name: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf":
        raise UnreadableError(f"{name} has dtype {dtype}, which is not of real numbers")


@contextlib.contextmanager
def _read_errors(path: Path, errors: Errors = ARCHIVE_ERRORS) -> Iterator[None]:
    """Turn the errors that libraries raise for a file they cannot read into a `ValueError`."""
    try:
        yield
    except MemoryError:
        got = f"{path}, which takes more memory than there is"
    except OSError as error:
        got = f"{path} ({first_line(reason(error))})"
    except UnreadableError as error:
        got = f"{path} ({printable(str(error))})"
    except errors as error:
        got = f"{path} ({first_line(str(error)) or 'it ends too early'})"
    else:
        return
    checks.fail(OWNER, "source", "be files that can be read", got)
