"""What processes send one another, counted in the compiled programs of two devices."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cfgd
from cfgd.objectives.linear.sharded import ShardedLinearModel

FLAGS = "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
D = 6
ROWS = 1000  # fewer than any array with a number for each row has


@pytest.fixture(scope="module")
def found():
    script = Path(__file__).parent / "collectives.py"
    env = os.environ | {"XLA_FLAGS": FLAGS, "PYTHONPATH": str(Path(cfgd.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["linear model", "classes", "least squares", "network", "residuals", "smooth"]
)
def test_a_gradient_is_one_sum_of_its_numbers_and_the_value(found, name):
    assert found["devices"] == 2
    d, sent = found[name]
    assert [kind for kind, _ in sent] == ["all-reduce"]
    assert sum(sent[0][1]) == d + 1


@pytest.mark.slow
def test_slopes_are_summed_where_the_rows_are(found):
    """Three nodes: slopes and curvatures of each, and a gradient where the point is."""
    for name in ("slopes", "slopes of the network"):
        assert {kind for kind, _ in found[name]} == {"all-reduce"}
        assert max(sum(sizes) for _, sizes in found[name]) < ROWS
    assert sum(sum(sizes) for _, sizes in found["slopes"]) <= 6 * D + D + 1


@pytest.mark.slow
def test_a_matrix_is_one_sum(found):
    assert [kind for kind, _ in found["matrix"]] == ["all-reduce"]
    assert sum(found["matrix"][0][1]) == D * D


def test_an_evaluation_of_a_linear_model_on_cpus_is_one_sum():
    """Where NumPy sums the rows of each process, count what is summed over processes."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 4)), random.integers(0, 2, 30).astype(float)
    sums = []

    def total(part):
        sums.append(part.size)
        return part

    halves = [
        ShardedLinearModel(cfgd.LinearModel(X[i::2], y[i::2], l2=1.0, intercept=True), total)
        for i in (0, 1)
    ]
    whole = cfgd.LinearModel(X, y, l2=1.0, intercept=True).on_host()
    x = np.linspace(-1, 1, 5)
    points = [half.evaluate(x) for half in halves]
    assert sums == [6, 6]
    penalty = whole.l2 * x
    gradient = points[0].gradient + points[1].gradient - penalty
    np.testing.assert_allclose(gradient, whole.evaluate(x).gradient, 1e-13)
    H = [half.X.gram(np.ones(15), 0 * whole.l2) for half in halves]
    assert sums[2:] == [25, 25]
    np.testing.assert_allclose(sum(H), whole.X.gram(np.ones(30), 0 * whole.l2), 1e-13)


@pytest.mark.slow
def test_an_iteration_of_the_loop_sends_one_gradient(found):
    """With its value; another sum is for the evaluation every 256 iterations.

    A number alone is sent where the value for the history is small enough to have drifted.
    """
    assert {kind for kind, _ in found["loop"]} == {"all-reduce"}
    assert sorted(sum(sizes) for _, sizes in found["loop"]) == [1, D + 1, D + 1]
