"""The command `cfgd bench` on a few small problems."""

from __future__ import annotations

import errno
import itertools
import json
import os
from functools import partial

import pytest
from threadpoolctl import threadpool_info
from typer.testing import CliRunner

from cfgd.apps.bench.field import cases, console, cutest, glm, runner, target
from cfgd.apps.bench.field.instance import Instance
from cfgd.apps.bench.field.rivals import rivals
from cfgd.apps.bench.field.standing import OURS, Run
from cfgd.apps.cli import app
from problems import few

SLOW = ("optax Adam", "optimistix LM", "optimistix BFGS", "optax L-BFGS", "gradient descent")
OWN = ("best constants", "the paper")  # two methods more to compile; test_rivals.py has them
FIELDS = [
    pytest.param((*SLOW, *OWN), id="few"),
    pytest.param(SLOW, id="more", marks=pytest.mark.slow),
]


def said(*more, out, **env):
    return CliRunner().invoke(app, ["bench", *more, "--out", str(out)], env=env)


def instead(monkeypatch, *instances):
    monkeypatch.setattr(console, "instances", lambda names, choice: list(instances))


@pytest.mark.parametrize("left_out", FIELDS)
def test_the_command(tmp_path, monkeypatch, left_out):
    few = [
        ("least-squares", "random d = 12", partial(cases.random_square, 12)),
        ("smooth", "Beale", partial(cases.smooth, "Beale")),
    ]
    instead(monkeypatch, *(target.instance(*one, seed=0, quick=False) for one in few))
    monkeypatch.setattr(
        target,
        "rivals",
        lambda case: {k: v for k, v in rivals(case).items() if k not in left_out},
    )
    ends = said(out=tmp_path, COLUMNS="160")
    assert ends.exit_code == 0, ends.output
    for words in ("Where cfgd stands", "LSQR", "Beale", "gradients of Auto over L-BFGS-B"):
        assert words in ends.output
    assert "bench.json" in ends.output.replace("\n", "")
    found = json.loads((tmp_path / "bench.json").read_text())
    solved = {run["solver"] for run in found["runs"] if run["solved"]}
    assert {"cfgd Auto", "LSQR", "direct", "L-BFGS-B"} <= solved
    assert found["size"] == "full"
    assert any("gradients of Auto over L-BFGS-B" in verdict for verdict in found["verdicts"])
    for ending in ("png", "svg"):
        assert (tmp_path / f"bench.{ending}").stat().st_size > 1000


@pytest.fixture
def undrawn(monkeypatch):
    """Without the figure, which takes most of the time."""
    monkeypatch.setattr(runner, "figure", lambda runs, out: None)


def stub(problem, calls, interrupt=False, data=None):
    """An instance of one solver, which counts how often it is measured."""

    def measure(say):
        calls.append(problem)
        if interrupt:
            raise KeyboardInterrupt
        work = float("inf") if problem == "lost" else 3.0
        return [Run(problem, "smooth", "gradients", OURS, 0, work, 1.0, 0.0, work == 3)]

    return Instance("smooth", problem, 0, measure, data)


@pytest.mark.usefixtures("undrawn")
def test_ctrl_c_keeps_what_is_finished_and_resume_does_not_repeat_it(tmp_path, monkeypatch):
    calls = []
    instead(monkeypatch, stub("lost", calls), stub("b", calls, interrupt=True), stub("c", calls))
    ends = said(out=tmp_path)
    assert ends.exit_code == 130
    on = "Interrupted: what is finished is kept; the same command with --resume goes on."
    assert on in ends.output.replace("\n", " ")
    found = json.loads((tmp_path / "bench.json").read_text())
    assert [run["problem"] for run in found["runs"]] == ["lost"]

    instead(monkeypatch, *(stub(problem, calls) for problem in ("lost", "b", "c")))
    ends = said("--resume", out=tmp_path)
    assert ends.exit_code == 0
    assert calls == ["lost", "b", "b", "c"]
    assert "lost, 0 (from the run before)" in ends.output
    again = json.loads((tmp_path / "bench.json").read_text())
    assert again["runs"][0] == found["runs"][0]  # infinities too
    assert [run["problem"] for run in again["runs"]] == ["lost", "b", "c"]

    assert said(out=tmp_path).exit_code == 0  # without --resume all is measured
    assert calls == ["lost", "b", "b", "c", "lost", "b", "c"]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("more", "data"), [(["--quick"], None), ([], "other data")])
def test_resume_does_not_take_over_another_setting(tmp_path, monkeypatch, more, data):
    calls = []
    instead(monkeypatch, stub("a", calls))
    said(out=tmp_path)
    instead(monkeypatch, stub("a", calls, data=data))
    said("--resume", *more, out=tmp_path)
    assert calls == ["a", "a"]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("change", [("3.0", '"3"'), ("}", ""), ('"work"', '"worth"')])
def test_resume_measures_again_what_was_damaged(tmp_path, monkeypatch, change):
    calls = []
    instead(monkeypatch, stub("a", calls))
    said(out=tmp_path)
    path = tmp_path / "parts" / "smooth-a-0.json"
    path.write_text(path.read_text().replace(*change))
    ends = said("--resume", out=tmp_path)
    assert "smooth-a-0.json is not used: " in ends.output.replace("\n", "")
    assert calls == ["a", "a"]
    assert json.loads(path.read_text())["runs"][0]["work"] == 3.0


def test_ctrl_c_before_anything_is_finished(tmp_path, monkeypatch):
    instead(monkeypatch, stub("stopped", [], interrupt=True))
    assert said(out=tmp_path).exit_code == 130
    assert json.loads((tmp_path / "bench.json").read_text())["runs"] == []


def test_a_folder_that_cannot_be_written_is_found_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    ends = said(out=tmp_path / "file" / "bench")
    assert ends.exit_code == 2
    assert "cannot be written to" in ends.output


@pytest.mark.parametrize("file", [*runner.FILES, "parts/smooth-a-0.json"])
def test_a_link_in_the_way_is_found_before_the_run(tmp_path, monkeypatch, file):
    calls = []
    instead(monkeypatch, stub("a", calls))
    (tmp_path / "mine").write_text("mine")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).symlink_to(tmp_path / "mine")
    ends = said(out=tmp_path)
    assert ends.exit_code == 2
    words = f"{file} is a link where a file is to be: move it away."
    assert words in ends.output.replace("\n", " ")
    assert (tmp_path / "mine").read_text() == "mine"
    assert not calls


@pytest.mark.parametrize(
    ("which", "file"), few(enumerate(["parts/smooth-a-0.json", *runner.FILES]), 2)
)
def test_a_full_disk_is_one_sentence_after_the_table(tmp_path, monkeypatch, which, file):
    instead(monkeypatch, stub("a", []))
    replace, count = os.replace, itertools.count()

    def full(source, target):
        if next(count) >= which:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", full)
    ends = said(out=tmp_path)
    assert ends.exit_code == 2
    assert "Where cfgd stands" in ends.output
    assert f"{file} could not be written: No space left on device." in ends.output
    assert not list(tmp_path.rglob("*.part"))


def test_a_missing_rival_is_named_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    ends = said("--only", "networks", out=tmp_path / "bench")
    assert ends.exit_code == 2
    assert "The rivals need optax: pip install 'cfgd[bench]'." in ends.output
    assert not (tmp_path / "bench").exists()


def test_an_unknown_group_is_named_with_those_that_there_are(tmp_path):
    ends = said("--only", "nits", out=tmp_path / "bench")
    assert ends.exit_code == 2
    assert "no group 'nits'" in ends.output
    assert "nist, glm, estimators, networks, least-squares, smooth, cutest" in ends.output.replace(
        "\n", " "
    )
    assert not (tmp_path / "bench").exists()


@pytest.mark.usefixtures("undrawn")
def test_everyone_has_one_thread(tmp_path, monkeypatch):
    seen = []

    def measure(say):
        seen.extend((one["user_api"], one["num_threads"]) for one in threadpool_info())
        return []

    def all_of_glm(names, choice):
        list(glm.instances(quick=True))
        return [Instance("glm", "a", 0, measure)]

    monkeypatch.setattr(console, "instances", all_of_glm)
    assert said("--only", "glm", out=tmp_path).exit_code == 0
    assert set(seen) == {("blas", 1), ("openmp", 1)}


@pytest.mark.usefixtures("undrawn")
def test_without_sif2jax_one_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(cutest, "is_installed", lambda: False)
    instead(monkeypatch, stub("a", []))
    ends = said(out=tmp_path)
    assert ends.exit_code == 0
    assert "cutest needs sif2jax: pip install sif2jax." in ends.output
    ends = said("--only", "cutest", out=tmp_path)
    assert ends.exit_code == 2
    assert "cutest needs sif2jax" in ends.output
