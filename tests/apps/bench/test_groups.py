"""What `cfgd bench` runs: all groups, what --quick leaves out, names that become files."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from cfgd.apps.bench.field import cutest
from cfgd.apps.bench.field.groups import GROUPS, QUICK, Choice, chosen, instances
from cfgd.apps.data import gas

WITHOUT_CUTEST = [name for name in GROUPS if name != "cutest"]


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    monkeypatch.setattr(cutest, "is_installed", lambda: True)


def test_all_groups_and_some_of_them():
    assert chosen([], quick=False) == (list(GROUPS), [])
    assert chosen(["glm", "nist"], quick=False) == (["nist", "glm"], [])


def test_quick_says_what_it_leaves_out():
    names, (said,) = chosen([], quick=True)
    assert names == WITHOUT_CUTEST
    assert "cutest (to import sif2jax takes a minute" in said
    assert set(QUICK) == set(GROUPS)
    names, (said,) = chosen(["cutest"], quick=True)
    assert names == ["cutest"]
    assert said == "--quick leaves out seven of eight problems of cutest."


def test_quick_takes_some_of_what_there_is():
    data = gas.Gas(np.zeros((2, 129)), "a test")
    all_of, some_of = (instances(WITHOUT_CUTEST, Choice(quick, 2, data)) for quick in (False, True))
    count, few = Counter(one.group for one in all_of), Counter(one.group for one in some_of)
    assert count["nist"] == 54
    assert few["nist"] == 18
    assert (count["glm"], few["glm"]) == (8, 6)
    assert (count["estimators"], few["estimators"]) == (8, 6)
    # at equal work and in equal time, both starts, two seeds
    assert (count["networks"], few["networks"]) == (24, 4)
    assert few["least-squares"] == count["least-squares"] == 8
    assert few["smooth"] < count["smooth"]
    (digest,) = {one.data for one in all_of if one.problem == "gas"}
    assert digest == data.digest
    assert {one.data for one in all_of if one.problem != "gas"} == {None}


def test_no_two_instances_share_a_file():
    names = [one.name for one in instances(WITHOUT_CUTEST, Choice(False, 3))]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 60
    assert "networks-h1-N-0-25-0-5-s-2" in names
