"""Methods composed of rules, and custom rules, which need nothing but their own class."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd._core.pytrees import Structure
from cfgd.methods.paper.order import Constant, Order, Stages, beta_of
from cfgd.methods.paper.settings import lay_out, number, point
from cfgd.methods.paper.terminal import CurrentPoint, Fixed, Lagged, Terminal
from problems import BOWL, PAST, X0, A, B, C, do_nothing, identity, wave

RECORD = {"x": identity, "gamma": "gamma", "eta": "eta"}


class Average(Terminal):
    """c_k: an exponentially weighted mean of the points before x_k, from `first` on."""

    keep: float = number(per_coordinate=False)
    first: np.ndarray = point()

    def init(self, x0):
        return jnp.broadcast_to(self.first, x0.shape)

    def next(self, memory, x, k):
        return memory, self.keep * memory + (1 - self.keep) * x


class Fading(Order):
    """gamma_k = gamma / (1 + k)."""

    gamma: float = number()
    vanishes = True

    def numbers(self, k):
        return 0.4, beta_of(0.4, self.gamma / (1 + k))


class PartialStep(cfgd.StepRule):
    """A fraction of the exact step that grows with every iteration up to 1."""

    part: float = number(per_coordinate=False)

    def init(self, dtype):
        return jnp.asarray(self.part, dtype)

    def choose(self, line, memory):
        eta = memory * line.slope / line.curvature()
        return cfgd.Chosen(eta, jnp.minimum(1.0, 1.1 * memory), line.costs.curvature)


def custom(keep=0.6, first=C, gamma=-0.4, part=0.5):
    return cfgd.Fractional(Average(keep, first), Fading(gamma), PartialStep(part))


def plain_loop(iterations, keep=0.6, first=C, gamma=-0.4, part=0.5):
    x, c, points, gammas = X0, first, [X0], []
    for k in range(iterations):
        g = A @ x + B
        gammas.append(gamma / (1 + k))
        d = g + gammas[-1] * np.diag(A) * (x - c)
        x, c = x - part * (g @ d) / (d @ A @ d) * d, keep * c + (1 - keep) * x
        part = min(1.0, 1.1 * part)
        points.append(x)
    return np.array(points), gammas


@pytest.mark.slow
def test_custom_rules_give_the_iterates_of_a_plain_loop():
    end = cfgd.minimize(
        BOWL.objective, X0, custom(), max_iterations=12, tolerance=0.0, record=RECORD
    )
    points, gammas = plain_loop(12)
    np.testing.assert_allclose(end.history["x"], points, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(end.history["gamma"][1:], gammas, rtol=1e-13)
    assert end.evaluations == 13
    assert "Fractional with PartialStep, 1 node" in end.summary


@pytest.mark.slow
def test_a_sweep_varies_the_declared_fields_of_custom_rules():
    firsts = np.stack([C, 2 * C, -C])
    many = custom(keep=np.array([0.2, 0.6, 0.9]), first=firsts, gamma=np.array([-0.4, 0.1, 0.0]))
    options = {"max_iterations": 8, "tolerance": 0.0, "record": RECORD, "callback": do_nothing}
    ends = cfgd.sweep(BOWL.objective, X0, many, **options)
    for i, (keep, gamma) in enumerate([(0.2, -0.4), (0.6, 0.1), (0.9, 0.0)]):
        points, _ = plain_loop(8, keep, firsts[i], gamma)
        np.testing.assert_allclose(ends[i].history["x"], points, rtol=1e-10, atol=1e-11)


@pytest.mark.slow
def test_custom_rules_keep_the_precision_of_the_data():
    """Numbers that a rule creates do not promote float32, even with x64 enabled."""
    f = cfgd.Quadratic(A.astype(np.float32), B.astype(np.float32))
    method = custom(first=C.astype(np.float32))
    with jax.enable_x64(True):
        end = cfgd.minimize(
            f, X0.astype(np.float32), method, max_iterations=5, tolerance=0.0, callback=do_nothing
        )
    assert end.x.dtype == np.float32
    np.testing.assert_allclose(end.x, plain_loop(5)[0][-1], rtol=1e-4)


def test_a_new_number_of_a_custom_rule_causes_no_new_trace():
    """This also holds for a Python number, as in the documentation."""
    traces = []

    def f(x):
        traces.append(x.shape)
        return jnp.sum((x - 1) ** 2)

    def solve(keep):
        method = cfgd.Fractional(Average(keep, 0.0), Fading(-0.1), cfgd.FixedStep(0.1))
        return cfgd.minimize(f, np.zeros(2), method, max_iterations=3)

    solve(0.5)
    before = len(traces)
    solve(0.7)
    assert len(traces) - before <= 1  # the check of its output


class Careless(cfgd.StepRule):
    def choose(self, line, memory):
        return 0.1


class Forgetful(cfgd.StepRule):
    def init(self, dtype):
        return jnp.zeros((), dtype)

    def choose(self, line, memory):
        return cfgd.Chosen(jnp.asarray(0.1, line.d.dtype))


class Undeclared(Terminal):
    keep: float

    def init(self, x0):
        return x0

    def next(self, memory, x, k):
        return memory, self.keep * memory + (1 - self.keep) * x


MISTAKES = {
    "a number instead of Chosen": (
        lambda: cfgd.minimize(BOWL.objective, X0, cfgd.GradientDescent(Careless())),
        "`Careless(choose=...)` must return Chosen(eta, ...), got a float.",
    ),
    "a memory that is lost": (
        lambda: cfgd.minimize(BOWL.objective, X0, cfgd.GradientDescent(Forgetful())),
        "`Forgetful(choose=...)` must return a memory like the one that `init` gave, got "
        "PyTreeDef(None).",
    ),
    "a word for a number": (
        lambda: cfgd.minimize(BOWL.objective, X0, custom(keep="half")),
        "`Average(keep=...)` must be a number, got an array of dtype <U4.",
    ),
    "not a number": (
        lambda: cfgd.minimize(BOWL.objective, X0, custom(gamma=np.nan)),
        "`Fading(gamma=...)` must be finite, got nan.",
    ),
    "a sweep with an undeclared field": (
        lambda: cfgd.sweep(
            BOWL.objective,
            X0,
            cfgd.Fractional(Undeclared(0.5), Constant(gamma=[0.1, 0.2]), cfgd.ExactStep()),
        ),
        "`sweep(methods=...)` must declare its numbers by cfgd.settings.number(), point() or "
        "points(), got Fractional.terminal.keep.",
    ),
    "best without the method for it": (
        lambda: cfgd.minimize(BOWL.objective, X0, cfgd.NonAdaptive(C, gamma="best")),
        '`NonAdaptive(gamma=...)` must be a number; "best" goes with '
        "AdaptiveTerminal(gamma=\"best\"), got 'best'.",
    ),
    "stages, composed": (
        lambda: cfgd.minimize(
            BOWL.objective,
            X0,
            cfgd.Fractional(Fixed(C), Stages([cfgd.Stage(3, gamma=[1.0, 2.0])]), cfgd.ExactStep()),
        ),
        "`Stage(gamma=...)` must be a number or have shape (3,), got shape (2,).",
    ),
    "steps for methods": (
        lambda: cfgd.sweep(BOWL.objective, X0, [cfgd.FixedStep(0.1), cfgd.FixedStep(0.2)]),
        "`sweep(methods=...)` must be settings of one and the same method, got FixedStep.",
    ),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("run", "message"), MISTAKES.values(), ids=MISTAKES)
def test_message(run, message):
    with pytest.raises(ValueError, match=r"^`") as error:
        run()
    assert str(error.value) == message


def test_messages_name_custom_rules():
    with pytest.raises(
        ValueError, match=r"^`PartialStep\(part=\.\.\.\)` must be one number, got shape"
    ):
        cfgd.minimize(BOWL.objective, X0, custom(part=np.array([0.5, 0.5])))
    with pytest.raises(
        ValueError, match=r"^`Average\(first=\.\.\.\)` must be a number or of shape"
    ):
        cfgd.minimize(BOWL.objective, X0, custom(first=np.zeros(5)))


STAGES = [cfgd.Stage(4, gamma=0.5), cfgd.Stage(30, gamma=0.0)]
COMPOSED = {  # a preset, and the same written out
    "gradient descent": (
        cfgd.GradientDescent(),
        cfgd.Fractional(CurrentPoint(), Constant(0.5, beta=0.0), cfgd.ExactStep(), nodes=1),
    ),
    "non-adaptive": (
        cfgd.NonAdaptive(C, 0.3, gamma=0.4),
        cfgd.Fractional(Fixed(C), Constant(0.3, gamma=0.4), cfgd.ExactStep()),
    ),
    "adaptive terminal": (
        cfgd.AdaptiveTerminal(gamma=-0.3, lag=2, past=PAST[:2]),
        cfgd.Fractional(Lagged(2, PAST[:2]), Constant(gamma=-0.3), cfgd.ExactStep()),
    ),
    "adaptive order": (
        cfgd.AdaptiveOrder(STAGES, C),
        cfgd.Fractional(Fixed(C), Stages(STAGES), cfgd.ExactStep()),
    ),
}


@pytest.mark.one_case
@pytest.mark.parametrize(("preset", "composed"), COMPOSED.values(), ids=COMPOSED)
def test_presets_are_compositions_of_public_rules(preset, composed):
    options = {"max_iterations": 20, "record": {"x": identity}, "callback": do_nothing}
    ends = [cfgd.minimize(BOWL.objective, X0, method, **options) for method in (preset, composed)]
    np.testing.assert_array_equal(ends[0].history["x"], ends[1].history["x"])
    assert ends[0].status is ends[1].status
    assert preset.traits.seeks_minimiser == composed.traits.seeks_minimiser


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (1.0, Constant(gamma=0.1), cfgd.ExactStep()),
            "must be one of CurrentPoint()",
        ),
        ((CurrentPoint(), 0.5, cfgd.ExactStep()), "order=...)` must be one of Constant(alpha"),
        ((CurrentPoint(), Constant(gamma=0.1), 0.1), "step=...)` must be one of ExactStep()"),
    ],
    ids=["terminal", "order", "step"],
)
def test_a_value_that_is_not_a_rule_is_refused(arguments, message):
    with pytest.raises(ValueError, match=r"^`Fractional") as error:
        cfgd.Fractional(*arguments)
    assert message in str(error.value)


GAMMAS = {  # a method, an objective, its gammas
    "non-adaptive": (cfgd.NonAdaptive(C, 0.3, beta=0.9), BOWL.objective, 0.9 - 0.7 / 1.7),
    "adaptive terminal": (cfgd.AdaptiveTerminal(gamma=-0.3), BOWL.objective, -0.3),
    "per coordinate": (
        cfgd.AdaptiveTerminal(gamma=np.array([-0.3, 0.1, 0.2])),
        BOWL.objective,
        np.array([-0.3, 0.1, 0.2]),
    ),
    "adaptive order": (
        cfgd.AdaptiveOrder(STAGES, C),
        BOWL.objective,
        np.array([0.5] * 4 + [0.0] * 8),
    ),
    "ten nodes": (cfgd.AdaptiveTerminal(gamma=-0.3), wave, -0.3),
}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "f", "gamma"), GAMMAS.values(), ids=GAMMAS)
def test_every_method_with_a_gamma_records_it(method, f, gamma):
    x0 = X0 if f is BOWL.objective else np.array([1.6, -1.2])
    options = {"max_iterations": 12, "tolerance": 0.0, "callback": do_nothing}
    end = cfgd.minimize(f, x0, method, record={"g": "gamma"}, **options)
    assert np.all(np.isnan(end.history["g"][0]))
    seen = end.history["g"][1:]
    expected = np.broadcast_to(gamma, seen.shape)
    np.testing.assert_allclose(seen, expected, rtol=1e-12, atol=1e-13)


def test_gradient_descent_has_no_gamma_to_record():
    with pytest.raises(ValueError, match=r"number of the method \(k, eta\), got 'gamma'"):
        cfgd.minimize(BOWL.objective, X0, cfgd.GradientDescent(), record={"g": "gamma"})


def test_a_direction_without_a_step():
    """Integrations need `propose` and the line, without a step."""
    with jax.enable_x64(True):
        method = cfgd.AdaptiveTerminal(0.3, gamma=-0.4, past=PAST[:1])
        method = lay_out(method, Structure.of(X0), 3)
        state = method.init(BOWL.objective, jnp.asarray(X0))
        proposal = method.propose(BOWL.objective, state)
        line = BOWL.objective.line(state.evaluation, proposal.d)
    g = A @ X0 + B
    d = g - 0.4 * np.diag(A) * (X0 - PAST[0])
    np.testing.assert_allclose(proposal.d, d, rtol=1e-13)
    np.testing.assert_allclose(line.slope, g @ d, rtol=1e-13)
    np.testing.assert_array_equal(state.evaluation.x, X0)


def test_the_earlier_name_of_the_current_point():
    assert cfgd.terminal.Here is CurrentPoint
