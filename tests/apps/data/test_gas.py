"""Reading, checking and standardising the gas data."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
from gas_files import batch, csv, table

import problems
from cfgd.apps.data import gas
from problems import GAS, needs_gas


def test_csv_is_read_plain_and_gzipped(tmp_path: Path) -> None:
    plain, packed = tmp_path / "gas.csv", tmp_path / "gas.csv.gz"
    plain.write_text(csv(table()), encoding="utf-8")
    packed.write_bytes(gzip.compress(csv(table()).encode()))
    np.testing.assert_array_equal(gas.read(plain).table, table())
    np.testing.assert_array_equal(gas.read(packed).table, table())


@pytest.mark.parametrize("nested", [False, True])
def test_batches_are_read_from_folders_and_nested_zips(tmp_path: Path, nested: bool) -> None:
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
def test_invalid_csv_is_an_error(tmp_path: Path, content: str, message: str) -> None:
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
def test_an_invalid_batch_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "batch1.dat").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"batch|Ethanol") as caught:
        gas.read(tmp_path)
    assert message in str(caught.value)


def test_files_of_other_formats_are_errors(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"1,2,3")[:-6])
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04 and no more")
    for name, message in {
        "noise": "noise: line 1 has the byte 0xff, which is not UTF-8",
        "cut.gz": "is damaged or truncated: it is not a complete gzip file",
        "cut.zip": "is a damaged zip file",
        "missing": "There is no file",
        "": "holds no batch",
    }.items():
        with pytest.raises(ValueError, match=message):
            gas.read(tmp_path / name)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e307])
def test_standardisation_does_not_underflow_or_overflow(scale: float) -> None:
    X, y = gas.standardised(gas.Gas(table(), "a test"))
    scaled = table() * np.where(np.arange(129) % 2, scale, 1.0)
    gas.check(scaled, "a test")
    tiny_X, tiny_y = gas.standardised(gas.Gas(scaled, "a test"))
    tolerance = 1e-2 if scale == 1e-320 else 1e-10
    np.testing.assert_allclose(tiny_X, X, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(tiny_y, y, rtol=tolerance, atol=tolerance)


def test_standardisation_of_ordinary_values_is_exact() -> None:
    X, _ = gas.standardised(gas.Gas(table(), "a test"))
    want = ((table() - table().mean(0)) / table().std(0))[:, :-1]
    np.testing.assert_array_equal(X, want)


def test_synthetic_data_has_the_size_and_conditioning_of_the_real_data() -> None:
    X, y = gas.standardised(gas.surrogate("this is a test"))
    assert X.shape == (2565, 128)
    np.testing.assert_allclose(np.sum(X * X, 0), 2565, rtol=1e-8)
    assert np.linalg.cond(X) == pytest.approx(70_980, rel=0.01)
    assert y.std() == pytest.approx(1)


@needs_gas
def test_real_data_has_the_condition_number_of_the_paper() -> None:
    X, _ = gas.standardised(gas.read(GAS))
    assert X.shape == (2565, 128)
    assert np.linalg.cond(X) == pytest.approx(70_980, rel=1e-3)


def test_tests_without_the_data_are_skipped_but_fail_in_ci(
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
