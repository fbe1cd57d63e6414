"""The groups of `cfgd bench`: selection, --quick, and the names of result files."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from typer.testing import CliRunner

from cfgd.apps import bench_arguments
from cfgd.apps.bench.field import cutest, fit_solvers
from cfgd.apps.bench.field.groups import (
    CUTEST,
    GROUPS,
    QUICK_PARTS,
    BenchOptions,
    make_instances,
    select_groups,
)
from cfgd.apps.bench.fractional.problems import problems
from cfgd.apps.bench.training.catalogue import PROBLEMS
from cfgd.apps.cli import app
from cfgd.apps.data import gas
from cfgd.apps.data.curves import CURVES

WITHOUT_CUTEST = [name for name in GROUPS if name not in CUTEST]


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    monkeypatch.setattr(cutest, "is_installed", lambda: True)
    monkeypatch.setattr(fit_solvers, "missing_packages", lambda: [])


def test_all_groups_or_the_named_ones_are_selected():
    assert select_groups([], quick=False) == (list(GROUPS), [])
    assert select_groups(["glm", "nist"], quick=False) == (["nist", "glm"], [])


def test_quick_reports_what_it_leaves_out():
    names, (notice,) = select_groups([], quick=True)
    assert names == WITHOUT_CUTEST
    assert "cutest: skipped, because importing sif2jax takes a minute" in notice
    assert set(QUICK_PARTS) == set(GROUPS)
    names, (notice,) = select_groups(["cutest"], quick=True)
    assert names == ["cutest"]
    assert notice == "--quick runs a part of each group. cutest: every eighth problem."


def test_quick_has_fewer_instances():
    data = gas.Gas(np.zeros((2, 129)), "a test")
    full, quick = (
        make_instances(WITHOUT_CUTEST, BenchOptions(quick, 2, data)) for quick in (False, True)
    )
    count, few = Counter(one.group for one in full), Counter(one.group for one in quick)
    assert count["nist"] == 54
    assert few["nist"] == 18
    # two given starts of NIST's, one of 22 + 14 standard problems and of the curves, 3 perturbed
    assert count["fits"] == 27 * 5 + (22 + 14 + len(CURVES)) * 4
    assert 4 <= few["fits"] <= 15
    assert (count["pinn"], few["pinn"]) == (14, 2)
    assert count["bounds"] == 54
    assert few["bounds"] == 6
    assert (count["glm"], few["glm"]) == (8, 6)
    assert (count["estimators"], few["estimators"]) == (8, 6)
    # at equal work and at equal time, both starts, two seeds
    assert (count["networks"], few["networks"]) == (24, 4)
    assert few["least-squares"] == count["least-squares"] == 8
    assert few["smooth"] < count["smooth"]
    (digest,) = {one.data for one in full if one.problem == "gas"}
    assert digest == data.digest
    assert {one.data for one in full if one.problem != "gas"} == {None}


def test_seconds_of_pinn_are_part_of_the_name():
    """So that --resume does not reuse a run of another length."""
    for quick, seconds, ending in (
        (False, None, "30-s-0"),
        (True, None, "2-s-0"),
        (True, 4, "4-s-0"),
    ):
        one = make_instances(["pinn"], BenchOptions(quick, 1, seconds=seconds))[0]
        assert one.name.endswith(ending)


def test_solvers_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(fit_solvers, "REQUIRED", {"lmfit": "no_such_package"})
    assert "lmfit" not in fit_solvers.installed_solvers()
    names, (notice,) = select_groups(["fits"], quick=False)
    assert names == ["fits"]
    assert notice == "fits skips solvers that are not installed: no_such_package."


def test_result_files_have_distinct_names():
    names = [one.name for one in make_instances(WITHOUT_CUTEST, BenchOptions(False, 3))]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 60
    assert "networks-h1-N-0-25-0-5-s-2" in names


def test_the_list_has_the_groups_of_each_comparison():
    assert list(bench_arguments.GROUPS) == list(GROUPS)
    assert list(bench_arguments.TRAINING_GROUPS) == list(PROBLEMS)
    fractional = dict.fromkeys(one.group for one in problems(False, None))
    assert list(bench_arguments.FRACTIONAL_GROUPS) == list(fractional)


@pytest.mark.parametrize(
    ("options", "shown"), [([], "cutest-bounds"), (["--training"], "boundary-layer")]
)
def test_list_prints_the_groups_and_stops(options, shown):
    result = CliRunner().invoke(app, ["bench", "--list", *options])
    assert result.exit_code == 0
    assert f"\n{shown} " in result.output
