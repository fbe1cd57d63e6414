"""Bad keywords and bad settings of sweeps are refused before any iteration."""

import jax.numpy as jnp
import numpy as np
import pytest
from bad_input import (  # noqa: F401 - no_work is a fixture
    GD,
    no_work,
    of_parts,
    refused,
    run,
    sweep,
)

import cfgd
from cfgd import AdaptiveTerminal, FixedStep, GradientDescent

# these are for users without a type checker
pytestmark = pytest.mark.usefixtures("unchecked")


MAPPING = "`minimize(record=...)` must be a mapping of names to functions of x"
KEYWORDS = {
    "max_iterations 0": (
        run(max_iterations=0),
        "`minimize(max_iterations=...)` must be an integer of at least 1, got 0.",
    ),
    "max_iterations negative": (
        sweep(GD, max_iterations=-3),
        "`sweep(max_iterations=...)` must be an integer of at least 1, got -3.",
    ),
    "max_iterations 1e4": (
        run(max_iterations=1e4),
        "`minimize(max_iterations=...)` must be an integer of at least 1, got 10000.0.",
    ),
    "every 0": (
        run(every=0),
        "`minimize(every=...)` must be an integer of at least 1, got 0.",
    ),
    "tolerance negative": (
        run(tolerance=-1e-8),
        "`minimize(tolerance=...)` must be a number of at least 0, got -1e-08.",
    ),
    "tolerance NaN": (
        run(tolerance=np.nan),
        "`minimize(tolerance=...)` must be finite, got nan.",
    ),
    "tolerance a string": (
        run(tolerance="tight"),
        "`minimize(tolerance=...)` must be a number of at least 0, got 'tight'.",
    ),
    "tolerance a vector": (
        run(tolerance=[1e-8, 1e-9]),
        "`minimize(tolerance=...)` must be one number, got shape (2,).",
    ),
    "time_limit 0": (
        run(time_limit=0),
        "`minimize(time_limit=...)` must be positive, got 0.0.",
    ),
    "time_limit a string": (
        run(time_limit="3 s"),
        "`minimize(time_limit=...)` must be positive, got '3 s'.",
    ),
    "record a list": (run(record=[1]), f"{MAPPING}, got [1]."),
    "record an empty list": (run(record=[]), f"{MAPPING}, got []."),
    "record a function": (run(record=len), f"{MAPPING}, got <built-in function len>."),
    "record of a number": (
        run(record={"error": 3}),
        "`minimize(record['error']=...)` must be a function of x or the name of a number "
        "of the method, got 3.",
    ),
    "record of a number that the method does not have": (
        run(record={"step": "length"}),
        "`minimize(record=...)` must name a number of the method (k, eta), got 'length'.",
    ),
    "record under a number": (run(record={3: len}), f"{MAPPING}, got the name 3."),
    "record under a name that is taken": (
        run(record={"value": len}),
        "`minimize(record=...)` must use other names than 'iteration', 'value', 'gradient_norm', "
        "got 'value'.",
    ),
    "callback": (
        run(callback=3),
        "`minimize(callback=...)` must be a function, got 3.",
    ),
    "method a string": (
        run(method="GradientDescent"),
        "`minimize(method=...)` must be a method of cfgd such as Auto(), the default, "
        "got 'GradientDescent'.",
    ),
    "method a class": (
        run(method=GradientDescent),
        "`minimize(method=...)` must be a method of cfgd such as Auto(), the default, "
        "got <class 'cfgd.methods.paper.presets.GradientDescent'>.",
    ),
    "method a step": (
        run(method=0.1),
        "`minimize(method=...)` must be a method of cfgd such as Auto(), the default, got 0.1.",
    ),
}

ONE = "`sweep(methods=...)` must be settings of one and the same method"
SWEEPS = {
    "of nothing": (sweep([]), f"{ONE}, got an empty list."),
    "of a string": (
        sweep("GradientDescent"),
        "`sweep(methods=...)` must be a method or a list of settings, got 'GradientDescent'.",
    ),
    "of strings": (sweep(["GradientDescent"]), f"{ONE}, got str."),
    "of different methods": (
        sweep([AdaptiveTerminal(gamma=0.1), GD]),
        f"{ONE}, got AdaptiveTerminal, GradientDescent.",
    ),
    "of different lags": (
        sweep([AdaptiveTerminal(gamma=0.1), AdaptiveTerminal(gamma=0.1, lag=2)]),
        f"{ONE}, got AdaptiveTerminal with different lag, nodes, past, reading, stages or step.",
    ),
    "of different shapes": (
        sweep([AdaptiveTerminal(gamma=0.1), AdaptiveTerminal(gamma=[0.1, 0.2, 0.3])]),
        f"{ONE}, got gamma of shapes () and (3,).",
    ),
    "of fields with different lengths": (
        sweep(AdaptiveTerminal(gamma=[0.1, 0.2, 0.3], step=FixedStep([0.1, 0.2]))),
        "`sweep(methods=...)` must have fields with one common leading length, "
        "got gamma: 3, eta: 2.",
    ),
    "of a field that does not fit x0": (
        sweep(AdaptiveTerminal(gamma=np.ones((4, 2)))),
        "`AdaptiveTerminal(gamma=...)` must be a number or have shape (3,), got shape (2,).",
    ),
}

TABLE = of_parts(keyword=KEYWORDS, sweep=SWEEPS)


@pytest.mark.parametrize(("make", "message"), TABLE.values(), ids=TABLE)
def test_message(make, message):
    refused(make, message)


UNKNOWN = {
    "maxiter": "`minimize` has no argument `maxiter`: `max_iterations=` limits the iterations.",
    "jac": "`minimize` has no argument `jac`: leave it out: JAX differentiates f; for functions of "
    "NumPy give `cfgd.External(f, jac)`.",
    "max_iteration": "`minimize` has no argument `max_iteration`: did you mean `max_iterations`?",
    "colour": "`minimize` has no argument `colour`.",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_keywords_are_refused_with_the_name_that_is_meant(name):
    with pytest.raises(TypeError) as caught:
        cfgd.minimize(lambda x: jnp.sum(x**2), [1.0], **{name: 3})
    assert str(caught.value) == UNKNOWN[name]


def test_an_unknown_keyword_of_a_sweep_names_the_sweep():
    with pytest.raises(TypeError, match=r"^`sweep` has no argument `bound`: did you mean `bounds`"):
        cfgd.sweep(lambda x: jnp.sum(x**2), [1.0], cfgd.Auto(), bound=(0, 1))


def test_args_that_are_no_tuple_are_refused():
    with pytest.raises(ValueError, match=r"^`minimize\(args=\.\.\.\)` must be a tuple, such as"):
        cfgd.minimize(lambda x, a: jnp.sum(a * x**2), [1.0], args=3.0)
