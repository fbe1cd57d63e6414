"""Every wrapper of an objective forwards every member of the contract.

Each public member of `Objective`, `Line`, `Curvature` and `Traits` is asked of a wrapper and of
what it wraps, and the answers are compared: equal, times the factor of `Rescaled`, or what
`Wrapper.differs` says, with a reason. This is done on every objective of the shared table, and on
`Inconsistent`, whose answers do not follow from one another: there the default of the base class is
wrong for every member, so that a wrapper that forgets one is noticed.
"""

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cfgd
from cfgd._core.box import Box
from cfgd._core.pytrees import Structure
from cfgd.objectives import Evaluation, Line
from cfgd.objectives.base import DerivativeCost, Objective, Traits, hessian_diagonal
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import LineCosts, slope_along
from cfgd.objectives.finite_differences import hessian_product
from cfgd.objectives.host import HostLine, HostObjective, host_objective
from cfgd.objectives.linear.sharded import ShardedLinearModel, sharded_on_host
from cfgd.objectives.local import Local
from cfgd.objectives.projected import Projected
from cfgd.objectives.rescaled import Rescaled, RescaledLine
from objectives import CASES, LABELS, LINEAR, TIGHT, W0, WEIGHTS, X, Y, arguments, close
from problems import quick

FACTOR = 0.3  # of `Rescaled`
BY_DIFFERENCES = 1e-6  # relative error of central differences of gradients
PRODUCTS_ALONE = Curvature(lambda v: v, lambda: np.ones(3))  # with the defaults of all others


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


def field_names(cls):
    return {field.name for field in dataclasses.fields(cls)}


LINE = public(Line) | field_names(Line)
CURVATURE, TRAITS = field_names(Curvature), field_names(Traits)


# ------------------------------------------------------------------ asking


class Inputs(NamedTuple):
    x: Any
    t: Any
    d: Any
    etas: Any
    each: Any  # rows with one step for each coordinate


def inputs_at(x, xp):
    """Return the arguments of the contract at x, as arrays of NumPy or of JAX."""
    with jax.enable_x64(True):
        return Inputs(*map(xp.asarray, arguments(np.asarray(x))))


def numbers(evaluation):
    """Return x, value and gradient; `aux` belongs to the objective alone."""
    return tuple(evaluation[:3])


def refusal(objective, at):
    """Return what `check` raises, or None."""
    try:
        objective.check("minimize", at.x)
    except ValueError as error:
        return str(error)
    return None


def value_of(objective, at):
    """Return the value of an objective in another form, or None where there is none."""
    return None if objective is None else numbers(objective.evaluate(np.asarray(at.x)))[1]


def traits_of(objective):
    traits = {name: getattr(objective.traits, name) for name in TRAITS}
    return traits | {"is_singular": traits["is_singular"] and traits["is_singular"]()}


ASK: dict[str, Callable[[Any, Inputs], Any]] = {
    "value": lambda f, at: f.value(at.x),
    "gradient": lambda f, at: f.gradient(at.x),
    "coordinate_slope": lambda f, at: f.coordinate_slope(at.x, at.t[1]),
    "coordinate_curvature": lambda f, at: f.coordinate_curvature(at.x, at.t[1]),
    "shape": lambda f, at: f.shape,
    "dimension": lambda f, at: f.dimension,
    "evaluate": lambda f, at: numbers(f.evaluate(at.x)),
    "coordinate_derivatives": lambda f, at: f.coordinate_derivatives(f.evaluate(at.x), at.t),
    "hessian_times": lambda f, at: f.hessian_times(f.evaluate(at.x), at.d),
    "on_host": lambda f, at: value_of(f.on_host(), at),
    "raveled": lambda f, at: value_of(f.raveled(Structure.of(np.asarray(at.x))), at),
    "check": refusal,
    # what these return is asked for its own members
    "line": lambda f, at: {name: ask(line_of(f, at), at) for name, ask in ASK_LINE.items()},
    "curvature": lambda f, at: curvature_answers(f, at),
    "traits": lambda f, at: traits_of(f),
}
ASK_LINE: dict[str, Callable[[Any, Inputs], Any]] = {
    "objective": lambda line, at: isinstance(line.objective, Objective),
    "evaluation": lambda line, at: numbers(line.evaluation),
    "d": lambda line, at: line.d,
    "slope": lambda line, at: line.slope,
    "descends_on_f": lambda line, at: line.descends_on_f,
    "of_f": lambda line, at: line.of_f is line,
    "costs": lambda line, at: tuple(line.costs),
    "curvature": lambda line, at: line.curvature(),
    "values": lambda line, at: (line.values(at.etas), line.values(at.each)),
    "to": lambda line, at: (numbers(line.to(at.etas[0])), numbers(line.to(at.each[0]))),
}
ASK_CURVATURE: dict[str, Callable[[Any, Inputs], Any]] = {
    "times": lambda times, at: times(at.d),
    "diagonal": lambda diagonal, at: diagonal(),
    "shape": lambda shape, at: shape,
    "rows": lambda rows, at: tuple(rows()),
    "matrix": lambda matrix, at: matrix(),
    "residuals_at": lambda residuals_at, at: residuals_at(at.t[1]),
    "acceleration": lambda acceleration, at: acceleration(at.d, 0.5),
    "is_exact": lambda is_exact, at: is_exact,
    "cost": lambda cost, at: cost,
    "product_cost": lambda cost, at: cost,
    "rows_are_data": lambda are_data, at: are_data,
    "extra_damping": lambda extra_damping, at: extra_damping(),
    "dispersion": lambda dispersion, at: dispersion(),
    "is_stationary": lambda test, at: tuple(test(power) for power in (1e-9, 1e9)),
}


def line_of(objective, at):
    return objective.line(objective.evaluate(at.x), at.d)


def curvature_answers(objective, at):
    """Return what each field of the curvature gives; None for a field without an answer."""
    found = objective.curvature(objective.evaluate(at.x))
    if found is None:
        return None
    fields = {name: getattr(found, name) for name in ASK_CURVATURE}
    return {
        name: None if field is None else ASK_CURVATURE[name](field, at)
        for name, field in fields.items()
    }


def answers_of(objective, at, members=tuple(ASK)):
    """Return the answers of an objective in float64, by "member" or "member.field"."""
    found: dict[str, Any] = {}
    with jax.enable_x64(True):
        for member in members:
            answer = ASK[member](objective, at)
            if isinstance(answer, dict):
                found |= {f"{member}.{name}": part for name, part in answer.items()}
            else:
                found[member] = answer
    return found


def assert_equal(got, want, tolerance):
    """Compare two answers: arrays to the tolerance, everything else exactly."""
    leaves, others = (jax.tree.leaves(answer, is_leaf=_is_none) for answer in (got, want))
    assert len(leaves) == len(others)
    for one, other in zip(leaves, others, strict=True):
        if isinstance(other, np.ndarray | np.generic | jax.Array | float) and one is not None:
            close(one, other, tolerance)
        else:
            assert one == other


def _is_none(leaf):
    return leaf is None


# ------------------------------------------------------------------ the wrappers


class Differs(NamedTuple):
    """An answer that a wrapper changes on purpose."""

    reason: str
    # (answers, wrapped, inputs) -> the expected answer; None where other tests compare it
    expected: Callable[[dict[str, Any], Any, Inputs], Any] | None = None


class Wrapper(NamedTuple):
    wrap: Callable[[Any], Any]
    differs: dict[str, Differs]
    xp: Any = jnp  # whose arrays it takes
    takes: Callable[[Any], bool] = lambda objective: True


def times(power):
    """Return the answers of the wrapped objective times FACTOR^power."""

    def expected(answers, key):
        return jax.tree.map(lambda answer: FACTOR**power * answer, answers[key])

    return expected


def scaled(key, power=1.0):
    reason = "f is multiplied by the factor"
    return Differs(reason, lambda answers, f, at: times(power)(answers, key))


def scaled_evaluation(key):
    """Return the same x with value and gradient scaled."""

    def expected(answers, f, at):
        def one(x, value, gradient):
            return x, FACTOR * value, FACTOR * gradient

        found = answers[key]
        return tuple(one(*each) for each in found) if isinstance(found[0], tuple) else one(*found)

    return Differs("f is multiplied by the factor", expected)


RESCALED = (
    {
        key: scaled(key)
        for key in (
            *("value", "gradient", "coordinate_slope", "coordinate_curvature"),
            *("coordinate_derivatives", "hessian_times", "on_host", "raveled"),
            *("line.slope", "line.curvature", "line.values"),
            *("curvature.times", "curvature.diagonal", "curvature.matrix"),
            *("curvature.acceleration", "curvature.extra_damping", "curvature.dispersion"),
        )
    }
    | {key: scaled(key, 0.5) for key in ("curvature.rows", "curvature.residuals_at")}
    | {key: scaled_evaluation(key) for key in ("evaluate", "line.to", "line.evaluation")}
)


def constant(reason, value):
    return Differs(reason, lambda answers, f, at: value)


def local_diagonal(estimator, f, at):
    evaluation = f.evaluate(at.x)
    if estimator == "exact":
        return hessian_diagonal(f, evaluation)
    return f.curvature(evaluation).diagonal()


def linear_slopes(estimator, answers, f, at, t):
    _, _, gradient = answers["evaluate"]
    D = local_diagonal(estimator, f, at)
    return gradient + D * (t - at.x), jnp.broadcast_to(D, t.shape)


def local(estimator):
    """Return what `Local` changes: the coordinate slopes are those of a quadratic model."""
    linear, no_model = "slopes are linear in t", "products and a diagonal are all of the model"
    slopes = functools.partial(linear_slopes, estimator)
    unchanged_costs = {"exact": lambda f: f.traits.diagonal_cost}
    cost = unchanged_costs.get(estimator, lambda f: DerivativeCost(per_node=1.0))
    return {
        "coordinate_derivatives": Differs(linear, lambda a, f, at: slopes(a, f, at, at.t)),
        "coordinate_slope": Differs(linear, lambda a, f, at: slopes(a, f, at, at.t[1])[0]),
        "coordinate_curvature": Differs(linear, lambda a, f, at: slopes(a, f, at, at.t[1])[1]),
        "on_host": Differs(
            "an exact diagonal without a formula for the Hessian needs JAX",
            lambda a, f, at: a["on_host"] if f.traits.curvature == "Hessian" else None,
        ),
        "curvature.times": Differs(
            "products are those of the Hessian", lambda a, f, at: a["hessian_times"]
        ),
        "curvature.diagonal": Differs(
            "the estimated diagonal", lambda a, f, at: local_diagonal(estimator, f, at)
        ),
        "curvature.product_cost": Differs(
            "products are those of the Hessian", lambda a, f, at: a["traits.product_cost"]
        ),
        "curvature.is_stationary": Differs(
            "that of the objective, if it has a curvature",
            lambda a, f, at: a.get("curvature.is_stationary"),
        ),
        **{
            f"curvature.{name}": constant(no_model, getattr(PRODUCTS_ALONE, name))
            for name in (
                *("shape", "rows", "matrix", "residuals_at", "acceleration", "is_exact", "cost"),
                *("rows_are_data", "extra_damping", "dispersion"),
            )
        },
        "traits.label": Differs(
            "messages name both", lambda a, f, at: f"a Local of {f.traits.label}"
        ),
        "traits.linear_slopes": constant(linear, True),
        "traits.curvature": constant(no_model, None),
        "traits.diagonal": constant("the estimated diagonal", "given"),
        "traits.derivative_cost": Differs("one diagonal", lambda a, f, at: cost(f)),
        "traits.diagonal_cost": Differs("one diagonal", lambda a, f, at: cost(f)),
    }


def probed_cost():
    return DerivativeCost(per_node=2.0 * 3)


HUTCHINSON = local("hutchinson") | {
    **{
        name: Differs("random, see test_local.py")
        for name in (
            *("coordinate_derivatives", "coordinate_slope", "coordinate_curvature"),
            "curvature.diagonal",
        )
    },
    "on_host": constant("probes are drawn by JAX", None),
    "line.costs": constant("evaluations have probes, so lines are general", tuple(LineCosts())),
    "curvature.is_stationary": constant("evaluations have probes for `aux`", None),
    "traits.label": Differs(
        "messages name both", lambda a, f, at: f"a Local of {f.traits.label} with probes"
    ),
    "traits.derivative_cost": constant("two gradients for a probe", probed_cost()),
    "traits.diagonal_cost": constant("two gradients for a probe", probed_cost()),
    **{
        f"traits.{name}": constant("lines and products are general", getattr(Traits(""), name))
        for name in TRAITS
        - {"label", "structure", "is_singular", "linear_slopes", "diagonal"}
        - {"derivative_cost", "diagonal_cost"}
    },
    "curvature.product_cost": constant("lines and products are general", 2.0),
}


def by_differences(answers, f, at):
    def gradient(x):
        return np.asarray(f.evaluate(jnp.asarray(x)).gradient)

    return hessian_product(gradient, np.asarray(at.x), np.asarray(at.d))


HOST = {
    "hessian_times": Differs("nothing has to be compiled for differences", by_differences),
    "traits.hessian_by_differences": constant("see `hessian_times`", True),
    "on_host": Differs("it is on the host itself", lambda a, f, at: a["evaluate"][1]),
    "curvature.matrix": Differs(
        "rows suffice", lambda a, f, at: a["curvature.matrix"] if not has_rows(a) else None
    ),
    "curvature.residuals_at": Differs(
        "used with rows alone",
        lambda a, f, at: a["curvature.residuals_at"] if has_rows(a) else None,
    ),
}


def has_rows(answers):
    return answers["curvature.rows"] is not None


def points_of(at, etas):
    return [at.x - eta * at.d for eta in etas]


PROJECTED = {
    "on_host": constant("Auto's oracle projects on the host", None),
    "traits.accumulates_rounding": constant("projected points are computed anew", False),
    "line.costs": Differs(
        "values are those of projected points",
        lambda a, f, at: (a["line.costs"][0], LineCosts().value),
    ),
    "line.values": Differs(
        "values are those of projected points",
        lambda a, f, at: tuple(
            jnp.stack([f.value(x) for x in points_of(at, etas)]) for etas in (at.etas, at.each)
        ),
    ),
    "line.to": Differs(
        "projected points are computed anew",
        lambda a, f, at: tuple(
            numbers(f.evaluate(points_of(at, etas[:1])[0])) for etas in (at.etas, at.each)
        ),
    ),
}


def in_wide_box(objective):
    wide = jnp.asarray(1e9)  # for all coordinates
    return Projected(objective, Box(-wide, wide))


WRAPPERS = {
    "Projected": Wrapper(in_wide_box, PROJECTED),
    "Rescaled": Wrapper(lambda f: Rescaled(f, jnp.asarray(FACTOR)), RESCALED),
    "Local, exact": Wrapper(lambda f: Local(f, "exact"), local("exact")),
    "Local, gauss_newton": Wrapper(
        lambda f: Local(f, "gauss_newton"),
        local("gauss_newton"),
        takes=lambda f: f.traits.diagonal == "Gauss-Newton",
    ),
    "Local, hutchinson": Wrapper(lambda f: Local(f, "hutchinson", probes=3, key=1), HUTCHINSON),
    "HostObjective": Wrapper(HostObjective, HOST, np),
}
wrappers = pytest.mark.parametrize("name", WRAPPERS)


def assert_forwards(wrapper, objective, x, answers=None):
    """Compare every answer of a wrapper with that of the objective."""
    answers = answers_of(objective, inputs_at(x, jnp)) if answers is None else answers
    with jax.enable_x64(True):
        wrapped = wrapper.wrap(objective)
    found = answers_of(wrapped, inputs_at(x, wrapper.xp))
    if "curvature" in answers and "curvature.times" in found:  # of `Local`, of objectives without
        answers = answers | {f"curvature.{name}": None for name in CURVATURE}
    assert found.keys() >= answers.keys() - {"curvature"}
    for key, got in found.items():
        want, tolerance = answers.get(key), TIGHT
        if key in wrapper.differs:
            expected = wrapper.differs[key].expected
            if expected is None:
                continue
            with jax.enable_x64(True):
                want = expected(answers, objective, inputs_at(x, jnp))
            if key == "hessian_times" and wrapper.xp is np:
                tolerance = BY_DIFFERENCES
        try:
            assert_equal(got, want, tolerance)
            if wrapper.xp is np:
                assert not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(got))
        except AssertionError as error:
            raise AssertionError(f"{key} of {type(wrapped).__name__}") from error


# ------------------------------------------------------------------ the members


def test_every_member_of_the_contract_is_asked_for():
    """A new member of a class below needs an entry in ASK, and in `Inconsistent`."""
    assert set(ASK) == public(Objective)
    assert set(ASK_LINE) == LINE
    assert set(ASK_CURVATURE) == CURVATURE
    assert public(Curvature) - CURVATURE == {"scaled"}
    assert public(Traits) - TRAITS == {"is_quadratic"}
    for differs in (RESCALED, HUTCHINSON, HOST, PROJECTED, local("exact")):
        members = {key.partition(".")[0] for key in differs}
        assert members <= public(Objective)
        assert {key.partition(".")[2] for key in differs} <= {""} | LINE | CURVATURE | TRAITS


def test_the_contract_stays_small():
    assert len(public(Objective)) <= 16
    assert len(CURVATURE) <= 14
    assert len(TRAITS) <= 18


def test_traits_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        cfgd.Quadratic(np.eye(2), np.ones(2)).traits.label = "another"


# ------------------------------------------------------------------ forgotten members


INCONSISTENT_TRAITS = {
    "label": "an Inconsistent",
    "structure": "residuals",
    "linear_slopes": True,
    "accumulates_rounding": True,
    "curvature": "Gauss-Newton",
    "diagonal": "Gauss-Newton",
    "size": (5, 3),
    "is_sparse": True,
    "prefers_gradients": True,
    "n_nonlinear": 2,
    "is_singular": lambda: True,
    "runs_user_code": True,
    "hessian_by_differences": True,
    "separate_value": True,
    "derivative_cost": DerivativeCost(3.0, 4.0),
    "diagonal_cost": DerivativeCost(5.0, 6.0),
    "product_cost": 7.0,
    "value_cost": 8.0,
}
JACOBIAN = np.cos(np.arange(15.0)).reshape(5, 3)


def inconsistent_curvature(x, residuals):
    """Return the fields of a curvature, none of which follows from another one."""
    return {
        "times": lambda v: 23.0 * v + x[0],
        "diagonal": lambda: 1.5 + x**2,
        "shape": (5, 3),
        "rows": lambda: JacobianRows(x[0] * jnp.asarray(JACOBIAN), 2.0 + residuals(x)),
        "matrix": lambda: x[1] * jnp.asarray(JACOBIAN[:3]),
        "residuals_at": residuals,
        "acceleration": lambda p, t: t * p + 41.0 * x,
        "is_exact": True,
        "cost": 29.0,
        "product_cost": 31.0,
        "rows_are_data": True,
        "extra_damping": lambda: jnp.asarray(0.5 * x + 3.0),
        "dispersion": lambda: 37.0,
        "is_stationary": lambda tolerance: jnp.asarray((x[0] > -100) & (tolerance > 1.0)),
    }


@dataclasses.dataclass(frozen=True, eq=False)
class InconsistentLine(Line):
    @property
    def costs(self):
        return LineCosts(0.25, 0.125)

    def curvature(self):
        return 17.0 + 2 * self.slope

    def values(self, etas):
        return 19.0 + 3 * etas.reshape(len(etas), -1)[:, 0] * self.slope

    def to(self, eta):
        at = self.evaluation
        return Evaluation(at.x + 1, 2 * at.value, at.gradient - 4.0, at.aux)


class Inconsistent(Objective):
    """Answers that do not follow from one another, so that every default is wrong."""

    shift: Any = 0.0
    without: str = eqx.field(static=True, default="")  # the field of the curvature that is None
    kind: str = eqx.field(static=True, default="Gauss-Newton")  # of the curvature

    def value(self, x):
        return jnp.sum(jnp.sin(x)) + self.shift

    @property
    def shape(self):
        return (3,)

    @property
    def traits(self):
        return Traits(**INCONSISTENT_TRAITS | {"curvature": self.kind})

    def _residuals(self, x):
        return jnp.asarray(JACOBIAN) @ x**2

    def evaluate(self, x):
        value = 5.0 + jnp.sum(x) + self.shift
        return Evaluation(x, value, jnp.cos(2 * x) + 3.0, self._residuals(x))

    def line(self, evaluation, d, slope=None):
        return InconsistentLine(self, evaluation, d, slope_along(evaluation, d, slope))

    def coordinate_derivatives(self, evaluation, t):
        return 2.0 * t + evaluation.x, 3.0 + t**2

    def hessian_times(self, evaluation, v):
        return 41.0 * v + evaluation.x

    def curvature(self, evaluation):
        fields = inconsistent_curvature(evaluation.x, self._residuals)
        return Curvature(**fields | ({self.without: None} if self.without else {}))

    def on_host(self):
        return dataclasses.replace(self, shift=self.shift + 1000.0)

    def raveled(self, structure):
        return dataclasses.replace(self, shift=self.shift + 100.0)

    def check(self, owner, x):
        raise ValueError(f"{owner} is refused")


POINT = np.array([0.7, -0.4, 1.2])


def test_no_answer_of_the_inconsistent_objective_is_a_default():
    assert INCONSISTENT_TRAITS.keys() == TRAITS
    for name, value in INCONSISTENT_TRAITS.items():
        assert value != getattr(Traits("another"), name)
    fields = inconsistent_curvature(POINT, lambda x: x)
    assert fields.keys() == CURVATURE
    assert all(value != getattr(PRODUCTS_ALONE, name) for name, value in fields.items())
    own = vars(Inconsistent).keys()
    derived = {"gradient", "coordinate_slope", "coordinate_curvature", "dimension"}
    assert public(Objective) - own == derived  # no objective overrides these for other answers


# `Local` with probes differentiates `value`: it is compared on the shared table alone
FORWARDING = [name for name in WRAPPERS if name != "Local, hutchinson"]


VARIANTS = {
    "with all": Inconsistent(),
    "a Hessian": Inconsistent(kind="Hessian"),
    "without rows": Inconsistent(without="rows"),
    "without damping": Inconsistent(without="extra_damping"),
    "without a test": Inconsistent(without="is_stationary"),
}


@pytest.mark.one_case
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", FORWARDING)
def test_inconsistent_answers_are_forwarded(name, variant):
    assert_forwards(WRAPPERS[name], VARIANTS[variant], POINT)


CLASSES = {
    "Rescaled": (Rescaled, RescaledLine),
    "Local, exact": (Local,),
    "HostObjective": (HostObjective, HostLine),
}
FORGOTTEN = [
    (name, cls, member)
    for name, classes in CLASSES.items()
    for cls in classes
    for member in sorted(vars(cls).keys() & (public(Objective) | LINE))
]


@pytest.fixture
def fresh_programs():
    """Forget programs that were traced with a broken member, which are cached by class."""
    yield
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_programs")
@pytest.mark.parametrize(("name", "cls", "member"), FORGOTTEN)
def test_a_forgotten_member_is_noticed(monkeypatch, name, cls, member):
    """Without its own definition a wrapper has the default of the base class."""
    monkeypatch.delattr(cls, member)

    def compare():
        for objective in (VARIANTS["with all"], VARIANTS["a Hessian"]):
            assert_forwards(WRAPPERS[name], objective, POINT)

    with pytest.raises((AssertionError, AttributeError, TypeError, jax.errors.JAXTypeError)):
        compare()


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_programs")
@pytest.mark.parametrize("member", sorted(TRAITS))
@pytest.mark.parametrize("name", FORWARDING)
def test_a_forgotten_trait_is_noticed(monkeypatch, name, member):
    wrapper = WRAPPERS[name]
    cls = type(wrapper.wrap(Inconsistent()))
    default = getattr(Traits("another"), member)
    right = cls.traits.fget

    def forgetful(self):
        return dataclasses.replace(right(self), **{member: default})

    if getattr(right(wrapper.wrap(Inconsistent())), member) == default:
        return  # `Local` has no curvature
    monkeypatch.setattr(cls, "traits", property(forgetful))
    with pytest.raises(AssertionError, match=f"{member} of "):
        assert_forwards(wrapper, Inconsistent(), POINT)


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_programs")
@pytest.mark.parametrize("member", sorted(CURVATURE - {"times", "diagonal"}))
@pytest.mark.parametrize("name", ["Rescaled", "HostObjective"])
def test_a_forgotten_field_of_the_curvature_is_noticed(monkeypatch, name, member):
    wrapper = WRAPPERS[name]
    cls = type(wrapper.wrap(Inconsistent()))
    default, right = getattr(PRODUCTS_ALONE, member), cls.curvature
    is_dropped = (name, member) == ("HostObjective", "matrix")  # rows suffice

    def forgetful(self, evaluation):
        return dataclasses.replace(right(self, evaluation), **{member: default})

    monkeypatch.setattr(cls, "curvature", forgetful)
    noticed = pytest.raises(AssertionError, match=f"curvature.{member} ")
    with contextlib.nullcontext() if is_dropped else noticed:
        assert_forwards(wrapper, Inconsistent(), POINT)


# ------------------------------------------------------------------ the shared table

QUICK = [
    *("logistic 0/1, csr, weights, l2", "custom, dense", "least squares"),
    *("network, tanh, p = 3", "quadratic", "smooth"),
]
cases = pytest.mark.parametrize("case", quick({name: name for name in CASES}, QUICK))


@functools.cache
def case_answers(case):
    return answers_of(CASES[case].objective, inputs_at(CASES[case].x, jnp))


@pytest.mark.one_case
@wrappers
@cases
def test_answers_are_those_of_the_wrapped_objective(name, case):
    wrapper, objective = WRAPPERS[name], CASES[case].objective
    if not wrapper.takes(objective):
        pytest.skip("the wrapper refuses this objective: see test_bad_objectives.py")
    assert_forwards(wrapper, objective, CASES[case].x, case_answers(case))


@pytest.mark.one_case
@cases
def test_answers_on_the_host_are_numpy_arrays_and_the_same(case):
    """What `host_objective` returns, with and without a factor."""
    objective, x = CASES[case].objective, CASES[case].x
    with jax.enable_x64(True):
        host = host_objective(objective)
        rescaled = host_objective(Rescaled(objective, jnp.asarray(FACTOR)))
    assert isinstance(host, HostObjective) == (objective.on_host() is None)
    assert type(rescaled.objective) is type(host)
    assert isinstance(rescaled.factor, np.generic)
    members = ["evaluate", "line", "hessian_times", "curvature", "traits", "shape", "dimension"]
    answers, at = case_answers(case), inputs_at(x, np)
    found = answers_of(host, at, members)
    for key, answer in found.items():
        if key == "line.values" and isinstance(host, cfgd.ShallowNetwork):
            continue  # computed by JAX; no solver for networks searches along a line
        assert not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(answer)), key
    for key, got in found.items():
        wanted = HOST[key].expected if key in HOST and isinstance(host, HostObjective) else None
        with jax.enable_x64(True):
            want = answers[key] if wanted is None else wanted(answers, objective, at)
        assert_equal(got, want, BY_DIFFERENCES if key == "hessian_times" else TIGHT)
    for key, got in answers_of(rescaled, at, members).items():
        wanted = RESCALED[key].expected if key in RESCALED else None
        with jax.enable_x64(True):
            want = found[key] if wanted is None else wanted(found, objective, at)
        assert_equal(got, want, BY_DIFFERENCES if key == "hessian_times" else TIGHT)


# ------------------------------------------------------------------ sharded linear models

SHARDED = {
    name: case.objective
    for name, case in LINEAR.items()
    if "dense" in name and "custom" not in name
} | {
    "classes": cfgd.LinearModel(X, LABELS + (Y > 1), "multinomial", 0.2, WEIGHTS, intercept=True),
    "zero weight": cfgd.LinearModel(X, Y, "squared", sample_weight=WEIGHTS * (Y > -1)),
}
NOT_TRACED = "sums over processes are not traced; a user holds the LinearModel itself"
UNSHARDED = {
    "gradient": NOT_TRACED,
    "coordinate_slope": NOT_TRACED,
    "coordinate_curvature": NOT_TRACED,
    "coordinate_derivatives": "Auto takes the diagonal of a convex loss from its curvature",
    "raveled": "Auto runs on vectors",
}
PROCESSES = 2


def on_each_process(model, fn):
    """Return [fn(sharded model) of each process]: threads with some rows each, and a sum."""
    barrier, parts, results = threading.Barrier(PROCESSES), [None] * PROCESSES, {}
    rows = model.X.shape[0]

    def total_for(rank):
        def total(part):
            parts[rank] = part
            barrier.wait(timeout=600)
            whole = sum(parts)
            barrier.wait(timeout=600)  # nobody writes before all have read
            return whole

        return total

    def run(rank):
        here = slice(rank * 4, (rank * 4 + 4) if rank < PROCESSES - 1 else rows)
        try:
            results[rank] = fn(ShardedLinearModel(local_rows(model, here), total_for(rank), rows))
        except BaseException as error:
            results[rank] = error
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [result for result in results.values() if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error  # the first cause, not that the other thread waited in vain
    return list(results.values())


def local_rows(model, here):
    """Return the model of some rows."""
    m = model.X.shape[0]

    def cut(leaf):
        is_per_row = isinstance(leaf, np.ndarray) and leaf.ndim > 0 and len(leaf) == m
        return leaf[here] if is_per_row else leaf

    return jax.tree.map(cut, model.on_host())


@pytest.mark.parametrize(
    "case", quick({name: name for name in SHARDED}, ["squared, dense", "classes", "zero weight"])
)
def test_sums_over_processes_are_those_of_all_rows(case):
    model = SHARDED[case]
    x = np.resize(W0, model.dimension)
    members = [member for member in ASK if member not in UNSHARDED]
    want = answers_of(model.on_host(), inputs_at(x, np), members)
    for found in on_each_process(model, lambda f: answers_of(f, inputs_at(x, np), members)):
        assert found.keys() == want.keys()
        for key, got in found.items():
            try:
                assert_equal(got, want[key], TIGHT)
            except AssertionError as error:
                raise AssertionError(key) from error


def test_without_a_sum_the_answers_of_a_process_are_those_of_its_rows():
    """So the test above notices a sum that is missing."""
    model = SHARDED["logistic 0/1, dense, weights, l2"]
    half = ShardedLinearModel(local_rows(model, slice(4)), lambda part: part, 11)
    members = ["value", "evaluate", "line", "hessian_times", "curvature"]
    found, whole = (answers_of(f, inputs_at(W0, np), members) for f in (half, model.on_host()))
    unsummed = {"evaluate", "value", "hessian_times", "line.values", "line.to"}
    unsummed |= {"curvature.times", "curvature.diagonal", "curvature.matrix", "line.slope"}
    for key in unsummed:
        with pytest.raises(AssertionError):
            assert_equal(found[key], whole[key], 1e-3)


def test_sharded_on_host_of_a_model_on_one_process_has_all_rows():
    model = SHARDED["zero weight"]
    host = sharded_on_host(model)
    assert isinstance(host, ShardedLinearModel)
    assert host.X.shape == model.X.shape
    at = inputs_at(W0, np)
    found, want = (answers_of(f, at, ["evaluate", "curvature"]) for f in (host, model.on_host()))
    for key, got in found.items():
        assert_equal(got, want[key], TIGHT)
    assert sharded_on_host(CASES["custom, dense"].objective) is None
