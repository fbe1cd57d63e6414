"""The command `cfgd bench --training` on a tiny problem."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from cfgd._core.extras import install_command
from cfgd.apps.bench.training import catalogue, moons, optimizers, runner
from cfgd.apps.bench.training.optimizers import Optimizer
from cfgd.apps.bench.training.trainer import CHECKPOINTS, Trainer
from cfgd.apps.cli import app


def bench_training(*more, out):
    env = {"COLUMNS": "200"}
    return CliRunner().invoke(app, ["bench", "--training", *more, "--out", str(out)], env=env)


@pytest.fixture
def tiny(monkeypatch):
    """One problem, an optimizer of optax and one of ours, two learning rates."""
    few = [Optimizer("SGD"), Optimizer("cfgd", -0.25, 1)]
    monkeypatch.setattr(catalogue, "PROBLEMS", {"moons": (moons.moons, 2 * CHECKPOINTS)})
    monkeypatch.setattr(optimizers, "optimizers", lambda quick: few)
    monkeypatch.setattr(optimizers, "RATES", (0.1, 0.3))


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_command_trains_and_writes_the_report(tmp_path):
    result = bench_training("--quick", out=tmp_path)
    assert result.exit_code == 0, result.output
    assert "cfgd (-0.25, 1), at equal gradients, loss compared with SGD" in result.output
    assert "training.md" in result.output
    found = json.loads((tmp_path / "training.json").read_text())
    assert found["size"] == "quick"
    assert found["seeds"] == 2
    assert found["rates"] == [0.1, 0.3]
    assert {(one["optimizer"], one["cost"]) for one in found["table"]} == {
        ("SGD", 1.0),
        ("cfgd (-0.25, 1)", 1.2),
    }
    text = (tmp_path / "training.md").read_text()
    for words in (
        "## Conclusions",
        "## Gamma and lag",
        "## moons",
        "| cfgd (-0.25, 1) |",
        "has the cost 1",
    ):
        assert words in text


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_ctrl_c_saves_finished_results_and_resume_skips_them(tmp_path, monkeypatch):
    calls, train = [], Trainer.curves

    def counted(self, optimizer, rates):
        calls.append(optimizer.kind)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return train(self, optimizer, rates)

    monkeypatch.setattr(Trainer, "curves", counted)
    result = bench_training("--seeds", "1", out=tmp_path)
    assert result.exit_code == 130
    assert "Interrupted: finished results are saved" in result.output
    first = json.loads((tmp_path / "training.json").read_text())
    assert {one["optimizer"] for one in first["table"]} == {"SGD"}

    result = bench_training("--seeds", "1", "--resume", out=tmp_path)
    assert result.exit_code == 0
    assert calls == ["SGD", "cfgd", "cfgd"]
    assert "moons: SGD (from the previous run)" in result.output
    assert json.loads((tmp_path / "training.json").read_text())["table"]

    bench_training("--seeds", "2", "--resume", out=tmp_path)  # other settings
    assert calls[3:] == ["SGD", "cfgd"]

    path = tmp_path / "training" / "parts" / "moons-SGD.json"
    for change in (("losses", "lasses"), ("[[[", "[[")):
        path.write_text(path.read_text().replace(*change))
        del calls[:]
        calls += ["-", "-"]
        result = bench_training("--seeds", "2", "--resume", out=tmp_path)
        assert "moons-SGD.json is not used: " in result.output
        assert calls[2:] == ["SGD"]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("file", [*runner.FILES, "training/parts/moons-SGD.json"])
def test_symlink_in_place_of_a_file_is_refused_before_the_run(tmp_path, file):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).symlink_to(tmp_path / "mine")
    result = bench_training(out=tmp_path)
    assert result.exit_code == 2
    assert f"{file} is a link where a file is to be: move it away." in result.output


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_full_disk_is_reported_after_the_table(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    result = bench_training("--seeds", "1", out=tmp_path)
    assert result.exit_code == 2
    assert "Some files could not be written" in result.output
    assert "moons-SGD.json could not be written: No space left on device." in result.output


def test_unknown_problem_lists_the_known_problems(tmp_path):
    result = bench_training("--only", "mnist", out=tmp_path / "bench")
    assert result.exit_code == 2
    known = "moons, digits, characters, convolution, boundary-layer"
    assert f"There is no training problem 'mnist'; the problems are {known}." in result.output
    assert not (tmp_path / "bench").exists()


def test_data_is_refused(tmp_path):
    result = bench_training("--data", "gas.csv", out=tmp_path / "bench")
    assert result.exit_code == 2
    assert "cannot be used with --training." in result.output.replace("\n", " ")
    assert not (tmp_path / "bench").exists()


@pytest.mark.parametrize("module", ["optax", "sklearn"])
def test_missing_package_is_named_before_the_run(tmp_path, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    result = bench_training(out=tmp_path / "bench")
    assert result.exit_code == 2
    assert f"`cfgd bench --training` needs {module}: {install_command('bench')}." in result.output
    assert not (tmp_path / "bench").exists()
