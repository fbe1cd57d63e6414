"""What the two network experiments share: a problem, a run and its test error."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.data.network_functions import ALPHAS, FUNCTIONS, SAMPLES, STARTS, WIDTH
from cfgd.reproduce.experiment import Meter
from cfgd.reproduce.experiments.solving import point, watched
from cfgd.reproduce.report.drawing import decades, line

TEST_POINTS, CHUNK = 100_000, 10_000


class Problem(NamedTuple):
    """A network to train, the test points, and where it starts."""

    network: cfgd.ShallowNetwork
    z: Any
    y: Any
    x0: Any


class Curve(NamedTuple):
    """Training loss and test error at the recorded iterations, of which the latter has fewer."""

    iteration: Any
    loss: Any
    test_iteration: Any
    test: Any


def problem(function: str, start: str, seed: int, test_points: int) -> Problem:
    """The training points are of the seed; so is the start."""
    random = np.random.default_rng(seed)
    h = FUNCTIONS[function]
    z = random.uniform(-1, 1, size=SAMPLES)
    network = cfgd.ShallowNetwork(z, h(z), WIDTH)
    test = random.uniform(-1, 1, size=test_points)
    return Problem(network, test, h(test), network.init(seed, STARTS[start].scale))


def train(
    meter: Meter,
    problem: Problem,
    method: Any,
    iterations: int,
    rows: tuple[int, int],
    weight: float = 1.0,
) -> Curve:
    """Train; `rows` says how often the loss is recorded, and the test error looked at."""
    loss_rows, test_rows = rows
    end = watched(
        meter,
        cfgd.minimize,
        problem.network,
        problem.x0,
        method,
        max_iterations=iterations,
        every=max(1, iterations // loss_rows),
        record={"x": point},
        weight=weight,
    )
    history = end.history
    at = np.unique(np.linspace(0, len(history["x"]) - 1, test_rows + 1).astype(int))
    return Curve(
        history["iteration"],
        history["value"],
        history["iteration"][at],
        test_errors(problem, history["x"][at]),
    )


def fractional(function: str, gamma: float, nodes: int = 10) -> Any:
    return cfgd.AdaptiveTerminal(
        ALPHAS[function], gamma=gamma, nodes=nodes, step=cfgd.NetworkStep()
    )


def descent() -> Any:
    return cfgd.GradientDescent(step=cfgd.NetworkStep())


def test_errors(problem: Problem, points: Any) -> Any:
    """The mean squared error at each of the points, a chunk of test points at a time."""
    with jax.enable_x64(True):
        size = min(CHUNK, len(problem.z))
        z, y = problem.z.reshape(-1, size), problem.y.reshape(-1, size)
        return np.array([_test_error(problem.network, jnp.asarray(x), z, y) for x in points])


@jax.jit
def _test_error(network: Any, x: Any, z: Any, y: Any) -> Any:
    def part(pair: Any) -> Any:
        z, y = pair
        misfit = network.predict(x, z) - y
        return jnp.mean(misfit * misfit)

    return jnp.mean(jax.lax.map(part, (z, y)))


def first_at(curve: Curve, iteration: int) -> int:
    """The row of an iteration."""
    row = int(np.searchsorted(curve.iteration, iteration))
    return min(row, len(curve.iteration) - 1)


def losses(axis: Any, one: Curve, hue: Any, label: str) -> None:
    """A run's training loss as a full line and its test error as a dashed one."""
    line(axis, one.iteration, one.loss, hue, label=label)
    line(axis, one.test_iteration, one.test, hue, linestyle="--")


def name_losses(axis: Any) -> None:
    """Say what the two kinds of lines are."""
    line(axis, [], [], "ink", linestyle="--", label="test error")
    decades(axis, "training loss, test error")
