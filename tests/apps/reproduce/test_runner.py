"""What is kept of a run: after Ctrl-C, for --resume, for machines and for readers."""

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
from cfgd.apps.reproduce.runner import key_of, reproduce
from problems import few

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
    said: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path, resume=True, say=said.append)
    assert calls == ["one", "one"]
    path = tmp_path / "parts" / "one.json"
    assert said == [f"{path} is not used: line 1 is not JSON (Expecting ',' delimiter)."]


def test_resume_runs_again_what_somebody_put_a_script_into(tmp_path: Path) -> None:
    calls: list[str] = []
    reproduce([stub("one", calls), stub("two", calls)], TINY, tmp_path)
    for name in ("one", "two"):
        path = tmp_path / "parts" / f"{name}.json"
        saved = path.read_text(encoding="utf-8").replace("</svg>", "<script>x</script></svg>")
        path.write_text(saved, encoding="utf-8")
    said: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path, resume=True, say=said.append)
    assert calls == ["one", "two", "one"]
    assert len(said) == 2
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'id="one"' in page
    assert "<script" not in page


@pytest.mark.parametrize("left", few([b"\x89PNG cut short", None, b""], 2))
def test_resume_draws_again_what_is_missing_without_a_run(
    tmp_path: Path, left: bytes | None
) -> None:
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
    # that of two as well, which the page still links to
    assert {name: (tmp_path / f"{name}.png").read_bytes() for name in before} == before
    assert (tmp_path / "results.json").exists()


def ids(folder: Path) -> list[str]:
    page = (folder / "index.html").read_text(encoding="utf-8")
    return [piece.split('"', 1)[0] for piece in page.split('<section id="')[1:]]


def test_running_one_experiment_keeps_the_others_on_the_page(tmp_path: Path) -> None:
    calls: list[str] = []
    reproduce([stub(name, calls) for name in ("networks", "uci", "other")], TINY, tmp_path)
    assert ids(tmp_path) == ["uci", "networks", "other"]  # as in the paper
    result = reproduce([stub("networks", calls)], TINY, tmp_path)
    assert [part.name for part in result.parts] == ["networks"]
    assert ids(tmp_path) == ["uci", "networks", "other"]
    reproduce([stub("fig1", calls)], TINY, tmp_path)
    assert ids(tmp_path) == ["fig1", "uci", "networks", "other"]
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in results["experiments"]] == ids(tmp_path)
    assert results["verdicts"]["holds"] == 4


def test_a_page_of_several_settings_says_so(tmp_path: Path) -> None:
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
def test_what_is_in_the_way_is_found_before_the_run(tmp_path: Path, name: str, kind: str) -> None:
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


def test_a_file_where_the_parts_are_to_be_is_found_before_the_run(tmp_path: Path) -> None:
    calls: list[str] = []
    (tmp_path / "parts").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="parts is a file where a folder is to be"):
        reproduce([stub("one", calls)], TINY, tmp_path)
    assert calls == []


def test_what_is_in_the_way_of_another_part_is_found_too(tmp_path: Path) -> None:
    calls: list[str] = []
    reproduce([stub("one", calls)], TINY, tmp_path)
    (tmp_path / "one.png").unlink()
    (tmp_path / "one.png").mkdir()
    with pytest.raises(ValueError, match=r"one\.png is a folder where a file is to be"):
        reproduce([stub("two", calls)], TINY, tmp_path)
    assert calls == ["one"]


# an experiment leaves four files, in this order
@pytest.mark.parametrize(
    ("which", "file"),
    few([(5, "parts/two.json"), (7, "results.json"), (6, "two.png"), (8, "index.html")], 2),
)
def test_a_full_disk_loses_no_finished_experiment(
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
        result = reproduce(all_three, TINY, tmp_path)
    said = f"{tmp_path / file} could not be written: No space left on device."
    assert str(result.unwritten) == said
    assert [part.name for part in result.parts] == ["one", "two"]  # to be shown, at least
    assert calls == ["one", "two"]
    assert ids(tmp_path) == ["one"]
    assert not list(tmp_path.rglob("*.part"))

    result = reproduce(all_three, TINY, tmp_path, resume=True)
    assert result.unwritten is None
    again = ["two"] if which == 5 else []  # the part itself found no room
    assert calls == ["one", "two", *again, "three"]
    assert ids(tmp_path) == ["one", "two", "three"]


def test_results_are_for_machines_and_the_page_stands_alone(tmp_path: Path) -> None:
    reproduce([EXPERIMENTS["fig1"]], TINY, tmp_path)
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    [fig1] = results["experiments"]
    assert results["versions"]["cfgd"]
    ours = [one for one in fig1["outcomes"] if one["where"].startswith("not in the paper")]
    assert results["verdicts"]["holds"] == len(fig1["outcomes"]) - len(ours)
    assert results["verdicts on rows of ours"]["holds"] == len(ours) == 4
    assert len(results["story"]) == 5
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


@pytest.mark.slow
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
