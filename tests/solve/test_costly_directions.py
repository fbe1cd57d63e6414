"""A warning before the run says what a costly direction costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd.solve.driver import Run
from objectives import LOSSES, X


def cheap(x):
    return jnp.sum(jnp.cosh(x)) + x[0] * x[1]


COST = r"costs about 10000 gradients.*cfgd\.Local\("
COSTLY = {
    "adaptive terminal": cfgd.AdaptiveTerminal(gamma=-0.1),
    "non-adaptive": cfgd.NonAdaptive(0.5, gamma=0.1, step=cfgd.FixedStep(0.1)),
    "adaptive order": cfgd.AdaptiveOrder([cfgd.Stage(2, gamma=0.1)], 0.5),
}


@pytest.mark.usefixtures("unchecked")
def test_a_costly_direction_gives_a_warning(monkeypatch):
    monkeypatch.setattr(Run, "go", lambda run: None)
    with pytest.warns(UserWarning, match=COST) as warned:
        cfgd.minimize(
            cheap, np.linspace(-1, 1.5, 1000), COSTLY["adaptive terminal"], max_iterations=1
        )
    assert len(warned) == 1
    assert warned[0].filename == __file__


@pytest.mark.parametrize("method", COSTLY.values(), ids=COSTLY)
@pytest.mark.parametrize("run", [cfgd.minimize, cfgd.sweep], ids=["minimize", "sweep"])
def test_the_warning_comes_before_the_start_is_evaluated(run, method):
    """Warnings are errors in these tests: this one ends the call."""
    evaluated = []

    def recording(x):
        jax.debug.callback(evaluated.append, x[0])
        return cheap(x)

    with pytest.raises(UserWarning, match=COST):
        run(recording, np.ones(1000), method, max_iterations=1)
    assert not evaluated


CHEAP = {  # what costs less than 10,000 gradients a direction
    "gradient descent": (cheap, cfgd.GradientDescent()),
    "exact": (cfgd.Local(cheap), cfgd.AdaptiveTerminal(gamma=-0.1)),
    "hutchinson": (cfgd.Local(cheap, "hutchinson", key=0), cfgd.AdaptiveTerminal(gamma=-0.1)),
    "fewer nodes": (cheap, cfgd.AdaptiveTerminal(gamma=-0.1, nodes=9)),
    "structure": (
        cfgd.LinearModel(np.ones((2, 1000)), [0, 1], l2=1.0),
        cfgd.AdaptiveTerminal(gamma=-0.1),
    ),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("f", "method"), CHEAP.values(), ids=CHEAP)
def test_a_cheap_direction_gives_none(monkeypatch, f, method):
    """Warnings are errors in these tests. The run itself does not matter."""
    monkeypatch.setattr(Run, "go", lambda run: None)
    cfgd.minimize(f, np.linspace(-1, 1.5, 1000), method, max_iterations=1)


def test_the_warning_about_a_costly_local_model_names_the_cheap_ones():
    """It does not advise to use `Local`, as for other objectives."""
    f = cfgd.Local(lambda x: jnp.sum(x**2), "exact")
    with pytest.raises(UserWarning, match="hutchinson"):
        cfgd.minimize(f, np.ones(10_000), cfgd.AdaptiveTerminal(gamma=-0.1), max_iterations=1)


def test_slopes_cost_nothing_for_the_squared_loss_alone():
    for loss, row in LOSSES.items():
        f = cfgd.LinearModel(X, row.y, row.given)
        cost = f.traits.derivative_cost.of(nodes=5, d=4)
        assert cost == (0 if loss == "squared" else 5)  # linear slopes are free
