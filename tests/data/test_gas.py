"""The gas data: the forms it comes in, and one sentence for whatever is wrong with a file."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from rich.console import Console

import problems
from cfgd.data import gas, gas_download
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
        (csv(table()[:, :100]), "row 1 has 100 columns; 129 are needed"),
        (csv(table()) + "1,2\n", "row 141 has 2 columns; 129 are needed"),
        (with_entry("abc"), "row 5, column 2 is the text 'abc', not a number."),
        (with_entry("nan"), "row 5, column 2 is nan, not a finite number."),
        (with_entry("inf"), "row 5, column 2 is inf, not a finite number."),
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
        (batch(table()[:, :80]), "row 1 has 79 features; 128 are needed."),
        (batch(table()).replace("2:", "7:", 1), "where feature 2 belongs."),
        (batch(table()).replace("1;", "1 ", 1), "row 1 has no concentration"),
        (batch(table()).replace("1:", "1:x", 1), "row 1, column 1 is the text"),
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
        "noise": "is neither text nor whole gzipped text",
        "cut.gz": "is neither text nor whole gzipped text",
        "cut.zip": "is a damaged zip file",
        "missing": "There is no file",
        "": "holds no batch",
    }.items():
        with pytest.raises(ValueError, match=message):
            gas.read(tmp_path / name)


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
