"""Training runs of the paper's networks: by its methods, by variants of them, and by other solvers.

The variants separate the possible causes of an effect: each differs from
`AdaptiveTerminal(reading="printed")` in one respect and uses the same step search. The other
solvers, with which the paper does not compare, show what its 1e5 iterations cost: `Auto`, and
SciPy's L-BFGS-B and least squares by trust regions, both with exact derivatives.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import cfgd
from cfgd._core.types import Vector
from cfgd.apps.data.network_functions import ALPHAS, FUNCTIONS, SAMPLES, WIDTH
from cfgd.apps.data.network_starts import FAMILY
from cfgd.apps.reproduce.experiment import Meter, Setting
from cfgd.apps.reproduce.experiments.solving import identity, run_in_threads, solve_with_progress
from cfgd.methods.paper.direction import CaputoMemory, direction
from cfgd.methods.paper.fractional import FractionalState
from cfgd.objectives.base import Objective

TEST_POINTS, CHUNK = 100_000, 10_000
NODES = 10
# how the direction is made: without memory, by the two readings of the formula, by two variants
DIRECTIONS = ("descent", "exact", "printed", "random sign", "noise")
READINGS = ("exact", "printed")
# The gammas of h1 are the paper's; of h2 and h3 it names the middle one, the others are ours.
GAMMAS = {"h1": (20.0, 40.0, 70.0), "h2": (5.0, 10.0, 20.0), "h3": (-100.0, -150.0, -200.0)}
# The middle one represents the three where the family of starts is run.
GAMMA = {function: gammas[1] for function, gammas in GAMMAS.items()}
# The paper defines its loss as half a sum of squares; its numbers look like a mean of squares.
LOSSES = {"mean": 2 / SAMPLES, "half sum": 1.0}


# ---------------------------------------------------------------------- variants of the direction


def _iteration_key(state: FractionalState) -> jax.Array:
    """Return a random key that depends on the iteration only, so that a run can be repeated."""
    return jax.random.fold_in(jax.random.key(0), state.k)


class RandomSign(cfgd.AdaptiveTerminal):
    """The adaptive terminal with a random sign in place of that of x_j - c_j.

    Nodes are c + u s |x - c| and the last term is beta s |x - c|, with random s_j = +1 or -1.
    In the exact formula s_j is the sign of x_j - c_j, in the printed one +1.
    """

    def direction_at(
        self, objective: Objective, state: FractionalState, c: Vector, memory: CaputoMemory
    ) -> Vector:
        x = state.evaluation.x
        sign = jax.random.rademacher(_iteration_key(state), x.shape, x.dtype)
        u, w = (part[:, None] if part.ndim == 1 else part for part in memory.nodes)
        length = sign * jnp.abs(x - c)
        slopes, curvatures = objective.coordinate_derivatives(state.evaluation, c + u * length)
        return jnp.sum(w * slopes, 0) + memory.beta * length * jnp.sum(w * curvatures, 0)


class Noise(cfgd.AdaptiveTerminal):
    """The gradient plus white noise with the norm of what the printed formula adds to it.

    The norms are equal in each layer, because the layers have terms of different sizes.
    """

    def direction_at(
        self, objective: Objective, state: FractionalState, c: Vector, memory: CaputoMemory
    ) -> Vector:
        g = state.evaluation.gradient
        added = direction(objective, state.evaluation, c, memory, self.reading) - g
        noise = jax.random.normal(_iteration_key(state), g.shape, g.dtype)
        layers = [slice(objective.hidden), slice(objective.hidden, None)]
        parts = [
            noise[layer] * jnp.linalg.norm(added[layer]) / jnp.linalg.norm(noise[layer])
            for layer in layers
        ]
        return g + jnp.concatenate(parts)


# ---------------------------------------------------------------------- training runs


@dataclasses.dataclass(frozen=True)
class TrainingRun:
    """One training run; `gamma` and `nodes` have no effect in gradient descent."""

    function: str
    start: str
    seed: int
    how: str  # one of `DIRECTIONS`
    gamma: float
    iterations: int
    nodes: int = NODES

    @property
    def work(self) -> float:
        """Return the measured work of an iteration: the step search, and a part for each node."""
        return 0.23 if self.how == "descent" else 0.23 + 0.046 * self.nodes

    def method(self) -> Any:
        """Return the method of cfgd that makes this run."""
        step = cfgd.NetworkStep()
        if self.how == "descent":
            return cfgd.GradientDescent(step=step)
        variants: dict[str, Any] = {"random sign": RandomSign, "noise": Noise}
        kind = variants.get(self.how, cfgd.AdaptiveTerminal)
        reading = self.how if self.how in READINGS else "printed"
        return kind(
            ALPHAS[self.function], gamma=self.gamma, nodes=self.nodes, step=step, reading=reading
        )


class Curve(NamedTuple):
    """Loss f and test error of a run, and the gradients of an iteration including the search."""

    iteration: Any
    loss: Any
    test_iteration: Any
    test: Any
    cost: Any

    def at(self, iteration: int) -> float:
        """Return f at a recorded iteration."""
        row = int(np.searchsorted(self.iteration, iteration))
        return float(self.loss[min(row, len(self.iteration) - 1)])

    def interpolate(self, iteration: float) -> float:
        """Return f between two recorded iterations, linear in log f."""
        return float(np.exp(np.interp(iteration, self.iteration, np.log(self.loss))))


def is_curve(arrays: dict[str, np.ndarray]) -> bool:
    """Return whether the arrays of a file are those of a curve."""
    if arrays.keys() != set(Curve._fields) or not all(
        np.isfinite(a).all() for a in arrays.values()
    ):
        return False
    iteration, loss, test_iteration, test, cost = (arrays[name].shape for name in Curve._fields)
    are_vectors = len(iteration) == len(test_iteration) == 1 and 0 not in iteration + test_iteration
    return are_vectors and loss == iteration and test == test_iteration and cost == ()


class NetworkProblem(NamedTuple):
    """A network to train, the test points, and the initial weights."""

    network: cfgd.ShallowNetwork
    z: Any
    y: Any
    x0: Any


def make_problem(function: str, start: str, seed: int, test_points: int) -> NetworkProblem:
    """Return the problem of a seed, which decides the training points and the initial weights."""
    random = np.random.default_rng(seed)
    h = FUNCTIONS[function]
    z = random.uniform(-1, 1, size=SAMPLES)
    network = cfgd.ShallowNetwork(z, h(z), WIDTH)
    test = random.uniform(-1, 1, size=test_points)
    return NetworkProblem(network, test, h(test), FAMILY[start].draw(network, seed))


def total_work(runs: list[TrainingRun]) -> float:
    return sum(run.work * run.iterations for run in runs)


def train_all(
    meter: Meter, setting: Setting, runs: list[TrainingRun], rows: tuple[int, int]
) -> dict[TrainingRun, Curve]:
    """Return the curves of the runs; each is cached as soon as it is finished.

    They run in threads and not as one batch: twelve runs in `cfgd.sweep` take a sixth longer than
    one after the other, because the arrays of one run stay in the cache of the processor; and the
    seeds have different training points.
    """
    jobs = [partial(train, meter, setting, run, rows) for run in runs]
    return dict(zip(runs, run_in_threads(meter, jobs), strict=True))


def train(meter: Meter, setting: Setting, run: TrainingRun, rows: tuple[int, int]) -> Curve:
    """Train, or read the cached run; `rows` is how often loss and test error are recorded."""
    job = partial(_train, meter, setting, run, rows)
    if setting.run_cache is None:
        return Curve(**job())
    arrays, was_cached = setting.run_cache.get_or_run(
        [dataclasses.asdict(run), rows], job, is_curve
    )
    if was_cached:
        meter.advance(run.work * run.iterations)
    return Curve(**arrays)


def _train(
    meter: Meter, setting: Setting, run: TrainingRun, rows: tuple[int, int]
) -> dict[str, np.ndarray]:
    loss_rows, test_rows = rows
    problem = make_problem(run.function, run.start, run.seed, test_points(setting))
    solution = solve_with_progress(
        meter,
        cfgd.minimize,
        problem.network,
        problem.x0,
        run.method(),
        max_iterations=run.iterations,
        every=max(1, run.iterations // loss_rows),
        record={"x": identity},
        weight=run.work,
    )
    history = solution.history
    tested = np.unique(np.linspace(0, len(history["x"]) - 1, test_rows + 1).astype(int))
    curve = Curve(
        history["iteration"],
        history["value"],
        history["iteration"][tested],
        test_errors(problem, history["x"][tested]),
        float(solution.evaluations) / max(1, int(solution.iterations)),
    )
    return {name: np.asarray(part, np.float64) for name, part in curve._asdict().items()}


def test_points(setting: Setting) -> int:
    """Return the number of test points."""
    return setting.pick(tiny=1_000, quick=TEST_POINTS, full=TEST_POINTS)


def test_errors(problem: NetworkProblem, weights: Any) -> Any:
    """Return the mean squared test error for each of the weights, in chunks of test points."""
    with jax.enable_x64(True):
        size = min(CHUNK, len(problem.z))
        z, y = problem.z.reshape(-1, size), problem.y.reshape(-1, size)
        return np.array([_test_error(problem.network, jnp.asarray(x), z, y) for x in weights])


@jax.jit
def _test_error(network: Any, x: Any, z: Any, y: Any) -> Any:
    def chunk_error(chunk: Any) -> Any:
        z, y = chunk
        misfit = network.predict(x, z) - y
        return jnp.mean(misfit * misfit)

    return jnp.mean(jax.lax.map(chunk_error, (z, y)))


# ---------------------------------------------------------------------- other solvers

AUTO, LBFGS, TRUST_REGION = "Auto", "L-BFGS-B", "least squares (trf)"
SCIPY_SOLVERS = (LBFGS, TRUST_REGION)
# iterations in full size: one or two seconds each, so that all solvers take minutes at most
SOLVER_ITERATIONS = {AUTO: 500, LBFGS: 3_000, TRUST_REGION: 150}
SOLVER_WORK = 4_000.0  # of one solver, in the units of the meter


# with the network as an argument, so that all networks share one compiled program
@eqx.filter_jit
def _value_and_gradient(network: Any, x: Any) -> Any:
    return network.value(x), jax.grad(network.value)(x)


@eqx.filter_jit
def _residuals(network: Any, x: Any) -> Any:
    return network.predict(x, network.z[:, :-1]) - network.y


@eqx.filter_jit
def _jacobian(network: Any, x: Any) -> Any:
    return jax.jacrev(lambda x: _residuals(network, x))(x)


# Each solver returns f at the end and the gradients that it took.


def auto(problem: NetworkProblem, iterations: int) -> tuple[float, float]:
    solution = cfgd.minimize(problem.network, problem.x0, max_iterations=iterations, tolerance=0.0)
    return float(solution.value), float(solution.evaluations)


def lbfgs(problem: NetworkProblem, iterations: int) -> tuple[float, float]:
    def value_and_gradient(x: Any) -> tuple[float, np.ndarray]:
        value, gradient = _value_and_gradient(problem.network, jnp.asarray(x))
        return float(value), np.asarray(gradient)

    with jax.enable_x64(True):
        result = scipy.optimize.minimize(
            value_and_gradient,
            problem.x0,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": iterations, "maxfun": iterations, "ftol": 0.0, "gtol": 0.0},
        )
    return float(result.fun), float(result.nfev)


def trust_region(problem: NetworkProblem, iterations: int) -> tuple[float, float]:
    with jax.enable_x64(True):
        result = scipy.optimize.least_squares(
            lambda x: np.asarray(_residuals(problem.network, jnp.asarray(x))),
            problem.x0,
            lambda x: np.asarray(_jacobian(problem.network, jnp.asarray(x))),
            method="trf",
            max_nfev=iterations,
            ftol=1e-15,
            xtol=1e-15,
            gtol=1e-15,
        )
    # residuals cost half a gradient; the Jacobian of this network costs as much as a gradient
    return float(result.cost), 0.5 * result.nfev + result.njev


SOLVERS: dict[str, Callable[[NetworkProblem, int], tuple[float, float]]] = {
    AUTO: auto,
    LBFGS: lbfgs,
    TRUST_REGION: trust_region,
}

# (f, gradients, seconds) by (function, solver, seed)
SolverResults = dict[tuple[str, str, int], np.ndarray]


def solve_all(
    meter: Meter, setting: Setting, functions: list[str], start: str, seeds: range
) -> SolverResults:
    """Run the other solvers one after the other, so that their seconds can be compared."""
    share = setting.pick(tiny=0.02, quick=0.2, full=1.0)
    results = {}
    for function in functions:
        for seed in seeds:
            for name in SOLVERS:
                if meter.stopped:
                    raise KeyboardInterrupt
                iterations = int(share * SOLVER_ITERATIONS[name])
                job = partial(_solve, function, start, seed, name, iterations)
                cache, key = setting.run_cache, ["solver", function, start, seed, name, iterations]
                arrays = job() if cache is None else cache.get_or_run(key, job, is_result)[0]
                results[function, name, seed] = arrays["result"]
                meter.advance(SOLVER_WORK)
    return results


def _solve(
    function: str, start: str, seed: int, name: str, iterations: int
) -> dict[str, np.ndarray]:
    problem = make_problem(function, start, seed, 10)
    began = time.perf_counter()
    value, gradients = SOLVERS[name](problem, iterations)
    return {"result": np.array([value, gradients, time.perf_counter() - began])}


def is_result(arrays: dict[str, np.ndarray]) -> bool:
    """Return whether the arrays of a file are those of `_solve`."""
    return arrays.keys() == {"result"} and arrays["result"].shape == (3,)


def best_scipy_solver(results: SolverResults) -> str:
    """Return the solver of SciPy with the least median loss over functions and seeds."""

    def median_loss(name: str) -> float:
        return float(np.median([r[0] for (_, solver, _), r in results.items() if solver == name]))

    return min(SCIPY_SOLVERS, key=median_loss)
