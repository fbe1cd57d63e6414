"""The gas data: the forms it comes in, and one sentence for whatever is wrong with a file."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import re
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from rich.console import Console

import problems
from cfgd.data import gas, gas_archive, gas_download
from problems import GAS, needs_gas


def table(rows: int = 140) -> Any:
    return np.random.default_rng(0).normal(size=(rows, 129)).round(6)


def csv(rows: Any) -> str:
    return "\n".join(",".join(f"{value}" for value in row) for row in rows) + "\n"


def batch(rows: Any, kind: int = 1) -> str:
    return "".join(
        f"{kind};{row[-1]} " + " ".join(f"{j}:{v}" for j, v in enumerate(row[:-1], 1)) + " \n"
        for row in rows
    )


def test_csv_plain_and_gzipped(tmp_path: Path) -> None:
    plain, packed = tmp_path / "gas.csv", tmp_path / "gas.csv.gz"
    plain.write_text(csv(table()), encoding="utf-8")
    packed.write_bytes(gzip.compress(csv(table()).encode()))
    np.testing.assert_array_equal(gas.read(plain).table, table())
    np.testing.assert_array_equal(gas.read(packed).table, table())


@pytest.mark.parametrize("nested", [False, True])
def test_batches_in_a_folder_or_a_zip_or_a_zip_in_it(tmp_path: Path, nested: bool) -> None:
    folder = tmp_path / "archive" / "inner"
    folder.mkdir(parents=True)
    (folder / "batch1.dat").write_text(batch(table()[:100]), encoding="utf-8")
    both = batch(table()[:3] + 1, kind=2) + batch(table()[100:])
    (folder / "batch2.dat").write_text(both, encoding="utf-8")
    packed = tmp_path / "data.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"driftdataset/{file.name}")
    if nested:
        outer = tmp_path / "outer.zip"
        with zipfile.ZipFile(outer, "w") as archive:
            archive.write(packed, "driftdataset.zip")
        packed = outer
    np.testing.assert_array_equal(gas.read(folder.parent).table, table())
    np.testing.assert_array_equal(gas.read(packed).table, table())


def with_entry(entry: str) -> str:
    lines = csv(table()).splitlines()
    lines[4] = ",".join(["1.0", entry, *["1.0"] * 127])
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (csv(table()[:, :100]), "line 1 has 100 columns; 129 are needed"),
        (csv(table()) + "1,2\n", "line 141 has 2 columns; 129 are needed"),
        (with_entry("abc"), "line 5, column 2 is the text 'abc', not a number."),
        (with_entry("nan"), "line 5, column 2 is nan, not a finite number."),
        (with_entry("1e999"), "line 5, column 2 is 1e999, not a finite number."),
        (with_entry("1_0"), "line 5, column 2 is the text '1_0', not a number."),
        ("\n" + with_entry("nan"), "line 6, column 2 is nan, not a finite number."),
        (with_entry("inf"), "line 5, column 2 is inf, not a finite number."),
        ("", "has no rows."),
        ("\n\n", "has no rows."),
        (csv(table(100)), "100 rows are too few; 128 features need at least 129."),
        (csv(table() * [*[1] * 7, 0, *[1] * 121]), "column 8 has the same value in every row"),
    ],
)
def test_a_bad_csv_file_gets_one_sentence(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "gas.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"gas\.csv") as caught:
        gas.read(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no rows of Ethanol (gas 1)."),
        (batch(table(), kind=3), "has no rows of Ethanol (gas 1)."),
        (batch(table()[:, :80]), "line 1 has 79 features; 128 are needed."),
        (batch(table()).replace("2:", "7:", 1), "where feature 2 belongs."),
        (batch(table()).replace("1;", "1 ", 1), "line 1 has no concentration"),
        (batch(table()).replace("1:", "1:x", 1), "line 1, feature 1 is the text"),
        (batch(table()) + "\n1\n", "batch1.dat: line 142 has no concentration"),
        (batch(table()) + "\n1;\n", "batch1.dat: line 142 has no concentration"),
        (batch(table()) + "1; \n", "batch1.dat: line 141 has no concentration"),
        (batch(table()) + batch(table()[:1], 7), "line 141 is of gas '7'; the gases are 1 to 6."),
        (batch(table() * 0 + np.inf), "line 1, feature 1 is inf, not a finite number."),
    ],
)
def test_a_bad_batch_gets_one_sentence(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "batch1.dat").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"batch|Ethanol") as caught:
        gas.read(tmp_path)
    assert message in str(caught.value)


def test_files_that_are_no_data_at_all(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"1,2,3")[:-6])
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04 and no more")
    for name, message in {
        "noise": "noise: line 1 has the byte 0xff, no UTF-8 text",
        "cut.gz": "is damaged or cut short: it is no whole gzipped text",
        "cut.zip": "is a damaged zip file",
        "missing": "There is no file",
        "": "holds no batch",
    }.items():
        with pytest.raises(ValueError, match=message):
            gas.read(tmp_path / name)


def packed(path: Path, members: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def refused(path: Path) -> str:
    """The one sentence."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        gas.read(path)
    assert type(caught.value) is ValueError
    said = str(caught.value)
    assert "\n" not in said
    assert said.endswith(".")
    return said


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


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e307])
def test_tiny_and_huge_values_standardise_to_what_the_others_do(scale: float) -> None:
    X, y = gas.standardised(gas.Gas(table(), "a test"))
    scaled = table() * np.where(np.arange(129) % 2, scale, 1.0)
    gas.check(scaled, "a test")
    tiny_X, tiny_y = gas.standardised(gas.Gas(scaled, "a test"))
    tolerance = 1e-2 if scale == 1e-320 else 1e-10
    np.testing.assert_allclose(tiny_X, X, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(tiny_y, y, rtol=tolerance, atol=tolerance)


def test_ordinary_values_standardise_to_the_same_bits_as_by_the_formula() -> None:
    X, _ = gas.standardised(gas.Gas(table(), "a test"))
    want = ((table() - table().mean(0)) / table().std(0))[:, :-1]
    np.testing.assert_array_equal(X, want)


def test_a_damaged_cached_copy_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    gas.cache().parent.mkdir()
    gas.cache().write_bytes(b"\x1f\x8b and no more")
    with pytest.raises(ValueError, match=r"gas\.csv\.gz is damaged .* delete this cached copy"):
        gas.cached()


def test_a_cache_that_cannot_be_written_stops_nothing_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*names: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("os.replace", full)
    monkeypatch.setattr("pathlib.Path.replace", full)
    gas.keep(table())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_offline_it_says_why_and_caches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(folder: str) -> Any:
        raise OSError("no route to OpenML")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gas_download, "fetch", offline)
    with pytest.raises(gas.NotDownloadedError, match="no route to OpenML"):
        gas.download(Console(quiet=True))
    assert gas.cached() is None


def test_scikit_learn_is_asked_as_it_wants_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*args: Any, **options: Any) -> Any:
        raise URLError("no network in a test")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", offline)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # before it asks once more
    with pytest.raises(URLError, match="no network in a test"):
        gas_download.fetch(str(tmp_path))


def test_a_download_is_cached_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).normal(size=(2565, 129))
    rows[:, 0] = np.arange(2565) % 50  # the concentration, which takes few values
    features = np.concatenate([rows, rows[:10] + 1])
    gases = np.array(["1"] * 2565 + ["2"] * 10)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gas_download, "fetch", lambda folder: (features, gases))
    assert gas.cached() is None
    first = gas.download(Console(quiet=True))
    np.testing.assert_array_equal(first.table[:, -1], rows[:, 0])
    np.testing.assert_array_equal(first.table[:, :-1], rows[:, 1:])
    second = gas.cached()
    assert second is not None
    assert second.digest == first.digest
    assert "cached" in second.source


def test_the_stand_in_has_the_size_and_conditioning() -> None:
    X, y = gas.standardised(gas.surrogate("this is a test"))
    assert X.shape == (2565, 128)
    np.testing.assert_allclose(np.sum(X * X, 0), 2565, rtol=1e-8)
    assert np.linalg.cond(X) == pytest.approx(70_980, rel=0.01)
    assert y.std() == pytest.approx(1)


@needs_gas
def test_the_real_data_has_the_papers_condition_number() -> None:
    X, _ = gas.standardised(gas.read(GAS))
    assert X.shape == (2565, 128)
    assert np.linalg.cond(X) == pytest.approx(70_980, rel=1e-3)


def test_without_the_data_its_tests_are_skipped_but_in_ci_they_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def test() -> None:
        pytest.fail("ran without the data")

    monkeypatch.setattr(problems, "GAS", tmp_path / "gas.csv.gz")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="the gas data is not at"):
        needs_gas(test)()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="the gas data is not at"):
        needs_gas(test)()
