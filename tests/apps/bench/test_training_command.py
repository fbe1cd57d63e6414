"""The command `cfgd bench --training` on something tiny."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from cfgd.apps.bench.training import catalogue, moons, optimizers, runner
from cfgd.apps.bench.training.optimizers import Optimizer
from cfgd.apps.bench.training.training import PLACES, Trainer
from cfgd.apps.cli import app


def said(*more, out):
    env = {"COLUMNS": "200"}
    return CliRunner().invoke(app, ["bench", "--training", *more, "--out", str(out)], env=env)


@pytest.fixture
def tiny(monkeypatch):
    """One problem, a rival and one of ours, two learning rates."""
    few = [Optimizer("SGD"), Optimizer("cfgd", -0.25, 1)]
    monkeypatch.setattr(catalogue, "PROBLEMS", {"moons": (moons.moons, 2 * PLACES)})
    monkeypatch.setattr(optimizers, "optimizers", lambda quick: few)
    monkeypatch.setattr(optimizers, "RATES", (0.1, 0.3))


@pytest.mark.usefixtures("tiny")
def test_the_command(tmp_path):
    ends = said("--quick", out=tmp_path)
    assert ends.exit_code == 0, ends.output
    assert "cfgd (-0.25, 1) against SGD, with equal gradients: " in ends.output
    assert "training.md" in ends.output
    found = json.loads((tmp_path / "training.json").read_text())
    assert found["size"] == "quick"
    assert found["seeds"] == 2
    assert found["rates"] == [0.1, 0.3]
    assert {(one["optimizer"], one["cost"]) for one in found["table"]} == {
        ("SGD", 1.0),
        ("cfgd (-0.25, 1)", 1.2),
    }
    text = (tmp_path / "training.md").read_text()
    for words in ("## In words", "## Gamma and lag", "## moons", "| cfgd (-0.25, 1) |", "counts 1"):
        assert words in text


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_ctrl_c_keeps_what_is_finished_and_resume_does_not_repeat_it(tmp_path, monkeypatch):
    calls, train = [], Trainer.curves

    def counted(self, optimizer, rates):
        calls.append(optimizer.kind)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return train(self, optimizer, rates)

    monkeypatch.setattr(Trainer, "curves", counted)
    ends = said("--seeds", "1", out=tmp_path)
    assert ends.exit_code == 130
    assert "Interrupted: what is finished is kept" in ends.output
    first = json.loads((tmp_path / "training.json").read_text())
    assert {one["optimizer"] for one in first["table"]} == {"SGD"}

    ends = said("--seeds", "1", "--resume", out=tmp_path)
    assert ends.exit_code == 0
    assert calls == ["SGD", "cfgd", "cfgd"]
    assert "moons: SGD (from the run before)" in ends.output
    assert json.loads((tmp_path / "training.json").read_text())["table"]

    said("--seeds", "2", "--resume", out=tmp_path)  # another setting
    assert calls[3:] == ["SGD", "cfgd"]

    path = tmp_path / "training" / "parts" / "moons-SGD.json"
    for change in (("losses", "lasses"), ("[[[", "[[")):
        path.write_text(path.read_text().replace(*change))
        del calls[:]
        calls += ["-", "-"]
        ends = said("--seeds", "2", "--resume", out=tmp_path)
        assert "moons-SGD.json is not used: " in ends.output
        assert calls[2:] == ["SGD"]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("file", [*runner.FILES, "training/parts/moons-SGD.json"])
def test_a_link_in_the_way_is_found_before_the_run(tmp_path, file):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).symlink_to(tmp_path / "mine")
    ends = said(out=tmp_path)
    assert ends.exit_code == 2
    assert f"{file} is a link where a file is to be: move it away." in ends.output


@pytest.mark.usefixtures("tiny")
def test_a_full_disk_is_one_sentence_after_the_table(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    ends = said("--seeds", "1", out=tmp_path)
    assert ends.exit_code == 2
    assert "Not all could be written" in ends.output
    assert "moons-SGD.json could not be written: No space left on device." in ends.output


def test_an_unknown_problem_is_named_with_those_that_there_are(tmp_path):
    ends = said("--only", "mnist", out=tmp_path / "bench")
    assert ends.exit_code == 2
    known = "moons, digits, characters, convolution, boundary-layer"
    assert f"There is no problem 'mnist' of training; there are {known}." in ends.output
    assert not (tmp_path / "bench").exists()


def test_data_is_refused(tmp_path):
    ends = said("--data", "gas.csv", out=tmp_path / "bench")
    assert ends.exit_code == 2
    assert "--training has no use for it." in ends.output
    assert not (tmp_path / "bench").exists()


@pytest.mark.parametrize("module", ["optax", "sklearn"])
def test_a_missing_extra_is_one_sentence(tmp_path, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    ends = said(out=tmp_path / "bench")
    assert ends.exit_code == 2
    assert f"`cfgd bench --training` needs {module}: pip install 'cfgd[bench]'." in ends.output
    assert not (tmp_path / "bench").exists()
