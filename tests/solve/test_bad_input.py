"""Bad input: one clear sentence, before any work. The table holds the whole messages."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd import (
    AdaptiveOrder,
    AdaptiveTerminal,
    ArmijoStep,
    ExactStep,
    FixedStep,
    GradientDescent,
    LeastSquares,
    NonAdaptive,
    Quadratic,
    Smooth,
    Stage,
)
from cfgd.solve.program import bind

# what users pass who have no type checker
pytestmark = pytest.mark.usefixtures("unchecked")

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
    """A call of minimize, to be made later."""
    return lambda: cfgd.minimize(f, x0, method, **options)


def sweep(methods, f=F, x0=X0, **options):
    return lambda: cfgd.sweep(f, x0, methods, **options)


def lagged(*args, **numbers):
    return lambda: AdaptiveTerminal(*args, **numbers)


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

NUMBERS = {
    "alpha 1": (
        lagged(1.0, gamma=0.1),
        "`AdaptiveTerminal(alpha=...)` must lie in (0, 1), got 1.0.",
    ),
    "alpha 0": (
        lambda: NonAdaptive(0.0, 0, gamma=0.1),
        "`NonAdaptive(alpha=...)` must lie in (0, 1), got 0.0.",
    ),
    "alpha of a stage": (
        lambda: Stage(3, -0.5, gamma=0.1),
        "`Stage(alpha=...)` must lie in (0, 1), got -0.5.",
    ),
    "one alpha of three": (
        lagged([0.1, 1.2, 0.3], gamma=0.1),
        "`AdaptiveTerminal(alpha=...)` must lie in (0, 1), got 1.2.",
    ),
    "alpha NaN": (
        lagged(np.nan, gamma=0.1),
        "`AdaptiveTerminal(alpha=...)` must be finite, got nan.",
    ),
    "alpha a string": (
        lagged("half", gamma=0.1),
        "`AdaptiveTerminal(alpha=...)` must lie in (0, 1), got 'half'.",
    ),
    "alpha None": (
        lagged(None, gamma=0.1),
        "`AdaptiveTerminal(alpha=...)` must lie in (0, 1), got None.",
    ),
    "beta and gamma": (
        lagged(beta=0.2, gamma=0.1),
        "`AdaptiveTerminal` takes exactly one of `beta` and `gamma`, got beta=0.2 and gamma=0.1.",
    ),
    "neither beta nor gamma": (
        lambda: NonAdaptive(0.0),
        "`NonAdaptive` takes exactly one of `beta` and `gamma`, got neither.",
    ),
    "beta and gamma of a stage": (
        lambda: Stage(3, beta=0.2, gamma=0.1),
        "`Stage` takes exactly one of `beta` and `gamma`, got beta=0.2 and gamma=0.1.",
    ),
    "gamma infinite": (
        lagged(gamma=np.inf),
        "`AdaptiveTerminal(gamma=...)` must be finite, got inf.",
    ),
    "one beta of three NaN": (
        lagged(beta=[0.1, 0.2, np.nan]),
        "`AdaptiveTerminal(beta=...)` must be finite, got nan at index 2.",
    ),
    "gamma a string": (
        lagged(gamma="small"),
        "`AdaptiveTerminal(gamma=...)` must be a number, got an array of dtype <U5.",
    ),
    "gamma empty": (
        lagged(gamma=[]),
        "`AdaptiveTerminal(gamma=...)` must hold at least one number, got nothing.",
    ),
    "gamma does not fit alpha": (
        lagged([0.1, 0.2], gamma=[0.1, 0.2, 0.3]),
        "`AdaptiveTerminal(gamma=...)` must fit alpha of shape (2,), got shape (3,).",
    ),
    "gamma does not fit x0": (
        run(method=AdaptiveTerminal(gamma=[0.1, 0.2])),
        "`AdaptiveTerminal(gamma=...)` must be a number or have shape (3,), got shape (2,).",
    ),
    "beta does not fit x0": (
        run(method=NonAdaptive(0.0, beta=[0.1, 0.2])),
        "`NonAdaptive(beta=...)` must be a number or have shape (3,), got shape (2,).",
    ),
    "alpha does not fit x0": (
        run(method=AdaptiveTerminal([0.1, 0.2], gamma=0.1)),
        "`AdaptiveTerminal(alpha=...)` must be a number or have shape (3,), got shape (2,).",
    ),
    "gamma of a stage does not fit x0": (
        run(method=AdaptiveOrder([Stage(3, gamma=[0.1, 0.2])], 0.0)),
        "`Stage(gamma=...)` must be a number or have shape (3,), got shape (2,).",
    ),
    "stages do not fit each other": (
        lambda: AdaptiveOrder([Stage(3, gamma=[0.1, 0.2]), Stage(3, gamma=[0.1, 0.2, 0.3])], 0.0),
        "`AdaptiveOrder(stages=...)` must have numbers of one shape, got shapes (2,) and (3,).",
    ),
    "lag 0": (
        lagged(gamma=0.1, lag=0),
        "`AdaptiveTerminal(lag=...)` must be an integer of at least 1, got 0.",
    ),
    "lag 1.5": (
        lagged(gamma=0.1, lag=1.5),
        "`AdaptiveTerminal(lag=...)` must be an integer of at least 1, got 1.5.",
    ),
    "nodes 0": (
        lambda: NonAdaptive(0.0, gamma=0.1, nodes=0),
        "`NonAdaptive(nodes=...)` must be an integer of at least 1, got 0.",
    ),
    "nodes 2.0": (
        lagged(gamma=0.1, nodes=2.0),
        "`AdaptiveTerminal(nodes=...)` must be an integer of at least 1, got 2.0.",
    ),
    "no stages": (
        lambda: AdaptiveOrder([], 0.0),
        "`AdaptiveOrder(stages=...)` must be a list of Stage(iterations, ...), got [].",
    ),
    "stages that are numbers": (
        lambda: AdaptiveOrder([3, 4], 0.0),
        "`AdaptiveOrder(stages=...)` must be a list of Stage(iterations, ...), got [3, 4].",
    ),
    "stages that are a number": (
        lambda: AdaptiveOrder(3, 0.0),
        "`AdaptiveOrder(stages=...)` must be a list of Stage(iterations, ...), got 3.",
    ),
    "a stage without iterations": (
        lambda: Stage(0, gamma=0.1),
        "`Stage(iterations=...)` must be an integer of at least 1, got 0.",
    ),
}

POINTS = {
    "terminal too short": (
        run(method=NonAdaptive([0.1, 0.2], gamma=0.1)),
        "`NonAdaptive(terminal=...)` must be a number or of shape (3,), got shape (2,).",
    ),
    "terminal of stages too short": (
        run(method=AdaptiveOrder([STAGE], [0.1, 0.2])),
        "`AdaptiveOrder(terminal=...)` must be a number or of shape (3,), got shape (2,).",
    ),
    "terminal of another structure": (
        run(f=tree_function, x0=TREE, method=NonAdaptive({"a": np.ones(2)}, gamma=0.1)),
        "`NonAdaptive(terminal=...)` must be a number or of the structure of x0, got a dict.",
    ),
    "terminal None": (
        lambda: NonAdaptive(None, gamma=0.1),
        "`NonAdaptive(terminal=...)` must be an array of numbers, got an array of dtype object.",
    ),
    "terminal NaN": (
        lambda: NonAdaptive([0.1, np.nan], gamma=0.1),
        "`NonAdaptive(terminal=...)` must be finite, got nan at index 1.",
    ),
    "one point of two": (
        run(method=AdaptiveTerminal(gamma=0.1, lag=2, past=[[1.0, 2.0, 3.0]])),
        "`AdaptiveTerminal(past=...)` must be 2 points, each of shape (3,), got shape (1, 3).",
    ),
    "one array of two": (
        run(method=AdaptiveTerminal(gamma=0.1, lag=2, past=[np.ones(3)])),
        "`AdaptiveTerminal(past=...)` must be 2 points, each of shape (3,), got 1 point.",
    ),
    "the point alone for lag 2": (
        run(method=AdaptiveTerminal(gamma=0.1, lag=2, past=np.ones(3))),
        "`AdaptiveTerminal(past=...)` must be 2 points, each of shape (3,), got shape (3,).",
    ),
    "two points for lag 1": (
        run(method=AdaptiveTerminal(gamma=0.1, past=np.ones((2, 3)))),
        "`AdaptiveTerminal(past=...)` must be 1 point of shape (3,), got shape (2, 3).",
    ),
    "points too short": (
        run(method=AdaptiveTerminal(gamma=0.1, lag=2, past=np.ones((2, 2)))),
        "`AdaptiveTerminal(past=...)` must be 2 points, each of shape (3,), got shape (2, 2).",
    ),
    "arrays too short": (
        run(method=AdaptiveTerminal(gamma=0.1, lag=2, past=[np.ones(3), np.ones(2)])),
        "`AdaptiveTerminal(past=...)` must be 2 points, each of shape (3,), "
        "got points of shapes (3,) and (2,).",
    ),
    "a number for a point": (
        run(method=AdaptiveTerminal(gamma=0.1, past=1.0)),
        "`AdaptiveTerminal(past=...)` must be 1 point of shape (3,), got shape ().",
    ),
    "a past of another structure": (
        run(
            f=tree_function,
            x0=TREE,
            method=AdaptiveTerminal(gamma=0.1, past={"a": np.ones(3), "b": np.array(0.0)}),
        ),
        "`AdaptiveTerminal(past=...)` must be 1 point of the structure of x0, got a dict.",
    ),
    "past ragged": (
        lagged(gamma=0.1, lag=2, past=[[1.0, 2.0], [1.0]]),
        "`AdaptiveTerminal(past=...)` must be an array of numbers, got rows of different lengths.",
    ),
    "past NaN": (
        lagged(gamma=0.1, lag=2, past=[[1.0, 2.0], [1.0, np.nan]]),
        "`AdaptiveTerminal(past=...)` must be finite, got nan at index (1, 1).",
    ),
}

STEP_SIZES = {
    "a string": (
        lagged(gamma=0.1, step="exact"),
        f"`AdaptiveTerminal(step=...)` must be one of {STEPS}, got 'exact'.",
    ),
    "a number": (
        lambda: GradientDescent(0.1),
        f"`GradientDescent(step=...)` must be one of {STEPS}, got 0.1.",
    ),
    "a class": (
        lambda: GradientDescent(ExactStep),
        f"`GradientDescent(step=...)` must be one of {STEPS}, "
        "got <class 'cfgd.method.step.ExactStep'>.",
    ),
    "eta 0": (lambda: FixedStep(0.0), "`FixedStep(eta=...)` must be positive, got 0.0."),
    "eta negative": (
        lambda: FixedStep([0.1, -2.0]),
        "`FixedStep(eta=...)` must be positive, got -2.0.",
    ),
    "eta NaN": (lambda: FixedStep(np.nan), "`FixedStep(eta=...)` must be finite, got nan."),
    "eta a string": (
        lambda: FixedStep("small"),
        "`FixedStep(eta=...)` must be positive, got 'small'.",
    ),
    "eta does not fit x0": (
        run(method=GradientDescent(FixedStep([0.1, 0.2]))),
        "`FixedStep(eta=...)` must be a number or have shape (3,), got shape (2,).",
    ),
    "initial 0": (
        lambda: ArmijoStep(initial=0.0),
        "`ArmijoStep(initial=...)` must be positive, got 0.0.",
    ),
    "shrink 1": (
        lambda: ArmijoStep(shrink=1.0),
        "`ArmijoStep(shrink=...)` must lie in (0, 1), got 1.0.",
    ),
    "fraction 0": (
        lambda: ArmijoStep(fraction=0.0),
        "`ArmijoStep(fraction=...)` must lie in (0, 1), got 0.0.",
    ),
}

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
        "that the method keeps, got 3.",
    ),
    "record of a number that the method does not keep": (
        run(record={"step": "length"}),
        "`minimize(record=...)` must name a number that the method keeps (k, eta), got 'length'.",
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
        "`minimize(method=...)` must be a method such as GradientDescent(), got 'GradientDescent'.",
    ),
    "method a class": (
        run(method=GradientDescent),
        "`minimize(method=...)` must be a method such as GradientDescent(), "
        "got <class 'cfgd.method.presets.GradientDescent'>.",
    ),
    "method a step": (
        run(method=0.1),
        "`minimize(method=...)` must be a method such as GradientDescent(), got 0.1.",
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

TABLE = {
    f"{part}: {name}": row
    for part, rows in {
        "objective": OBJECTIVES,
        "x0": STARTS,
        "number": NUMBERS,
        "point": POINTS,
        "step": STEP_SIZES,
        "keyword": KEYWORDS,
        "sweep": SWEEPS,
    }.items()
    for name, row in rows.items()
}


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """An iteration made before the complaint is an error of its own."""

    def chunk(*args):
        raise AssertionError("work was done")

    def guarded(fn, *parts, **kind):
        return chunk if fn.__name__ == "chunk" else bind(fn, *parts, **kind)

    monkeypatch.setattr("cfgd.solve.inside.bind", guarded)
    monkeypatch.setattr("cfgd.solve.outside.Outside.__call__", chunk)


@pytest.mark.parametrize(("make", "message"), TABLE.values(), ids=TABLE)
def test_message(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$") as raised:
        make()
    assert type(raised.value) is ValueError
    assert message.count(". ") == 0  # one sentence
    assert "\n" not in message


@pytest.mark.parametrize("fn", [None, lambda x: jnp.sum(x**4)])
def test_the_guard_against_work_holds(fn):
    with pytest.raises(AssertionError, match=r"^work was done$"):
        run()() if fn is None else cfgd.minimize(fn, X0)


def test_a_bad_keyword_is_found_before_the_function_is_called():
    def touched(x):
        raise AssertionError("the function was called")

    for options in ({"max_iterations": 0}, {"every": 0}, {"record": 3}, {"tolerance": -1}):
        with pytest.raises(ValueError, match="must"):
            cfgd.minimize(touched, X0, GD, **options)
    with pytest.raises(ValueError, match="must be finite"):
        cfgd.minimize(touched, [np.nan], GD)
