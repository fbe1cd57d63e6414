"""Downloading the gas data and its cached copy."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from gas_files import table
from rich.console import Console

from cfgd.apps.data import gas, gas_download


def test_the_error_of_a_damaged_cached_copy_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    gas.cache().parent.mkdir()
    gas.cache().write_bytes(b"\x1f\x8b and no more")
    with pytest.raises(ValueError, match=r"gas\.csv\.gz is damaged .* delete this cached copy"):
        gas.cached()


def test_a_cache_that_cannot_be_written_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*names: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("os.replace", full)
    monkeypatch.setattr("pathlib.Path.replace", full)
    gas.save_to_cache(table())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_failed_download_tells_the_cause_and_caches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(folder: str) -> Any:
        raise OSError("no route to OpenML")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gas_download, "fetch", offline)
    with pytest.raises(gas.NotDownloadedError, match="no route to OpenML"):
        gas.download(Console(quiet=True))
    assert gas.cached() is None


def test_the_arguments_of_scikit_learn_are_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*args: Any, **options: Any) -> Any:
        raise URLError("no network in a test")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", offline)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # before a retry
    with pytest.raises(URLError, match="no network in a test"):
        gas_download.fetch(str(tmp_path))


@pytest.mark.slow
def test_a_download_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
