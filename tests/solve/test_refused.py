"""Input that is refused, each with its whole message."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from inputs import X0, X, Y, bowl, run

import cfgd
from cfgd import AdaptiveOrder, AdaptiveTerminal, GradientDescent, LeastSquares, LinearModel

# some arguments have types that annotations refuse
pytestmark = pytest.mark.usefixtures("unchecked")


def masked(values, *places):
    values = np.ma.array(values)
    for place in places:
        values[place] = np.ma.masked
    return values


MASKED = {
    "a mask on X": (
        lambda: LeastSquares(masked(X, (0, 1), (2, 2)), Y),
        "`LeastSquares(X=...)` must have no masked entries, got 2, the first at index (0, 1).",
    ),
    "a mask on y": (
        lambda: LeastSquares(X, masked(Y, 3)),
        "`LeastSquares(y=...)` must have no masked entries, got one at index 3.",
    ),
    "a mask on a row": (
        lambda: LeastSquares([masked(X[0]), masked(X[1], 2)], Y[:2]),
        "`LeastSquares(X[1]=...)` must have no masked entries, got one at index 2.",
    ),
    "a mask on weights": (
        lambda: LinearModel(X, Y, sample_weight=masked(Y, 0)),
        "`LinearModel(sample_weight=...)` must have no masked entries, got one at index 0.",
    ),
    "a mask on x0": (
        run(x0=masked(X0, 1)),
        "`minimize(x0=...)` must have no masked entries, got one at index 1.",
    ),
    "a mask on a part of x0": (
        run(x0={"a": masked(X0, 1)}),
        "`minimize(x0['a']=...)` must have no masked entries, got one at index 1.",
    ),
    "a masked number": (
        run(x0=[1.0, np.ma.masked]),
        "`minimize(x0[1]=...)` must have no masked entries, got one.",
    ),
    "a masked gamma": (
        lambda: AdaptiveTerminal(gamma=masked([0.1, 0.2], 0)),
        "`AdaptiveTerminal(gamma=...)` must have no masked entries, got one at index 0.",
    ),
}
OTHER_NUMBERS = {
    "a key": (
        run(x0=jax.random.key(0)),
        "`minimize(x0=...)` must be an array of numbers, got an array of dtype key<fry>.",
    ),
    "a key for targets": (
        lambda: LeastSquares(X, jax.random.key(0)),
        "`LeastSquares(y=...)` must be a vector of numbers, got an array of dtype key<fry>.",
    ),
    "ragged targets": (
        lambda: LeastSquares(X, [[1.0], [1.0, 2.0]]),
        "`LeastSquares(y=...)` must be a vector of numbers, got rows of different lengths.",
    ),
    "a missing number of pandas": (
        lambda: LeastSquares(pd.DataFrame({"a": [0.5, 2.0], "b": pd.array([1, None], "Int64")}), Y),
        "`LeastSquares(X=...)` must be finite, got nan at index (1, 1).",
    ),
    "missing labels of pandas": (
        lambda: LinearModel(X, pd.Series([True, None, True, True], dtype="boolean")),
        "`LinearModel(y=...)` must be finite, got nan at index 1.",
    ),
    "max_iterations": (
        run(max_iterations=2**31),
        "`minimize(max_iterations=...)` must be at most 2147483647, got 2147483648.",
    ),
    "every": (
        run(every=2**31),
        "`minimize(every=...)` must be at most 2147483647, got 2147483648.",
    ),
    "lag": (
        lambda: AdaptiveTerminal(gamma=0.1, lag=2**31),
        "`AdaptiveTerminal(lag=...)` must be at most 2147483647, got 2147483648.",
    ),
    "nodes": (
        lambda: cfgd.gauss_jacobi(0.5, 2**40),
        "`gauss_jacobi(nodes=...)` must be at most 2147483647, got 1099511627776.",
    ),
    "iterations of a stage": (
        lambda: cfgd.Stage(2**31, gamma=0.1),
        "`Stage(iterations=...)` must be at most 2147483647, got 2147483648.",
    ),
    "iterations of stages": (
        lambda: AdaptiveOrder([cfgd.Stage(2**30, gamma=0.1), cfgd.Stage(2**30, gamma=0.0)], 0.0),
        "`AdaptiveOrder(stages=...)` must have at most 2147483647 iterations together, "
        "got 2147483648.",
    ),
    "time_limit a list": (
        run(time_limit=[1.0, 2.0]),
        "`minimize(time_limit=...)` must be one number, got shape (2,).",
    ),
}
CLASSES = {
    "an objective": (
        run(f=cfgd.Quadratic),
        "`minimize(objective=...)` must be an objective or a function, "
        "got <class 'cfgd.objectives.quadratic.Quadratic'>.",
    ),
    "an objective in Local": (
        lambda: cfgd.Local(cfgd.Quadratic),
        "`Local(objective=...)` must be an objective or a function, "
        "got <class 'cfgd.objectives.quadratic.Quadratic'>.",
    ),
    "a function": (
        lambda: cfgd.Smooth(dict),
        "`Smooth(fn=...)` must be a function, got <class 'dict'>.",
    ),
    "a method of a sweep": (
        lambda: cfgd.sweep(bowl, X0, [GradientDescent]),
        "`sweep(methods=...)` must be settings of one and the same method, "
        "got <class 'cfgd.methods.paper.presets.GradientDescent'>.",
    ),
    "a callback": (
        run(callback=dict),
        "`minimize(callback=...)` must be a function, got <class 'dict'>.",
    ),
}
RETURNS = {
    "None from a record": (
        run(record={"a": lambda x: None}),
        "`minimize(record['a']=...)` must return numbers, got a NoneType.",
    ),
    "a dict from a record": (
        run(record={"a": lambda x: {"x": x}}),
        "`minimize(record['a']=...)` must return numbers, got a dict.",
    ),
    "a word from a record": (
        run(record={"a": lambda x: "x"}),
        "`minimize(record['a']=...)` must return numbers, got a str.",
    ),
    "a key from a record": (
        run(record={"a": lambda x: jax.random.key(0)}),
        "`minimize(record['a']=...)` must return numbers, got dtype key<fry>.",
    ),
    "an array from a callback": (
        run(callback=lambda solution: solution.x),
        "`minimize(callback=...)` must return something true or false, got shape (3,).",
    ),
    "a missing answer from a callback": (
        run(callback=lambda solution: pd.NA),
        "`minimize(callback=...)` must return something true or false, got a NAType.",
    ),
    "a vector from a loss": (
        lambda: LinearModel(X, Y, lambda p, y: jnp.stack([p, y])),
        "`LinearModel(loss=...)` must return a scalar, got shape (2,).",
    ),
    "None from an activation": (
        lambda: cfgd.ShallowNetwork(Y, Y, 2, lambda u: None),
        "`ShallowNetwork(activation=...)` must return a scalar, got a NoneType.",
    ),
}
REFUSED = {
    f"{part}: {name}": row
    for part, rows in {
        "masked": MASKED,
        "number": OTHER_NUMBERS,
        "class": CLASSES,
        "returned": RETURNS,
    }.items()
    for name, row in rows.items()
}


@pytest.mark.every_case
@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as raised:
        make()
    assert type(raised.value) is ValueError
    assert str(raised.value) == message  # `match` also reads the notes of an error
