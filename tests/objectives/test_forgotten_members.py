"""A wrapper that forgets a member of the contract is noticed.

The answers of `Inconsistent` do not follow from one another: the default of the base class is wrong
for every member.
"""

import contextlib
import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract import CURVATURE, LINE, TRAITS, public
from wrappers import PRODUCTS_ALONE, WRAPPERS, assert_forwards

from cfgd.objectives import Evaluation, Line
from cfgd.objectives.base import DerivativeCost, Objective, Traits
from cfgd.objectives.curvature import Curvature, JacobianRows
from cfgd.objectives.evaluation import LineCosts, slope_along
from cfgd.objectives.host import HostLine, HostObjective
from cfgd.objectives.information import Information
from cfgd.objectives.local import Local
from cfgd.objectives.projected import Projected, ProjectedLine
from cfgd.objectives.rescaled import Rescaled, RescaledLine

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
        "information": lambda H: Information.of(H() + 37.0, 41.0),
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


POINT = np.array([0.7, -0.4, 3.39])


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
    "Projected": (Projected, ProjectedLine),
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
    right = getattr(cls.traits, "fget", None) or cls.traits.func  # a property, or a cached one

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
