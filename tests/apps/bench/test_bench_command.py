"""The command `cfgd bench` on a few small problems."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import os
from functools import partial

import pytest
from threadpoolctl import threadpool_info
from typer.testing import CliRunner

from cfgd._core.extras import install_command
from cfgd.apps.bench.field import cases, console, cutest, glm, runner, target
from cfgd.apps.bench.field.instance import AUTO, Instance, SolverRun, TracePoint
from cfgd.apps.bench.field.solvers import solvers_for
from cfgd.apps.cli import app
from problems import few

SLOW = ("optax Adam", "optimistix LM", "optimistix BFGS", "optax L-BFGS", "gradient descent")
PAPER = ("best constants", "the paper")  # two more methods to compile; tested in test_solvers.py
LEFT_OUT = [
    pytest.param((*SLOW, *PAPER), id="few"),
    pytest.param(SLOW, id="more", marks=pytest.mark.slow),
]


def bench(*more, out, **env):
    """Run `cfgd bench`."""
    return CliRunner().invoke(app, ["bench", *more, "--out", str(out)], env=env)


def use_instances(monkeypatch, *instances):
    monkeypatch.setattr(console, "make_instances", lambda names, options: list(instances))


@pytest.mark.slow
@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_command_runs_solvers_and_writes_the_report(tmp_path, monkeypatch, left_out):
    problems = [
        ("least-squares", "random d = 12", partial(cases.random_square, 12)),
        ("smooth", "Beale", partial(cases.smooth, "Beale")),
    ]
    use_instances(
        monkeypatch, *(target.make_instance(*one, seed=0, quick=False) for one in problems)
    )
    monkeypatch.setattr(
        target,
        "solvers_for",
        lambda case: {k: v for k, v in solvers_for(case).items() if k not in left_out},
    )
    result = bench(out=tmp_path, COLUMNS="160")
    assert result.exit_code == 0, result.output
    for text in (
        "cfgd Auto and other solvers",
        "LSQR",
        "Beale",
        "gradients of Auto / gradients of L-BFGS-B",
    ):
        assert text in result.output
    assert "bench.json" in result.output.replace("\n", "")
    found = json.loads((tmp_path / "bench.json").read_text())
    solved = {run["solver"] for run in found["runs"] if run["solved"]}
    assert {"cfgd Auto", "LSQR", "direct", "L-BFGS-B"} <= solved
    assert found["size"] == "full"
    assert any("gradients of Auto / gradients of" in sentence for sentence in found["claims"])
    for ending in ("png", "svg"):
        assert (tmp_path / f"bench.{ending}").stat().st_size > 1000


@pytest.fixture
def no_figure(monkeypatch):
    """Skip the figures, which take most of the time."""
    monkeypatch.setattr(runner, "write_figure", lambda runs, out: None)
    monkeypatch.setattr(runner, "write_error_figure", lambda runs, out: None)


def stub(problem, calls, interrupt=False, data=None, history=()):
    """Return an instance of one solver that appends its problem to `calls` when it is measured."""

    def measure(show_status):
        calls.append(problem)
        if interrupt:
            raise KeyboardInterrupt
        work = float("inf") if problem == "lost" else 3.0
        run = SolverRun(problem, "smooth", "gradients", AUTO, 0, work, 1.0, 0.0, work == 3)
        return [dataclasses.replace(run, history=history)]

    return Instance("smooth", problem, 0, measure, data)


@pytest.mark.usefixtures("no_figure")
def test_ctrl_c_saves_finished_instances_and_resume_skips_them(tmp_path, monkeypatch):
    calls = []
    history = (TracePoint(1.0, float("inf"), 0.5),)
    use_instances(
        monkeypatch,
        stub("lost", calls, history=history),
        stub("b", calls, interrupt=True),
        stub("c", calls),
    )
    result = bench(out=tmp_path)
    assert result.exit_code == 130
    message = (
        "Interrupted: finished results are saved; run the same command with --resume to continue."
    )
    assert message in " ".join(result.output.split())
    found = json.loads((tmp_path / "bench.json").read_text())
    assert [run["problem"] for run in found["runs"]] == ["lost"]

    use_instances(monkeypatch, *(stub(problem, calls) for problem in ("lost", "b", "c")))
    result = bench("--resume", out=tmp_path)
    assert result.exit_code == 0
    assert calls == ["lost", "b", "b", "c"]
    assert "lost, run 1 (from the previous run)" in result.output
    again = json.loads((tmp_path / "bench.json").read_text())
    assert again["runs"][0] == found["runs"][0]  # infinities too
    assert [run["problem"] for run in again["runs"]] == ["lost", "b", "c"]

    assert bench(out=tmp_path).exit_code == 0  # without --resume all instances are measured
    assert calls == ["lost", "b", "b", "c", "lost", "b", "c"]


@pytest.mark.usefixtures("no_figure")
@pytest.mark.parametrize(("more", "data"), [(["--quick"], None), ([], "other data")])
def test_resume_does_not_reuse_results_of_other_settings(tmp_path, monkeypatch, more, data):
    calls = []
    use_instances(monkeypatch, stub("a", calls))
    bench(out=tmp_path)
    use_instances(monkeypatch, stub("a", calls, data=data))
    bench("--resume", *more, out=tmp_path)
    assert calls == ["a", "a"]


@pytest.mark.usefixtures("no_figure")
@pytest.mark.parametrize("change", [("3.0", '"3"'), ("}", ""), ('"work"', '"worth"')])
def test_resume_measures_damaged_results_again(tmp_path, monkeypatch, change):
    calls = []
    use_instances(monkeypatch, stub("a", calls))
    bench(out=tmp_path)
    path = tmp_path / "parts" / "smooth-a-0.json"
    path.write_text(path.read_text().replace(*change))
    result = bench("--resume", out=tmp_path)
    assert "smooth-a-0.json is not used: " in result.output.replace("\n", "")
    assert calls == ["a", "a"]
    assert json.loads(path.read_text())["runs"][0]["work"] == 3.0


def test_ctrl_c_before_the_first_instance_is_finished(tmp_path, monkeypatch):
    use_instances(monkeypatch, stub("stopped", [], interrupt=True))
    assert bench(out=tmp_path).exit_code == 130
    assert json.loads((tmp_path / "bench.json").read_text())["runs"] == []


def test_unwritable_folder_is_refused_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    result = bench(out=tmp_path / "file" / "bench")
    assert result.exit_code == 2
    assert "cannot be written to" in result.output


@pytest.mark.parametrize("file", [*runner.FILES, "parts/smooth-a-0.json"])
def test_symlink_in_place_of_a_file_is_refused_before_the_run(tmp_path, monkeypatch, file):
    calls = []
    use_instances(monkeypatch, stub("a", calls))
    (tmp_path / "mine").write_text("mine")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).symlink_to(tmp_path / "mine")
    result = bench(out=tmp_path)
    assert result.exit_code == 2
    message = f"{file} is a link where a file is to be: move it away."
    assert message in result.output.replace("\n", " ")
    assert (tmp_path / "mine").read_text() == "mine"
    assert not calls


@pytest.mark.parametrize(
    ("which", "file"), few(enumerate(["parts/smooth-a-0.json", *runner.FILES]), 2)
)
def test_full_disk_is_reported_after_the_table(tmp_path, monkeypatch, which, file):
    history = (TracePoint(1.0, 3.0, 0.5), TracePoint(2.0, 1.0, 0.1))  # for the figure of errors
    use_instances(monkeypatch, stub("a", [], history=history))
    replace, count = os.replace, itertools.count()

    def full(source, target):
        if next(count) >= which:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", full)
    result = bench(out=tmp_path)
    assert result.exit_code == 2
    assert "cfgd Auto and other solvers" in result.output
    assert f"{file} could not be written: No space left on device." in result.output
    assert not list(tmp_path.rglob("*.part"))


def test_missing_package_is_named_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = bench("--only", "networks", out=tmp_path / "bench")
    assert result.exit_code == 2
    assert f"The other solvers need optax: {install_command('bench')}." in result.output
    assert not (tmp_path / "bench").exists()


def test_unknown_group_lists_the_known_groups(tmp_path):
    result = bench("--only", "nits", out=tmp_path / "bench")
    assert result.exit_code == 2
    assert "no group 'nits'" in result.output
    assert (
        "nist, fits, bounds, glm, estimators, networks, pinn, least-squares, smooth, cutest, "
        "cutest-bounds" in result.output.replace("\n", " ")
    )
    assert not (tmp_path / "bench").exists()


@pytest.mark.usefixtures("no_figure")
def test_all_solvers_have_one_thread(tmp_path, monkeypatch):
    threads = []

    def measure(show_status):
        threads.extend((one["user_api"], one["num_threads"]) for one in threadpool_info())
        return []

    def import_scikit_learn(names, options):
        list(glm.instances(quick=True))
        return [Instance("glm", "a", 0, measure)]

    monkeypatch.setattr(console, "make_instances", import_scikit_learn)
    assert bench("--only", "glm", out=tmp_path).exit_code == 0
    assert set(threads) == {("blas", 1), ("openmp", 1)}


@pytest.mark.usefixtures("no_figure")
def test_missing_sif2jax_is_reported_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(cutest, "is_installed", lambda: False)
    use_instances(monkeypatch, stub("a", []))
    result = bench(out=tmp_path)
    assert result.exit_code == 0
    assert "cutest needs sif2jax: pip install sif2jax." in result.output
    result = bench("--only", "cutest", out=tmp_path)
    assert result.exit_code == 2
    assert "cutest needs sif2jax" in result.output
