"""What the network experiments share: a problem, a run that is kept, and its test error."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import cfgd
from cfgd.apps.data.network_functions import ALPHAS, FUNCTIONS, SAMPLES, WIDTH
from cfgd.apps.data.network_starts import FAMILY
from cfgd.apps.reproduce.experiment import Meter, Setting
from cfgd.apps.reproduce.experiments.network_causes import Noise, RandomSign
from cfgd.apps.reproduce.experiments.solving import point, side_by_side, watched

TEST_POINTS, CHUNK = 100_000, 10_000
NODES = 10
# what makes the direction: no memory, the two readings of the formula, and two that are neither
HOWS = ("descent", "exact", "printed", "random sign", "noise")
READINGS = ("exact", "printed")
# h1's are the paper's; of h2 and h3 it names the middle one, the others are ours around it
GAMMAS = {"h1": (20.0, 40.0, 70.0), "h2": (5.0, 10.0, 20.0), "h3": (-100.0, -150.0, -200.0)}
# The middle one stands for the three where the family of starts is run.
GAMMA = {function: gammas[1] for function, gammas in GAMMAS.items()}
# The paper defines its loss as half a sum of squares; its numbers read like a mean of squares.
LOSSES = {"mean": 2 / SAMPLES, "half sum": 1.0}


@dataclasses.dataclass(frozen=True)
class Run:
    """One training: `gamma` and `nodes` are void for gradient descent."""

    function: str
    start: str
    seed: int
    how: str
    gamma: float
    iterations: int
    nodes: int = NODES

    @property
    def work(self) -> float:
        """Of an iteration: the search is the same for all, and each node adds its part."""
        return 0.23 if self.how == "descent" else 0.23 + 0.046 * self.nodes

    def method(self) -> Any:
        step = cfgd.NetworkStep()
        if self.how == "descent":
            return cfgd.GradientDescent(step=step)
        kinds: dict[str, Any] = {"random sign": RandomSign, "noise": Noise}
        kind = kinds.get(self.how, cfgd.AdaptiveTerminal)
        reading = self.how if self.how in READINGS else "printed"
        return kind(
            ALPHAS[self.function], gamma=self.gamma, nodes=self.nodes, step=step, reading=reading
        )


class Curve(NamedTuple):
    """Loss f and test error along a run, and the gradients of an iteration, search included."""

    iteration: Any
    loss: Any
    test_iteration: Any
    test: Any
    cost: Any

    def at(self, iteration: int) -> float:
        """f at an iteration."""
        row = int(np.searchsorted(self.iteration, iteration))
        return float(self.loss[min(row, len(self.iteration) - 1)])

    def at_fraction(self, iteration: float) -> float:
        """f between two rows, along a line in logarithms."""
        return float(np.exp(np.interp(iteration, self.iteration, np.log(self.loss))))


class Problem(NamedTuple):
    """A network to train, the test points, and where it starts."""

    network: cfgd.ShallowNetwork
    z: Any
    y: Any
    x0: Any


def problem(function: str, start: str, seed: int, test_points: int) -> Problem:
    """The training points are of the seed; so is the start."""
    random = np.random.default_rng(seed)
    h = FUNCTIONS[function]
    z = random.uniform(-1, 1, size=SAMPLES)
    network = cfgd.ShallowNetwork(z, h(z), WIDTH)
    test = random.uniform(-1, 1, size=test_points)
    return Problem(network, test, h(test), FAMILY[start].draw(network, seed))


def work_of(runs: list[Run]) -> float:
    return sum(run.work * run.iterations for run in runs)


def train_all(
    meter: Meter, setting: Setting, runs: list[Run], rows: tuple[int, int]
) -> dict[Run, Curve]:
    """The curves of the runs, each kept as soon as it is finished.

    They run in threads and not as one batch: twelve in `cfgd.sweep` take a sixth longer than one
    after the other, whose arrays stay in the cache; and seeds have training points of their own.
    """
    jobs = [partial(train, meter, setting, run, rows) for run in runs]
    return dict(zip(runs, side_by_side(meter, jobs), strict=True))


def train(meter: Meter, setting: Setting, run: Run, rows: tuple[int, int]) -> Curve:
    """Train; `rows` says how often the loss is recorded, and the test error looked at."""
    job = partial(_train, meter, setting, run, rows)
    if setting.kept is None:
        return Curve(**job())
    arrays, was_there = setting.kept.or_run([dataclasses.asdict(run), rows], job)
    if was_there:
        meter.advance(run.work * run.iterations)
    return Curve(**arrays)


def _train(
    meter: Meter, setting: Setting, run: Run, rows: tuple[int, int]
) -> dict[str, np.ndarray]:
    loss_rows, test_rows = rows
    p = problem(run.function, run.start, run.seed, test_points(setting))
    end = watched(
        meter,
        cfgd.minimize,
        p.network,
        p.x0,
        run.method(),
        max_iterations=run.iterations,
        every=max(1, run.iterations // loss_rows),
        record={"x": point},
        weight=run.work,
    )
    history = end.history
    at = np.unique(np.linspace(0, len(history["x"]) - 1, test_rows + 1).astype(int))
    curve = Curve(
        history["iteration"],
        history["value"],
        history["iteration"][at],
        test_errors(p, history["x"][at]),
        float(end.evaluations) / max(1, int(end.iterations)),
    )
    return {name: np.asarray(part, np.float64) for name, part in curve._asdict().items()}


def test_points(setting: Setting) -> int:
    return setting.pick(tiny=1_000, quick=TEST_POINTS, full=TEST_POINTS)


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
