"""A linear model whose rows are on several processes answers like one with all rows."""

import threading

import jax
import numpy as np
import pytest
from contract import ASK, answers_of, assert_equal, inputs_at

import cfgd
from cfgd.objectives.linear.sharded import ShardedLinearModel, sharded_on_host
from objectives import CASES, LABELS, LINEAR, TIGHT, W0, WEIGHTS, X, Y
from problems import quick

SHARDED = {
    name: case.objective
    for name, case in LINEAR.items()
    if "dense" in name and "custom" not in name
} | {
    "classes": cfgd.LinearModel(X, LABELS + (Y > 1), "multinomial", 0.2, WEIGHTS, intercept=True),
    "zero weight": cfgd.LinearModel(X, Y, "squared", sample_weight=WEIGHTS * (Y > -1)),
}
NOT_TRACED = "sums over processes are not traced; a user holds the LinearModel itself"
UNSHARDED = {
    "gradient": NOT_TRACED,
    "coordinate_slope": NOT_TRACED,
    "coordinate_curvature": NOT_TRACED,
    "coordinate_derivatives": "Auto takes the diagonal of a convex loss from its curvature",
    "raveled": "Auto runs on vectors",
}
PROCESSES = 2


def on_each_process(model, fn):
    """Return [fn(sharded model) of each process]: threads with some rows each, and a sum."""
    barrier, parts, results = threading.Barrier(PROCESSES), [None] * PROCESSES, {}
    rows = model.X.shape[0]

    def total_for(rank):
        def total(part):
            parts[rank] = part
            barrier.wait(timeout=600)
            whole = sum(parts)
            barrier.wait(timeout=600)  # nobody writes before all have read
            return whole

        return total

    def run(rank):
        here = slice(rank * 4, (rank * 4 + 4) if rank < PROCESSES - 1 else rows)
        try:
            results[rank] = fn(ShardedLinearModel(local_rows(model, here), total_for(rank), rows))
        except BaseException as error:
            results[rank] = error
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [result for result in results.values() if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error  # the first cause, not that the other thread waited in vain
    return list(results.values())


def local_rows(model, here):
    """Return the model of some rows."""
    m = model.X.shape[0]

    def cut(leaf):
        is_per_row = isinstance(leaf, np.ndarray) and leaf.ndim > 0 and len(leaf) == m
        return leaf[here] if is_per_row else leaf

    return jax.tree.map(cut, model.on_host())


@pytest.mark.parametrize(
    "case", quick({name: name for name in SHARDED}, ["squared, dense", "classes", "zero weight"])
)
def test_sums_over_processes_are_those_of_all_rows(case):
    model = SHARDED[case]
    x = np.resize(W0, model.dimension)
    members = [member for member in ASK if member not in UNSHARDED]
    want = answers_of(model.on_host(), inputs_at(x, np), members)
    for found in on_each_process(model, lambda f: answers_of(f, inputs_at(x, np), members)):
        assert found.keys() == want.keys()
        for key, got in found.items():
            try:
                assert_equal(got, want[key], TIGHT)
            except AssertionError as error:
                raise AssertionError(key) from error


def test_without_a_sum_the_answers_of_a_process_are_those_of_its_rows():
    """So the test above notices a sum that is missing."""
    model = SHARDED["logistic 0/1, dense, weights, l2"]
    half = ShardedLinearModel(local_rows(model, slice(4)), lambda part: part, 11)
    members = ["value", "evaluate", "line", "hessian_times", "curvature"]
    found, whole = (answers_of(f, inputs_at(W0, np), members) for f in (half, model.on_host()))
    unsummed = {"evaluate", "value", "hessian_times", "line.values", "line.to"}
    unsummed |= {"curvature.times", "curvature.diagonal", "curvature.matrix", "line.slope"}
    for key in unsummed:
        with pytest.raises(AssertionError):
            assert_equal(found[key], whole[key], 1e-3)


def test_sharded_on_host_of_a_model_on_one_process_has_all_rows():
    model = SHARDED["zero weight"]
    host = sharded_on_host(model)
    assert isinstance(host, ShardedLinearModel)
    assert host.X.shape == model.X.shape
    at = inputs_at(W0, np)
    found, want = (answers_of(f, at, ["evaluate", "curvature"]) for f in (host, model.on_host()))
    for key, got in found.items():
        assert_equal(got, want[key], TIGHT)
    assert sharded_on_host(CASES["custom, dense"].objective) is None
