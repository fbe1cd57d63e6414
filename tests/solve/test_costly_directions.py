"""What a direction costs is said before the run."""

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


def test_a_costly_direction_is_announced():
    with pytest.warns(UserWarning, match=COST) as seen:
        cfgd.minimize(
            cheap, np.linspace(-1, 1.5, 1000), COSTLY["adaptive terminal"], max_iterations=1
        )
    assert len(seen) == 1
    assert seen[0].filename == __file__


@pytest.mark.parametrize("method", COSTLY.values(), ids=COSTLY)
@pytest.mark.parametrize("run", [cfgd.minimize, cfgd.sweep], ids=["minimize", "sweep"])
def test_a_costly_direction_is_announced_before_it_starts(run, method):
    """As an error the warning ends the call: not even the start has been looked at."""
    looked = []

    def watched(x):
        jax.debug.callback(looked.append, x[0])
        return cheap(x)

    with pytest.raises(UserWarning, match=COST):
        run(watched, np.ones(1000), method, max_iterations=1)
    assert not looked


UNSAID = {  # what costs less than 10,000 gradients a direction
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
@pytest.mark.parametrize(("f", "method"), UNSAID.values(), ids=UNSAID)
def test_a_cheap_direction_is_not(monkeypatch, f, method):
    """Warnings are errors. The run itself does not matter."""
    monkeypatch.setattr(Run, "go", lambda run: None)
    cfgd.minimize(f, np.linspace(-1, 1.5, 1000), method, max_iterations=1)


def test_a_costly_local_model_names_the_cheap_ones():
    """Local itself is no help to one who has it already."""
    f = cfgd.Local(lambda x: jnp.sum(x**2), "exact")
    with pytest.raises(UserWarning, match="hutchinson"):
        cfgd.minimize(f, np.ones(10_000), cfgd.AdaptiveTerminal(gamma=-0.1), max_iterations=1)


def test_the_costs_are_those_of_the_losses():
    for loss, row in LOSSES.items():
        f = cfgd.LinearModel(X, row.y, row.given)
        cost = f.traits.derivative_cost.of(nodes=5, d=4)
        assert cost == (0 if loss == "squared" else 5)  # linear slopes are free
