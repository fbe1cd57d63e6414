"""Runs of `cfgd reproduce`: Ctrl-C, --resume, files in the way, full disks, and the report."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cfgd.apps.data import gas, gas_download
from cfgd.apps.reproduce.console import find_gas
from cfgd.apps.reproduce.experiment import Experiment, Meter, Record, Setting
from cfgd.apps.reproduce.experiments.catalogue import EXPERIMENTS
from cfgd.apps.reproduce.report.claim import NOT_COMPARABLE, Claim
from cfgd.apps.reproduce.runner import experiment_key, reproduce
from problems import few

TINY = Setting("tiny")


def stub(name: str, calls: list[str], interrupt: bool = False) -> Experiment:
    """Return fig1 under another name with a run that appends the name to `calls`."""

    def run(setting: Setting, meter: Meter) -> Record:
        calls.append(name)
        if interrupt:
            raise KeyboardInterrupt
        return Record({"x": 1.0}, {"seeds": [0]})

    def draw(axis: Any, data: Any) -> None:
        axis.plot([1, 2], [1, data["x"]])

    panels = [[dataclasses.replace(EXPERIMENTS["fig1"].panels[0][0], draw=draw)]]
    claims = [Claim("it is so", "figure 1", 1.0, "at most", lambda data: data["x"])]
    return dataclasses.replace(
        EXPERIMENTS["fig1"], name=name, run=run, panels=panels, claims=claims
    )


def test_ctrl_c_saves_finished_experiments_and_resume_skips_them(tmp_path: Path) -> None:
    calls: list[str] = []
    stopped = [stub("one", calls), stub("two", calls, interrupt=True), stub("three", calls)]
    report = reproduce(stopped, TINY, tmp_path)
    assert report.end.interrupted
    assert [one.name for one in report.results] == ["one"]
    assert 'id="one"' in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert calls == ["one", "two"]

    reused = {}
    again = [stub(name, calls) for name in ("one", "two", "three")]
    report = reproduce(
        again,
        TINY,
        tmp_path,
        resume=True,
        on_finished=lambda one, was_reused: reused.update({one.name: was_reused}),
    )
    assert calls == ["one", "two", "two", "three"]
    assert reused == {"one": True, "two": False, "three": False}
    assert not report.end.interrupted


@pytest.mark.one_case
@pytest.mark.parametrize("change", [{"size": "quick"}, {"seeds": 4}])
def test_resume_does_not_reuse_results_of_other_settings(tmp_path: Path, change: Any) -> None:
    calls: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path)
    reproduce([stub("one", calls)], dataclasses.replace(TINY, **change), tmp_path, resume=True)
    assert calls == ["one", "one"]


@pytest.mark.slow
def test_resume_runs_an_experiment_with_a_truncated_file_again(tmp_path: Path) -> None:
    calls: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path)
    (tmp_path / "parts" / "one.json").write_text('{"name": "one"', encoding="utf-8")
    warnings: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path, resume=True, warn=warnings.append)
    assert calls == ["one", "one"]
    path = tmp_path / "parts" / "one.json"
    assert warnings == [f"{path} is not used: line 1 is not JSON (Expecting ',' delimiter)."]


@pytest.mark.slow
def test_resume_runs_an_experiment_with_a_script_in_its_file_again(tmp_path: Path) -> None:
    calls: list[str] = []
    reproduce([stub("one", calls), stub("two", calls)], TINY, tmp_path)
    for name in ("one", "two"):
        path = tmp_path / "parts" / f"{name}.json"
        saved = path.read_text(encoding="utf-8").replace("</svg>", "<script>x</script></svg>")
        path.write_text(saved, encoding="utf-8")
    warnings: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path, resume=True, warn=warnings.append)
    assert calls == ["one", "two", "one"]
    assert len(warnings) == 2
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'id="one"' in page
    assert "<script" not in page


@pytest.mark.slow
@pytest.mark.parametrize("left", few([b"\x89PNG cut short", None, b""], 2))
def test_resume_restores_missing_figures_without_a_run(tmp_path: Path, left: bytes | None) -> None:
    calls: list[str] = []
    both = [stub("one", calls), stub("two", calls)]
    reproduce(both, TINY, tmp_path)
    before = {name: (tmp_path / f"{name}.png").read_bytes() for name in ("one", "two")}
    for name in ("one", "two"):
        (tmp_path / f"{name}.png").unlink()
        if left is not None:
            (tmp_path / f"{name}.png").write_bytes(left)
    (tmp_path / "results.json").unlink()
    reproduce(both[:1], TINY, tmp_path, resume=True)
    assert calls == ["one", "two"]
    # also the figure of the other experiment, to which the page links
    assert {name: (tmp_path / f"{name}.png").read_bytes() for name in before} == before
    assert (tmp_path / "results.json").exists()


def ids(folder: Path) -> list[str]:
    page = (folder / "index.html").read_text(encoding="utf-8")
    return [piece.split('"', 1)[0] for piece in page.split('<section id="')[1:]]


@pytest.mark.slow
def test_page_also_shows_the_experiments_of_earlier_runs(tmp_path: Path) -> None:
    calls: list[str] = []
    reproduce([stub(name, calls) for name in ("networks", "uci", "other")], TINY, tmp_path)
    assert ids(tmp_path) == ["uci", "networks", "other"]  # as in the paper
    report = reproduce([stub("networks", calls)], TINY, tmp_path)
    assert [one.name for one in report.results] == ["networks"]
    assert ids(tmp_path) == ["uci", "networks", "other"]
    reproduce([stub("fig1", calls)], TINY, tmp_path)
    assert ids(tmp_path) == ["fig1", "uci", "networks", "other"]
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in results["experiments"]] == ids(tmp_path)
    assert results["verdicts"]["holds"] == 4


@pytest.mark.slow
def test_page_of_several_settings_names_them(tmp_path: Path) -> None:
    reproduce([stub("one", []), stub("two", [])], TINY, tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "made in\nthe tiny setting, in" in page
    reproduce([stub("two", [])], Setting("full", seeds=4), tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "made in\nseveral settings, named with each figure, in" in page
    one, two = page.split('<section id="')[1:]
    assert "· the tiny setting, cfgd" in one
    assert "· the paper&#x27;s iteration counts, 4 seeds, cfgd" in two


@pytest.mark.parametrize("name", ["index.html", "results.json", "one.png", "parts/one.json"])
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_folder_or_symlink_in_place_of_a_file_is_refused_before_the_run(
    tmp_path: Path, name: str, kind: str
) -> None:
    calls: list[str] = []
    mine, out = tmp_path / "mine", tmp_path / "out"
    mine.write_text("mine", encoding="utf-8")
    (out / "parts").mkdir(parents=True)
    if kind == "folder":
        (out / name).mkdir()
    else:
        (out / name).symlink_to(mine)
    with pytest.raises(ValueError, match=f"{name} is a {kind} where a file is to be"):
        reproduce([stub("one", calls)], TINY, out)
    assert calls == []
    assert mine.read_text(encoding="utf-8") == "mine"


def test_file_in_place_of_the_folder_of_results_is_refused_before_the_run(tmp_path: Path) -> None:
    calls: list[str] = []
    (tmp_path / "parts").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="parts is a file where a folder is to be"):
        reproduce([stub("one", calls)], TINY, tmp_path)
    assert calls == []


def test_folder_in_place_of_a_file_of_an_earlier_run_is_refused(tmp_path: Path) -> None:
    calls: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path)
    (tmp_path / "one.png").unlink()
    (tmp_path / "one.png").mkdir()
    with pytest.raises(ValueError, match=r"one\.png is a folder where a file is to be"):
        reproduce([stub("two", calls)], TINY, tmp_path)
    assert calls == ["one"]


# an experiment writes four files, in this order
@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "file"),
    few([(5, "parts/two.json"), (7, "results.json"), (6, "two.png"), (8, "index.html")], 2),
)
def test_full_disk_loses_no_finished_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int, file: str
) -> None:
    calls: list[str] = []
    all_three = [stub(name, calls) for name in ("one", "two", "three")]
    with monkeypatch.context() as patch:
        count = itertools.count(1)
        replace = os.replace

        def full(source: str, target: Path) -> None:
            if next(count) >= which:
                raise OSError(errno.ENOSPC, "No space left on device")
            replace(source, target)

        patch.setattr("os.replace", full)
        report = reproduce(all_three, TINY, tmp_path)
    message = f"{tmp_path / file} could not be written: No space left on device."
    assert str(report.end.write_error) == message
    assert [one.name for one in report.results] == ["one", "two"]  # shown even if not saved
    assert calls == ["one", "two"]
    assert ids(tmp_path) == ["one"]
    assert not list(tmp_path.rglob("*.part"))

    report = reproduce(all_three, TINY, tmp_path, resume=True)
    assert report.end.write_error is None
    again = ["two"] if which == 5 else []  # its result could not be saved
    assert calls == ["one", "two", *again, "three"]
    assert ids(tmp_path) == ["one", "two", "three"]


def test_results_are_json_and_the_page_is_self_contained(tmp_path: Path) -> None:
    reproduce([EXPERIMENTS["fig1"]], TINY, tmp_path)
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    [fig1] = results["experiments"]
    assert results["versions"]["cfgd"]
    ours = [one for one in fig1["outcomes"] if one["where"].startswith("not in the paper")]
    assert results["verdicts"]["holds"] == len(fig1["outcomes"]) - len(ours)
    assert results["verdicts on our own claims"]["holds"] == len(ours) == 4
    assert len(results["story"]) == 5
    assert fig1["parameters"]["seeds"] == "none: nothing is random"
    assert (tmp_path / "fig1.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    for outside in ('src="http', "<script", "<link", "@import", 'href="http'):
        assert outside not in page
    ids = [piece.split('"', 1)[0] for piece in page.split(' id="')[1:]]
    assert len(ids) == len(set(ids))


def test_unwritable_folder_is_refused_before_the_run(tmp_path: Path) -> None:
    calls: list[str] = []
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match=r"file/report cannot be written to: Not a directory\."):
        reproduce([stub("one", calls)], TINY, tmp_path / "file" / "report")
    assert calls == []


@pytest.mark.slow
def test_synthetic_gas_data_are_labelled(tmp_path: Path) -> None:
    setting = Setting("tiny", gas=gas.surrogate("there is no network"))
    report = reproduce([EXPERIMENTS["uci"]], setting, tmp_path)
    [result] = report.results
    assert {outcome.verdict for outcome in result.outcomes} == {NOT_COMPARABLE}
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Not the gas data: a synthetic stand-in" in page
    assert page.count("synthetic stand-in, not the gas data") == 3  # in each panel


def test_failed_download_is_reported_and_synthetic_data_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def offline(folder: str) -> Any:
        raise OSError("no route to OpenML")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gas_download, "fetch", offline)
    assert find_gas(Console(width=200), None, "uci").surrogate
    output = capsys.readouterr().out
    assert (
        "could not be downloaded (no route to OpenML); uci runs on a synthetic stand-in" in output
    )


def test_gas_data_are_part_of_the_key_of_uci_only() -> None:
    setting = Setting("tiny", gas=gas.surrogate("this is a test"))
    assert [name for name, one in EXPERIMENTS.items() if one.needs_gas] == ["uci"]
    assert experiment_key(EXPERIMENTS["uci"], setting) != experiment_key(EXPERIMENTS["uci"], TINY)
    assert experiment_key(EXPERIMENTS["fig1"], setting) == experiment_key(EXPERIMENTS["fig1"], TINY)
