"""The command `cfgd bench --fractional` on a tiny problem."""

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from cfgd.apps.bench.fractional import competitors, problems, runner
from cfgd.apps.bench.fractional.own_rule import read_rule
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
    """One problem, two rules and two baselines with few settings."""
    bowl = FractionalProblem(
        "quadratic 1e1 tiny",
        "quadratics",
        "tiny",
        lambda seed: quadratic(10.0, True, seed, 4),
        gradients=60,
    )
    monkeypatch.setattr(problems, "problems", lambda quick, gas: [bowl])
    monkeypatch.setattr(competitors, "RULES", competitors.RULES[:1] + competitors.RULES[-3:-2])
    monkeypatch.setattr(competitors, "BASELINES", competitors.BASELINES[:1])


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_command_writes_the_report_and_resumes(tmp_path, monkeypatch):
    result = bench_fractional("--seeds", "3", out=tmp_path)
    assert result.exit_code == 0, result.output
    assert "Compared with gradient descent: " in result.output.replace("\n", " ")
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
    assert page.index("Compared with") < page.index("<svg")
    assert page.count("<svg") == 3  # two profiles, one problem
    assert "| 1 Wang | 1 of 1 |" in (tmp_path / "fractional.md").read_text()

    # nothing is run again, and a rule of one's own alone is added
    judged, judge = [], runner.judge
    monkeypatch.setattr(
        runner, "judge", lambda *given: (judged.append(given[1].name), judge(*given))[1]
    )
    result = bench_fractional("--seeds", "3", "--resume", out=tmp_path)
    assert "quadratic 1e1 tiny (from the previous run)" in result.output
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
        (["--training"], "--fractional and --training are different comparisons"),
        (["--seconds", "3"], "--seconds applies to the group pinn"),
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


OTHER_RULES = (
    OWN
    + """
class NotARule:
    pass

class NoUpdate(cfgd.zoo.UpdateRule):
    eta: float = cfgd.zoo.parameter(cfgd.zoo.POSITIVE)

class Misspelt(Damped):
    def update(self, at, previous, k, objective):
        return self.eta * at.gradientt, at.x

class OtherMemory(Damped):
    def start(self, x):
        return x[:1]

class Adam(Damped):
    pass

class UnknownConstant(Damped):
    grid = {"rate": [1.0]}

class OutOfRange(Damped):
    grid = {"eta": [1.0, -1.0]}

class NoSetting(Damped):
    grid = {}

class TooMany(Damped):
    grid = {"eta": [0.1 * i for i in range(1, 50)]}
"""
)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NotARule", "must define NotARule, a subclass of cfgd.zoo.UpdateRule"),
        ("Missing", "must define Missing, a subclass"),
        ("NoUpdate", "Can't instantiate abstract class NoUpdate"),
        ("Misspelt", "line 25): AttributeError: 'Evaluation' object has no attribute 'gradientt'"),
        ("OtherMemory", "OtherMemory cannot be used"),
        ("Adam", "the comparison has a rule of the name Adam; rename the class"),
        ("UnknownConstant", "unexpected keyword argument 'rate'"),
        ("OutOfRange", "`OutOfRange(eta=...)` must be positive"),
        ("NoSetting", "NoSetting.grid cannot be used"),
        ("TooMany", "the grid must have 1 to 48 settings, got 49"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_before_the_run(tmp_path, name, message):
    (tmp_path / "rules.py").write_text(OTHER_RULES)
    result = bench_fractional("--rule", f"{tmp_path}/rules.py:{name}", out=tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_python_is_refused(tmp_path):
    (tmp_path / "rule.py").write_text("x = (")
    result = bench_fractional("--rule", f"{tmp_path}/rule.py:Rule", out=tmp_path / "out")
    assert result.exit_code == 2
    assert "--rule: the file cannot be used" in result.output
    assert "SyntaxError: '(' was never closed" in result.output


def test_a_rule_from_a_file_with_postponed_annotations(tmp_path):
    """Dataclasses look up such annotations in the module of the class."""
    path = tmp_path / "rule.py"
    path.write_text("from __future__ import annotations\n" + OWN)
    found = read_rule(f"{path}:Damped")
    assert (found.name, found.names, len(found.settings)) == ("Damped", ("eta",), 3)
    assert found.make(competitors.Scale(4.0, 1.0), 1.0).eta == 0.25
    assert competitors.thinned(found).settings == found.settings
