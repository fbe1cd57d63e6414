"""Damaged or hostile archives are errors of one sentence, and never exhaust the memory."""

from __future__ import annotations

import contextlib
import gzip
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from gas_files import batch, csv, error_of, table, zip_archive

from cfgd.apps.data import gas, gas_archive


def test_errors_of_encoding_name_the_line(tmp_path: Path) -> None:
    latin = (batch(table()) + "2;gr\xfcn\n").encode("latin-1")
    (tmp_path / "batch1.dat").write_bytes(latin)
    (tmp_path / "gas.csv").write_bytes((csv(table()) + "\xe9").encode("latin-1"))
    zipped = zip_archive(tmp_path / "gas.zip", {"batch1.dat": latin})
    for path, byte in [(tmp_path, "0xfc"), (tmp_path / "gas.csv", "0xe9"), (zipped, "0xfc")]:
        assert f": line 141 has the byte {byte}, which is not UTF-8." in error_of(path)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "batch1.dat").write_text(batch(table()), encoding="utf-8-sig")
    np.testing.assert_array_equal(gas.read(tmp_path).table, table())


def test_an_encrypted_zip_is_an_error(tmp_path: Path) -> None:
    path = zip_archive(tmp_path / "gas.zip", {"batch1.dat": batch(table())}, zipfile.ZIP_STORED)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x03\x04") + 6] |= 1  # the flag, in the member and in the directory
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    assert "batch1.dat is encrypted: unpack it and pass the folder." in error_of(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_any_damage_of_a_zip_is_an_error(tmp_path: Path, method: int) -> None:
    """Every byte is changed once, and the file is truncated at every byte."""
    path = zip_archive(tmp_path / "gas.zip", {"batch1.dat": batch(table()[:1, -8:])}, method)
    whole, damaged = path.read_bytes(), tmp_path / "damaged.zip"
    messages = set()
    for at in range(2, len(whole)):
        for raw in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
            damaged.write_bytes(raw)
            with contextlib.suppress(ValueError):  # a changed date, for example, does no harm
                gas_archive.read_texts(damaged)
                continue
            messages.add(error_of(damaged).removeprefix(f"{damaged}"))
    assert {" is a damaged zip file.", ", batch1.dat is damaged in the zip file."} <= messages


def test_any_damage_of_a_gzip_is_an_error(tmp_path: Path) -> None:
    whole, damaged = gzip.compress(csv(table()).encode()), tmp_path / "gas.csv.gz"
    for at in np.random.default_rng(0).integers(20, len(whole), 20).tolist():
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert "it is not a complete gzip file." in error_of(damaged)


def test_zips_nested_twice_are_errors(tmp_path: Path) -> None:
    inner = zip_archive(tmp_path / "a.zip", {"batch1.dat": batch(table())}).read_bytes()
    middle = zip_archive(tmp_path / "b.zip", {"a.zip": inner}).read_bytes()
    outer = zip_archive(tmp_path / "c.zip", {"b.zip": middle})
    assert "c.zip, b.zip, a.zip is nested in two zip files" in error_of(outer)
    broken = zip_archive(tmp_path / "d.zip", {"a.zip": inner[: len(inner) // 2]})
    assert "d.zip, a.zip is a damaged zip file." in error_of(broken)
    other = zip_archive(tmp_path / "e.zip", {"batch1.dat": batch(table())}, zipfile.ZIP_BZIP2)
    assert "e.zip, batch1.dat is compressed by method 12, not deflate" in error_of(other)


def test_batches_that_are_not_regular_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "batch1.dat").mkdir()
    assert "batch1.dat is a folder; it must be a file" in error_of(tmp_path)
    (tmp_path / "batch1.dat").rmdir()
    (tmp_path / "batch1.dat").symlink_to(tmp_path / "nowhere")
    assert "batch1.dat cannot be read: No such file or directory." in error_of(tmp_path)
    (tmp_path / "batch1.dat").unlink()
    os.mkfifo(tmp_path / "batch1.dat")  # reading it would block
    assert "batch1.dat is not a regular file" in error_of(tmp_path)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "zip", "zip in zip", "gz in zip", "many"])
def test_archives_that_expand_too_far_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """The limit is a tenth of the real one, for speed."""
    monkeypatch.setattr(gas_archive, "MEGABYTES", gas_archive.MEGABYTES // 10)
    zeros, path = bytes(15_000_000), tmp_path / "gas"
    if form == "csv":
        with path.open("wb") as file:
            file.truncate(len(zeros))
    elif form == "csv.gz":
        path.write_bytes(gzip.compress(zeros, 1))
    elif form == "zip":
        zip_archive(path, {"batch1.dat": zeros})
    elif form == "zip in zip":
        zip_archive(
            path, {"a.zip": zip_archive(tmp_path / "a.zip", {"batch1.dat": zeros}).read_bytes()}
        )
    elif form == "gz in zip":
        zip_archive(path, {"batch1.dat": gzip.compress(zeros, 1)})
    else:
        zip_archive(path, {f"batch{i}.dat": zeros[: 3 * 10**6] for i in range(4)})
    del zeros
    tracemalloc.start()
    try:
        assert "expands beyond 10 MB" in error_of(path)
        assert tracemalloc.get_traced_memory()[1] < 45e6
    finally:
        tracemalloc.stop()
