"""The cost of a fractional direction, in gradients of the same objective."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import cfgd
from cfgd._core.arrays import cast
from cfgd.apps.bench.speed.measure import ReportRow, at_least, at_most, time_in_turns
from cfgd.apps.data.network_functions import FUNCTIONS
from cfgd.methods.paper.direction import direction, memory_of


def rows() -> Iterator[ReportRow]:
    with jax.enable_x64(True):
        yield from _network()
        yield from _linear_model()
        yield from _sparse()
        yield from _deep()
    yield _memory()


@eqx.filter_jit
def gradients(objective: Any, x: Any, times: int) -> Any:
    """Compute `times` gradients, each at a point that depends on the one before."""
    return jax.lax.fori_loop(0, times, lambda _, x: x - 1e-9 * objective.evaluate(x).gradient, x)


@eqx.filter_jit
def directions(objective: Any, x: Any, c: Any, nodes: int, times: int) -> Any:
    """Compute `times` directions, each at a point that depends on the one before."""
    memory = memory_of(jnp.asarray(0.4, x.dtype), jnp.asarray(0.3, x.dtype), nodes)

    def once(_: Any, x: Any) -> Any:
        return x - 1e-9 * direction(objective, objective.evaluate(x), c, memory)

    return jax.lax.fori_loop(0, times, once, x)


def _cost(objective: Any, x: Any, nodes: int, times: int, exact: Any = None) -> float:
    """Return the time of a direction / the time of a gradient (of `exact` if given)."""
    dtype = np.dtype(np.float64)
    objective, x = cast(objective, dtype), cast(x, dtype)
    reference = objective if exact is None else cast(exact, dtype)
    c = x + 0.1
    seconds = time_in_turns(
        {
            "gradient": lambda: jax.block_until_ready(gradients(reference, x, times)),
            "direction": lambda: jax.block_until_ready(directions(objective, x, c, nodes, times)),
        }
    )
    return seconds["direction"] / seconds["gradient"]


def network(width: int, m: int) -> cfgd.ShallowNetwork:
    z = np.random.default_rng(0).uniform(-1, 1, size=m)
    return cfgd.ShallowNetwork(z, FUNCTIONS["h1"](z), width)


def _network() -> Iterator[ReportRow]:
    f = network(50, 100)
    x = f.init(0)
    what = "network n = 50, m = 100: cost of a direction with"
    yield at_most(f"{what} 10 nodes", _cost(f, x, 10, 200), 25.0, "gradients")
    yield at_most(f"{what} 1 node", _cost(f, x, 1, 500), 4.0, "gradients")

    def run(method: Any) -> Any:
        return lambda: cfgd.minimize(f, x, method, max_iterations=300, tolerance=0.0)

    step = cfgd.NetworkStep()
    seconds = time_in_turns(
        {
            "gd": run(cfgd.GradientDescent(step=step)),
            "at": run(cfgd.AdaptiveTerminal(0.7, gamma=20.0, nodes=10, step=step)),
        },
        repeats=5,
    )
    ratio = seconds["at"] / seconds["gd"]
    yield at_most("... time of an iteration, 10 nodes / gradient descent", ratio, 4.0)


def _linear_model() -> Iterator[ReportRow]:
    m, d, s = 20_000, 200, 5
    random = np.random.default_rng(0)
    X, y = random.normal(size=(m, d)), random.integers(0, 2, size=m)
    f = cfgd.LinearModel(X, y, "logistic", l2=1.0)
    x = random.normal(size=d) / d
    local = cfgd.Local(f, curvature="exact")
    what = "logistic 20,000 x 200"
    yield at_most(
        f"{what}: cost of a direction of Local", _cost(local, x, 1, 10, f), 4.0, "gradients"
    )

    @jax.jit
    def slopes(f: Any, p: Any, t: Any) -> Any:
        """Evaluate the derivative of the loss at m d s numbers."""

        def node(_: Any, p: Any) -> Any:
            return f.loss.derivatives(p, t)[0]

        return jax.lax.fori_loop(0, s, node, p)

    f = cast(f, np.dtype(np.float64))
    point = f.evaluate(cast(x, np.dtype(np.float64)))
    at = jnp.asarray(x) + 0.1 * random.normal(size=(s, d))
    many = eqx.filter_jit(lambda f, point, at: f.coordinate_derivatives(point, at))
    p, t = jnp.asarray(random.normal(size=(m, d))), jnp.asarray(f.y)[:, None]
    seconds = time_in_turns(
        {
            "slopes": lambda: jax.block_until_ready(many(f, point, at)),
            "losses": lambda: jax.block_until_ready(slopes(f, p, t)),
        },
        repeats=5,
    )
    ratio = seconds["slopes"] / seconds["losses"]
    yield at_most(f"{what}: time, slopes at {s} nodes / loss derivatives", ratio, 3.0)


def _sparse() -> Iterator[ReportRow]:
    m, d = 50_000, 1000
    random = np.random.default_rng(0)
    X = scipy.sparse.random(m, d, 0.01, format="csr", random_state=0)
    y = random.normal(size=m)
    v, r = jnp.asarray(random.normal(size=d)), jnp.asarray(random.normal(size=m))
    sparse = cast(cfgd.LeastSquares(X, y).X, np.dtype(np.float64))
    dense = cast(cfgd.LinearModel(X.toarray(), y, "squared").X, np.dtype(np.float64))

    @jax.jit
    def products(X: Any, v: Any, r: Any) -> Any:
        return X.times(v), X.back(r)

    seconds = time_in_turns(
        {
            "dense": lambda: jax.block_until_ready(products(dense, v, r)),
            "sparse": lambda: jax.block_until_ready(products(sparse, v, r)),
        }
    )
    ratio = seconds["dense"] / seconds["sparse"]
    yield at_least("products with X, 50,000 x 1000, 1 % nonzero: time dense / sparse", ratio, 6.0)


def _deep() -> Iterator[ReportRow]:
    """Measure a network with three hidden layers as a pytree."""
    random = np.random.default_rng(0)
    sizes = (8, 64, 64, 64, 1)
    layers = [
        {"w": random.normal(size=(a, b)) / np.sqrt(a), "b": np.zeros(b)}
        for a, b in itertools.pairwise(sizes)
    ]
    z = random.normal(size=(512, 8))
    y = np.sin(z).sum(1)

    def loss(layers: Any) -> Any:
        h = jnp.asarray(z)
        for layer in layers[:-1]:
            h = jnp.tanh(h @ layer["w"] + layer["b"])
        last = layers[-1]
        return jnp.mean(((h @ last["w"] + last["b"])[:, 0] - y) ** 2)

    smooth = cfgd.Smooth(loss)
    local = cfgd.Local(smooth, curvature="hutchinson", key=0)

    def run(objective: Any, method: Any) -> Any:
        return lambda: cfgd.minimize(objective, layers, method, max_iterations=200, tolerance=0.0)

    step = cfgd.FixedStep(0.02)
    seconds = time_in_turns(
        {
            "gd": run(smooth, cfgd.GradientDescent(step=step)),
            "at": run(local, cfgd.AdaptiveTerminal(gamma=-5.0, step=step)),
        },
        repeats=5,
    )
    ratio = seconds["at"] / seconds["gd"]
    what = "3 hidden layers, Hutchinson: iteration time / gradient descent"
    yield at_most(what, ratio, 4.0)


def _memory() -> ReportRow:
    # VmHWM instead of ru_maxrss, which a child process inherits from its parent
    code = (
        "import cfgd, numpy as np, re;"
        "z = np.random.default_rng(0).uniform(-1, 1, size=2000);"
        "f = cfgd.ShallowNetwork(z, np.sin(5 * np.pi * z), 500);"
        "m = cfgd.AdaptiveTerminal(0.7, gamma=20.0, step=cfgd.NetworkStep());"
        "cfgd.minimize(f, f.init(0), m, max_iterations=3);"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    what = "network n = 500, m = 2000, 10 nodes: peak memory of the process"
    return at_most(what, int(done.stdout) / 2**20, 1.0, "GiB")
