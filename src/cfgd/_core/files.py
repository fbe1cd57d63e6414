"""Atomic writes of files, checks before a long run, and JSON-safe values."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

INTERRUPTED = 130  # the exit code of shells for Ctrl-C
PROBE_BYTES = 4_000_000  # more than one experiment writes
MAX_MESSAGE = 160  # characters of an error message of another library that are quoted
O_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends without it


class NotWrittenError(OSError):
    """Raised with one sentence that says which file could not be written, and why."""


def check_writable(folder: Path, files: Iterable[str] = ()) -> None:
    """Raise before a long run if `files` could not be written to `folder` after it.

    The folders are created, and a temporary file of `PROBE_BYTES` in each, because a full disk
    still accepts empty files. A folder or link in the place of a file is reported, not removed.

    Raises
    ------
    ValueError
        If a folder is not writable, or if something else is in the place of a file or folder.
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
            file.write(bytes(PROBE_BYTES))
            file.flush()
    except OSError as error:
        raise ValueError(f"The folder {folder} cannot be written to: {reason(error)}.") from None


def _kind(path: Path) -> str:
    if path.is_symlink():
        return "a link"
    return "a folder" if path.is_dir() else "a file" if path.is_file() else "no ordinary file"


def reason(error: OSError) -> str:
    """Return the text of an `OSError` without its number and path."""
    return error.strerror or str(error)


def first_line(message: str) -> str:
    """Return the message of a library as a phrase: its first line, printable and not too long.

    >>> first_line("Invalid data.\\n  in page 3")
    'Invalid data'
    """
    return printable(message.strip().partition("\n")[0][:MAX_MESSAGE].strip().rstrip("."))


def is_same_file(path: Path, other: Path) -> bool:
    """Return whether both names are of one file; a file that is not there is another one.

    Raises
    ------
    ValueError
        If a name cannot be that of a file, because it is too long, say.
    """
    try:
        return is_there(path) and path.samefile(other)
    except OSError as error:
        raise ValueError(f"{error.filename or path} cannot be a file: {reason(error)}.") from None


def is_there(path: Path) -> bool:
    """Return whether something has this name: `Path.exists`, which Python 3.14 lets hide errors.

    Raises
    ------
    OSError
        If nothing can have the name, because it is too long, say, or a folder may not be read.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # or it has a null character
        return False
    return True


def printable(text: str) -> str:
    """Escape control characters, which a file name may hold and a terminal would execute.

    >>> printable("a\\nb\\x1b[2J")
    'a\\\\nb\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def write(path: Path, content: str | bytes) -> None:
    """Write a file atomically: an interrupted or failed write leaves the previous file."""
    with atomic_writer(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def atomic_writer(path: Path, keep_previous: Path | None = None) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` once the context ends without an error.

    The file and its name are on the disk when this returns. An existing file keeps its mode; that
    of a new one follows the umask, as that of any other new file. A link is replaced by a file.

    Parameters
    ----------
    path
        The file to write; its folder is created if need be.
    keep_previous
        The name under which an existing file is kept; None for not at all.

    Raises
    ------
    NotWrittenError
        If the file cannot be written: the previous one is still there.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = None
        if path.is_file() and not path.is_symlink():
            mode = stat.S_IMODE(path.stat().st_mode)
        # The name does not contain that of the file: it would be longer than the system allows
        # where that one is just short enough.
        name = path.parent / f".{secrets.token_hex(8)}.part"
        # An existing file may be secret, and so may what replaces it be from its first byte on.
        permissions = 0o666 if mode is None else 0o600
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_BINARY, permissions)
        temporary = name
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.chmod(name, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if keep_previous is not None and path.exists():
            os.replace(path, keep_previous)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError):
            raise NotWrittenError(f"{path} could not be written: {reason(error)}.") from None
        raise


def _sync_folder(folder: Path) -> None:
    """Flush the names of files to the disk, on systems that can open a folder."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def json_safe(value: object, not_finite: Callable[[float], Any] = str) -> Any:
    """Convert a value to what JSON can represent: arrays, tuples and ranges become lists.

    JSON has no NaN and no infinity: such numbers are passed to `not_finite`, by default `str`.

    >>> json_safe({1: (np.float64(0.5), np.inf)})
    {'1': [0.5, 'inf']}
    """
    if isinstance(value, Mapping):
        return {str(key): json_safe(entry, not_finite) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return json_safe(value.tolist(), not_finite)
    if isinstance(value, list | tuple | range):
        return [json_safe(entry, not_finite) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return not_finite(value)
    return value
