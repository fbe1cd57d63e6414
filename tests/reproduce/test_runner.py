"""What is kept of a run: after Ctrl-C, for --resume, for machines and for readers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cfgd.data import gas, gas_download
from cfgd.reproduce.console import find_gas
from cfgd.reproduce.experiment import Experiment, Meter, Record, Setting
from cfgd.reproduce.experiments.catalogue import EXPERIMENTS
from cfgd.reproduce.report.claim import NOT_COMPARABLE, Claim
from cfgd.reproduce.runner import key_of, reproduce

TINY = Setting("tiny")


def stub(name: str, calls: list[str], interrupt: bool = False) -> Experiment:
    """fig1 under another name, counting its runs."""

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


def test_ctrl_c_keeps_what_is_finished_and_resume_does_not_repeat_it(tmp_path: Path) -> None:
    calls: list[str] = []
    stopped = [stub("one", calls), stub("two", calls, interrupt=True), stub("three", calls)]
    result = reproduce(stopped, TINY, tmp_path)
    assert result.interrupted
    assert [part.name for part in result.parts] == ["one"]
    assert 'id="one"' in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert calls == ["one", "two"]

    reused = {}
    again = [stub(name, calls) for name in ("one", "two", "three")]
    result = reproduce(
        again, TINY, tmp_path, resume=True, finished=lambda p, r: reused.update({p.name: r})
    )
    assert calls == ["one", "two", "two", "three"]
    assert reused == {"one": True, "two": False, "three": False}
    assert not result.interrupted


@pytest.mark.parametrize("change", [{"size": "quick"}, {"seeds": 4}])
def test_resume_does_not_take_over_another_setting(tmp_path: Path, change: Any) -> None:
    calls: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path)
    reproduce([stub("one", calls)], dataclasses.replace(TINY, **change), tmp_path, resume=True)
    assert calls == ["one", "one"]


def test_resume_runs_again_what_was_cut_short(tmp_path: Path) -> None:
    calls: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path)
    (tmp_path / "parts" / "one.json").write_text('{"name": "one"', encoding="utf-8")
    reproduce([stub("one", calls)], TINY, tmp_path, resume=True)
    assert calls == ["one", "one"]


def test_results_are_for_machines_and_the_page_stands_alone(tmp_path: Path) -> None:
    reproduce([EXPERIMENTS["fig1"]], TINY, tmp_path)
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    [fig1] = results["experiments"]
    assert results["versions"]["cfgd"]
    assert results["verdicts"]["holds"] == len(fig1["outcomes"])
    assert fig1["parameters"]["seeds"] == "none: nothing is random"
    assert (tmp_path / "fig1.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    for outside in ('src="http', "<script", "<link", "@import", 'href="http'):
        assert outside not in page
    ids = [piece.split('"', 1)[0] for piece in page.split(' id="')[1:]]
    assert len(ids) == len(set(ids))


def test_an_unwritable_folder_is_found_before_the_run(tmp_path: Path) -> None:
    calls: list[str] = []
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match=r"file/report cannot be written to: Not a directory\."):
        reproduce([stub("one", calls)], TINY, tmp_path / "file" / "report")
    assert calls == []


def test_the_stand_in_is_labelled(tmp_path: Path) -> None:
    setting = Setting("tiny", gas=gas.surrogate("there is no network"))
    result = reproduce([EXPERIMENTS["uci"]], setting, tmp_path)
    [part] = result.parts
    assert {outcome.verdict for outcome in part.outcomes} == {NOT_COMPARABLE}
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Not the gas data: a synthetic stand-in" in page
    assert page.count("synthetic stand-in, not the gas data") == 3  # in each panel


def test_offline_without_data_it_says_so_and_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def offline(folder: str) -> Any:
        raise OSError("no route to OpenML")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gas_download, "fetch", offline)
    assert find_gas(Console(width=200), None, "uci").surrogate
    said = capsys.readouterr().out
    assert "could not be downloaded (no route to OpenML); uci runs on a synthetic stand-in" in said


def test_the_gas_data_counts_only_where_it_is_needed() -> None:
    setting = Setting("tiny", gas=gas.surrogate("this is a test"))
    assert [name for name, one in EXPERIMENTS.items() if one.needs_gas] == ["uci"]
    assert key_of(EXPERIMENTS["uci"], setting) != key_of(EXPERIMENTS["uci"], TINY)
    assert key_of(EXPERIMENTS["fig1"], setting) == key_of(EXPERIMENTS["fig1"], TINY)
