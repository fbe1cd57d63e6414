"""The test problems: an objective, an initial point and the minimum for each seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import cfgd
from cfgd.apps.bench.training.images import digits
from cfgd.apps.bench.training.moons import moons
from cfgd.apps.bench.training.problem import TrainingProblem
from cfgd.apps.data.gas import Gas
from cfgd.apps.data.network_functions import FUNCTIONS, SAMPLES, WIDTH
from cfgd.apps.data.random_least_squares import random_least_squares
from cfgd.apps.data.standard_problems import PROBLEMS as STANDARD
from cfgd.objectives.base import Objective

CONDITIONS = (1e1, 1e2, 1e4, 1e6, 1e8)
# Rosenbrock's function and ten others of a few unknowns, without bad scaling by construction
TEST_FUNCTIONS = (
    "Rosenbrock 2",
    "Freudenstein-Roth",
    "Beale",
    "Helical valley",
    "Bard",
    "Box",
    "Powell singular",
    "Wood",
    "Kowalik-Osborne",
    "Trigonometric 10",
    "Broyden tridiagonal 10",
)


class Instance(NamedTuple):
    """The objective, the initial point and the minimum of f, for one seed."""

    objective: Any
    x0: Any
    minimum: float


@dataclasses.dataclass(frozen=True)
class FractionalProblem:
    """A problem of the comparison.

    Parameters
    ----------
    name, group, what
        The name, the group of problems, and a description.
    make
        A function that returns the instance of a seed.
    gradients
        The budget of a run, in gradients (of minibatches if `batch` is given).
    accuracy
        The target: a run has solved the problem if (f - f*) / (f(x0) - f*) is at most this.
    batch
        The number of rows of a minibatch; None for gradients on all data.
    """

    name: str
    group: str
    what: str
    make: Callable[[int], Instance]
    gradients: int
    accuracy: float = 1e-6
    batch: int | None = None

    @property
    def is_single(self) -> bool:
        """Whether the problem is computed in float32."""
        return self.batch is not None


# The exact direction of rules 5 and 16 takes ten quadrature nodes. On all problems but quadratics
# they use the local quadratic model instead: its diagonal costs one gradient for linear models and
# networks, one for each coordinate of the test functions, two Hessian products on minibatches.


def quadratic(condition: float, rotated: bool, seed: int, d: int = 20) -> Instance:
    """Return x'Ax/2 - b'x with eigenvalues spaced geometrically from 1/condition to 1."""
    random = np.random.default_rng(seed)
    eigenvalues = np.logspace(-np.log10(condition), 0, d)
    minimiser, x0 = random.normal(size=d), random.normal(size=d)
    Q = np.linalg.qr(random.normal(size=(d, d)))[0] if rotated else np.eye(d)
    A = (Q * eigenvalues) @ Q.T
    A = (A + A.T) / 2
    b = A @ minimiser
    return Instance(cfgd.Quadratic(A, -b), x0, float(-b @ minimiser / 2))


def random_square(d: int, seed: int) -> Instance:
    """Return the random least-squares problem of the paper's section 4.1; its minimum is 0."""
    data = random_least_squares(seed, d)
    return Instance(cfgd.LeastSquares(data.X, data.y), data.x0, 0.0)


def gas_squares(data: Gas, seed: int) -> Instance:
    """Return the regression on standardised gas data as a quadratic, from a random point."""
    X, y = data.table[:, :-1], data.table[:, -1]
    X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    solution = np.linalg.lstsq(X, y, rcond=None)[0]
    A, b = X.T @ X / len(y), X.T @ y / len(y)
    x0 = np.random.default_rng(seed).normal(size=len(b))
    return Instance(cfgd.Quadratic(A, -b), x0, float(-b @ solution / 2))


def logistic(scales: float, seed: int, m: int = 200, d: int = 20) -> Instance:
    """Return a logistic regression; its columns have standard deviations from 1 to `scales`."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(m, d)) * np.logspace(0, np.log10(scales), d)
    w = random.normal(size=d) / np.logspace(0, np.log10(scales), d)
    y = (random.uniform(size=m) < 1 / (1 + np.exp(-X @ w))).astype(float)
    f = cfgd.LinearModel(X / np.sqrt(m), y, l2=1e-2)
    end = cfgd.minimize(f, np.zeros(d), tolerance=1e-12)
    return Instance(cfgd.Local(f, "exact"), np.zeros(d), end.value)


class OfResiduals(Objective):
    """A standard test function: the sum of its squared residuals."""

    residuals: Callable[[Any], Any] = eqx.field(static=True)

    def value(self, x: Any) -> Any:
        r = self.residuals(x)
        return jnp.sum(r * r)


def test_function(name: str, seed: int) -> Instance:
    """Return a function of Moré, Garbow and Hillstrom, for rules 5 and 16 with a local model."""
    problem = STANDARD[name]
    f = cfgd.Local(OfResiduals(problem.residuals), "exact")
    x0 = problem.x0 + 0.1 * np.random.default_rng(seed).normal(size=problem.x0.size)
    return Instance(f, x0, problem.minima[0])


def network(name: str, seed: int) -> Instance:
    """Return one of the paper's networks: hidden weights N(0, 25), output weights N(0, 0.02)."""
    z = np.linspace(-1, 1, SAMPLES)
    f = cfgd.ShallowNetwork(z, FUNCTIONS[name](z), WIDTH)
    return Instance(cfgd.Local(f, "exact"), f.init(seed, (5.0, 0.02**0.5)), 0.0)


class BatchLoss(Objective):
    """The mean loss over the rows of a training problem, as a function of a flat vector."""

    inputs: Any
    targets: Any
    loss: Callable[..., Any] = eqx.field(static=True)
    unravel: Callable[[Any], Any] = eqx.field(static=True)

    def value(self, x: Any) -> Any:
        return self.loss(self.unravel(x), self.inputs, self.targets)

    def rows(self, rows: Any) -> BatchLoss:
        """Return the loss of these rows."""
        return BatchLoss(self.inputs[rows], self.targets[rows], self.loss, self.unravel)


def classifier(problem: TrainingProblem) -> Callable[[int], Instance]:
    """Return a function that makes the instance of a seed, which sets the initial weights only."""
    _, unravel = ravel_pytree(problem.init(jax.random.key(0)))
    f = BatchLoss(np.asarray(problem.inputs), np.asarray(problem.targets), problem.loss, unravel)

    def make(seed: int) -> Instance:
        return Instance(f, ravel_pytree(problem.init(jax.random.key(seed)))[0], 0.0)

    return make


def problems(quick: bool, gas: Gas | None) -> list[FractionalProblem]:
    """Return the problems; `quick` reduces their number and the budget."""
    found = []
    budget = 300 if quick else 1000

    def add(name: str, group: str, what: str, make: Callable[[int], Instance], **more: Any) -> None:
        found.append(FractionalProblem(name, group, what, make, **{"gradients": budget, **more}))

    for rotated in (False, True):
        for condition in (1e1, 1e4) if quick else CONDITIONS:
            kind = "rotated" if rotated else "aligned"
            axes = "random eigenvectors" if rotated else "eigenvectors along the axes"
            add(
                f"quadratic 1e{round(np.log10(condition))} {kind}",
                "quadratics",
                f"20 variables, condition number {condition:g}, {axes}",
                lambda seed, c=condition, r=rotated: quadratic(c, r, seed),  # type: ignore[misc]
            )
    for d in (20,) if quick else (20, 100):
        add(
            f"random least squares {d}",
            "least squares",
            f"random least squares of the paper's section 4.1, {d} variables, condition number of "
            "at least 1e4",
            lambda seed, d=d: random_square(d, seed),  # type: ignore[misc]
        )
    if gas is not None:
        what = f"linear regression on the standardised gas data ({gas.source})"
        add("gas", "least squares", what, lambda seed: gas_squares(gas, seed))
    for scales in (10.0,) if quick else (1.0, 30.0):
        add(
            f"logistic {scales:g}",
            "logistic",
            "logistic regression, 200 rows, 20 columns with standard deviations from 1 to "
            f"{scales:g}, L2 penalty 0.01",
            lambda seed, s=scales: logistic(s, seed),  # type: ignore[misc]
        )
    for name in TEST_FUNCTIONS[:1] if quick else TEST_FUNCTIONS:
        add(
            name,
            "test functions",
            "test function of Moré, Garbow and Hillstrom, initial point: the published one plus "
            "normal noise of standard deviation 0.1",
            lambda seed, n=name: test_function(n, seed),  # type: ignore[misc]
            accuracy=1e-5,  # the published minima have six digits
        )
    for name in ("h2",) if quick else FUNCTIONS:
        add(
            f"network {name}",
            "networks",
            f"the paper's network fitted to {name}, 150 weights, initial hidden weights from "
            "N(0, 25), output weights from N(0, 0.02)",
            lambda seed, n=name: network(n, seed),  # type: ignore[misc]
            accuracy=1e-2,
        )
    trained = (moons,) if quick else (moons, digits)
    for maker in trained:
        problem = maker(budget)
        add(
            f"{problem.name} by minibatches",
            "minibatches",
            f"{problem.what}; minibatches of {problem.batch} rows",
            classifier(problem),
            accuracy=0.1,
            batch=problem.batch,
            gradients=150 if quick else 600,
        )
    return found
