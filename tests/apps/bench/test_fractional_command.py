"""The command `cfgd bench --fractional` on a tiny problem."""

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from cfgd.apps.bench.fractional import competitors, problems, runner
from cfgd.apps.bench.fractional.problems import FractionalProblem, quadratic
from cfgd.apps.cli import app

OWN = '''
import cfgd
import jax.numpy as jnp

class Damped(cfgd.zoo.UpdateRule):
    """x - eta g / (1 + |x_k - x_(k-1)|)."""

    eta: float = cfgd.zoo.parameter(cfgd.zoo.POSITIVE)
    grid = {"eta": [0.5, 1.0, 1.9]}

    def start(self, x):
        return x

    def update(self, at, previous, k, objective):
        return self.eta * at.gradient / (1 + jnp.abs(at.x - previous)), at.x
'''


def bench_fractional(*more, out):
    env = {"COLUMNS": "300"}
    return CliRunner().invoke(app, ["bench", "--fractional", *more, "--out", str(out)], env=env)


@pytest.fixture
def tiny(monkeypatch):
    """One problem, two rules and two controls with few settings."""
    bowl = FractionalProblem(
        "quadratic 1e1 tiny",
        "quadratics",
        "tiny",
        lambda seed: quadratic(10.0, True, seed, 4),
        gradients=60,
    )
    monkeypatch.setattr(problems, "problems", lambda quick, gas: [bowl])
    monkeypatch.setattr(competitors, "RULES", competitors.RULES[:1] + competitors.RULES[-3:-2])
    monkeypatch.setattr(competitors, "CONTROLS", competitors.CONTROLS[:1])


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_command_writes_the_report_and_resumes(tmp_path, monkeypatch):
    result = bench_fractional("--seeds", "3", out=tmp_path)
    assert result.exit_code == 0, result.output
    assert "Which differ at all: " in result.output
    data = json.loads((tmp_path / "fractional.json").read_text())
    assert data["seeds"] == [0, 1, 2]
    assert data["tuning_seeds"] == [1000, 1001]
    names = ["1 Wang", "16 Shin (ours)", "gradient descent", "L-BFGS"]
    (found,) = data["problems"]
    assert list(found["rules"]) == names
    assert all(len(one["gaps"]) == 3 for one in found["rules"].values())
    rows = list(csv.DictReader((tmp_path / "fractional.csv").read_text().splitlines()))
    assert [(row["rule"], row["seed"]) for row in rows] == [
        (name, str(seed)) for name in names for seed in range(3)
    ]
    page = (tmp_path / "fractional.html").read_text()
    assert page.index("Which differ at all") < page.index("<svg")
    assert page.count("<svg") == 3  # two profiles, one problem
    assert "| 1 Wang | 1 of 1 |" in (tmp_path / "fractional.md").read_text()

    # nothing is run again, and a rule of one's own alone is added
    judged, judge = [], runner.judge
    monkeypatch.setattr(
        runner, "judge", lambda *given: (judged.append(given[1].name), judge(*given))[1]
    )
    result = bench_fractional("--seeds", "3", "--resume", out=tmp_path)
    assert "quadratic 1e1 tiny (from the run before)" in result.output
    assert judged == []
    own = tmp_path / "my_rule.py"
    own.write_text(OWN)
    result = bench_fractional("--seeds", "3", "--resume", "--rule", f"{own}:Damped", out=tmp_path)
    assert result.exit_code == 0, result.output
    assert judged == ["Damped"]
    (found,) = json.loads((tmp_path / "fractional.json").read_text())["problems"]
    assert list(found["rules"]) == [*names[:3], "Damped", "L-BFGS"]
    # with another content of the file it is run again
    own.write_text(OWN.replace("1.9", "1.8"))
    bench_fractional("--seeds", "3", "--resume", "--rule", f"{own}:Damped", out=tmp_path)
    assert judged == ["Damped", "Damped"]
    # a damaged file is computed again
    (part,) = (tmp_path / "fractional" / "parts").glob("*.json")
    part.write_text(part.read_text().replace('"curve": [[', '"curve": [['[:-1]))
    result = bench_fractional("--seeds", "3", "--resume", out=tmp_path)
    assert "is not used: " in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--training"], "--fractional and --training are two comparisons"),
        (["--seconds", "3"], "--seconds is the time of pinn"),
        (["--only", "moons"], "There is no group 'moons'"),
        (["--rule", "rule.txt"], "--rule must be FILE.py:Class"),
        (["--rule", "nowhere.py:Rule"], "there is no file nowhere.py"),
    ],
)
def test_arguments_are_checked_first(tmp_path, arguments, message):
    result = bench_fractional(*arguments, out=tmp_path)
    assert result.exit_code != 0
    assert message in result.output
    assert not list(tmp_path.iterdir())


def test_a_class_of_another_kind_is_refused(tmp_path):
    (tmp_path / "rule.py").write_text("class Rule:\n    pass\n")
    result = bench_fractional("--rule", f"{tmp_path}/rule.py:Rule", out=tmp_path / "out")
    assert "must define Rule, a subclass of cfgd.zoo.UpdateRule" in result.output
