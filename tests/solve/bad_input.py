"""Bad input is refused with one sentence, before any iteration. The tables hold whole messages."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd import AdaptiveTerminal, GradientDescent, Quadratic, Stage
from cfgd._core.compiled import bind

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]])
F = Quadratic(A, np.array([1.0, -2.0, 0.5]))
X0 = np.array([1.0, -2.0, 3.0])
TREE = {"a": np.array([1.0, 2.0]), "b": np.array(0.5)}
GD = GradientDescent()
STAGE = Stage(3, gamma=0.1)
STEPS = "ExactStep(), FixedStep(eta), GridStep(), ArmijoStep(), NetworkStep()"


def tree_function(p):
    return jnp.sum(p["a"] ** 2) + p["b"] ** 2


def run(f=F, x0=X0, method=GD, **options):
    """Return a function that calls `minimize`."""
    return lambda: cfgd.minimize(f, x0, method, **options)


def sweep(methods, f=F, x0=X0, **options):
    return lambda: cfgd.sweep(f, x0, methods, **options)


def lagged(*args, **numbers):
    return lambda: AdaptiveTerminal(*args, **numbers)


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """Fail if an iteration is made before the input is refused."""

    def chunk(*args):
        raise AssertionError("an iteration was made")

    def guarded(fn, *parts):
        return chunk if fn.__name__ == "chunk" else bind(fn, *parts)

    monkeypatch.setattr("cfgd.solve.compiled_loop.bind", guarded)
    monkeypatch.setattr("cfgd.solve.host_loop.HostLoop.run", chunk)


def of_parts(**parts):
    """Join tables; the name of a row begins with the name of its table."""
    return {f"{part}: {name}": row for part, rows in parts.items() for name, row in rows.items()}


def refused(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$") as raised:
        make()
    assert type(raised.value) is ValueError
    assert message.count(". ") == 0  # one sentence
    assert "\n" not in message
