"""The contract of objectives: every public member is asked for, and answers are compared.

Each member of `Objective`, `Line`, `Curvature` and `Traits` has an entry in `ASK`, `ASK_LINE` or
`ASK_CURVATURE`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from cfgd._core.pytrees import Structure
from cfgd.objectives import Line
from cfgd.objectives.base import Objective, Traits
from cfgd.objectives.curvature import Curvature
from objectives import arguments, close


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


def field_names(cls):
    return {field.name for field in dataclasses.fields(cls)}


LINE = public(Line) | field_names(Line)
CURVATURE, TRAITS = field_names(Curvature), field_names(Traits)


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
    "dof": lambda dof, at: dof(),
    "information": lambda information, at: tuple(information() or ()),
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
