"""Functions that JAX cannot trace, and calls under jit, vmap and grad, are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from inputs import J0, X0, X, Y, bowl, run

import cfgd
from cfgd import AdaptiveTerminal, GradientDescent, LinearModel

# some arguments have types that annotations refuse
pytestmark = pytest.mark.usefixtures("unchecked")


def in_numpy(x):
    return float(np.linalg.norm(x))


def with_if(x):
    return x[0] if x[0] > 0 else -x[0]


def with_float(x):
    return float(x[0]) ** 2


def with_places(x):
    return jnp.sum(x[x > 0])


class Own(cfgd.Objective):
    def value(self, x):
        return with_if(x)


class OwnStep(cfgd.methods.paper.step.StepRule):
    def choose(self, line, memory):
        return cfgd.methods.paper.step.Chosen(0.1 if line.slope > 0 else 0.0)


ARRAY, BOOL = jax.errors.TracerArrayConversionError, jax.errors.TracerBoolConversionError
FLOAT, PLACES = jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError
IN_JAX = "must be written in JAX (jax.numpy for NumPy, jnp.where for `if`, no float())"
OR_EXTERNAL = f"`minimize(objective=...)` {IN_JAX} or be a cfgd.External(value, gradient)"
KNOWN = (
    "must be called with concrete numbers, outside of jit, vmap and grad (for many starts or "
    "settings there is `sweep`), and with rules that are written in JAX"
)


def solved(x0, c=0.0, gamma=-0.25, **options):
    method = AdaptiveTerminal(gamma=gamma)
    return cfgd.minimize(lambda x: bowl(x) + jnp.sum(c * x), x0, method, **options).value


def swept(gamma):
    return cfgd.sweep(bowl, X0, AdaptiveTerminal(gamma=gamma)).value


UNKNOWN = {
    "NumPy": (run(in_numpy), f"{OR_EXTERNAL}, got a TracerArrayConversionError.", ARRAY),
    "if": (run(with_if), f"{OR_EXTERNAL}, got a TracerBoolConversionError.", BOOL),
    "float()": (run(with_float), f"{OR_EXTERNAL}, got a ConcretizationTypeError.", FLOAT),
    "places": (run(with_places), f"{OR_EXTERNAL}, got a NonConcreteBooleanIndexError.", PLACES),
    "of a pytree": (
        run(lambda p: with_if(p["a"]), {"a": X0}),
        f"{OR_EXTERNAL}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "an own objective": (
        run(Own()),
        f"`minimize(objective=...)` {IN_JAX}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "a gradient": (
        lambda: cfgd.Smooth(in_numpy).gradient(X0),
        f"`Smooth(fn=...)` {IN_JAX}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "a curvature": (
        lambda: Own().coordinate_curvature(X0, X0),
        f"`Own(value=...)` {IN_JAX}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "a fractional gradient": (
        lambda: cfgd.fractional_gradient(with_if, X0, 0.0, 0.5, 0.0),
        f"`fractional_gradient(objective=...)` {IN_JAX}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "a Caputo derivative": (
        lambda: cfgd.caputo(lambda t: float(t), 0.5, 0.0)(1.0),
        f"`caputo(f=...)` {IN_JAX}, got a ConcretizationTypeError.",
        FLOAT,
    ),
    "a record": (
        run(record={"a": with_float}),
        f"`minimize(record['a']=...)` {IN_JAX}, got a ConcretizationTypeError.",
        FLOAT,
    ),
    "a loss": (
        lambda: LinearModel(X, Y, lambda p, y: p if y > 0 else -p),
        f"`LinearModel(loss=...)` {IN_JAX}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "an activation": (
        lambda: cfgd.ShallowNetwork(Y, Y, 2, np.tanh),
        f"`ShallowNetwork(activation=...)` {IN_JAX}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "a rule": (
        run(method=GradientDescent(OwnStep())),
        f"`minimize` {KNOWN}, got a TracerBoolConversionError.",
        BOOL,
    ),
    "x0 in jit": (
        lambda: jax.jit(solved)(J0),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "nothing of jit's": (
        lambda: jax.jit(lambda s: s + solved(X0))(1.0),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "x0 in vmap": (
        lambda: jax.vmap(solved)(jnp.stack([J0, J0])),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "x0 in grad": (
        lambda: jax.grad(solved)(J0),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "the function in grad": (
        lambda: jax.grad(lambda c: solved(X0, c))(0.5),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "the method in jit": (
        lambda: jax.jit(lambda gamma: solved(X0, gamma=gamma))(-0.5),
        f"`minimize` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
    "a keyword in jit": (
        lambda: jax.jit(lambda tolerance: solved(X0, tolerance=tolerance))(1e-3),
        f"`minimize` {KNOWN}, got a ConcretizationTypeError.",
        FLOAT,
    ),
    "a sweep in jit": (
        lambda: jax.jit(swept)(jnp.array([0.1, 0.2])),
        f"`sweep` {KNOWN}, got a TracerArrayConversionError.",
        ARRAY,
    ),
}


@pytest.mark.parametrize(("make", "message", "cause"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_values(make, message, cause):
    with pytest.raises(ValueError, match="must be") as raised:
        make()
    assert type(raised.value) is ValueError
    assert str(raised.value) == message  # `match` would see the notes that jit adds
    assert isinstance(raised.value.__cause__, cause)
