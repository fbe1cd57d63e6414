"""`fractional_gradient` of pytrees, and of many coordinates in chunks."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from directions import CASES, NODES, POINT, TERMINAL, of_wavy, wavy

import cfgd

# Pytrees.

LEAVES = np.split(POINT, [1]), np.split(TERMINAL, [1])  # one coordinate, then three
TREES = {
    "dict": (
        lambda one, three: {"a": one[0], "b": three},
        lambda p: wavy(jnp, [p["a"], *p["b"]]),
    ),
    "tuple": (lambda one, three: (one, three), lambda p: wavy(jnp, [p[0][0], *p[1]])),
    "nested": (
        lambda one, three: {"n": [one.reshape(1, 1), {"m": three[:2]}], "o": three[2:]},
        lambda p: wavy(jnp, [p["n"][0][0, 0], *p["n"][1]["m"], p["o"][0]]),
    ),
    "matrix": (
        lambda one, three: np.concatenate([one, three]).reshape(2, 2),
        lambda p: wavy(jnp, p.reshape(-1)),
    ),
}


def assert_trees_close(got, expected):
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-12, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize(("tree", "f"), TREES.values(), ids=TREES)
def test_pytrees(tree, f):
    x, c = (tree(*leaves) for leaves in LEAVES)
    got = cfgd.fractional_gradient(f, x, c, 0.3, 0.2, NODES)
    expected = tree(*np.split(of_wavy(), [1]))
    assert_trees_close(got, expected)


def test_pytree_with_a_scalar_terminal():
    tree, f = TREES["dict"]
    got = cfgd.fractional_gradient(f, tree(*LEAVES[0]), 0.25, 0.3, 0.2, NODES)
    assert_trees_close(got, tree(*np.split(of_wavy(one_terminal=True), [1])))


# Many coordinates: in chunks.


def test_chunks_give_the_same_direction(monkeypatch):
    """64 pairs of a coordinate and a node, in chunks of 25, of which the last is shorter."""
    unchunked = of_wavy()
    monkeypatch.setattr("cfgd.objectives.base.BATCH_NUMBERS", 25 * 4)
    f = CASES["smooth"].objective
    chunked = cfgd.fractional_gradient(f, POINT, TERMINAL, 0.3, 0.2, NODES)
    np.testing.assert_allclose(chunked, unchunked, rtol=1e-12)


MANY = """
import resource
import jax.numpy as jnp, numpy as np, cfgd

def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MiB

d, alpha, beta = 2000, 0.3, 0.2
a, x = np.linspace(-1.0, 1.0, d), np.linspace(0.5, 2.0, d)
c = x[::-1] - 0.1
before = used()
got = cfgd.fractional_gradient(lambda x: jnp.sum(a * x**3), x, c, alpha, beta, nodes=10)
grown = used() - before
h, m1, m2 = x - c, 1 / (2 - alpha), 2 / ((2 - alpha) * (3 - alpha))  # E[U], E[U^2]
slope = 3 * a * (c**2 + 2 * c * h * m1 + h**2 * m2)
curvature = 6 * a * (c + h * m1)
print(grown, np.abs(got - slope - beta * h * curvature).max())
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_nodes_times_dimension_squared():
    """20,000 copies of 2000 numbers: 250 MiB in chunks, 1.6 GiB at once."""
    ran = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True)
    mebibytes, error = map(float, ran.stdout.split())
    assert error < 1e-12
    assert mebibytes < 768
