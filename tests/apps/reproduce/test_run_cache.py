"""The finished runs of an interrupted experiment are read from its cache."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cfgd.apps.page.drawing import Panel
from cfgd.apps.reproduce.experiment import Experiment, Meter, Record, Setting
from cfgd.apps.reproduce.experiments.catalogue import EXPERIMENTS
from cfgd.apps.reproduce.report.claim import Claim
from cfgd.apps.reproduce.run_cache import RunCache
from cfgd.apps.reproduce.runner import reproduce

TINY = Setting("tiny")


def long(calls: list[int], stop_at: int | None = None) -> Experiment:
    """Return an experiment of four runs; Ctrl-C interrupts the one with number `stop_at`."""

    def run(setting: Setting, meter: Meter) -> Record:
        assert setting.run_cache is not None
        found = []
        for i in range(4):

            def job(i: int = i) -> dict[str, np.ndarray]:
                if i == stop_at:
                    raise KeyboardInterrupt
                calls.append(i)
                return {"x": np.array([float(i)])}

            found.append(setting.run_cache.get_or_run(["run", i], job)[0]["x"][0])
        return Record({"x": found}, {})

    def draw(axis: Any, data: Any) -> None:
        axis.plot(data["x"])

    return dataclasses.replace(
        EXPERIMENTS["fig1"],
        name="long",
        run=run,
        claims=[Claim("so", "figure 1", 3.0, "equals", lambda data: data["x"][-1])],
        panels=[[Panel("a line", draw)]],
    )


def test_ctrl_c_within_an_experiment_saves_its_finished_runs(tmp_path: Path) -> None:
    calls: list[int] = []
    assert reproduce([long(calls, stop_at=2)], TINY, tmp_path).end.interrupted
    assert calls == [0, 1]
    report = reproduce([long(calls)], TINY, tmp_path, resume=True)
    assert calls == [0, 1, 2, 3]
    assert report.results[0].outcomes[0].verdict == "holds"
    assert not (
        tmp_path / "parts" / "long.runs"
    ).exists()  # deleted, because the experiment is finished


def test_without_resume_or_with_other_settings_nothing_is_reused(tmp_path: Path) -> None:
    calls: list[int] = []
    reproduce([long(calls, stop_at=2)], TINY, tmp_path)
    reproduce([long(calls, stop_at=2)], Setting("tiny", seeds=3), tmp_path, resume=True)
    assert calls == [0, 1, 0, 1]
    reproduce([long(calls)], TINY, tmp_path)
    assert calls == [0, 1, 0, 1, 0, 1, 2, 3]


@pytest.mark.parametrize("damage", ["cut", "pickle", "compressed", "other names", "text", "empty"])
def test_damaged_file_counts_as_missing(tmp_path: Path, damage: str) -> None:
    cache, calls = RunCache(tmp_path, "long", {}), []

    def job() -> dict[str, np.ndarray]:
        calls.append(1)
        return {"x": np.arange(3.0)}

    def fits(arrays: dict[str, np.ndarray]) -> bool:
        return arrays.keys() == {"x"}

    cache.get_or_run("a", job, fits)
    [path] = (tmp_path / "parts" / "long.runs").iterdir()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-30])
    elif damage == "pickle":
        np.savez(path, x=np.array([{}], dtype=object))
    elif damage == "compressed":
        np.savez_compressed(path, x=np.zeros(10_000_000))
    elif damage == "other names":
        np.savez(path, y=np.arange(3.0))
    else:
        path.write_bytes(b"PK\x03\x04 no" if damage == "text" else b"")
    assert cache.get_or_run("a", job, fits)[1] is False
    assert len(calls) == 2
    found, was_cached = cache.get_or_run("a", job, fits)
    assert was_cached
    np.testing.assert_array_equal(found["x"], [0, 1, 2])


def test_symlink_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "long.runs").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="is a file where a folder is needed: move it away"):
        RunCache(tmp_path, "long", {})
