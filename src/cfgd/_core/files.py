"""What is left behind: files that are whole or not there, numbers as JSON has them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

INTERRUPTED = 130  # the exit code that a shell gives for Ctrl-C
ROOM = 4_000_000  # bytes, more than one experiment leaves


class NotWrittenError(OSError):
    """Says in one sentence which file could not be written, and why."""


def check_writable(folder: Path, files: Iterable[str] = ()) -> None:
    """Find out now what stops `files` from being written: hours later would be too late.

    The folders are made and a file of some size in each, since a full disk takes empty ones. What
    is in the way of a file is left there: a folder or a link is not ours to remove.
    """
    paths = [folder / file for file in files]
    _check_folder(folder)
    for inner in sorted({path.parent for path in paths} - {folder}):
        if inner.is_symlink() or (inner.exists() and not inner.is_dir()):
            raise ValueError(f"{inner} is {_kind(inner)} where a folder is to be: move it away.")
        _check_folder(inner)
    for path in paths:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ValueError(f"{path} is {_kind(path)} where a file is to be: move it away.")


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
            file.flush()
    except OSError as error:
        raise ValueError(f"The folder {folder} cannot be written to: {reason(error)}.") from None


def _kind(path: Path) -> str:
    if path.is_symlink():
        return "a link"
    return "a folder" if path.is_dir() else "a file" if path.is_file() else "no ordinary file"


def reason(error: OSError) -> str:
    return error.strerror or str(error)


def printable(text: str) -> str:
    """Fit for a terminal: the name of a file may hold what a terminal obeys.

    >>> printable("a\\nb\\x1b[2J")
    'a\\\\nb\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def write(path: Path, content: str | bytes) -> None:
    """All or nothing: an interrupted or failed write leaves the file that was there."""
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file that is at its place when all of it has been written."""
    part = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException as error:
        if part:
            with contextlib.suppress(OSError):
                os.unlink(part)
        if isinstance(error, OSError):
            raise NotWrittenError(f"{path} could not be written: {reason(error)}.") from None
        raise


def plain(value: Any, not_finite: Callable[[float], Any] = str) -> Any:
    """Arrays and ranges as lists; what is not finite as a word or as told, since JSON has none.

    >>> plain({1: (np.float64(0.5), np.inf)})
    {'1': [0.5, 'inf']}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry, not_finite) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), not_finite)
    if isinstance(value, list | tuple | range):
        return [plain(entry, not_finite) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return not_finite(value)
    return value
