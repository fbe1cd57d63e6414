"""Bad numbers, points and steps of methods are refused before any iteration."""

import numpy as np
import pytest
from bad_input import (  # noqa: F401 - no_work is a fixture
    STAGE,
    STEPS,
    TREE,
    lagged,
    no_work,
    of_parts,
    refused,
    run,
    tree_function,
)

from cfgd import (
    AdaptiveOrder,
    AdaptiveTerminal,
    ArmijoStep,
    ExactStep,
    FixedStep,
    GradientDescent,
    NonAdaptive,
    Stage,
)

# these are for users without a type checker
pytestmark = pytest.mark.usefixtures("unchecked")


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
        "`NonAdaptive` takes exactly one of `beta` and `gamma`, got neither (beta=0 is the Caputo "
        "derivative without smoothing).",
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
        "got <class 'cfgd.methods.paper.step.ExactStep'>.",
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

TABLE = of_parts(number=NUMBERS, point=POINTS, step=STEP_SIZES)


@pytest.mark.parametrize(("make", "message"), TABLE.values(), ids=TABLE)
def test_message(make, message):
    refused(make, message)
