"""Atomic writes, and checks before a run that its files can be written."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cfgd._core.files import NotWrittenError, atomic_writer, check_writable, is_there, write


@contextlib.contextmanager
def small_files() -> Iterator[None]:
    """Limit files to 1000 bytes, so that larger writes fail as on a full disk.

    This is no fixture: pytest writes its report, which may go to a file, while fixtures are active.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda path, other: path.mkdir(), "a folder"),
        (lambda path, other: path.symlink_to(other), "a link"),
        (lambda path, other: path.symlink_to(other / "nowhere"), "a link"),
        (lambda path, other: os.mkfifo(path), "no ordinary file"),
    ],
)
def test_something_else_in_the_place_of_a_file(tmp_path: Path, make: Any, kind: str) -> None:
    other, path = tmp_path / "other", tmp_path / "out" / "x.png"
    other.write_text("mine", encoding="utf-8")
    path.parent.mkdir()
    make(path, other)
    message = f"{path} is {kind} where a file is to be: move it away."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_writable(tmp_path / "out", ["x.png"])
    assert other.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(("link", "kind"), [(False, "a file"), (True, "a link")])
def test_something_else_in_the_place_of_a_folder(tmp_path: Path, link: bool, kind: str) -> None:
    if link:
        (tmp_path / "other").mkdir()
        (tmp_path / "parts").symlink_to(tmp_path / "other")
    else:
        (tmp_path / "parts").write_text("", encoding="utf-8")
    message = f"parts is {kind} where a folder is to be: move it away."
    with pytest.raises(ValueError, match=re.escape(message)):
        check_writable(tmp_path, ["parts/x.json"])


def test_existing_files_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_text("", encoding="utf-8")
    check_writable(tmp_path, ["x.png", "parts/x.json"])
    assert files_in(tmp_path) == ["parts", "x.png"]


def test_a_full_disk_is_found_before_the_run(tmp_path: Path) -> None:
    message = r"cannot be written to: File too large\.$"
    with pytest.raises(ValueError, match=message), small_files():
        check_writable(tmp_path)
    assert files_in(tmp_path) == []


def test_a_failed_write_leaves_the_previous_file(tmp_path: Path) -> None:
    write(tmp_path / "x", "before")
    message = r"/x could not be written: File too large\.$"
    with pytest.raises(NotWrittenError, match=message), small_files():
        write(tmp_path / "x", "after" * 1000)
    assert (tmp_path / "x").read_bytes() == b"before"
    assert files_in(tmp_path) == ["x"]


@pytest.mark.parametrize("raised", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    def replace(*names: Any) -> None:
        raise raised

    monkeypatch.setattr("os.replace", replace)
    with pytest.raises((NotWrittenError, KeyboardInterrupt)):
        write(tmp_path / "x", "after")
    assert files_in(tmp_path) == []


def test_a_link_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    (tmp_path / "x").symlink_to(tmp_path / "mine")
    write(tmp_path / "x", b"\x00new")
    assert (tmp_path / "mine").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "x").read_bytes() == b"\x00new"


@contextlib.contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_mode_of_a_new_file_follows_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    with umask(mask):
        write(tmp_path / "x", "new")
    assert mode_of(tmp_path / "x") == mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_an_existing_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path, previous = tmp_path / "x", tmp_path / "x.before"
    path.write_text("before", encoding="utf-8")
    path.chmod(mode)
    with atomic_writer(path, keep_previous=previous) as file:
        # what replaces a secret file is no less secret while it is written
        (part,) = tmp_path.glob(".*.part")
        assert mode_of(part) == mode
        file.write(b"after")
    assert (mode_of(path), mode_of(previous)) == (mode, mode)
    assert (path.read_bytes(), previous.read_bytes()) == (b"after", b"before")


def test_file_and_folder_are_synced_in_the_order_that_survives_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(handle: int) -> None:
        events.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        fsync(handle)

    def record_replace(*names: Any) -> None:
        events.append("rename")
        replace(*names)

    monkeypatch.setattr("os.fsync", record_fsync)
    monkeypatch.setattr("os.replace", record_replace)
    write(tmp_path / "x", "new")
    assert events == ["file", "rename", "folder"]


def test_a_name_that_is_too_long_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NotWrittenError, match=r"/x{300} could not be written: File name too long"):
        write(tmp_path / ("x" * 300), "new")
    write(tmp_path / ("x" * 255), "new")  # the longest that is allowed
    assert files_in(tmp_path) == ["x" * 255]


def test_a_name_that_nothing_can_have_is_not_just_a_name_that_nothing_has(tmp_path: Path) -> None:
    """Where `Path.exists` is false for both, from Python 3.14 on."""
    (tmp_path / "file").touch()
    names = ("", "file", "other", "other/file", "file/file", "a\0b")
    assert [is_there(tmp_path / name) for name in names] == [True, True] + 4 * [False]
    with pytest.raises(OSError, match="File name too long"):
        is_there(tmp_path / ("x" * 300))
