"""Print what compiled programs send; run by test_collectives.py in a process with two devices."""

import json
import re
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import cfgd
from cfgd._core import compiled

M, D = 20_000, 6  # so many rows that sums over them are made in chunks
SENT = re.compile(
    r"= (.*?) (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("
)


def sent(text):
    """Return of each collective its kind, and how many numbers it has of each shape."""
    found = []
    for shapes, kind in SENT.findall(text):
        sizes = [
            int(np.prod([int(n) for n in shape.split(",") if n]))
            for shape in re.findall(r"[a-z]+[0-9]*\[([0-9,]*)\]", shapes)
        ]
        found.append([kind, sizes])
    return found


def main():
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    by_rows = NamedSharding(mesh, PartitionSpec("rows"))
    random = np.random.default_rng(0)
    found = {"devices": len(jax.devices())}
    with jax.enable_x64(True):
        X, y = (
            jax.device_put(array, by_rows)
            for array in (random.normal(size=(M, D)), random.integers(0, 2, M).astype(float))
        )
        f = cfgd.LinearModel(X, y)
        network = cfgd.ShallowNetwork(X, y, 2)
        objectives = {
            "linear model": f,
            "classes": cfgd.LinearModel(X, y, "multinomial", intercept=True),
            "least squares": cfgd.LeastSquares(X, y),
            "network": network,
            "residuals": cfgd.Residuals(lambda x, X, y: X @ x - y, args=(X, y)),
            "smooth": cfgd.Smooth(lambda x, X, y: jnp.sum(jnp.cosh(X @ x - y)), args=(X, y)),
        }
        for name, objective in objectives.items():
            x = np.zeros(objective.dimension or D)
            at = eqx.filter_jit(lambda f, x: (f.evaluate(x).value, f.evaluate(x).gradient))
            found[name] = [x.size, sent(at.lower(objective, x).compile().compiled.as_text())]

        def slopes(objective):
            x = np.zeros(objective.dimension)
            at = eqx.filter_jit(lambda f, x, t: f.coordinate_derivatives(f.evaluate(x), t))
            return sent(at.lower(objective, x, np.ones((3, x.size))).compile().compiled.as_text())

        found["slopes"] = slopes(f)
        found["slopes of the network"] = slopes(network)
        matrix = eqx.filter_jit(lambda f, x: f.curvature(f.evaluate(x)).matrix())
        found["matrix"] = sent(matrix.lower(f, np.zeros(D)).compile().compiled.as_text())
        found["loop"] = loop(f)
    print(json.dumps(found))


def loop(f):
    """Return what the loop of a method sends that takes one gradient in an iteration."""
    texts = []
    call = compiled._Program.__call__

    def recording(self, *args):
        if self.fn.__name__ == "chunk" and not texts:
            texts.append(self.outermost.lower(*args).compile().as_text())
        return call(self, *args)

    compiled._Program.__call__ = recording
    method = cfgd.GradientDescent(step=cfgd.FixedStep(1e-5))
    cfgd.minimize(f, np.zeros(D), method, max_iterations=3, tolerance=0.0)
    return sent(texts[0])


if __name__ == "__main__":
    sys.exit(main())
