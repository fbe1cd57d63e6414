"""Bad objectives and starts are refused before any iteration."""

import jax.numpy as jnp
import numpy as np
import pytest
from bad_input import (  # noqa: F401 - no_work is a fixture
    GD,
    TREE,
    X0,
    no_work,
    of_parts,
    refused,
    run,
    sweep,
    tree_function,
)

import cfgd
from cfgd import AdaptiveTerminal, LeastSquares, Quadratic, Smooth

# these are for users without a type checker
pytestmark = pytest.mark.usefixtures("unchecked")


OBJECTIVES = {
    "A does not fit b": (
        lambda: Quadratic(np.eye(2), np.zeros(3)),
        "`Quadratic(A=...)` must have shape (3, 3), got (2, 2).",
    ),
    "A is not square": (
        lambda: Quadratic(np.ones((2, 3)), np.zeros(3)),
        "`Quadratic(A=...)` must have shape (3, 3), got (2, 3).",
    ),
    "A is a vector": (
        lambda: Quadratic(np.ones(3), np.zeros(3)),
        "`Quadratic(A=...)` must be a matrix, got shape (3,).",
    ),
    "b is a matrix": (
        lambda: Quadratic(np.eye(2), np.zeros((2, 1))),
        "`Quadratic(b=...)` must be a vector, got shape (2, 1).",
    ),
    "A is not symmetric": (
        lambda: Quadratic([[1.0, 2.0], [0.5, 5.0]], [0, 0]),
        "`Quadratic(A=...)` must be symmetric, got a difference of 1.5 between A and A'.",
    ),
    "A has a negative diagonal": (
        lambda: Quadratic([[1.0, 0.0], [0.0, -2.0]], [0, 0]),
        "`Quadratic(A=...)` must be positive semi-definite, got the diagonal entry -2 at index 1.",
    ),
    "A has a negative minor": (
        lambda: Quadratic([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 1.0]], [0, 0, 0]),
        "`Quadratic(A=...)` must be positive semi-definite, "
        "got a negative minor of rows and columns 1 and 2.",
    ),
    "A is not finite": (
        lambda: Quadratic([[1.0, 0.0], [np.nan, 1.0]], [0, 0]),
        "`Quadratic(A=...)` must be finite, got nan at index (1, 0).",
    ),
    "b is not finite": (
        lambda: Quadratic(np.eye(2), [0.0, -np.inf]),
        "`Quadratic(b=...)` must be finite, got -inf at index 1.",
    ),
    "A holds strings": (
        lambda: Quadratic([["a", "b"], ["c", "d"]], [0, 0]),
        "`Quadratic(A=...)` must be a matrix of numbers, got an array of dtype <U1.",
    ),
    "A holds objects": (
        lambda: Quadratic(np.eye(2).astype(object), [0, 0]),
        "`Quadratic(A=...)` must be a matrix of numbers, got an array of dtype object.",
    ),
    "A is complex": (
        lambda: Quadratic(np.eye(2) * 1j, [0, 0]),
        "`Quadratic(A=...)` must be a matrix of numbers, got an array of dtype complex128.",
    ),
    "A is ragged": (
        lambda: Quadratic([[1.0, 2.0], [3.0]], [0, 0]),
        "`Quadratic(A=...)` must be a matrix of numbers, got rows of different lengths.",
    ),
    "b is missing": (
        lambda: Quadratic(np.eye(2), None),
        "`Quadratic(b=...)` must be a vector of numbers, got an array of dtype object.",
    ),
    "the constant is a vector": (
        lambda: Quadratic(np.eye(2), [0, 0], [1.0, 2.0]),
        "`Quadratic(constant=...)` must be one number, got shape (2,).",
    ),
    "the constant is a string": (
        lambda: Quadratic(np.eye(2), [0, 0], "c"),
        "`Quadratic(constant=...)` must be one number, got an array of dtype <U1.",
    ),
    "y does not fit X": (
        lambda: LeastSquares(np.ones((3, 2)), np.zeros(2)),
        "`LeastSquares(y=...)` must have shape (3,), got (2,).",
    ),
    "y is two columns": (
        lambda: LeastSquares(np.ones((3, 2)), np.zeros((3, 2))),
        "`LeastSquares(y=...)` must have shape (3,), got (3, 2).",
    ),
    "X is a vector": (
        lambda: LeastSquares(np.ones(3), np.zeros(3)),
        "`LeastSquares(X=...)` must be a matrix, got shape (3,).",
    ),
    "X is ragged": (
        lambda: LeastSquares([[1.0, 2.0], [3.0]], [0, 0]),
        "`LeastSquares(X=...)` must be a matrix of numbers, got rows of different lengths.",
    ),
    "X is not finite": (
        lambda: LeastSquares([[1.0, np.inf]], [0]),
        "`LeastSquares(X=...)` must be finite, got inf at index (0, 1).",
    ),
    "y is not finite": (
        lambda: LeastSquares([[1.0], [2.0]], [0.0, np.nan]),
        "`LeastSquares(y=...)` must be finite, got nan at index 1.",
    ),
    "X holds strings": (
        lambda: LeastSquares([["1.0"]], [0]),
        "`LeastSquares(X=...)` must be a matrix of numbers, got an array of dtype <U3.",
    ),
    "y is complex": (
        lambda: LeastSquares([[1.0]], [1j]),
        "`LeastSquares(y=...)` must be a vector of numbers, got an array of dtype complex128.",
    ),
    "Smooth of no function": (lambda: Smooth(3), "`Smooth(fn=...)` must be a function, got 3."),
    "an objective that is none": (
        run(f=3),
        "`minimize(objective=...)` must be an objective or a function, got 3.",
    ),
    "a function that returns a vector": (
        run(f=lambda x: 2 * x),
        "`minimize(objective=...)` must return a scalar, got shape (3,).",
    ),
    "a function that returns a tuple": (
        run(f=lambda x: (x[0], x[1])),
        "`minimize(objective=...)` must return a scalar, got a tuple.",
    ),
    "a function that returns an integer": (
        run(f=lambda x: 3),
        "`minimize(objective=...)` must return a real number, got dtype int64.",
    ),
    "a function that returns a complex number": (
        run(f=lambda x: 1j * x[0]),
        "`minimize(objective=...)` must return a real number, got dtype complex128.",
    ),
    "NaN at x0": (
        run(f=lambda x: jnp.sum(jnp.log(x))),
        "`minimize(x0=...)` must give a finite value and gradient, got the value nan.",
    ),
    "infinity at x0": (
        run(f=lambda x: jnp.sum(1 / (x - 1))),
        "`minimize(x0=...)` must give a finite value and gradient, got the value inf.",
    ),
    "an infinite gradient at x0": (
        run(f=lambda x: jnp.sum(jnp.sqrt(x)), x0=np.zeros(2)),
        "`minimize(x0=...)` must give a finite value and gradient, got a gradient of norm inf.",
    ),
    "NaN at x0, in a sweep": (
        sweep(AdaptiveTerminal(gamma=[0.1, 0.2]), f=lambda x: jnp.sum(jnp.log(x))),
        "`sweep(x0=...)` must give a finite value and gradient, got the value nan.",
    ),
}

STARTS = {
    "short": (run(x0=[1.0, 2.0]), "`minimize(x0=...)` must have shape (3,), got (2,)."),
    "a column": (
        run(x0=np.ones((3, 1))),
        "`minimize(x0=...)` must have shape (3,), got (3, 1).",
    ),
    "a number": (run(x0=1.0), "`minimize(x0=...)` must have shape (3,), got ()."),
    "a pytree": (run(x0=TREE), "`minimize(x0=...)` must have shape (3,), got a pytree."),
    "NaN": (
        run(x0=[1.0, 2.0, np.nan]),
        "`minimize(x0=...)` must be finite, got nan at index 2.",
    ),
    "infinite": (
        run(x0=[-np.inf, 2.0, 1.0]),
        "`minimize(x0=...)` must be finite, got -inf at index 0.",
    ),
    "NaN in a pytree": (
        run(f=tree_function, x0=TREE | {"a": np.array([1.0, np.nan])}),
        "`minimize(x0['a']=...)` must be finite, got nan at index 1.",
    ),
    "a string in a pytree": (
        run(f=tree_function, x0=TREE | {"b": "half"}),
        "`minimize(x0['b']=...)` must be an array of numbers, got an array of dtype <U4.",
    ),
    "a string": (
        run(x0="zeros"),
        "`minimize(x0=...)` must be an array of numbers, got an array of dtype <U5.",
    ),
    "objects": (
        run(x0=np.array([1, 2, 3], object)),
        "`minimize(x0=...)` must be an array of numbers, got an array of dtype object.",
    ),
    "complex": (
        run(x0=[1j, 2, 3]),
        "`minimize(x0=...)` must be an array of numbers, got an array of dtype complex128.",
    ),
    "ragged": (
        run(x0=[[1.0, 2.0], [3.0]]),
        "`minimize(x0=...)` must be an array of numbers, got rows of different lengths.",
    ),
    "None": (
        run(x0=None),
        "`minimize(x0=...)` must be an array of numbers, got an array of dtype object.",
    ),
    "empty": (run(x0=[]), "`minimize(x0=...)` must hold at least one number, got nothing."),
    "as many as a sweep has not": (
        sweep(AdaptiveTerminal(gamma=[0.1, 0.2]), x0=np.ones((4, 3))),
        "`sweep(x0=...)` must have shape (3,) or (2, 3), got (4, 3).",
    ),
    "NaN in a row of a sweep": (
        sweep(AdaptiveTerminal(gamma=[0.1, 0.2]), x0=[[1, 1, 1], [1, np.nan, 1]]),
        "`sweep(x0=...)` must be finite, got nan at index (1, 1).",
    ),
}

TABLE = of_parts(objective=OBJECTIVES, x0=STARTS)


@pytest.mark.parametrize(("make", "message"), TABLE.values(), ids=TABLE)
def test_message(make, message):
    refused(make, message)


@pytest.mark.parametrize("fn", [None, lambda x: jnp.sum(x**4)])
def test_the_guard_against_work_holds(fn):
    with pytest.raises(AssertionError, match=r"^an iteration was made"):
        run()() if fn is None else cfgd.minimize(fn, X0)


def test_a_bad_keyword_is_found_before_the_function_is_called():
    def touched(x):
        raise AssertionError("the function was called")

    for options in ({"max_iterations": 0}, {"every": 0}, {"record": 3}, {"tolerance": -1}):
        with pytest.raises(ValueError, match="must"):
            cfgd.minimize(touched, X0, GD, **options)
    with pytest.raises(ValueError, match="must be finite"):
        cfgd.minimize(touched, [np.nan], GD)
