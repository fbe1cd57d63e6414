"""The command `cfgd bench` on a few small problems."""

from __future__ import annotations

import errno
import itertools
import json
import os
from functools import partial

import pytest
from typer.testing import CliRunner

from cfgd.bench.field import cases, console, runner
from cfgd.bench.field.rivals import rivals
from cfgd.bench.field.standing import OURS, Run
from cfgd.cli import app

SLOW = ("optax Adam", "optimistix LM", "optimistix BFGS", "optax L-BFGS", "gradient descent")
OWN = ("best constants", "the paper")  # two methods more to compile; test_rivals.py has them
FIELDS = [
    pytest.param((*SLOW, *OWN), id="few"),
    pytest.param(SLOW, id="more", marks=pytest.mark.slow),
]


@pytest.fixture(params=FIELDS)
def small(monkeypatch, request):
    few = [
        ("random d = 12", partial(cases.random_square, 12)),
        ("Beale", partial(cases.smooth, "Beale")),
    ]
    monkeypatch.setattr(console, "makers", lambda quick, data: few)
    out = request.param
    monkeypatch.setattr(
        runner, "rivals", lambda case: {k: v for k, v in rivals(case).items() if k not in out}
    )
    return few


def test_the_command(small, tmp_path):
    said = CliRunner().invoke(
        app, ["bench", "--seeds", "1", "--out", str(tmp_path)], env={"COLUMNS": "160"}
    )
    assert said.exit_code == 0, said.output
    for words in ("Where cfgd stands", "LSQR", "Beale", "gradients of Auto over L-BFGS-B"):
        assert words in said.output
    assert "bench.json" in said.output.replace("\n", "")
    found = json.loads((tmp_path / "bench.json").read_text())
    solved = {run["solver"] for run in found["runs"] if run["solved"]}
    assert {"cfgd Auto", "LSQR", "direct", "L-BFGS-B"} <= solved
    assert found["seeds"] == 1
    for ending in ("png", "svg"):
        assert (tmp_path / f"bench.{ending}").stat().st_size > 1000


def test_ctrl_c_keeps_what_is_finished(small, tmp_path, monkeypatch):
    def interrupted(seed):
        raise KeyboardInterrupt

    monkeypatch.setattr(console, "makers", lambda quick, data: [small[0], ("stopped", interrupted)])
    said = CliRunner().invoke(app, ["bench", "--seeds", "1", "--out", str(tmp_path)])
    assert said.exit_code == 130
    assert "Interrupted" in said.output
    found = json.loads((tmp_path / "bench.json").read_text())
    assert {run["problem"] for run in found["runs"]} == {"random d = 12"}


def test_ctrl_c_before_anything_is_finished(tmp_path, monkeypatch):
    def interrupted(seed):
        raise KeyboardInterrupt

    monkeypatch.setattr(console, "makers", lambda quick, data: [("stopped", interrupted)])
    said = CliRunner().invoke(app, ["bench", "--seeds", "1", "--out", str(tmp_path)])
    assert said.exit_code == 130
    assert json.loads((tmp_path / "bench.json").read_text())["runs"] == []


def test_a_folder_that_cannot_be_written_is_found_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    said = CliRunner().invoke(app, ["bench", "--out", str(tmp_path / "file" / "bench")])
    assert said.exit_code == 2
    assert "cannot be written to" in said.output


@pytest.mark.parametrize("file", runner.FILES)
def test_a_link_in_the_way_is_found_before_the_run(tmp_path, file):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / file).symlink_to(tmp_path / "mine")
    said = CliRunner().invoke(app, ["bench", "--out", str(tmp_path)])
    assert said.exit_code == 2
    assert f"{file} is a link where a file is to be: move it away." in said.output.replace(
        "\n", " "
    )
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(("which", "file"), list(enumerate(["bench.json", *runner.FILES])))
def test_a_full_disk_is_one_sentence_after_the_table(tmp_path, monkeypatch, which, file):
    one = Run("a problem", "smooth", "gradients", OURS, 0, 3.0, 1.0, 0.0, True)
    monkeypatch.setattr(console, "makers", lambda quick, data: [("a problem", lambda seed: None)])
    monkeypatch.setattr(runner, "_instance", lambda *rest: [one])
    replace, count = os.replace, itertools.count()

    def full(source, target):
        if next(count) >= which:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", full)
    said = CliRunner().invoke(app, ["bench", "--seeds", "1", "--out", str(tmp_path)])
    assert said.exit_code == 2
    assert "a problem" in said.output
    assert f"{file} could not be written: No space left on device." in said.output
    assert not list(tmp_path.glob("*.part"))


def test_a_missing_rival_is_named_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = CliRunner().invoke(app, ["bench", "--out", str(tmp_path / "bench")])
    assert said.exit_code == 2
    assert "The rivals need optax: pip install 'cfgd[bench]'." in said.output
    assert not (tmp_path / "bench").exists()
