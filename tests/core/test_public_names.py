"""Tab completion shows public names, and every name that it shows exists."""

import importlib
from importlib.util import find_spec

import pytest

import cfgd

pytestmark = pytest.mark.every_case

F = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
RULES = {"nodes", "order", "reading", "step_rule", "terminal"}
OBJECTIVE = {
    *("value", "gradient", "coordinate_slope", "coordinate_curvature", "shape", "dimension"),
}
INSTALLED = [
    name for name in ("lmfit", "optax", "scipy", "sklearn", "torch") if find_spec(name) is not None
]


def visible(found):
    """The names that IPython shows: those with an underscore come after another key."""
    return {name for name in dir(found) if not name.startswith("_")}


MODULES = {
    "terminal": {"CurrentPoint", "Fixed", "Lagged", "Terminal"},
    "order": {"Constant", "Order", "Stages", "beta_of"},
    "settings": {"number", "point", "points", "table"},
    "distributed": {"rows", "start"},
    "theory": {
        *("BestConstants", "adaptive_order_bound", "adaptive_order_constant"),
        *("adaptive_terminal_bound", "adaptive_terminal_matrices", "best_constants"),
        *("non_adaptive_rate", "spectral_radius", "tikhonov_solution", "tilde_A"),
    },
    "zoo": {*cfgd.zoo.__all__, "NOT_NEGATIVE", "ORDER", "POSITIVE", "Range"},
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_show_their_own_names(name):
    module = getattr(cfgd, name)
    assert visible(module) == MODULES[name]
    for each in MODULES[name]:
        assert hasattr(module, each)


@pytest.mark.parametrize("name", INSTALLED)
def test_integrations_show_their_own_names(name):
    module = importlib.import_module(f"cfgd.integrations.{name}")
    assert visible(module) == set(module.__all__)
    assert all(hasattr(module, each) for each in module.__all__)


def test_integrations_are_shown_and_found():
    integrations = cfgd.integrations
    assert visible(integrations) == set(INSTALLED)
    for name in INSTALLED:
        assert getattr(integrations, name).__name__ == f"cfgd.integrations.{name}"
    with pytest.raises(AttributeError, match="no attribute 'dask'"):
        _ = integrations.dask


def test_a_solution_shows_its_fields_and_what_it_does():
    documented = {
        *("x", "value", "gradient_norm", "iterations", "evaluations", "status", "history"),
        *("resets", "seconds", "compile_seconds", "how", "rate", "details", "tolerance"),
        *("active_mask", "terms", "message", "summary", "success", "plot", "to_json"),
        *("from_json", "covariance"),
    }
    solution = cfgd.minimize(F, [0.0, 0.0])
    assert visible(solution) == documented
    assert all(hasattr(solution, name) for name in documented)


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (cfgd.AdaptiveTerminal(gamma=-0.25), RULES),
        (cfgd.GradientDescent(), RULES),
        (cfgd.FixedStep(0.1), {"eta"}),
        (cfgd.terminal.Lagged(2), {"lag", "past", "is_fixed", "is_gradient", "is_moving"}),
        (cfgd.order.Constant(gamma=0.1), {"alpha", "beta", "vanishes"}),
        (cfgd.Auto(), {"explain", "solver"}),
        (cfgd.zoo.Wang2017(0.1), {"alpha", "delta", "eta", "extra_cost", "start", "update"}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_method_or_rule_shows_its_numbers(method, names):
    assert visible(method) == names


def test_a_method_of_users_shows_all_of_theirs():
    class Mine(cfgd.zoo.UpdateRule):
        eta: float = cfgd.zoo.parameter(cfgd.zoo.POSITIVE)

        def helper(self):
            return 1

        def update(self, at, memory, k, objective):
            return self.eta * at.gradient, memory

    assert visible(Mine(0.1)) == {"eta", "extra_cost", "helper", "start", "update"}


def test_an_objective_of_users_shows_all_of_theirs():
    class Mine(cfgd.Objective):
        centre: float

        def value(self, x):
            return ((x - self.centre) ** 2).sum()

        def distance(self, x):
            return abs(x - self.centre)

    assert visible(Mine(1.0)) == OBJECTIVE | {"centre", "distance"}
    assert Mine(1.0).traits.structure == "general"  # it is there, and not shown
