"""Every wrapper of an objective forwards every member of the contract, on the shared table."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract import (
    ASK,
    ASK_CURVATURE,
    ASK_LINE,
    CURVATURE,
    LINE,
    TRAITS,
    answers_of,
    assert_equal,
    inputs_at,
    public,
)
from wrappers import (
    BY_DIFFERENCES,
    FACTOR,
    HOST,
    HUTCHINSON,
    PROJECTED,
    RESCALED,
    WRAPPERS,
    assert_forwards,
    local,
)

import cfgd
from cfgd.objectives.base import Objective, Traits
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.host import HostObjective, host_objective
from cfgd.objectives.rescaled import Rescaled
from objectives import CASES, TIGHT
from problems import quick


def test_every_member_of_the_contract_is_asked_for():
    """A new member of a class below needs an entry in ASK, and in `Inconsistent`."""
    assert set(ASK) == public(Objective)
    assert set(ASK_LINE) == LINE
    assert set(ASK_CURVATURE) == CURVATURE
    assert public(Curvature) - CURVATURE == {"scaled"}
    assert public(Traits) - TRAITS == {"is_quadratic"}
    for differs in (RESCALED, HUTCHINSON, HOST, PROJECTED, local("exact")):
        members = {key.partition(".")[0] for key in differs}
        assert members <= public(Objective)
        assert {key.partition(".")[2] for key in differs} <= {""} | LINE | CURVATURE | TRAITS


def test_the_contract_stays_small():
    assert len(public(Objective)) <= 16
    assert len(CURVATURE) <= 14
    assert len(TRAITS) <= 18


def test_traits_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        cfgd.Quadratic(np.eye(2), np.ones(2)).traits.label = "another"


# ------------------------------------------------------------------ the shared table

# what a wrapper refuses is tested in test_bad_objectives.py
PAIRS = {
    f"{case}-{name}": (name, case)
    for case in CASES
    for name, wrapper in WRAPPERS.items()
    if wrapper.takes(CASES[case].objective)
}


@functools.cache
def case_answers(case):
    return answers_of(CASES[case].objective, inputs_at(CASES[case].x, jnp))


@pytest.mark.parametrize(("name", "case"), quick(PAIRS, ["smooth-Rescaled"]))
def test_answers_are_those_of_the_wrapped_objective(name, case):
    assert_forwards(WRAPPERS[name], CASES[case].objective, CASES[case].x, case_answers(case))


# an objective without an implementation in NumPy
@pytest.mark.parametrize("case", quick({name: name for name in CASES}, ["smooth"]))
def test_answers_on_the_host_are_numpy_arrays_and_the_same(case):
    """What `host_objective` returns, with and without a factor."""
    objective, x = CASES[case].objective, CASES[case].x
    with jax.enable_x64(True):
        host = host_objective(objective)
        rescaled = host_objective(Rescaled(objective, jnp.asarray(FACTOR)))
    assert isinstance(host, HostObjective) == (objective.on_host() is None)
    assert type(rescaled.objective) is type(host)
    assert isinstance(rescaled.factor, np.generic)
    members = ["evaluate", "line", "hessian_times", "curvature", "traits", "shape", "dimension"]
    answers, at = case_answers(case), inputs_at(x, np)
    found = answers_of(host, at, members)
    for key, answer in found.items():
        if key == "line.values" and isinstance(host, cfgd.ShallowNetwork):
            continue  # computed by JAX; no solver for networks searches along a line
        assert not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(answer)), key
    for key, got in found.items():
        wanted = HOST[key].expected if key in HOST and isinstance(host, HostObjective) else None
        with jax.enable_x64(True):
            want = answers[key] if wanted is None else wanted(answers, objective, at)
        assert_equal(got, want, BY_DIFFERENCES if key == "hessian_times" else TIGHT)
    for key, got in answers_of(rescaled, at, members).items():
        wanted = RESCALED[key].expected if key in RESCALED else None
        with jax.enable_x64(True):
            want = found[key] if wanted is None else wanted(found, objective, at)
        assert_equal(got, want, BY_DIFFERENCES if key == "hessian_times" else TIGHT)
