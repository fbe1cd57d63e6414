"""Headers and archives that claim more than they hold are refused before anything is allocated."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pytest

from cfgd._core.npy import UnreadableError, check_member, check_size, load_stored, read_header


def npy(shape: Any, dtype: str = "<f8", content: bytes = b"") -> bytes:
    """Return a .npy file with any header."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + content


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return file


ARRAYS = {
    "vector": np.arange(5.0),
    "number": np.array(3),
    "flags": np.array([[True, False]]),
    "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "empty": np.zeros((0, 3), np.float32),
}


def test_what_numpy_saved_is_loaded() -> None:
    file = io.BytesIO()
    np.savez(file, **ARRAYS)  # type: ignore[arg-type]
    found = load_stored(file)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, strict=True)


HEADERS = {
    "more than the file": (npy((3, 10**12)), "takes 24,000,000,000,000 bytes, in 0"),
    "more than a number holds": (npy((10**30,)), r"takes 8e\+30 bytes, in 0"),
    "less than the file": (npy((1,), content=bytes(16)), "takes 8 bytes, in 16"),
    "a negative length": (npy((-1, 2)), r"an array of shape \(-1, 2\)"),
    "no integers": (npy((True,), content=bytes(8)), r"an array of shape \(True,\)"),
    "objects": (npy((1,), "|O", bytes(8)), "an array of dtype object, not of numbers"),
    "dates": (npy((1,), "<M8[s]", bytes(8)), "an array of dtype datetime64"),
    "empty texts": (npy((10**15,), "<U0"), "an array of dtype <U0"),
    "no shape": (npy("'x'"), "no array of NumPy"),
    "no header": (b"\x93NUMPY\x01\x00\x10\x00 not a dict    ", "no array of NumPy"),
    "nothing": (b"", "no array of NumPy"),
    "a pickle": (b"\x80\x04K\x03.", "no array of NumPy"),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("raw", "message"), HEADERS.values(), ids=HEADERS)
def test_headers_that_the_file_does_not_keep(raw: bytes, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        check_size(read_header(io.BytesIO(raw)), len(raw))
    with pytest.raises(UnreadableError, match=message):
        load_stored(archive({"a.npy": raw}))


def test_a_header_of_gigabytes_is_not_read() -> None:
    """Version 2 has room for a header of 4 GB, which NumPy reads before it looks at it."""
    raw = b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + b" " * 30_000_000
    tracemalloc.start()
    with pytest.raises(UnreadableError, match="no array"):
        read_header(io.BytesIO(raw))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e6


def test_a_compressed_archive_is_not_expanded() -> None:
    content = npy((30_000_000,), "|u1", bytes(30_000_000))
    file = archive({"a.npy": content}, zipfile.ZIP_DEFLATED)
    assert len(file.getvalue()) < 50_000
    tracemalloc.start()
    with pytest.raises(UnreadableError, match="declared to have more than its"):
        load_stored(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e6


def test_entries_that_share_their_bytes_are_refused() -> None:
    """Ten entries of one array in the directory: a file that would be ten times as large."""
    file = archive({f"a{i}.npy": npy((10_000,), "|u1", bytes(10_000)) for i in range(10)})
    with zipfile.ZipFile(file) as opened:
        first = opened.infolist()[0]
        start = opened.start_dir
    raw, first_end = file.getvalue(), 10_000 + 128 + 30 + len(first.filename)
    directory = bytearray(raw[start:])
    at = directory.find(b"PK\x01\x02")
    while at >= 0:
        directory[at + 42 : at + 46] = bytes(4)  # all of them begin where the first one does
        at = directory.find(b"PK\x01\x02", at + 1)
    end = directory.find(b"PK\x05\x06")
    directory[end + 16 : end + 20] = first_end.to_bytes(4, "little")
    with pytest.raises(UnreadableError, match="declared to have more than its"):
        load_stored(io.BytesIO(raw[:first_end] + bytes(directory)))


MEMBERS = {
    "encrypted": ({"flag_bits": 1}, "encrypted"),
    "bzip2": ({"compress_type": 12}, "compressed by method 12"),
    "beyond the file": ({"compress_size": 2000}, "in a file of 1,000 cannot hold"),
    "beyond deflate": ({"file_size": 10**6, "compress_size": 900}, "cannot hold"),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("fields", "message"), MEMBERS.values(), ids=MEMBERS)
def test_members_that_cannot_be_read(fields: dict[str, int], message: str) -> None:
    member = zipfile.ZipInfo("a.npy")
    member.compress_type = zipfile.ZIP_DEFLATED
    member.compress_size = member.file_size = 10
    check_member(member, 1000)
    for name, value in fields.items():
        setattr(member, name, value)
    with pytest.raises(UnreadableError, match=message):
        check_member(member, 1000)
