"""The wrappers of objectives, and the answers that each of them changes on purpose.

An answer of a wrapper is that of the wrapped objective, or what `Wrapper.differs` says, with a
reason: times the factor of `Rescaled`, for example.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from contract import CURVATURE, TRAITS, Inputs, answers_of, assert_equal, inputs_at, numbers

from cfgd._core.box import Box
from cfgd.objectives.base import DerivativeCost, Traits, hessian_diagonal
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import LineCosts
from cfgd.objectives.finite_differences import hessian_product
from cfgd.objectives.host import HostObjective
from cfgd.objectives.local import Local
from cfgd.objectives.projected import Projected
from cfgd.objectives.rescaled import Rescaled
from objectives import TIGHT

FACTOR = 0.3  # of `Rescaled`
BY_DIFFERENCES = 1e-6  # relative error of central differences of gradients
PRODUCTS_ALONE = Curvature(lambda v: v, lambda: np.ones(3))  # with the defaults of all others


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
                *("rows_are_data", "extra_damping", "dispersion", "dof", "information"),
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


# The points of the shared table lie in the box, and some of the line from `POINT` of
# test_forgotten_members.py outside.
BOUND = 3.4


def projected_points(at, etas):
    return [jnp.clip(at.x - eta * at.d, -BOUND, BOUND) for eta in etas]


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
            jnp.stack([f.value(x) for x in projected_points(at, etas)])
            for etas in (at.etas, at.each)
        ),
    ),
    "line.to": Differs(
        "projected points are computed anew",
        lambda a, f, at: tuple(
            numbers(f.evaluate(projected_points(at, etas[:1])[0])) for etas in (at.etas, at.each)
        ),
    ),
}


def in_box(objective):
    bound = jnp.asarray(BOUND)  # of all coordinates
    return Projected(objective, Box(-bound, bound))


WRAPPERS = {
    "Projected": Wrapper(in_box, PROJECTED),
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
