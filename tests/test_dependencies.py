"""The library with the oldest dependencies that pyproject.toml allows, and with the newest."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# All but PyTorch, of which one version is tried, and the tools of the site and of the linter.
EXTRAS = ("test",)
# Some of every package, and whatever reads or writes files of other libraries.
SELECTION = (
    "tests/test_undocumented.py",
    "tests/apps/fit/test_fit_command.py",
    "tests/apps/fit/test_streaming.py",
    "tests/apps/test_cli.py",
    "tests/calculus/test_caputo.py",
    "tests/core",
    "tests/integrations/test_optax.py",
    "tests/integrations/test_scipy.py",
    "tests/integrations/test_sklearn.py",
    "tests/methods/test_auto.py",
    "tests/methods/test_compiled_levenberg_marquardt.py",
    "tests/methods/test_damped_system.py",
    "tests/methods/test_levenberg_marquardt.py",
    "tests/methods/test_methods.py",
    "tests/objectives/test_objectives.py",
    "tests/solve/test_checkpoint.py",
    "tests/fitting/test_curve_fit.py",
    "tests/fitting/test_many.py",
    "tests/solve/test_solution_json.py",
    "tests/solve/test_solution_plot.py",
    "tests/solve/test_sweep.py",
)
# What pip says where there is no network.
OFFLINE = re.compile(r"NewConnectionError|ConnectTimeout|Temporary failure in name resolution")


def requirements(extras):
    """Yield the requirements of the library with some of its extras, which may name others."""
    given = list(PROJECT["dependencies"])
    for extra in extras:
        given += PROJECT["optional-dependencies"][extra]
    for each in map(Requirement, given):
        if each.name == PROJECT["name"]:
            yield from requirements(sorted(each.extras))
        else:
            yield each


def lower_bounds(extras):
    """Return the lowest version of each package that all requirements on it allow."""
    bounds = {}
    for each in requirements(extras):
        (bound,) = [Version(one.version) for one in each.specifier if one.operator in (">=", "==")]
        bounds[each.name] = max(bound, bounds.get(each.name, bound))
    return bounds


def test_every_requirement_has_a_lower_bound():
    everything = lower_bounds(["dev", "torch"])
    assert {"jax", "numpy", "pyarrow", "torch", "mypy", "furo"} <= set(everything)
    assert lower_bounds(["cli"])["scikit-learn"] < lower_bounds(["cli", "sklearn"])["scikit-learn"]


def run(*command):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env)


def check(folder, options, warnings=()):
    """Install the library with `options` of pip into an environment of its own; run SELECTION."""
    made = run(sys.executable, "-m", "venv", str(folder / "env"))
    assert made.returncode == 0, made.stderr
    python = str(folder / "env" / "bin" / "python")
    wanted = f".[{','.join(EXTRAS)}]"
    install = ("-m", "pip", "install", "--quiet", "--no-compile", "--no-cache-dir")
    installed = run(python, *install, *options, "--editable", wanted)
    if OFFLINE.search(installed.stderr):
        pytest.skip("there is no network to install from")
    assert installed.returncode == 0, installed.stderr
    versions = run(python, "-m", "pip", "list", "--format=freeze").stdout
    tried = run(
        python, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *warnings, *SELECTION
    )
    assert tried.returncode == 0, tried.stdout[-10_000:] + tried.stderr[-2000:] + versions
    return dict(line.split("==") for line in versions.splitlines() if "==" in line)


@pytest.mark.slow
@pytest.mark.skipif(
    f">={sys.version_info[0]}.{sys.version_info[1]}" != PROJECT["requires-python"],
    reason="the oldest versions have no wheels for newer versions of Python",
)
def test_the_oldest_dependencies(tmp_path):
    bounds = lower_bounds(EXTRAS)
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("".join(f"{name}=={bound}\n" for name, bound in bounds.items()))
    # old packages use what the newest of their own dependencies deprecate
    warnings = ("-W", "default::DeprecationWarning")
    found = check(tmp_path, ("--constraint", str(constraints)), warnings)
    assert Version(found["jax"]) == bounds["jax"]
    assert Version(found["numpy"]) == bounds["numpy"]


@pytest.mark.slow
def test_the_newest_dependencies(tmp_path):
    check(tmp_path, ("--upgrade", "--upgrade-strategy", "eager"))
