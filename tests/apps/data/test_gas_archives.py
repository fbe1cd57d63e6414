"""Gas files that are damaged or hostile: one sentence, and nothing is read whole."""

from __future__ import annotations

import contextlib
import gzip
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from gas_files import batch, csv, packed, refused, table

from cfgd.apps.data import gas, gas_archive


def test_text_that_is_not_utf_8_is_named_by_its_line(tmp_path: Path) -> None:
    latin = (batch(table()) + "2;gr\xfcn\n").encode("latin-1")
    (tmp_path / "batch1.dat").write_bytes(latin)
    (tmp_path / "gas.csv").write_bytes((csv(table()) + "\xe9").encode("latin-1"))
    zipped = packed(tmp_path / "gas.zip", {"batch1.dat": latin})
    for path, byte in [(tmp_path, "0xfc"), (tmp_path / "gas.csv", "0xe9"), (zipped, "0xfc")]:
        assert f": line 141 has the byte {byte}, no UTF-8 text." in refused(path)


def test_a_byte_order_mark_hides_no_row(tmp_path: Path) -> None:
    (tmp_path / "batch1.dat").write_text(batch(table()), encoding="utf-8-sig")
    np.testing.assert_array_equal(gas.read(tmp_path).table, table())


def test_an_encrypted_zip(tmp_path: Path) -> None:
    path = packed(tmp_path / "gas.zip", {"batch1.dat": batch(table())}, zipfile.ZIP_STORED)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x03\x04") + 6] |= 1  # the flag, in the member and in the directory
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    assert "batch1.dat is encrypted: unpack it and give the folder." in refused(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_damaged_zip_wherever_the_damage_is(tmp_path: Path, method: int) -> None:
    """Each byte changed, and the file cut at each byte."""
    path = packed(tmp_path / "gas.zip", {"batch1.dat": batch(table()[:1, -8:])}, method)
    whole, damaged = path.read_bytes(), tmp_path / "damaged.zip"
    said = set()
    for at in range(2, len(whole)):
        for raw in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
            damaged.write_bytes(raw)
            with contextlib.suppress(ValueError):  # a date may be wrong and nothing else
                gas_archive.texts(damaged)
                continue
            said.add(refused(damaged).removeprefix(f"{damaged}"))
    assert {" is a damaged zip file.", ", batch1.dat is damaged in the zip file."} <= said


def test_a_damaged_gzip_wherever_the_damage_is(tmp_path: Path) -> None:
    whole, damaged = gzip.compress(csv(table()).encode()), tmp_path / "gas.csv.gz"
    for at in np.random.default_rng(0).integers(20, len(whole), 20).tolist():
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert "it is no whole gzipped text." in refused(damaged)


def test_zips_in_zips_come_to_an_end(tmp_path: Path) -> None:
    inner = packed(tmp_path / "a.zip", {"batch1.dat": batch(table())}).read_bytes()
    middle = packed(tmp_path / "b.zip", {"a.zip": inner}).read_bytes()
    outer = packed(tmp_path / "c.zip", {"b.zip": middle})
    assert "c.zip, b.zip, a.zip is a zip file in a zip file in another" in refused(outer)
    broken = packed(tmp_path / "d.zip", {"a.zip": inner[: len(inner) // 2]})
    assert "d.zip, a.zip is a damaged zip file." in refused(broken)
    other = packed(tmp_path / "e.zip", {"batch1.dat": batch(table())}, zipfile.ZIP_BZIP2)
    assert "e.zip, batch1.dat is packed by method 12 and not deflate" in refused(other)


def test_a_folder_where_a_batch_should_be(tmp_path: Path) -> None:
    (tmp_path / "batch1.dat").mkdir()
    assert "batch1.dat is a folder; a file" in refused(tmp_path)
    (tmp_path / "batch1.dat").rmdir()
    (tmp_path / "batch1.dat").symlink_to(tmp_path / "nowhere")
    assert "batch1.dat cannot be read: No such file or directory." in refused(tmp_path)
    (tmp_path / "batch1.dat").unlink()
    os.mkfifo(tmp_path / "batch1.dat")  # to read it would be to wait
    assert "batch1.dat is no ordinary file" in refused(tmp_path)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "zip", "zip in zip", "gz in zip", "many"])
def test_what_expands_too_far_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """At a tenth of the size."""
    monkeypatch.setattr(gas_archive, "MEGABYTES", gas_archive.MEGABYTES // 10)
    zeros, path = bytes(15_000_000), tmp_path / "gas"
    if form == "csv":
        with path.open("wb") as file:
            file.truncate(len(zeros))
    elif form == "csv.gz":
        path.write_bytes(gzip.compress(zeros, 1))
    elif form == "zip":
        packed(path, {"batch1.dat": zeros})
    elif form == "zip in zip":
        packed(path, {"a.zip": packed(tmp_path / "a.zip", {"batch1.dat": zeros}).read_bytes()})
    elif form == "gz in zip":
        packed(path, {"batch1.dat": gzip.compress(zeros, 1)})
    else:
        packed(path, {f"batch{i}.dat": zeros[: 3 * 10**6] for i in range(4)})
    del zeros
    tracemalloc.start()
    try:
        assert "takes what is read beyond 10 MB" in refused(path)
        assert tracemalloc.get_traced_memory()[1] < 45e6
    finally:
        tracemalloc.stop()
