"""The arguments `p0`, `bounds`, `fixed` and `tied` of a fit, as `Parameters`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cfgd._core import checks
from cfgd._core.pytrees import Structure, checked_pytree
from cfgd.fitting.signature import arguments_of, names_for
from cfgd.objectives.parameters import Parameter, Parameters
from cfgd.solve.bounds import as_box

Models = list[Callable[..., Any]]


class Given(NamedTuple):
    """The parameters of a fit, and the form in which results are returned.

    `positional` are the names of a `p0` that is a list, whose numbers the model takes by their
    place. `form` is a vector or a dict of arrays: results take its array types.
    """

    parameters: Parameters
    positional: list[str] | None
    form: Any


def read_parameters(
    owner: str, models: Models, p0: Any, bounds: Any, fixed: Any, tied: Any, sets: list[str]
) -> Given:
    """Return the parameters of a call of `curve_fit`, or raise a `ValueError`."""
    parameters, positional, form = _read_p0(owner, models, p0, sets)
    parameters = _with_fixed(owner, parameters, fixed, positional)
    parameters = _with_tied(owner, parameters, tied, positional)
    parameters = _with_bounds(owner, parameters, bounds, positional)
    if p0 is None:
        parameters = _started(parameters)
    if not parameters.free:
        checks.fail(owner, "p0", "have a parameter that is neither fixed nor tied", "none")
    if form is None:
        form = {name: np.zeros(()) for name in parameters} if positional is None else np.zeros(0)
    return Given(parameters, positional, form)


def _read_p0(owner: str, models: Models, p0: Any, sets: list[str]) -> Given:
    if p0 is None or (isinstance(p0, str) and p0 == "guess"):
        return _from_signature(owner, models)
    if isinstance(p0, str):
        checks.fail(owner, "p0", 'be numbers, a dict, Parameters or "guess"', repr(p0))
    if isinstance(p0, Parameters):
        return Given(p0, None, None)
    if isinstance(p0, Mapping):
        for name, value in p0.items():
            if isinstance(value, Mapping) and not set(map(str, value)) <= set(sets):
                wanted = f"have a dict for {name!r} only by the names of data sets"
                checks.fail(owner, "p0", wanted, f"the names {', '.join(map(str, value))}")
            if not isinstance(name, str):
                checks.fail(owner, "p0", "have names as keys", repr(name))
        if any(isinstance(value, Mapping | Parameter) for value in p0.values()):
            return Given(Parameters(**{name: p0[name] for name in sorted(p0)}), None, None)
        p0 = checked_pytree(owner, "p0", dict(p0))
        return Given(Parameters(**{name: p0[name] for name in sorted(p0)}), None, p0)
    p0 = checked_pytree(owner, "p0", p0)
    if isinstance(p0, list | tuple) or p0.ndim > 1:
        checks.fail(owner, "p0", "be a list of numbers or a dict", checks.describe(p0))
    p0 = p0.reshape(-1)
    if len({id(model) for model in models}) > 1:
        wanted = "be a dict or Parameters where there are several models"
        checks.fail(owner, "p0", wanted, checks.describe(p0))
    names = names_for(models[0], len(p0))
    _check_number(owner, models[0], p0, names)
    return Given(Parameters(**dict(zip(names, np.asarray(p0), strict=True))), names, p0)


def _check_number(owner: str, model: Callable[..., Any], p0: Any, names: list[str]) -> None:
    """Refuse a p0 with another number of parameters than the model takes."""
    arguments = arguments_of(model)
    if arguments.by_name:
        wanted = f"be a dict where the model takes {', '.join(arguments.by_name)} by name only"
        checks.fail(owner, "p0", wanted, checks.describe(p0))
    if not arguments.takes_any and names[0] == "p[0]" and arguments.names:
        wanted = f"have a number for each of {', '.join(arguments.names)}"
        checks.fail(owner, "p0", wanted, str(len(p0)))


def _from_signature(owner: str, models: Models) -> Given:
    """Return parameters without values, named by the arguments of the models."""
    named: dict[str, Parameter] = {}
    is_positional = len({id(model) for model in models}) == 1
    for model in models:
        arguments = arguments_of(model)
        if not arguments.required:
            wanted = "be given where the signature of the model does not name its parameters"
            checks.fail(owner, "p0", wanted, "nothing")
        named |= {name: Parameter() for name in arguments.required}
        is_positional = is_positional and not arguments.by_name
    return Given(Parameters(**named), list(named) if is_positional else None, None)


def _with_fixed(
    owner: str, parameters: Parameters, fixed: Any, positional: list[str] | None
) -> Parameters:
    """Return the parameters, those in `fixed` with their values there or their own ones."""
    if fixed is None:
        return parameters
    named = fixed if isinstance(fixed, Mapping) else None
    names = list(fixed) if named is not None else checks.names(owner, "fixed", fixed)
    changes = {}
    for name in names:
        found = _find(owner, "fixed", parameters, name, may_be_new=named is not None)
        if positional is not None and name not in parameters:
            _refuse_name(owner, "fixed", parameters, name)
        for each in found:
            value = named[name] if named is not None else parameters[each].value
            if value is None:
                checks.fail(owner, "fixed", f"have a value for {each!r}", "none in `fixed` or `p0`")
            try:
                changes[each] = Parameter(value, fixed=True)
            except ValueError as error:
                checks.fail(owner, f"fixed[{name!r}]", "be a number", repr(value), error)
    return parameters.changed(**changes)


def _with_tied(
    owner: str, parameters: Parameters, tied: Any, positional: list[str] | None
) -> Parameters:
    if tied is None:
        return parameters
    if not isinstance(tied, Mapping):
        wanted = "be a dict of functions of the parameters, such as {'b': lambda p: 2 * p['a']}"
        checks.fail(owner, "tied", wanted, checks.describe(tied))
    changes = {}
    for name, expression in tied.items():
        field = f"tied[{name!r}]"
        checks.function(owner, field, expression, "be a function of the parameters")
        for each in _find(owner, "tied", parameters, name, may_be_new=True):
            if each in parameters and parameters[each].kind == "fixed":
                checks.fail(owner, field, "not be fixed as well", f"fixed={each!r}")
            changes[each] = Parameter(expression=expression)
    return parameters.changed(**changes)


def _find(
    owner: str, field: str, parameters: Parameters, name: str, may_be_new: bool = False
) -> list[str]:
    """Return the parameters of a name: itself, or those that the data sets have of their own."""
    if name in parameters:
        return [name]
    own = [each for each in parameters if isinstance(name, str) and each.startswith(f"{name}[")]
    if not own and not may_be_new:
        _refuse_name(owner, field, parameters, name)
    return own or [name]


def _refuse_name(owner: str, field: str, parameters: Parameters, name: str) -> None:
    wanted = f"name one of the parameters {', '.join(parameters)}"
    checks.fail(owner, field, wanted, repr(name))


def _with_bounds(
    owner: str, parameters: Parameters, bounds: Any, positional: list[str] | None
) -> Parameters:
    """Return the parameters with bounds; one whose bounds are equal is fixed."""
    pairs: dict[str, Any] = {}
    if isinstance(bounds, Mapping):
        for name, pair in bounds.items():
            for each in _find(owner, "bounds", parameters, name):
                if parameters[each].kind == "tied":
                    wanted = f"leave out {each!r}, which is tied"
                    checks.fail(owner, "bounds", wanted, repr(pair))
                pairs[each] = pair
    elif bounds is not None:
        pairs = _pairs(owner, parameters, bounds, positional)
    changes: dict[str, Parameter] = {}
    for name in parameters.free:
        one = parameters[name]
        if name in pairs:
            try:
                one = changes[name] = dataclasses.replace(one, bounds=pairs[name])
            except ValueError as error:
                wanted = "hold pairs (lower, upper) with lower <= upper"
                checks.fail(owner, "bounds", wanted, f"{pairs[name]} for {name!r}", error)
        lower, upper = one.bounds
        if np.all(lower == upper):
            value = np.broadcast_to(lower, np.broadcast_shapes(lower.shape, np.shape(one.value)))
            changes[name] = Parameter(value, fixed=True)
    return parameters.changed(**changes) if changes else parameters


def _pairs(
    owner: str, parameters: Parameters, bounds: Any, positional: list[str] | None
) -> dict[str, Any]:
    """Return the bounds of each parameter from those of all of them, in the forms of `minimize`.

    SciPy's function takes (lower, upper) as a list, too: for two parameters that might as well be a
    list of pairs.
    """
    names = positional if positional is not None else list(parameters)
    if isinstance(bounds, list) and len(bounds) == len(names) == 2 and not np.isscalar(bounds[0]):
        wanted = "be a tuple (lower, upper), or a dict of pairs by name, for two parameters"
        checks.fail(owner, "bounds", wanted, "a list")
    structure = Structure.of(np.zeros(len(names)))
    box = as_box(owner, bounds, structure, np.dtype(float), names)
    return dict(zip(names, zip(*box, strict=True), strict=True))


def _started(parameters: Parameters) -> Parameters:
    """Return the parameters with SciPy's start where p0 is left out.

    It is the middle of the bounds, one away from the only bound, or 1 where there is none.
    """

    def start(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            inside = np.where(np.isfinite(upper), (lower + upper) / 2, lower + 1)
        below = np.where(np.isfinite(upper), upper - 1, 1.0)
        return np.where(np.isfinite(lower), inside, below)

    return parameters.changed(
        **{
            name: dataclasses.replace(each, value=start(*each.bounds))
            for name, each in parameters.items()
            if each.kind == "free" and each.value is None
        }
    )
