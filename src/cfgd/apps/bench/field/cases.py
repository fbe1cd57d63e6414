"""The problems of `cfgd bench`: data for each seed, and the target of a solved problem."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse

import cfgd
from cfgd.apps.data import gas
from cfgd.apps.data.network_functions import ALPHAS, FUNCTIONS, SAMPLES, STARTS, WIDTH, Start
from cfgd.apps.data.random_least_squares import random_least_squares
from cfgd.apps.data.standard_problems import PROBLEMS

TARGET = 1e-8  # relative error, or gradient norm / initial gradient norm, of a solved problem
# seconds: a solver that takes longer is not run with a smaller tolerance
TIME_LIMIT = 10.0
BUDGET = 8000  # gradients of each solver on a network, for the loss at equal work
# one of the gammas that the paper uses for each network (figure 7)
GAMMAS = {"h1": 20.0, "h2": 10.0, "h3": -150.0}


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A problem with a seed. If `budget` is set, losses at equal work are compared."""

    name: str
    group: str  # least-squares, smooth or networks
    objective: Any
    x0: Any
    fn: Callable[[Any], Any]  # the value; the same object for all seeds if the data are the same
    residuals: Callable[[Any], Any] | None = None  # f = |r|^2 times a constant
    matrix: Any = None
    y: Any = None
    minimiser: Any = None
    paper: Any = None  # the method of the paper with its gamma
    budget: int | None = None
    time_limit: float = TIME_LIMIT

    @property
    def unit(self) -> str:
        """Return the unit in which work is counted."""
        return "products" if self.group == "least-squares" else "gradients"


def least_squares(name: str, X: Any, y: Any, x0: Any, known: bool, gamma: float) -> Case:
    objective = cfgd.LeastSquares(X, y)
    return Case(
        name,
        "least-squares",
        objective,
        x0,
        lambda x: objective.value(x),
        matrix=X,
        y=y,
        minimiser=np.linalg.lstsq(X, y, rcond=None)[0] if known else None,
        paper=cfgd.AdaptiveTerminal(gamma=gamma),
    )


def random_square(d: int, seed: int) -> Case:
    X, y, x0, _ = random_least_squares(seed, d)
    return least_squares(f"random d = {d}", X, y, x0, known=True, gamma=-0.25)


def gas_data(data: gas.Gas, seed: int) -> Case:
    X, y = gas.standardised(data)
    x0 = np.random.default_rng(seed).uniform(-10, 10, X.shape[1])
    return least_squares("gas", X, y, x0, known=True, gamma=-20.0)


def sparse(m: int, d: int, seed: int) -> Case:
    random = np.random.default_rng(seed)
    columns = random.integers(d, size=10 * m)  # ten entries in each row
    entries = random.random(10 * m) * np.geomspace(0.1, 10, d)[columns]
    X = scipy.sparse.csr_array((entries, columns, np.arange(0, 10 * m + 1, 10)), (m, d))
    X.sum_duplicates()
    y, x0 = random.normal(size=m), np.zeros(d)
    return least_squares(f"sparse {m} x {d}", X, y, x0, known=False, gamma=-0.25)


def linear_model(loss: str, m: int, d: int, seed: int) -> Case:
    random = np.random.default_rng(seed)
    X = random.normal(size=(m, d)) * np.geomspace(0.05, 1, d)
    p = X @ random.normal(size=d)
    if loss == "logistic":
        y = (random.random(m) < 1 / (1 + np.exp(-p))).astype(float)
    else:
        y = random.poisson(np.exp(np.clip(p, -3, 3))).astype(float)
    objective = cfgd.LinearModel(X, y, loss, l2=1e-2)
    return Case(f"{loss} {m} x {d}", "smooth", objective, np.zeros(d), lambda x: objective.value(x))


def network(name: str, start: Start, budget: int, seed: int) -> Case:
    objective, value, residuals = _network(name)
    return Case(
        f"{name}, {start.short}",
        "networks",
        objective,
        objective.init(seed, start.scale),
        value,
        residuals,
        paper=cfgd.AdaptiveTerminal(ALPHAS[name], gamma=GAMMAS[name], step=cfgd.NetworkStep()),
        budget=budget,
    )


@functools.cache
def _network(name: str) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    z = np.linspace(-1, 1, SAMPLES)
    objective = cfgd.ShallowNetwork(z, FUNCTIONS[name](z), WIDTH)

    def residuals(x: Any) -> Any:
        return objective.predict(x, z) - jnp.asarray(objective.y)

    return objective, lambda x: objective.value(x), residuals


def smooth(name: str, seed: int) -> Case:
    problem = PROBLEMS[name]
    x0 = problem.start(seed)
    return Case(name, "smooth", cfgd.Smooth(problem), x0, problem, problem.residuals)


CaseMaker = Callable[[int], Case]


def least_squares_makers(quick: bool, data: gas.Gas | None) -> Iterator[tuple[str, CaseMaker]]:
    """Yield names and functions that make the case of a seed; the gas data if available."""
    yield "random d = 20", partial(random_square, 20)
    d = 100 if quick else 500
    yield f"random d = {d}", partial(random_square, d)
    if data is not None:
        yield "gas", partial(gas_data, data)
    m, d = (5000, 500) if quick else (200_000, 20_000)
    yield f"sparse {m} x {d}", partial(sparse, m, d)


def smooth_makers(quick: bool) -> Iterator[tuple[str, CaseMaker]]:
    m, d = (1000, 20) if quick else (20_000, 100)
    for loss in ("logistic", "poisson"):
        yield f"{loss} {m} x {d}", partial(linear_model, loss, m, d)
    names = ("Rosenbrock 2", "Beale", "Wood", "Powell singular") if quick else tuple(PROBLEMS)
    for name in names:
        yield name, partial(smooth, name)


def network_makers() -> Iterator[tuple[str, CaseMaker]]:
    for name in FUNCTIONS:
        for start in STARTS.values():
            yield f"{name}, {start.short}", partial(network, name, start, BUDGET)
