"""print(method) and print(objective) show the call that makes it, with its numbers."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd

pytestmark = pytest.mark.every_case

QUADRATIC = cfgd.Quadratic([[20.0, 1.0], [1.0, 2.0]], [0.5, 0.0])
T = np.linspace(0, 1, 30)


def a_model():
    """Return a function that is freed with its test."""

    def model(p):
        return p[0] * T - 1

    return model


# the text of an object, from which Python makes an equal one
CALLS = [
    "AdaptiveTerminal(alpha=0.5, gamma=-0.25, step=ExactStep())",
    "AdaptiveTerminal(alpha=0.7, beta=0.1, lag=2, past=[[1.0, 2.0], [0.0, 3.0]], nodes=4, "
    "step=ArmijoStep(initial=0.1, shrink=0.3, fraction=0.0001), reading='printed')",
    "AdaptiveTerminal(alpha=0.5, gamma='best', step=FixedStep(eta='best'))",
    "AdaptiveTerminal(alpha=0.5, gamma=[-0.5, -0.25, 0.0], step=ExactStep())",
    "NonAdaptive(terminal=[1.0, -2.0], alpha=0.5, gamma=1e-08, step=GridStep())",
    "AdaptiveOrder(stages=[Stage(iterations=20, alpha=0.5, gamma=0.5), "
    "Stage(iterations=30, alpha=0.7, gamma=0.1)], terminal=0.0, step=ExactStep())",
    "Stage(iterations=20, alpha=0.5, beta=0.3)",
    "GradientDescent(step=FixedStep(eta=[0.1, 0.3]))",
    "Fractional(terminal=Lagged(lag=2), order=Constant(alpha=0.6, gamma=-0.3), "
    "step=NetworkStep(), nodes=3)",
    "Fractional(terminal=CurrentPoint(), order=Constant(alpha=0.6, beta=0.0), step=ExactStep())",
    "Fixed(terminal={'a': [1.0, 2.0], 'b': 3.0})",
    "Stages(stages=[Stage(iterations=10, alpha=0.5, beta=0.5)])",
    "Auto()",
    "Auto(solver='lbfgs')",
    "Quadratic(A=[[2.0, 1.0], [1.0, 4.0]], b=[1.0, 1e-09], constant=3.0)",
    "Local(objective=Quadratic(A=[[2.0]], b=[1.0], constant=0.0))",
    "Chosen(eta=0.5, memory=None, cost=2.0, indefinite=False)",
    "Wang2017(eta=0.1, alpha=0.9, delta=0.0)",
    "Wei2020(eta=0.1, alpha=0.9, eps=0.0, terms='first')",
    "BestConstants(gamma=-1.0, eta=0.25, rate=0.5)",
    "Parameter()",
    "Parameter(2.0, fixed=True)",
    "Parameter(1.0, bounds=(0, 10))",
]

NAMES = {
    name: getattr(module, name)
    for module in (cfgd.terminal, cfgd.order, cfgd.zoo, cfgd.theory, cfgd)
    for name in dir(module)
}


@pytest.mark.parametrize("text", CALLS, ids=[text[:50] for text in CALLS])
def test_the_repr_is_the_call(text):
    made = eval(text, dict(NAMES))
    assert repr(made) == text
    assert str(made) == text


@pytest.mark.parametrize("text", CALLS[:10])
def test_the_call_makes_an_equal_object(text):
    method = eval(text, dict(NAMES))
    again = eval(repr(method), dict(NAMES))
    ours, theirs = jax.tree.leaves(method), jax.tree.leaves(again)
    assert jax.tree.structure(method) == jax.tree.structure(again)
    for one, other in zip(ours, theirs, strict=True):
        assert isinstance(one, str) or np.allclose(one, other, rtol=1e-13, atol=1e-15)


# what holds data or functions: they are shown by shape and name
SHOWN = {
    "LeastSquares(X=<array of shape (30, 2)>, y=<array of shape (30,)>, l2=0.1)": (
        lambda: cfgd.LeastSquares(np.stack([T, T**2], 1), T, l2=0.1)
    ),
    "LinearModel(X=<array of shape (30, 1)>, y=<array of shape (30,)>, l2=0.5, intercept=True)": (
        lambda: cfgd.LinearModel(T[:, None], T > 0.3, l2=0.5, intercept=True)
    ),
    "LinearModel(X=<array of shape (30, 1)>, y=<array of shape (30,)>, loss='poisson', l2=0.0, "
    "sample_weight=<array of shape (30,)>)": (
        lambda: cfgd.LinearModel(T[:, None], np.arange(30), "poisson", sample_weight=1 + T)
    ),
    "Residuals(fn=<function model>, loss='huber', scale=0.5)": (
        lambda: cfgd.Residuals(a_model(), "huber", scale=0.5)
    ),
    "ResidualTerms(weights={'data': 2.0}, data=Residuals(fn=<function model>, scale=1.0))": (
        lambda: cfgd.ResidualTerms(data=cfgd.Residuals(a_model()), weights={"data": 2.0})
    ),
    "ShallowNetwork(z=<array of shape (15, 2)>, y=<array of shape (15,)>, width=3, "
    "activation='sin')": lambda: cfgd.ShallowNetwork(T.reshape(15, 2), T[:15], 3, "sin"),
    "Smooth(fn=<function model>)": lambda: cfgd.Smooth(a_model()),
    "External(value=<function sum>, gradient=<function model>)": lambda: cfgd.External(
        np.sum, a_model()
    ),
    "<Blocks: 30 rows, 1 columns, loss 'squared'>": lambda: cfgd.Blocks(T[:, None], T, "squared"),
    "Resample(draw=<function model>, every=2)": lambda: cfgd.Resample(a_model(), 2),
    "Range('be positive')": lambda: cfgd.zoo.POSITIVE,
    "Residuals(fn=<function model>, scale=1.0, args=([1.0, 2.0], <array of shape (30,)>))": (
        lambda: cfgd.Residuals(a_model(), args=(np.array([1.0, 2.0]), T))
    ),
    "Lagged(past=<array of shape (1, 30)>)": lambda: cfgd.terminal.Lagged(1, T[None]),
}


@pytest.mark.parametrize("text", SHOWN, ids=[text[:50] for text in SHOWN])
def test_data_are_shown_by_shape_and_functions_by_name(text):
    assert repr(SHOWN[text]()) == text


def test_numbers_in_single_precision_have_its_digits():
    assert repr(cfgd.FixedStep(np.float32(0.1))) == "FixedStep(eta=0.1)"
    method = cfgd.AdaptiveTerminal(np.float32(0.7), gamma=np.float32(-0.2))
    assert "gamma=-0.2," in repr(method)


def test_a_traced_number_has_no_text():
    texts = []

    @jax.jit
    def traced(eta):
        texts.append(repr(cfgd.FixedStep(eta)))
        return eta

    traced(jnp.ones(()))
    assert texts == ["FixedStep(eta=<array of shape ()>)"]


@pytest.mark.parametrize("text", [text for text in CALLS[:10] if "best" not in text])
def test_a_traced_method_can_be_shown(text):
    method, texts = eval(text, dict(NAMES)), []

    @jax.jit
    def traced(method):
        texts.append(repr(method))
        return 0.0

    traced(method)
    assert texts[0].startswith(type(method).__name__)
    assert "Traced" not in texts[0]


def test_rules_of_users_show_their_numbers():
    class Cautious(cfgd.StepRule):
        part: float = cfgd.settings.number()
        tries: int = eqx.field(static=True, default=3)

        def choose(self, line, memory):
            return cfgd.Chosen(self.part * line.slope / line.curvature())

    class Bowl(cfgd.Objective):
        centre: float

        def value(self, x):
            return jnp.sum((x - self.centre) ** 2)

    assert repr(Cautious(0.5)).endswith("Cautious(part=0.5)")
    assert repr(cfgd.GradientDescent(Cautious(0.5, 4))) == (
        "GradientDescent(step=Cautious(part=0.5, tries=4))"
    )
    assert repr(Bowl(2.0)) == "Bowl(centre=2.0)"


@pytest.fixture(scope="module")
def built():
    """Objects of all public classes."""
    solution = cfgd.minimize(QUADRATIC, [1.0, 2.0])
    fit = cfgd.curve_fit(lambda t, a, b: a + b * t, T, 1 + T**2, [1.0, 1.0])
    return [
        *(eval(text, dict(NAMES)) for text in CALLS),
        *(make() for make in SHOWN.values()),
        *(cfgd.ExactStep(), cfgd.GridStep(), cfgd.NetworkStep(), cfgd.ArmijoStep()),
        *(cfgd.FixedStep(0.1), cfgd.terminal.CurrentPoint(), cfgd.terminal.Lagged(2)),
        cfgd.order.Constant(gamma=0.1),
        *(cfgd.Resample(a_model(), 2), cfgd.Parameter(1.0), cfgd.Parameters(a=1.0)),
        *(solution, fit, cfgd.check_gradient(QUADRATIC, [1.0, 2.0]), cfgd.Status.converged),
        cfgd.ConvergenceError(solution),
        cfgd.curve_fit_many(lambda t, a: a * t, T, np.stack([T, 2 * T]), [1.0]),
        cfgd.zoo.Khan2019(0.1, 0.2),
        cfgd.zoo.Aggarwal2024(0.1, 0.2),
        *(
            getattr(cfgd.zoo, name)(0.1)
            for name in cfgd.zoo.__all__
            if name not in ("UpdateRule", "parameter", "Khan2019", "Aggarwal2024")
        ),
    ]


def test_every_public_class_is_tried(built):
    """A class that is added must be built above; abstract ones have no objects."""
    modules = (cfgd, cfgd.terminal, cfgd.order, cfgd.zoo)
    names = {(module, name) for module in modules for name in dir(module)}
    classes = {getattr(module, name) for module, name in names if not name.startswith("_")}
    public = {
        each
        for each in classes
        if inspect.isclass(each) and not inspect.isabstract(each) and "cfgd" in each.__module__
    }
    assert public - {type(each) for each in built} == set()


def test_no_type_stands_for_a_number(built):
    for each in built:
        for unwanted in ("f64[", "f32[", "i32[", "(numpy)", "np.float64", "array(", " at 0x"):
            assert unwanted not in repr(each)


def test_results_of_functions_show_their_numbers():
    F = cfgd.smoothing(np.sin, 0.5, 0.25, -1.0)
    assert repr(F) == "smoothing(f=<function sin>, alpha=0.5, beta=0.25, terminal=-1.0)"
    data = cfgd.distributed.rows(np.eye(3), [1.0, 2.0, 4.0])
    wanted = "DistributedRows(X=<array of shape (3, 3)>, y=[1.0, 2.0, 4.0], sample_weight=None)"
    assert repr(data) == wanted
    half = cfgd.Parameter(expression=lambda p: p["a"] / 2)
    assert repr(half) == "Parameter(expression=<lambda>)"
